/* SPDX-License-Identifier: MIT
 *
 * longrope_switch.c - a chat outgrows the short list: make the long plan, move the keys
 */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>

enum { DIM = 8, LEN = 16, TRAINED = 16 };

/* Before a step that brings the total to total_len.  cache: keys 0, 1, 2, ... */
static pe_status ensure_plan(pe_rope **rope, pe_rope_spec spec, int64_t total_len,
                             const pe_tensor *cache)
{
    const pe_positions at = {.start = 0};
    const pe_rope_info *info = pe_rope_get_info(*rope);
    pe_rope *next;
    if (total_len >= info->seq_len_min && total_len <= info->seq_len_max)
        return PE_OK;
    spec.freqs.seq_len = total_len;
    pe_status status = pe_rope_create(&next, &spec, NULL, NULL);
    if (status == PE_OK)
        status = pe_rope_rebase(*rope, &at, next, &at, cache, cache, NULL);
    pe_rope_destroy(status == PE_OK ? *rope : next);
    *rope = status == PE_OK ? next : *rope;
    return status;
}

int main(void)
{
    static const double near[] = {1, 1.1, 1.2, 1.3}, far[] = {1, 2, 4, 8};
    static float raw[LEN * DIM], keys[LEN * DIM], new[LEN * DIM];
    pe_rope_spec spec = {.struct_size = sizeof spec, .head_dim = DIM};
    const pe_positions at = {.start = 0};
    pe_tensor tr, tk, tf;
    double worst = 0;
    pe_rope *rope;
    spec.pairs.pairing = PE_HALF_SPLIT;
    spec.freqs = (pe_freqs){.rope_type = PE_ROPE_LONGROPE,
                            .rope_theta = 100,
                            .factor = 32,
                            .original_max_position_embeddings = TRAINED,
                            .short_factor = near,
                            .long_factor = far};
    for (int i = 0; i < LEN * DIM; i++)
        raw[i] = (float)(i % 11) / 16;
    pe_tensor_bshd(&tr, PE_F32, raw, 1, LEN, 1, DIM);
    pe_tensor_bshd(&tk, PE_F32, keys, 1, LEN, 1, DIM);
    pe_tensor_bshd(&tf, PE_F32, new, 1, LEN, 1, DIM);
    if (pe_rope_create(&rope, &spec, NULL, NULL) != PE_OK ||
        pe_rope_apply(rope, &at, &tr, &tk, NULL) != PE_OK ||
        ensure_plan(&rope, spec, LEN + 1, &tk) != PE_OK ||
        pe_rope_apply(rope, &at, &tr, &tf, NULL) != PE_OK)
        return 1;
    for (int i = 0; i < LEN * DIM; i++)
        worst = fmax(worst, fabs((double)keys[i] - (double)new[i]));
    printf("moved keys are within %.1g of fresh ones\n", worst);
    pe_rope_destroy(rope);
    return !(worst < 1e-6);
}
