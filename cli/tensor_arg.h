/* SPDX-License-Identifier: MIT
 *
 * tensor_arg.h - a tensor in a .npy file: its layout, checked against the model
 */
#ifndef POSENC_CLI_TENSOR_ARG_H
#define POSENC_CLI_TENSOR_ARG_H

#include "npy_in.h"

typedef int32_t cli_layout;
enum { CLI_LAYOUT_UNSAID = 0, CLI_BSHD = 1, CLI_BHSD = 2 };

/* A tensor on disk, (batch, seq_len, num_heads, dim) in the order of layout. */
typedef struct cli_tensor {
    cli_npy_in in;
    int64_t batch, seq_len, num_heads, dim;
    pe_dtype dtype;
    int32_t element_size;
    cli_layout layout;
} cli_tensor;

/* What the model expects; 0: not known, not checked. */
typedef struct cli_tensor_want {
    int32_t head_dim, num_heads;
    cli_layout layout; /* UNSAID: bshd, refused if only bhsd fits num_heads */
    int32_t is_bf16;   /* <u2 holds bfloat16 */
    int32_t is_hidden; /* (batch, seq_len, head_dim), batch may be missing: no heads */
} cli_tensor_want;

/* Four axes as layout says; three: no batch; two: one head.  Says what went wrong and
 * returns an exit code. */
int cli_tensor_open(cli_tensor *out, const char *path, const cli_tensor_want *want);
void cli_tensor_close(cli_tensor *tensor);

#endif /* POSENC_CLI_TENSOR_ARG_H */
