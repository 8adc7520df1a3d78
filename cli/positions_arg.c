/* SPDX-License-Identifier: MIT
 *
 * positions_arg.c - the value of an option for positions, which may be a file of ids
 */
#include "positions_arg.h"

#include "npy_in.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail_shape(const cli_positions *p, int64_t batch, int64_t seq_len,
                      int32_t num_axes)
{
    cli_shape shape;
    return cli_fail(CLI_FAILED,
                    "%s: ids are %s, must be (seq_len), (batch, seq_len), (axes, "
                    "seq_len) or (axes, batch, seq_len) with seq_len %lld, batch %lld "
                    "and axes %d",
                    p->name, cli_shape_text(&shape, p->rank, p->shape),
                    (long long)seq_len, (long long)batch, (int)num_axes);
}

static int read_ids(cli_positions *out, cli_npy_in *in)
{
    const pe_weight *weight = in->weight;
    int is_wide = strcmp(weight->dtype_name, "<i8") == 0;
    if (!is_wide && strcmp(weight->dtype_name, "<i4") != 0)
        return cli_fail(CLI_FAILED, "%s: ids are %s, must be <i8 or <i4", in->name,
                        weight->dtype_name);
    if (weight->rank < 1 || weight->rank > 3)
        return cli_fail(CLI_FAILED, "%s: ids have %d axes, must have 1 to 3", in->name,
                        (int)weight->rank);
    size_t count = (size_t)weight->size / (is_wide ? 8 : 4);
    out->count = (int64_t)count;
    out->rank = weight->rank;
    memcpy(out->shape, weight->shape, (size_t)weight->rank * sizeof out->shape[0]);
    out->ids = count < SIZE_MAX / 8 ? malloc(8 * count + 8) : NULL;
    if (out->ids == NULL)
        return cli_fail(CLI_FAILED, "out of memory for the ids of %s", in->name);
    int status = cli_npy_read(in, out->ids, (size_t)weight->size);
    if (status != CLI_DONE || is_wide)
        return status;
    /* Widens from the back, so that no id is overwritten before it is read. */
    for (size_t i = count; i-- > 0;) {
        int32_t id;
        memcpy(&id, (const char *)out->ids + 4 * i, sizeof id);
        out->ids[i] = id;
    }
    return CLI_DONE;
}

static int is_readable(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file != NULL)
        (void)fclose(file);
    return file != NULL;
}

int cli_positions_open(cli_positions *out, const char *option, const char *text)
{
    *out = (cli_positions){.name = text};
    if (text == NULL || cli_read_integer(text, &out->start))
        return CLI_DONE;
    if (strcmp(text, "-") != 0 && strstr(text, ".npy") == NULL && !is_readable(text))
        return cli_fail(CLI_USAGE,
                        "--%s is '%s', must be a whole number, or a .npy file of ids",
                        option, text);
    cli_npy_in in;
    int status = cli_npy_open(&in, text);
    if (status == CLI_DONE)
        status = read_ids(out, &in);
    cli_npy_close(&in);
    if (status != CLI_DONE)
        cli_positions_close(out);
    return status;
}

int cli_positions_fit(const cli_positions *p, int64_t batch, int64_t seq_len,
                      int32_t num_axes, pe_positions *at)
{
    *at = (pe_positions){.start = p->start, .ids = p->ids};
    if (p->ids == NULL) {
        if (p->start > INT64_MAX - seq_len)
            return cli_fail(CLI_USAGE,
                            "the first position is %lld, too large for %lld tokens",
                            (long long)p->start, (long long)seq_len);
        return CLI_DONE;
    }
    int64_t axes = 1, rows = 1;
    if (p->rank == 3) {
        axes = p->shape[0];
        rows = p->shape[1];
    } else if (p->rank == 2) {
        int is_axes = num_axes > 1 && p->shape[0] == num_axes;
        if (is_axes && p->shape[0] == batch)
            return cli_fail(CLI_FAILED,
                            "%s: %lld lines may be axes or rows of the batch; make "
                            "the ids (axes, batch, seq_len)",
                            p->name, (long long)batch);
        *(is_axes ? &axes : &rows) = p->shape[0];
    }
    if (p->shape[p->rank - 1] != seq_len || (axes != 1 && axes != num_axes) ||
        (rows != 1 && rows != batch))
        return fail_shape(p, batch, seq_len, num_axes);
    at->batch_stride = rows > 1 ? seq_len : 0;
    at->axis_stride = axes > 1 ? rows * seq_len : 0;
    at->num_axes = axes > 1 ? (int32_t)axes : 0;
    return CLI_DONE;
}

int64_t cli_positions_last(const cli_positions *p, int64_t seq_len)
{
    int64_t last = -1;
    if (p->ids == NULL)
        return seq_len == 0                         ? -1
               : p->start > INT64_MAX - seq_len + 1 ? INT64_MAX
                                                    : p->start + seq_len - 1;
    for (int64_t i = 0; i < p->count; i++)
        last = p->ids[i] > last ? p->ids[i] : last;
    return last;
}

void cli_positions_close(cli_positions *positions)
{
    free(positions->ids);
    *positions = (cli_positions){0};
}
