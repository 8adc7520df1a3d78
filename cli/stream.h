/* SPDX-License-Identifier: MIT
 *
 * stream.h - a tensor of a .npy file on its way into another, piece by piece
 */
#ifndef POSENC_CLI_STREAM_H
#define POSENC_CLI_STREAM_H

#include "file_out.h"
#include "tensor_arg.h"

/* Changes a piece in place: some tokens of one batch row, from token on, or all heads'
 * part of them.  Returns an exit code, after a message if it is not CLI_DONE. */
typedef int (*cli_stream_fn)(void *context, int64_t row, int64_t token,
                             const pe_tensor *x);

/* In the order of the file and through one buffer, so that memory stays bounded
 * whatever the size.  label: for the progress bar. */
int cli_stream(cli_tensor *in, cli_file_out *out, const char *label,
               cli_stream_fn change, void *context);

/* The positions of a piece, from those of the whole tensor. */
pe_positions cli_stream_positions(const pe_positions *whole, int64_t row,
                                  int64_t token);

#endif /* POSENC_CLI_STREAM_H */
