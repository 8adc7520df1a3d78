/* SPDX-License-Identifier: MIT
 *
 * npy_out.h - writing a .npy file piece by piece
 *
 * A file appears under its name only when it is whole: until cli_npy_commit it has a
 * temporary name beside it. */
#ifndef POSENC_CLI_NPY_OUT_H
#define POSENC_CLI_NPY_OUT_H

#include "cli.h"

#include <stdio.h>

typedef struct cli_npy_out {
    FILE *file;
    char *path, *temporary; /* temporary NULL: standard output */
} cli_npy_out;

/* descr is NumPy's: "<f4".  path "-": standard output.  Says what went wrong and
 * returns an exit code, as the others do. */
int cli_npy_create(cli_npy_out *out, const char *path, const char *descr, int32_t rank,
                   const int64_t *shape);
int cli_npy_write(cli_npy_out *out, const void *data, size_t size);
/* Closes and gives it its name. */
int cli_npy_commit(cli_npy_out *out);
/* Removes what was not committed; fine on a zeroed or committed one. */
void cli_npy_discard(cli_npy_out *out);

#endif /* POSENC_CLI_NPY_OUT_H */
