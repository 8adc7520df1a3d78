/* SPDX-License-Identifier: MIT
 *
 * cut.c - where work on tokens may be cut without two threads in one cache line
 *
 * A line that two threads write goes to and fro between their cores.  Lines are those of
 * x86 and most of Arm. */
#include "base/tensor.h"

#include "base/dtype.h"

enum { LINE = 64, FARTHEST = 64 };

/* Bytes from the first element to element e, which begins a scale's group or block. */
static int64_t bytes_to(const pe_tensor *y, int64_t e)
{
    return y->dtype == PE_CODED ? e / y->codec->block_len * y->codec->block_size
                                : e * pe_dtype_size(y->dtype);
}

static int begins_line(const void *base, int64_t bytes)
{
    return ((uintptr_t)base + (uintptr_t)bytes) % LINE == 0;
}

/* Elements from one run of tokens to the next, 0 where all heads of a token are one run,
 * the tokens of a head another's. */
static int64_t run_stride(const pe_tensor *y)
{
    return y->num_heads > 1 && y->head_stride > y->seq_stride ? y->head_stride : 0;
}

/* The runs of every head begin a line, and so does the token in the first of them. */
static int is_clean(const pe_tensor *y, int64_t token)
{
    const int64_t b = token / y->seq_len, t = token % y->seq_len;
    const int64_t heads = run_stride(y);
    const int64_t in_run = y->page_table != NULL ? t % y->page_len : t;
    int64_t element;
    if (!pe_tensor_at(y, b, t, 0, &element))
        return 1;
    const int64_t first = heads != 0 ? element - in_run * y->seq_stride : element;
    if (y->dtype == PE_I8) {
        const int64_t group = pe_tensor_group(y);
        const int64_t size = (int64_t)sizeof *y->scales;
        if (!begins_line(y->scales, element / group * size) ||
            !begins_line(y->scales, first / group * size) ||
            heads / group * size % LINE)
            return 0;
    }
    return begins_line(y->data, bytes_to(y, element)) &&
           begins_line(y->data, bytes_to(y, first)) && bytes_to(y, heads) % LINE == 0;
}

int64_t pe_tensor_cut(const pe_tensor *const *outputs, int num_outputs, int64_t token)
{
    const int64_t count = outputs[0]->batch * outputs[0]->seq_len;
    if (token <= 0 || token >= count)
        return token;
    for (int64_t i = token; i >= 0 && i > token - FARTHEST; i--) {
        int clean = 1;
        for (int k = 0; k < num_outputs; k++)
            clean &= is_clean(outputs[k], i);
        if (clean)
            return i;
    }
    return token;
}
