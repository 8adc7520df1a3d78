/* SPDX-License-Identifier: MIT
 *
 * bloom_tp.c - BLOOM's ALiBi on four ranks: 112 heads in all, 28 on each
 *
 * One decode step.  Slopes belong to the model's heads, so a rank says where its own
 * begin; no bias array is made, and the ranks' bits are those of one machine. */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>
#include <string.h>

enum { HEADS = 112, RANKS = 4, LOCAL = HEADS / RANKS, KEYS = 18 };

/* Probabilities of the heads from first on; scores become them. */
static pe_status attend(int32_t first, int64_t heads, float *scores, pe_error *error)
{
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = PE_BIAS_ALIBI,
                               .form = PE_BIAS_KEY_ONLY,
                               .num_heads = HEADS,
                               .head_start = first};
    const pe_positions q_at = {.start = KEYS - 1}, k_at = {0};
    pe_tensor s;
    pe_bias *bias;

    pe_tensor_bhsd(&s, PE_F32, scores, 1, heads, 1, KEYS);
    pe_status status = pe_bias_create(&bias, &spec, NULL, error);
    if (status == PE_OK)
        status = pe_bias_softmax(bias, 0.08838834764831845, PE_MASK_CAUSAL, &q_at,
                                 &k_at, &s, &s, error);
    pe_bias_destroy(bias);
    return status;
}

int main(void)
{
    static float whole[HEADS][KEYS], ranks[HEADS][KEYS];
    pe_error error;

    for (int i = 0; i < HEADS * KEYS; i++)
        whole[i / KEYS][i % KEYS] = ranks[i / KEYS][i % KEYS] = (float)(i % 11) - 5;
    pe_status status = attend(0, HEADS, whole[0], &error);
    for (int r = 0; r < RANKS && status == PE_OK; r++)
        status = attend(r * LOCAL, LOCAL, ranks[(size_t)r * LOCAL], &error);
    if (status != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    double sum = 0;
    for (int j = 0; j < KEYS; j++)
        sum += (double)ranks[LOCAL][j];
    printf("head %d: last key %.4f, sum %.6f\n", LOCAL, (double)ranks[LOCAL][KEYS - 1],
           sum);
    return memcmp(whole, ranks, sizeof whole) != 0 || fabs(sum - 1) > 1e-6;
}
