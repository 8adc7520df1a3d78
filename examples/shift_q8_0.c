/* SPDX-License-Identifier: MIT
 *
 * shift_q8_0.c - context shift of a cache in the engine's own block format, in place */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>

enum { BLOCK = 32, DIM = 64, LEN = 8, FIRST = 6, DROP = 4 };
struct block {
    float d; /* an f16 in q8_0 proper */
    int8_t qs[BLOCK];
};

static void decode(void *ctx, const void *src, float *dst, int64_t count)
{
    const struct block *b = src;
    (void)ctx;
    for (int64_t i = 0; i < count; i++)
        dst[i] = b[i / BLOCK].d * b[i / BLOCK].qs[i % BLOCK];
}

static void encode(void *ctx, const float *src, void *dst, int64_t count)
{
    struct block *b = dst;
    (void)ctx;
    for (int64_t i = 0; i < count; i += BLOCK, b++) {
        b->d = 0x1p-126f; /* all zeroes stay so */
        for (int j = 0; j < BLOCK; j++)
            b->d = fmaxf(b->d, fabsf(src[i + j]) / 127);
        for (int j = 0; j < BLOCK; j++)
            b->qs[j] = (int8_t)roundf(src[i + j] / b->d);
    }
}

int main(void)
{
    static const pe_codec codec = {BLOCK, sizeof(struct block), decode, encode, NULL};
    static struct block cache[LEN][DIM / BLOCK], fresh[LEN][DIM / BLOCK];
    const pe_positions from = {.start = FIRST}, to = {.start = FIRST - DROP};
    pe_rope_spec spec = {sizeof spec, DIM, .freqs = {.rope_theta = 10000}};
    float raw[LEN * DIM];
    pe_tensor x, y, keys;
    pe_rope *rope;
    spec.pairs.pairing = PE_HALF_SPLIT;
    for (int i = 0; i < LEN * DIM; i++)
        raw[i] = sinf((float)i);
    pe_tensor_bshd(&x, PE_F32, raw, 1, LEN, 1, DIM);
    pe_tensor_bshd(&y, PE_CODED, fresh, 1, LEN, 1, DIM);
    pe_tensor_bshd(&keys, PE_CODED, cache, 1, LEN, 1, DIM);
    y.codec = keys.codec = &codec;
    pe_status failed = pe_rope_create(&rope, &spec, NULL, NULL);
    failed |= pe_rope_apply(rope, &from, &x, &keys, NULL);
    failed |= pe_rope_shift(rope, -DROP, &keys, &keys, NULL);
    failed |= pe_rope_apply(rope, &to, &x, &y, NULL);
    pe_rope_destroy(rope);
    const float shifted = cache[3]->d * cache[3]->qs[1];
    const float computed = fresh[3]->d * fresh[3]->qs[1];
    printf("shifted key %.3f, fresh key %.3f\n", (double)shifted, (double)computed);
    return failed || fabsf(shifted - computed) > 0.02f; /* 8-bit blocks */
}
