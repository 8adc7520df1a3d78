/* SPDX-License-Identifier: MIT
 *
 * apply_absolute.h - posenc apply --x: adding positions to hidden states
 */
#ifndef POSENC_CLI_APPLY_ABSOLUTE_H
#define POSENC_CLI_APPLY_ABSOLUTE_H

#include "absolute_arg.h"

typedef struct cli_apply_absolute_args {
    const char *x, *table, *positions, *output; /* x and output are given */
    const cli_rope_args *rope;
    int32_t is_bf16;
} cli_apply_absolute_args;

/* Writes OUTPUT/x.npy.  Says what went wrong and returns an exit code. */
int cli_apply_absolute(const cli_model *model, const cli_apply_absolute_args *args);

#endif /* POSENC_CLI_APPLY_ABSOLUTE_H */
