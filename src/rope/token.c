/* SPDX-License-Identifier: MIT
 *
 * token.c - one token of one batch row: the call of every step of generation
 *
 * To turn it takes no longer than the checks and choices that any tensor needs.  So where
 * all is plain a few comparisons decide; whatever they do not pass goes the general way
 * of apply.c, which refuses what is to be refused. */
#include "base/dtype.h"
#include "rope/plan.h"
#include "rope/rotate.h"

static int is_one(const pe_tensor *x, pe_direction direction, int64_t head_dim)
{
    return x != NULL && pe_tensor_is_plain(x, direction) && x->batch == 1 &&
           x->seq_len == 1 && x->dim == head_dim;
}

/* No byte lies between the first and the last of both. */
static int are_apart(const pe_tensor *x, const pe_tensor *y)
{
    const int64_t xn = (x->num_heads - 1) * x->head_stride + x->dim;
    const int64_t yn = (y->num_heads - 1) * y->head_stride + y->dim;
    const uintptr_t from = (uintptr_t)x->data, to = (uintptr_t)y->data;
    return from + (uintptr_t)(xn * pe_dtype_size(x->dtype)) <= to ||
           to + (uintptr_t)(yn * pe_dtype_size(y->dtype)) <= from;
}

/* From x to y: in place, or elsewhere where nothing is left to copy. */
static int is_turnable(const pe_rope *rope, const pe_tensor *x, const pe_tensor *y)
{
    const int64_t dim = rope->info.head_dim;
    if (x == y)
        return is_one(x, PE_OUTPUT, dim);
    return is_one(x, PE_INPUT, dim) && is_one(y, PE_OUTPUT, dim) &&
           x->num_heads == y->num_heads && 2 * rope->turns.n == dim && are_apart(x, y);
}

/* at gives a start alone, and the plan's rows are exact and as they stand. */
static int is_at_start(const pe_rope *rope, const pe_positions *at)
{
    return at != NULL && pe_rope_has_runs(rope, at) && at->starts == NULL &&
           at->reserved == 0 && (at->num_axes == 0 || at->num_axes == 1) &&
           (at->batch_stride | at->axis_stride) >= 0 && !rope->pairs.reversed &&
           rope->env.executor.run == NULL;
}

static void turn(const pe_rope *rope, pe_row row, const pe_tensor *x,
                 const pe_tensor *y)
{
    const pe_window window = {rope->kernels, rope->pairs.rotary_start, rope->turns.n,
                              rope->pairs.pairing, rope->pairs.out_pairing};
    const int64_t start = window.start;
    const int64_t several = x->num_heads > 1; /* else a stride may be anything */
    pe_rotate_kernel(&window, x->dtype, y->dtype)(
        (const unsigned char *)x->data + start * pe_dtype_size(x->dtype),
        several * x->head_stride,
        (unsigned char *)y->data + start * pe_dtype_size(y->dtype),
        several * y->head_stride, x->num_heads, row.cos, row.sin, window.num_pairs);
}

int pe_rope_one_token(const pe_rope *rope, const pe_positions *at, const pe_tensor *x,
                      const pe_tensor *y, const pe_tensor *x2, const pe_tensor *y2)
{
    pe_row_buffer buffer;
    if (rope == NULL || !is_at_start(rope, at) || !is_turnable(rope, x, y))
        return 0;
    if (x2 != NULL && (!is_turnable(rope, x2, y2) || !are_apart(x, y2) ||
                       !are_apart(y, y2) || !are_apart(y, x2)))
        return 0;
    pe_row row = pe_rope_tabulated(rope, at->start, PE_SCALE_FULL);
    if (row.cos == NULL)
        row = pe_rope_run(rope, at->start, 1, PE_SCALE_FULL, &buffer);
    turn(rope, row, x, y);
    if (x2 != NULL)
        turn(rope, row, x2, y2);
    return 1;
}
