/* SPDX-License-Identifier: MIT
 *
 * self_extend.c - Self-Extend: far keys stand in groups, near ones where they stand; keys
 * come unrotated and are rotated twice on the way in */
#include <math.h>
#include <posenc/attention.h>
#include <stdio.h>

enum { N = 200, H = 2, D = 16, GROUP = 8 };

static float x[N * H * D], out[2][N * H * D];
static int64_t ids[N], q_far[N], k_far[N];
static _Alignas(64) unsigned char work[1 << 20];

static pe_status attend(const pe_rope *rope, int64_t window, float *result,
                        pe_error *error)
{
    const pe_positions near = {.ids = ids}, q = {.ids = q_far}, k = {.ids = k_far};
    const pe_far rule = {.unit = 1, .from = window, .q_at = &q, .k_at = &k};
    pe_attention_spec spec = {.struct_size = sizeof spec, .num_heads = H};
    pe_attention_args args = {.struct_size = sizeof args, .far_rules = &rule};
    pe_tensor t, o;
    pe_attention *plan = NULL;
    spec.num_kv_heads = H, spec.head_dim = D, spec.visible.mask = PE_MASK_CAUSAL;
    spec.q_rope = spec.k_rope = rope;
    pe_tensor_bshd(&t, PE_F32, x, 1, N, H, D);
    pe_tensor_bshd(&o, PE_F32, result, 1, N, H, D);
    args.q = args.k = args.v = &t, args.out = &o, args.num_far_rules = 1;
    args.q_at = args.k_at = &near;
    pe_status status = pe_positions_self_extend(ids, N, GROUP, window, 1, q_far, error);
    if (status == PE_OK)
        status = pe_positions_self_extend(ids, N, GROUP, window, 0, k_far, error);
    if (status == PE_OK)
        status = pe_attention_create(&plan, &spec, NULL, error);
    if (status == PE_OK)
        status = pe_attention_forward(plan, &args, work, sizeof work, error);
    pe_attention_destroy(plan);
    return status;
}

int main(void)
{
    pe_rope_spec spec = {.struct_size = sizeof spec, .head_dim = D};
    pe_rope *rope = NULL;
    pe_error error;
    double change[2] = {0, 0}; /* before and from the first token with a far key */
    spec.pairs.pairing = PE_INTERLEAVED, spec.freqs.rope_theta = 10000;
    for (int i = 0; i < N * H * D; i++)
        x[i] = (float)(i * 7919 % 997) / 499 - 1, ids[i % N] = i % N;
    if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK ||
        attend(rope, 2 * N, out[0], &error) != PE_OK ||
        attend(rope, 64, out[1], &error) != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    for (int i = 0, far = 64 * H * D; i < N * H * D; i++)
        change[i >= far] =
            fmax(change[i >= far], fabs((double)(out[0][i] - out[1][i])));
    printf("changes before token 64: %g, from it on: %.2g\n", change[0], change[1]);
    pe_rope_destroy(rope);
    return !(change[0] == 0 && change[1] > 1e-4);
}
