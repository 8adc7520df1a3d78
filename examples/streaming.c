/* SPDX-License-Identifier: MIT
 *
 * streaming.c - StreamingLLM: endless text through a cache of 96 tokens; when it is full,
 * the oldest but 4 sinks go, and the rest is turned back by as many */
#include <math.h>
#include <posenc/attention.h>
#include <stdio.h>

enum { SINKS = 4, DROP = 32, CAPACITY = 96, TOKENS = 300, H = 2, D = 32 };

static float x[H * D], out[H * D], keys[CAPACITY][H * D];
static _Alignas(64) unsigned char work[1 << 20];

int main(void)
{
    pe_rope_spec turn = {.struct_size = sizeof turn, .head_dim = D};
    pe_kv_spec cache = {.struct_size = sizeof cache, .capacity = CAPACITY};
    pe_attention_spec spec = {.struct_size = sizeof spec, .num_heads = H};
    pe_attention_args args = {.struct_size = sizeof args};
    pe_tensor t, o, flat;
    pe_rope *rope;
    pe_kv *kv;
    pe_attention *plan;
    pe_error error;
    turn.pairs.pairing = PE_HALF_SPLIT, turn.freqs.rope_theta = 10000;
    cache.num_kv_heads = H, cache.head_dim = D;
    cache.k_dtype = cache.v_dtype = PE_F16;
    spec.num_kv_heads = H, spec.head_dim = D, spec.visible.mask = PE_MASK_CAUSAL;
    if (pe_rope_create(&rope, &turn, NULL, &error) != PE_OK)
        return 1;
    spec.q_rope = cache.rope = rope;
    if (pe_kv_create(&kv, &cache, NULL, &error) != PE_OK ||
        pe_attention_create(&plan, &spec, NULL, &error) != PE_OK)
        return 1;
    pe_tensor_bshd(&t, PE_F32, x, 1, 1, H, D);
    pe_tensor_bshd(&o, PE_F32, out, 1, 1, H, D);
    const pe_kv_info *info = pe_kv_get_info(kv);
    pe_positions at = {.start = 0};
    for (int n = 0; n < TOKENS; n++) {
        for (int i = 0; i < H * D; i++)
            x[i] = (float)((n * 131 + i * 37) % 199) / 99 - 1;
        if (info->len == CAPACITY)
            pe_kv_evict(kv, SINKS, DROP, PE_GAP_CLOSE, &error);
        at.start = info->next;
        args.q = &t, args.k = &info->k, args.v = &info->v, args.out = &o;
        args.q_at = &at, args.k_at = &info->at, args.k_norms = info->k_norms;
        if (pe_kv_append(kv, &at, &t, &t, &error) != PE_OK ||
            pe_attention_forward(plan, &args, work, sizeof work, &error) != PE_OK)
            return fprintf(stderr, "%s\n", error.message), 1;
    }
    pe_tensor_bshd(&flat, PE_F32, keys, 1, info->len, H, D);
    double worst = 0; /* of the last key against rotating it afresh */
    if (pe_tensor_copy(&info->k, &flat, NULL, &error) == PE_OK)
        pe_rope_apply(rope, &at, &t, &t, &error);
    for (int i = 0; i < H * D; i++)
        worst = fmax(worst, fabs((double)(keys[info->len - 1][i] - x[i])));
    printf("keys are off by %.1g, at most %.1g\n", worst, info->k_error);
    pe_attention_destroy(plan), pe_kv_destroy(kv), pe_rope_destroy(rope);
    return !(worst <= 1e-3);
}
