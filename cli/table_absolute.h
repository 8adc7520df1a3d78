/* SPDX-License-Identifier: MIT
 *
 * table_absolute.h - posenc table for models whose positions are added to the input
 */
#ifndef POSENC_CLI_TABLE_ABSOLUTE_H
#define POSENC_CLI_TABLE_ABSOLUTE_H

#include "absolute_arg.h"

typedef struct cli_table_absolute_args {
    cli_range positions;
    const char *table, *output;
    const cli_rope_args *rope;
    int32_t is_json, is_csv;
} cli_table_absolute_args;

/* Says what went wrong and returns an exit code. */
int cli_table_absolute(const cli_model *model, const cli_table_absolute_args *args);

#endif /* POSENC_CLI_TABLE_ABSOLUTE_H */
