/* SPDX-License-Identifier: MIT
 *
 * test_attention_numbers.c - vectors that are no numbers reach those that see them, and
 * no other: forward and backward, on every instruction set
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/attention_case.h"
#include "../support/attention_problem.h"

static const pe_isa isas[] = {PE_ISA_SCALAR, PE_ISA_AVX2, PE_ISA_AVX512, PE_ISA_NEON,
                              PE_ISA_WASM128};

enum { N = 150, HEADS = 4, KV_HEADS = 2, DIM = 24, ROW = HEADS * DIM };
enum { KV_ROW = KV_HEADS * DIM };

/* ------------------------------------------------------------------------ forward --- */

/* A caller's mask that is no number somewhere: the row of that query, if it sees it. */
static void check_mask(pe_isa isa, int64_t q_len, pe_bias *bias)
{
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    test_rng r = {51};
    attention_problem p;
    pe_tensor mask_t;
    float *mask = case_array(q_len * N, sizeof *mask);
    float *before = case_array(q_len * ROW, sizeof *before);

    attention_problem_init(&p, &r, q_len, N, HEADS, KV_HEADS, DIM);
    pe_tensor_bhsd(&mask_t, PE_F32, mask, 1, 1, q_len, N);
    p.spec.bias[0] = bias;
    p.args.mask = &mask_t;
    attention_problem_run(&p, &env);
    memcpy(before, p.out, (size_t)(q_len * ROW) * sizeof *before);
    for (int64_t i = 0; i < q_len; i++)
        mask[i * N + (i % 2 ? N - q_len + i : N - 1)] = NAN; /* odd rows see theirs */
    attention_problem_run(&p, &env);
    for (int64_t i = 0; i < q_len; i++)
        for (int64_t e = i * ROW; e < (i + 1) * ROW; e++)
            if (i % 2 || i == q_len - 1)
                assert_true(isnan(p.out[e]));
            else
                assert_true(p.out[e] == before[e]);
    free(mask);
    free(before);
    attention_problem_free(&p);
}

/* NaN in one vector of q (0), k (1) or v (2). */
static void check_vector(pe_isa isa, int64_t q_len, int which, pe_bias *bias)
{
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    const int64_t at = which == 0 ? q_len / 2 : N - 20;
    test_rng r = {52};
    attention_problem p;
    float *before = case_array(q_len * ROW, sizeof *before);

    attention_problem_init(&p, &r, q_len, N, HEADS, KV_HEADS, DIM);
    p.spec.bias[0] = bias;
    attention_problem_run(&p, &env);
    memcpy(before, p.out, (size_t)(q_len * ROW) * sizeof *before);
    float *x = which == 0   ? p.q + at * ROW
               : which == 1 ? p.k + at * KV_ROW
                            : p.v + at * KV_ROW;
    for (int64_t d = 0; d < DIM; d++) /* of the first head alone */
        x[d] = NAN;
    attention_problem_run(&p, &env);
    for (int64_t i = 0; i < q_len; i++)
        for (int64_t h = 0; h < HEADS; h++) {
            const int reached = which == 0
                                    ? i == at && h == 0
                                    : N - q_len + i >= at && h < HEADS / KV_HEADS;
            for (int64_t e = i * ROW + h * DIM; e < i * ROW + (h + 1) * DIM; e++)
                if (reached)
                    assert_true(isnan(p.out[e]));
                else
                    assert_true(fabsf(p.out[e] - before[e]) < 1e-6f);
        }
    free(before);
    attention_problem_free(&p);
}

static void test_forward(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 60, 149};
    pe_bias *bias = attention_problem_alibi(HEADS, PE_BIAS_CAUSAL, 1);
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (size_t n = 0; pe_isa_available(isas[i]) && n < 4; n++)
            for (int b = 0; b < 2; b++) {
                check_mask(isas[i], lengths[n], b ? bias : NULL);
                for (int which = 0; which < 3; which++)
                    check_vector(isas[i], lengths[n], which, b ? bias : NULL);
            }
    pe_bias_destroy(bias);
}

/* ----------------------------------------------------------------------- backward --- */

typedef struct gradients {
    float dq[N * ROW], dk[N * KV_ROW], dv[N * KV_ROW];
} gradients;

static void backward(attention_problem *p, const float *dout, gradients *g,
                     const pe_env *env)
{
    pe_attention *plan;
    pe_tensor dout_t = p->out_t, dq_t = p->q_t, dk_t = p->k_t, dv_t = p->v_t;
    size_t forward_size, size;
    pe_error error;

    attention_problem_run(p, env);
    dout_t.data = (void *)(uintptr_t)dout;
    dq_t.data = g->dq;
    dk_t.data = g->dk;
    dv_t.data = g->dv;
    const pe_attention_grads grads = {.struct_size = sizeof grads,
                                      .dout = &dout_t,
                                      .dq = &dq_t,
                                      .dk = &dk_t,
                                      .dv = &dv_t};
    case_must(pe_attention_create(&plan, &p->spec, env, &error), &error);
    case_must(pe_attention_workspace(plan, &p->args, &forward_size, &size, &error),
              &error);
    void *work = aligned_alloc(64, (size + 63) / 64 * 64);
    memset(work, 0xff, size);
    case_must(pe_attention_backward(plan, &p->args, &grads, work, size, &error),
              &error);
    free(work);
    pe_attention_destroy(plan);
}

