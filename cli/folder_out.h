/* SPDX-License-Identifier: MIT
 *
 * folder_out.h - the --output folder of verbs that write several .npy files
 */
#ifndef POSENC_CLI_FOLDER_OUT_H
#define POSENC_CLI_FOLDER_OUT_H

#include "npy_out.h"

#include "posenc/model.h"

/* Made if it does not exist.  Says what went wrong and returns an exit code, as the
 * next does. */
int cli_folder_make(const char *path);

/* folder/name, with the dtype and shape of a tensor.  Writing over one of the inputs,
 * NULL where there is none, would destroy what cannot be made again: refused. */
int cli_folder_create(cli_file_out *out, const char *folder, const char *name,
                      const pe_weight *like, const char *const *inputs,
                      size_t num_inputs);

#endif /* POSENC_CLI_FOLDER_OUT_H */
