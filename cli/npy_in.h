/* SPDX-License-Identifier: MIT
 *
 * npy_in.h - reading the elements of a .npy file in order
 *
 * A file is read, not touched through its mapping, so that a tensor larger than memory
 * costs only the caller's buffer. */
#ifndef POSENC_CLI_NPY_IN_H
#define POSENC_CLI_NPY_IN_H

#include "cli.h"

#include "posenc/model.h"

#include <stdio.h>

typedef struct cli_npy_in {
    pe_checkpoint *checkpoint;
    const pe_weight *weight; /* dtype and shape */
    const char *name;        /* for messages */
    FILE *file;              /* at the next element; NULL: a pipe, held in memory */
    const char *next;
} cli_npy_in;

/* path "-": standard input.  Says what went wrong and returns an exit code. */
int cli_npy_open(cli_npy_in *in, const char *path);
/* At most as many bytes as are left. */
int cli_npy_read(cli_npy_in *in, void *data, size_t size);
/* "(1, 8, 4, 128)" */
typedef struct cli_shape {
    char text[192];
} cli_shape;
const char *cli_shape_text(cli_shape *out, int32_t rank, const int64_t *shape);
/* Fine on a zeroed one. */
void cli_npy_close(cli_npy_in *in);

#endif /* POSENC_CLI_NPY_IN_H */