static void must_be_near(const float *got, const float *clean, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        assert_true(fabsf(got[i] - clean[i]) <= 1e-5f * (1 + fabsf(clean[i])));
}

/* NaN in query, key, value or dout AT.  What does not see it, and is not seen by one that
 * does, keeps its gradient: dq of earlier queries (of later ones under a bad dout), dk and
 * dv of keys that no bad row sees. */
static void test_gradients(void **state)
{
    (void)state;
    enum { AT = 70 };
    static gradients clean, g;
    static float dout[N * ROW];
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (int which = 0; pe_isa_available(isas[i]) && which < 4; which++) {
            const pe_env env = {.struct_size = sizeof env, .isa = isas[i]};
            test_rng r = {53};
            attention_problem p;
            attention_problem_init(&p, &r, N, N, HEADS, KV_HEADS, DIM);
            for (int64_t e = 0; e < N * ROW; e++)
                dout[e] = test_rng_float(&r);
            backward(&p, dout, &clean, &env);
            float *const vectors[] = {p.q + AT * ROW, p.k + AT * KV_ROW,
                                      p.v + AT * KV_ROW, dout + AT * ROW};
            for (int64_t e = 0; e < (which == 0 || which == 3 ? ROW : KV_ROW); e++)
                vectors[which][e] = NAN;
            backward(&p, dout, &g, &env);
            assert_true(isnan(g.dq[AT * ROW]));
            must_be_near(g.dq, clean.dq, AT * ROW);
            if (which == 0 ||
                which == 3) { /* one bad row: it sees keys up to its own */
                must_be_near(g.dq + (AT + 1) * ROW, clean.dq + (AT + 1) * ROW,
                             (N - AT - 1) * ROW);
                must_be_near(g.dk + (AT + 1) * KV_ROW, clean.dk + (AT + 1) * KV_ROW,
                             (N - AT - 1) * KV_ROW);
                must_be_near(g.dv + (AT + 1) * KV_ROW, clean.dv + (AT + 1) * KV_ROW,
                             (N - AT - 1) * KV_ROW);
                assert_true(isnan(g.dk[AT * KV_ROW]));
            }
            attention_problem_free(&p);
        }
}

/* Gradients of packed documents are those of each alone. */
static void test_packed_gradients(void **state)
{
    (void)state;
    static const int32_t cu[] = {0, 1, 71, 71, N};
    static gradients all, one;
    static float dout[N * ROW];
    int64_t ids[N];
    test_rng r = {54};
    attention_problem p;
    pe_rope *rope = attention_problem_rope(DIM);
    pe_bias *bias = attention_problem_alibi(HEADS, PE_BIAS_CAUSAL, 1);

    attention_problem_init(&p, &r, N, N, HEADS, KV_HEADS, DIM);
    for (int64_t e = 0; e < N * ROW; e++)
        dout[e] = test_rng_float(&r);
    assert_int_equal(pe_positions_packed(cu, 4, ids, NULL), PE_OK);
    p.q_at = p.k_at = (pe_positions){.ids = ids};
    p.spec.q_rope = p.spec.k_rope = rope;
    p.spec.bias[0] = bias;
    p.args.num_seqs = 4;
    p.args.q_cu_seqlens = cu;
    backward(&p, dout, &all, NULL);
    for (int s = 0; s < 4; s++) {
        const int64_t n = cu[s + 1] - cu[s], at = cu[s];
        attention_problem alone;
        if (n == 0)
            continue;
        attention_problem_init(&alone, &r, n, n, HEADS, KV_HEADS, DIM);
        memcpy(alone.q, p.q + at * ROW, (size_t)(n * ROW) * sizeof(float));
        memcpy(alone.k, p.k + at * KV_ROW, (size_t)(n * KV_ROW) * sizeof(float));
        memcpy(alone.v, p.v + at * KV_ROW, (size_t)(n * KV_ROW) * sizeof(float));
        alone.spec = p.spec;
        backward(&alone, dout + at * ROW, &one, NULL);
        must_be_near(all.dq + at * ROW, one.dq, n * ROW);
        must_be_near(all.dk + at * KV_ROW, one.dk, n * KV_ROW);
        must_be_near(all.dv + at * KV_ROW, one.dv, n * KV_ROW);
        attention_problem_free(&alone);
    }
    pe_rope_destroy(rope);
    pe_bias_destroy(bias);
    attention_problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_packed_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
