/* SPDX-License-Identifier: MIT
 *
 * hf_cos_sin.c - Hugging Face's apply_rotary_pos_emb, and ONNX's RotaryEmbedding
 *
 * Both rotate by cos and sin made elsewhere: one row per token, or rows of a cache. */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>

enum { B = 2, H = 3, T = 4, D = 16, SIZE = B * H * T * D, MAX_LEN = 9 };

static float x[SIZE], by_plan[SIZE], by_token[SIZE], by_row[SIZE]; /* B H T D */
static float cos_bt[B][T][D], sin_bt[B][T][D]; /* each value at both places of a pair */
static float cos_cache[MAX_LEN][D / 2], sin_cache[MAX_LEN][D / 2];

int main(void)
{
    const int64_t ids[B][T] = {{0, 1, 2, 3}, {5, 6, 7, 8}};
    const pe_positions at = {.ids = ids[0], .batch_stride = T}, all = {.start = 0};
    pe_rope_spec spec = {.struct_size = sizeof spec, .head_dim = D};
    const pe_pairs pairs = {.pairing = PE_HALF_SPLIT};
    pe_tensor tx, ty, tc, ts, cc, cs;
    pe_rope *rope;
    pe_error error;

    spec.pairs = pairs;
    spec.freqs.rope_theta = 10000;
    for (int i = 0; i < SIZE; i++)
        x[i] = (float)(i % 13) / 16;
    pe_tensor_bhsd(&tx, PE_F32, x, B, H, T, D);
    pe_tensor_bhsd(&ty, PE_F32, by_plan, B, H, T, D);
    pe_tensor_bshd(&tc, PE_F32, cos_bt, B, T, 1, D);
    pe_tensor_bshd(&ts, PE_F32, sin_bt, B, T, 1, D);
    pe_tensor_bshd(&cc, PE_F32, cos_cache, 1, MAX_LEN, 1, D / 2);
    pe_tensor_bshd(&cs, PE_F32, sin_cache, 1, MAX_LEN, 1, D / 2);
    if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK ||
        pe_rope_apply(rope, &at, &tx, &ty, &error) != PE_OK ||
        pe_rope_table(rope, &at, &tc, &ts, &error) != PE_OK ||
        pe_rope_table(rope, &all, &cc, &cs, &error) != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    pe_rope_destroy(rope);
    ty.data = by_token; /* Hugging Face: (b, t) uses row (b, t) */
    pe_status status = pe_rotary_apply(&pairs, &tc, &ts, NULL, &tx, &ty, NULL, &error);
    ty.data = by_row; /* ONNX: (b, t) uses row position_ids[b][t] */
    if (status == PE_OK)
        status = pe_rotary_apply(&pairs, &cc, &cs, &at, &tx, &ty, NULL, &error);
    if (status != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    double worst = 0;
    for (int i = 0; i < SIZE; i++) {
        worst = fmax(worst, fabs((double)by_plan[i] - (double)by_token[i]));
        worst = fmax(worst, fabs((double)by_plan[i] - (double)by_row[i]));
    }
    printf("plan, rows and cache agree within %.1g\n", worst);
    return !(worst < 3e-7);
}
