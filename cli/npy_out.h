/* SPDX-License-Identifier: MIT
 *
 * npy_out.h - the beginning of a .npy file; its elements follow piece by piece
 */
#ifndef POSENC_CLI_NPY_OUT_H
#define POSENC_CLI_NPY_OUT_H

#include "file_out.h"

/* descr is NumPy's: "<f4".  path "-": standard output.  The elements are written, and
 * the file committed or discarded, as file_out.h says. */
int cli_npy_create(cli_file_out *out, const char *path, const char *descr, int32_t rank,
                   const int64_t *shape);

#endif /* POSENC_CLI_NPY_OUT_H */
