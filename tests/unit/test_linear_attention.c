/* SPDX-License-Identifier: MIT
 *
 * test_linear_attention.c - the carried state against the sum over all pairs
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/refusal.h"
#include "../support/rng.h"
#include "posenc/attention.h"

enum { HEADS = 4, KV = 2, DIM = 12, V_DIM = 5, Q = 17, K = 23 };

static double feature(double x)
{
    return x > 0 ? x + 1 : exp(x);
}

/* f(x), rotated, of every vector. */
static void turn(const pe_rope *rope, const pe_positions *at, const float *x,
                 int64_t len, int64_t heads, float *plain, float *turned)
{
    pe_tensor from, to;

    for (int64_t i = 0; i < len * heads * DIM; i++)
        turned[i] = plain[i] = (float)feature((double)x[i]);
    if (rope == NULL)
        return;
    pe_tensor_bshd(&from, PE_F32, plain, 1, len, heads, DIM);
    pe_tensor_bshd(&to, PE_F32, turned, 1, len, heads, DIM);
    assert_int_equal(pe_rope_apply(rope, at, &from, &to, NULL), PE_OK);
}

static void check(pe_rope *rope, pe_mask mask)
{
    static float q[Q * HEADS * DIM], k[K * KV * DIM], v[K * KV * V_DIM],
        out[Q * HEADS * V_DIM];
    static float fq[Q * HEADS * DIM], rq[Q * HEADS * DIM], fk[K * KV * DIM],
        rk[K * KV * DIM];
    const pe_positions q_at = {.start = K - Q}, k_at = {.start = 0};
    test_rng r = {1};
    pe_tensor q_t, k_t, v_t, out_t;
    pe_error error;
    const size_t size = (DIM * (V_DIM + 1) + 2 * DIM + V_DIM) * sizeof(double);
    void *work = aligned_alloc(64, (size + 63) / 64 * 64);

    for (int i = 0; i < Q * HEADS * DIM; i++)
        q[i] = 3 * test_rng_float(&r);
    for (int i = 0; i < K * KV * DIM; i++)
        k[i] = 3 * test_rng_float(&r);
    for (int i = 0; i < K * KV * V_DIM; i++)
        v[i] = test_rng_float(&r);
    pe_tensor_bshd(&q_t, PE_F32, q, 1, Q, HEADS, DIM);
    pe_tensor_bshd(&k_t, PE_F32, k, 1, K, KV, DIM);
    pe_tensor_bshd(&v_t, PE_F32, v, 1, K, KV, V_DIM);
    pe_tensor_bshd(&out_t, PE_F32, out, 1, Q, HEADS, V_DIM);
    if (pe_linear_attention(rope, mask, &q_at, &k_at, &q_t, &k_t, &v_t, &out_t, work,
                            size, &error) != PE_OK)
        fail_msg("%s", error.message);
    turn(rope, &q_at, q, Q, HEADS, fq, rq);
    turn(rope, &k_at, k, K, KV, fk, rk);
    for (int t = 0; t < Q; t++)
        for (int h = 0; h < HEADS; h++) {
            double sums[V_DIM] = {0}, norm = 0;
            const int end = mask == PE_MASK_CAUSAL ? K - Q + t + 1 : K;
            for (int j = 0; j < end; j++) {
                double above = 0, below = 0;
                for (int d = 0; d < DIM; d++) {
                    const int a = (t * HEADS + h) * DIM + d;
                    const int b = (j * KV + h / (HEADS / KV)) * DIM + d;
                    above += (double)rq[a] * (double)rk[b];
                    below += (double)fq[a] * (double)fk[b];
                }
                norm += below;
                for (int i = 0; i < V_DIM; i++)
                    sums[i] +=
                        above * (double)v[(j * KV + h / (HEADS / KV)) * V_DIM + i];
            }
            for (int i = 0; i < V_DIM; i++)
                assert_true(fabs((double)out[(t * HEADS + h) * V_DIM + i] -
                                 sums[i] / norm) < 2e-6);
        }
    assert_null(test_refusal(&error,
                             pe_linear_attention(rope, mask, &q_at, &k_at, &q_t, &k_t,
                                                 &v_t, &out_t, work, size - 1, &error),
                             PE_E_WORKSPACE, "workspace_size"));
    assert_null(test_refusal(&error,
                             pe_linear_attention(rope, 0, &q_at, &k_at, &q_t, &k_t,
                                                 &v_t, &out_t, work, size, &error),
                             PE_E_ARGUMENT, "mask is 0"));
    free(work);
}

static void test_pairs(void **state)
{
    (void)state;
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = DIM,
                               .pairs = {.pairing = PE_INTERLEAVED},
                               .freqs = {.rope_theta = 10000}};
    pe_rope *rope;

    assert_int_equal(pe_rope_create(&rope, &spec, NULL, NULL), PE_OK);
    for (pe_mask mask = PE_MASK_NONE; mask <= PE_MASK_CAUSAL; mask++) {
        check(NULL, mask);
        check(rope, mask);
    }
    pe_rope_destroy(rope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
