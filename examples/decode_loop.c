/* SPDX-License-Identifier: MIT
 *
 * decode_loop.c - a decoder's step: q turns in place, k straight into an f16 cache
 *
 * The score of q at position 7 and k at position 5 is that of 2 and 0: positions enter a
 * score by their difference only. */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>

enum { HEADS = 4, KV_HEADS = 2, DIM = 64, MAX_LEN = 16 };

static uint16_t k_cache[MAX_LEN][KV_HEADS][DIM];

/* Turns the q and k of the token at pos; both came out of f32 projections. */
static pe_status step(const pe_rope *rope, int64_t pos, float *q, float *k)
{
    const pe_positions at = {.start = pos};
    pe_tensor tq, tk, slot;

    pe_tensor_bshd(&tq, PE_F32, q, 1, 1, HEADS, DIM);
    pe_tensor_bshd(&tk, PE_F32, k, 1, 1, KV_HEADS, DIM);
    pe_tensor_bshd(&slot, PE_F16, k_cache[pos], 1, 1, KV_HEADS, DIM);
    return pe_rope_apply_qk(rope, &at, &tq, &tq, &tk, &slot, NULL);
}

static double score(const pe_rope *rope, int64_t q_pos, int64_t k_pos)
{
    float q[HEADS * DIM], k[KV_HEADS * DIM], key[DIM], ignored[HEADS * DIM] = {0};
    pe_tensor cached, row;
    double sum = 0;

    for (int i = 0; i < HEADS * DIM; i++)
        q[i] = k[i % (KV_HEADS * DIM)] = (float)(i % 7) / 8;
    step(rope, k_pos, ignored, k);
    step(rope, q_pos, q, k);
    pe_tensor_bshd(&cached, PE_F16, k_cache[k_pos], 1, 1, 1, DIM);
    pe_tensor_bshd(&row, PE_F32, key, 1, 1, 1, DIM);
    pe_tensor_copy(&cached, &row, NULL, NULL);
    for (int i = 0; i < DIM; i++)
        sum += (double)q[i] * (double)key[i];
    return sum;
}

int main(void)
{
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = DIM,
                               .table_len = MAX_LEN,
                               .pairs = {.pairing = PE_INTERLEAVED},
                               .freqs = {.rope_theta = 500000}};
    pe_rope *rope;

    if (pe_rope_create(&rope, &spec, NULL, NULL) != PE_OK)
        return 1;
    const double near = score(rope, 2, 0), far = score(rope, 7, 5);
    printf("scores %.4f and %.4f\n", near, far);
    pe_rope_destroy(rope);
    return fabs(near - far) > 2e-3 * fabs(near); /* two f16 caches */
}
