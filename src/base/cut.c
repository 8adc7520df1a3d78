/* SPDX-License-Identifier: MIT
 *
 * cut.c - where work on tokens may be cut without two threads in one cache line
 *
 * A line that two threads write goes to and fro between their cores.  Lines are those of
 * x86 and most of Arm. */
#include "base/tensor.h"

enum { LINE = 64 };

static uintptr_t scale_bytes(const pe_tensor *y, int64_t e)
{
    return y->dtype != PE_I8 ? 0
                             : (uintptr_t)(e / pe_tensor_group(y)) * sizeof *y->scales;
}

/* Element e, which begins a scale's group or a block, begins a line, and so does its
 * scale. */
static int begins_line(const pe_tensor *y, int64_t e)
{
    const uintptr_t scale =
        y->dtype == PE_I8 ? (uintptr_t)y->scales + scale_bytes(y, e) : 0;
    return (((uintptr_t)y->data + (uintptr_t)pe_tensor_bytes(y, e)) | scale) % LINE ==
           0;
}

/* After how many steps of stride elements lines lie as they did: 64 over the greatest
 * power of two that divides 64 and the bytes of a step.  What begins no line within so
 * many never will, so that data askew with strides of whole lines is asked once. */
static int64_t period(const pe_tensor *y, int64_t stride)
{
    const uintptr_t bits =
        LINE | (uintptr_t)pe_tensor_bytes(y, stride) | scale_bytes(y, stride);
    return LINE / (int64_t)(bits & (0 - bits));
}

/* Elements from one token to the next, by the stride that tells most of them apart. */
static int64_t token_stride(const pe_tensor *y)
{
    const int64_t step = pe_tensor_seq_step(y);
    if (step != 0)
        return step;
    return y->page_table != NULL ? y->page_stride : y->batch > 1 ? y->batch_stride : 0;
}

/* Elements from one run of tokens to the next, 0 where all heads of a token are one run,
 * the tokens of a head another's. */
static int64_t run_stride(const pe_tensor *y)
{
    return y->num_heads > 1 && y->head_stride > token_stride(y) ? y->head_stride : 0;
}

/* The runs of every head begin a line, and so does the token in the first of them. */
static int is_clean(const pe_tensor *y, int64_t token)
{
    const int64_t b = token / y->seq_len, t = token % y->seq_len;
    const int64_t in_run = y->page_table != NULL ? t % y->page_len : t;
    int64_t element;
    if (!pe_tensor_at(y, b, t, 0, &element))
        return 1;
    return begins_line(y, element) &&
           (run_stride(y) == 0 || begins_line(y, element - in_run * y->seq_stride));
}

int64_t pe_tensor_cut(const pe_tensor *const *outputs, int num_outputs, int64_t token)
{
    const int64_t count = outputs[0]->batch * outputs[0]->seq_len;
    int64_t farthest = 1;
    if (token <= 0 || token >= count)
        return token;
    for (int k = 0; k < num_outputs; k++) {
        const int64_t steps = period(outputs[k], token_stride(outputs[k]));
        farthest = steps > farthest ? steps : farthest;
        if (period(outputs[k], run_stride(outputs[k])) > 1)
            return token;
    }
    for (int64_t i = token; i >= 0 && i > token - farthest; i--) {
        int clean = 1;
        for (int k = 0; k < num_outputs; k++)
            clean &= is_clean(outputs[k], i);
        if (clean)
            return i;
    }
    return token;
}

int64_t pe_tensor_cut_rows(const pe_tensor *y, int64_t row)
{
    const int by_head = y->num_heads > 1 && !pe_tensor_heads_outside(y);
    const int64_t farthest = period(y, by_head ? y->head_stride : token_stride(y));
    if (row <= 0 || row >= y->batch * y->seq_len * y->num_heads)
        return row;
    for (int64_t i = row; i >= 0 && i > row - farthest; i--) {
        int64_t b, t, h, element;
        pe_tensor_row(y, i, &b, &t, &h);
        if (!pe_tensor_at(y, b, t, h, &element) || begins_line(y, element))
            return i;
    }
    return row;
}
