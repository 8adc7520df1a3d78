/* SPDX-License-Identifier: MIT
 *
 * tensor_arg.c - a tensor in a .npy file: its layout, checked against the model
 */
#include "tensor_arg.h"

#include <string.h>

static int read_dtype(cli_tensor *out, const cli_tensor_want *want)
{
    const char *name = out->in.weight->dtype_name;
    out->element_size = strcmp(name, "<f4") == 0 ? 4 : 2;
    out->dtype = out->in.weight->dtype;
    if (strcmp(name, "<u2") == 0 && want->is_bf16) {
        out->dtype = PE_BF16;
        return CLI_DONE;
    }
    if (strcmp(name, "<u2") == 0)
        return cli_fail(CLI_USAGE,
                        "%s is <u2; say --bf16 if its numbers are the bits of bfloat16",
                        out->in.name);
    if (out->dtype != PE_F32 && out->dtype != PE_F16)
        return cli_fail(CLI_FAILED, "%s is %s, must be <f4, <f2, or <u2 with --bf16",
                        out->in.name, name);
    if (want->is_bf16)
        return cli_fail(CLI_USAGE, "%s is %s, must be <u2 with --bf16", out->in.name,
                        name);
    return CLI_DONE;
}

/* Most wrong layouts still have a plausible shape.  Where the model says how many
 * heads there are, and they are on the other axis, the caller has to say. */
static int check_heads(const cli_tensor *t, const cli_tensor_want *want)
{
    if (want->layout != CLI_LAYOUT_UNSAID || want->num_heads == 0 ||
        t->num_heads == want->num_heads || t->seq_len != want->num_heads)
        return CLI_DONE;
    return cli_fail(CLI_USAGE,
                    "%s: the model has %d heads, which fits bhsd, not the default "
                    "bshd; say --layout bhsd or --layout bshd",
                    t->in.name, (int)want->num_heads);
}

static int read_hidden_shape(cli_tensor *out, const cli_tensor_want *want)
{
    const pe_weight *weight = out->in.weight;
    const int32_t rank = weight->rank;
    if (rank != 2 && rank != 3)
        return cli_fail(CLI_FAILED,
                        "%s has %d axes, must have 3 (batch, seq_len, model_dim) or 2 "
                        "(no batch)",
                        out->in.name, (int)rank);
    out->layout = CLI_BSHD;
    out->batch = rank == 3 ? weight->shape[0] : 1;
    out->seq_len = weight->shape[rank - 2];
    out->num_heads = 1;
    out->dim = weight->shape[rank - 1];
    if (out->dim != want->head_dim)
        return cli_fail(CLI_FAILED, "%s: the last axis is %lld, must be model_dim (%d)",
                        out->in.name, (long long)out->dim, (int)want->head_dim);
    return CLI_DONE;
}

static int read_shape(cli_tensor *out, const cli_tensor_want *want)
{
    if (want->is_hidden)
        return read_hidden_shape(out, want);
    const pe_weight *weight = out->in.weight;
    int32_t rank = weight->rank;
    if (rank < 2 || rank > 4)
        return cli_fail(CLI_FAILED,
                        "%s has %d axes, must have 4 (as --layout says), 3 (no batch) "
                        "or 2 (one head)",
                        out->in.name, (int)rank);
    const int64_t *shape = weight->shape;
    out->layout = want->layout == CLI_LAYOUT_UNSAID ? CLI_BSHD : want->layout;
    out->dim = shape[rank - 1];
    out->batch = rank == 4 ? shape[0] : 1;
    if (rank == 2) {
        out->seq_len = shape[0];
        out->num_heads = 1;
    } else if (out->layout == CLI_BSHD) {
        out->seq_len = shape[rank - 3];
        out->num_heads = shape[rank - 2];
    } else {
        out->seq_len = shape[rank - 2];
        out->num_heads = shape[rank - 3];
    }
    if (want->head_dim != 0 && out->dim != want->head_dim)
        return cli_fail(CLI_FAILED, "%s: the last axis is %lld, must be head_dim (%d)",
                        out->in.name, (long long)out->dim, (int)want->head_dim);
    return rank == 2 ? CLI_DONE : check_heads(out, want);
}

int cli_tensor_open(cli_tensor *out, const char *path, const cli_tensor_want *want)
{
    *out = (cli_tensor){0};
    int status = cli_npy_open(&out->in, path);
    if (status == CLI_DONE)
        status = read_dtype(out, want);
    if (status == CLI_DONE)
        status = read_shape(out, want);
    if (status != CLI_DONE)
        cli_tensor_close(out);
    return status;
}

void cli_tensor_close(cli_tensor *tensor)
{
    cli_npy_close(&tensor->in);
    *tensor = (cli_tensor){0};
}
