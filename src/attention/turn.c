/* SPDX-License-Identifier: MIT
 *
 * turn.c - loading and rotating one vector
 */
#include "attention/turn.h"

#include "base/at.h"
#include "base/dtype.h"
#include "kernels/vectors.h"

#include <math.h>
#include <string.h>

pe_turning pe_turn_make(const pe_rope *rope, const pe_positions *at, int64_t b,
                        int64_t t, pe_row_buffer *buffer)
{
    pe_turning turning = {rope, {NULL, NULL}};
    if (rope == NULL)
        return turning;
    const pe_place place = pe_place_read(rope, at, b, t);
    turning.row = pe_rope_row(rope, &place, PE_SCALE_FULL, buffer);
    if (rope->pairs.reversed)
        turning.row = pe_row_negate(turning.row, rope->turns.n, buffer);
    return turning;
}

int pe_all_finite(const float *x, int64_t n)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad |= ((pe_f32_bits(x[i]) & 0x7f800000u) + 0x00800000u) & 0x80000000u;
    return bad == 0;
}

double pe_length(const float *x, int64_t n)
{
    double sums[8] = {0}; /* side by side: no addition waits for the one before */
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            sums[j] += (double)x[i + j] * (double)x[i + j];
    for (; i < n; i++)
        sums[0] += (double)x[i] * (double)x[i];
    return sqrt(((sums[0] + sums[1]) + (sums[2] + sums[3])) +
                ((sums[4] + sums[5]) + (sums[6] + sums[7])));
}

void pe_load(const pe_attention *plan, const pe_tensor *x, int64_t element,
             int64_t begin, int64_t count, float *out)
{
    pe_kernels_load(plan->plain, x, element, begin, count, out);
}

static void turn(const pe_turning *turning, pe_pairing in, pe_pairing out, int64_t dim,
                 const pe_row *row, const float *x, float *y)
{
    const pe_rope *rope = turning->rope;
    const int64_t start = rope->pairs.rotary_start, n = rope->turns.n;
    memcpy(y, x, (size_t)dim * sizeof *y);
    rope->kernels
        ->rotate[PE_K_F32][PE_K_F32][in == PE_INTERLEAVED][out == PE_INTERLEAVED](
            x + start, 0, y + start, 0, 1, row->cos, row->sin, n);
}

void pe_turn_load(const pe_attention *plan, const pe_tensor *x, int64_t element,
                  const pe_turning *turning, float *room, float *out)
{
    if (turning->rope == NULL) {
        pe_load(plan, x, element, 0, x->dim, out);
        return;
    }
    pe_load(plan, x, element, 0, x->dim, room);
    const pe_pairs *pairs = &turning->rope->pairs;
    turn(turning, pairs->pairing, pairs->out_pairing, x->dim, &turning->row, room, out);
}

void pe_turn_back(const pe_turning *turning, int64_t dim, const float *x, float *y)
{
    pe_row_buffer buffer;
    if (turning->rope == NULL) {
        memcpy(y, x, (size_t)dim * sizeof *y);
        return;
    }
    const pe_pairs *pairs = &turning->rope->pairs;
    const pe_row back = pe_row_negate(turning->row, turning->rope->turns.n, &buffer);
    turn(turning, pairs->out_pairing, pairs->pairing, dim, &back, x, y);
}
