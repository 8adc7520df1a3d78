/* SPDX-License-Identifier: MIT
 *
 * deepseek_mla.c - DeepSeek-V3: a tail of each q head turns, k has one shared head
 *
 * Interleaved pairs in, halves out, as Hugging Face's code caches them; YaRN's factor
 * goes into the softmax scale, not into cos and sin. */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>

enum { LEN = 3, HEADS = 2, NOPE = 128, ROPE = 64, LATENT = 512 };

static const pe_rope_spec spec = {
    .struct_size = sizeof spec,
    .head_dim = ROPE,
    .pairs = {.pairing = PE_INTERLEAVED, .out_pairing = PE_HALF_SPLIT},
    .freqs = {.rope_type = PE_ROPE_YARN,
              .mscale_rule = PE_MSCALE_DEEPSEEK,
              .rope_theta = 10000,
              .factor = 40,
              .original_max_position_embeddings = 4096,
              .mscale = 1,
              .mscale_all_dim = 1}};

int main(void)
{
    static float q[LEN][HEADS][NOPE + ROPE], kv[LEN][LATENT + ROPE];
    const pe_positions at = {.start = 0};
    pe_tensor q_rope, k_rope;
    pe_rope *rope;
    pe_error error;
    int wrong = 0;

    for (int t = 0; t < LEN; t++)
        for (int i = 0; i < NOPE + ROPE; i++)
            q[t][0][i] = q[t][1][i] = kv[t][LATENT + i % ROPE] = (float)(i % ROPE);
    pe_tensor_bshd(&q_rope, PE_F32, &q[0][0][NOPE], 1, LEN, HEADS, NOPE + ROPE);
    q_rope.dim = ROPE; /* a slice: data ahead, dim lower */
    pe_tensor_bshd(&k_rope, PE_F32, &kv[0][LATENT], 1, LEN, 1, LATENT + ROPE);
    k_rope.dim = ROPE;
    if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK ||
        pe_rope_apply_qk(rope, &at, &q_rope, &q_rope, &k_rope, &k_rope, &error) !=
            PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    for (int i = 0; i < ROPE; i++) { /* position 0 only reorders */
        const float even_then_odd = (float)(i < ROPE / 2 ? 2 * i : 2 * i - ROPE + 1);
        wrong += q[0][1][NOPE + i] != even_then_odd;
        wrong += kv[0][LATENT + i] != even_then_odd;
        wrong += q[0][1][i] != (float)(i % ROPE); /* nope */
    }
    const pe_rope_info *info = pe_rope_get_info(rope);
    const double scale = info->softmax_factor / sqrt(NOPE + ROPE);
    printf("attention factor %g, softmax scale %.9g\n", info->attention_factor, scale);
    wrong += info->attention_factor != 1 || fabs(scale - 0.1352337788608801) > 1e-15;
    pe_rope_destroy(rope);
    return wrong != 0;
}
