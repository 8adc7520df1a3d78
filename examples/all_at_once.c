/* SPDX-License-Identifier: MIT
 *
 * all_at_once.c - no special case: M-RoPE x YaRN x tail window x interleaved in, halves
 * out x fractional ids per row x bf16 strided in x int8 paged out, in one call
 */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>

enum { B = 2, N = 3, HEADS = 4, KV = 2, DIM = 128, SLOTS = 8 };

static const pe_rope_spec spec = {
    .struct_size = sizeof spec,
    .head_dim = DIM,
    .pairs = {.pairing = PE_INTERLEAVED,
              .out_pairing = PE_HALF_SPLIT,
              .rotary_start = 64,
              .rotary_dim = 64},
    .axes = {.map = PE_AXIS_INTERLEAVED, .section = {12, 10, 10}},
    .freqs = {.rope_type = PE_ROPE_YARN,
              .rope_theta = 1e6,
              .factor = 4,
              .original_max_position_embeddings = 32768}};

int main(void)
{
    static uint16_t qkv[B][N][HEADS + 2 * KV][DIM];
    static int8_t pool[SLOTS * KV * DIM];
    static float scales[SLOTS * KV], plain[B * N * KV * DIM], back[B * N * KV * DIM];
    static double xyz[3][B][N];
    const int32_t slots[B * N] = {7, 0, 5, 2, 1, 4};
    const pe_positions at = {
        .values = xyz[0][0], .num_axes = 3, .axis_stride = B * N, .batch_stride = N};
    pe_tensor k, cache, ty, tb;
    pe_rope *rope;
    pe_error error;
    double worst = 0;

    for (int i = 0; i < 3 * B * N; i++)
        xyz[i / (B * N)][i / N % B][i % N] = i * 1.25;
    for (int i = 0; i < B * N * (HEADS + 2 * KV) * DIM; i++)
        (&qkv[0][0][0][0])[i] = (uint16_t)(0x3f00 + i % 128); /* 0.5 .. 1 */
    pe_tensor_bshd(&k, PE_BF16, qkv[0][0][HEADS], B, N, HEADS + 2 * KV, DIM);
    k.num_heads = KV;
    pe_tensor_paged(&cache, PE_I8, pool, SLOTS, 1, KV, DIM, slots, B, N);
    cache.scales = scales;
    pe_tensor_bshd(&ty, PE_F32, plain, B, N, KV, DIM);
    pe_tensor_bshd(&tb, PE_F32, back, B, N, KV, DIM);
    if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK ||
        pe_rope_apply(rope, &at, &k, &cache, &error) != PE_OK ||
        pe_tensor_copy(&cache, &tb, NULL, &error) != PE_OK ||
        pe_rope_apply(rope, &at, &k, &ty, &error) != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    for (int i = 0; i < B * N * KV * DIM; i++)
        worst = fmax(worst, fabs((double)back[i] - (double)plain[i]));
    printf("int8 pages are within %.4f of the plain f32 result\n", worst);
    pe_rope_destroy(rope);
    return !(worst > 0 && worst < 1.7 / 127 / 2);
}
