/* SPDX-License-Identifier: MIT
 *
 * test_attention_sinks.c - sink logits that are infinite or no numbers
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

enum { HEADS = 8, KV_HEADS = 2, DIM = 24, ROW = HEADS * DIM };

/* Heads of the first kv head: NaN, +inf, -inf, a number; of the second: numbers. */
static const float odd[HEADS] = {NAN, INFINITY, -INFINITY, 0.5f, 1, -2, 3, 0};
static const float even[HEADS] = {-INFINITY, -INFINITY, -INFINITY, 0.5f, 1, -2, 3, 0};

static void check_row(const float *out, float lse, const float *plain_out,
                      float plain_lse, int64_t h)
{
    for (int64_t d = 0; d < DIM; d++)
        if (h == 0)
            assert_true(isnan(out[d]));
        else if (h == 1)
            assert_true(out[d] == 0);
        else
            assert_memory_equal(&out[d], &plain_out[d], sizeof *out);
    if (h == 0)
        assert_true(isnan(lse));
    else if (h == 1)
        assert_true(lse == INFINITY);
    else
        assert_memory_equal(&lse, &plain_lse, sizeof lse);
}

static void check_forward(int64_t q_len, int64_t k_len, pe_bias *bias)
{
    test_rng r = {31};
    attention_problem p;

    attention_problem_init(&p, &r, q_len, k_len, HEADS, KV_HEADS, DIM);
    p.spec.bias[0] = bias;
    p.args.sinks = even;
    attention_problem_run(&p, NULL);
    float *out = case_array(q_len * ROW, sizeof *out);
    float *lse = case_array(q_len * HEADS, sizeof *lse);
    memcpy(out, p.out, (size_t)(q_len * ROW) * sizeof *out);
    memcpy(lse, p.lse, (size_t)(q_len * HEADS) * sizeof *lse);
    p.args.sinks = odd;
    attention_problem_run(&p, NULL);
    for (int64_t i = 0; i < q_len; i++)
        for (int64_t h = 0; h < HEADS; h++)
            check_row(p.out + i * ROW + h * DIM, p.lse[h * q_len + i],
                      out + i * ROW + h * DIM, lse[h * q_len + i], h);
    /* -inf is none. */
    p.args.sinks = NULL;
    attention_problem_run(&p, NULL);
    for (int64_t i = 0; i < q_len; i++)
        assert_memory_equal(p.out + i * ROW + 2 * DIM, out + i * ROW + 2 * DIM,
                            DIM * sizeof *out);
    assert_memory_equal(p.lse + 2 * q_len, lse + 2 * q_len,
                        (size_t)q_len * sizeof *lse);
    free(out);
    free(lse);
    attention_problem_free(&p);
}

/* Tiles, one streamed part, many; rows that see no key (more queries than keys); and a
 * bias that is computed relative to the query. */
static void test_forward(void **state)
{
    (void)state;
    pe_bias *bias = attention_problem_alibi(HEADS, PE_BIAS_KEY_ONLY, 1);
    const int64_t shapes[][2] = {{90, 150}, {2, 200}, {1, 5000}, {9, 4}, {3, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        check_forward(shapes[i][0], shapes[i][1], NULL);
        check_forward(shapes[i][0], shapes[i][1], bias);
    }
    pe_bias_destroy(bias);
}

static void test_probabilities(void **state)
{
    (void)state;
    enum { N = 70 };
    static float all[HEADS * N * N];
    test_rng r = {32};
    attention_problem p;
    pe_tensor scores;

    attention_problem_init(&p, &r, N, N, HEADS, KV_HEADS, DIM);
    pe_tensor_bhsd(&scores, PE_F32, all, 1, HEADS, N, N);
    p.args.scores = &scores;
    p.args.sinks = odd;
    attention_problem_run(&p, NULL);
    for (int64_t h = 0; h < HEADS; h++)
        for (int64_t i = 0; i < N; i++) {
            double sum = 0;
            for (int64_t j = 0; j < N; j++) {
                const float x = all[(h * N + i) * N + j];
                assert_true(h == 0 && j <= i ? isnan(x) : x >= 0);
                sum += (double)x;
            }
            assert_true(h == 0 ? isnan(sum) : h == 1 ? sum == 0 : sum < 1 + 1e-5);
        }
    attention_problem_free(&p);
}

/* So far out that a float is thousands wide, weights and their sum still agree. */
static void test_far_out(void **state)
{
    (void)state;
    enum { N = 77 };
    static float all[HEADS * N * N];
    static const float sinks[HEADS] = {0.5f, 1e7f, -1e7f, 0, 3e9f, -3e9f, 1, 2};
    for (int64_t far = 1000; far < (int64_t)1 << 50; far *= 7)
        for (int side = -1; side <= 1; side += 2) {
            test_rng r = {34};
            attention_problem p;
            pe_tensor scores;
            pe_bias *bias = attention_problem_alibi(HEADS, PE_BIAS_KEY_ONLY, 1);
            attention_problem_init(&p, &r, N, N, HEADS, KV_HEADS, DIM);
            pe_tensor_bhsd(&scores, PE_F32, all, 1, HEADS, N, N);
            p.spec.bias[0] = bias;
            p.spec.visible = (pe_visibility){.mask = PE_MASK_NONE, .window = 63};
            p.q_at.start = side * far;
            p.args.scores = &scores;
            p.args.sinks = sinks;
            attention_problem_run(&p, NULL);
            for (int64_t i = 0; i < HEADS * N; i++) {
                double sum = 0;
                for (int64_t j = 0; j < N; j++)
                    sum += (double)all[i * N + j];
                assert_true(sum <= 1 + 1e-5);
            }
            pe_bias_destroy(bias);
            attention_problem_free(&p);
        }
}

static void backward(attention_problem *p, const float *sinks, float *dq, float *dk,
                     float *dv, float *dsinks)
{
    pe_attention *plan;
    pe_tensor dout_t = p->q_t, dq_t = p->q_t, dk_t = p->k_t, dv_t = p->v_t;
    size_t forward_size, size;
    pe_error error;

    dq_t.data = dq;
    dk_t.data = dk;
    dv_t.data = dv;
    p->args.sinks = sinks;
    attention_problem_run(p, NULL);
    const pe_attention_grads grads = {.struct_size = sizeof grads,
                                      .dout = &dout_t,
                                      .dq = &dq_t,
                                      .dk = &dk_t,
                                      .dv = &dv_t,
                                      .dsinks = dsinks};
    case_must(pe_attention_create(&plan, &p->spec, NULL, &error), &error);
    case_must(pe_attention_workspace(plan, &p->args, &forward_size, &size, &error),
              &error);
    void *work = aligned_alloc(64, (size + 63) / 64 * 64);
    memset(work, 0xff, size);
    case_must(pe_attention_backward(plan, &p->args, &grads, work, size, &error),
              &error);
    free(work);
    pe_attention_destroy(plan);
}

static void test_gradients(void **state)
{
    (void)state;
    enum { N = 80 };
    static float dq[2][N * ROW], dk[2][N * KV_HEADS * DIM], dv[2][N * KV_HEADS * DIM];
    float dsinks[2][HEADS] = {{0}};
    test_rng r = {33};
    attention_problem p;

    attention_problem_init(&p, &r, N, N, HEADS, KV_HEADS, DIM);
    backward(&p, even, dq[0], dk[0], dv[0], dsinks[0]);
    backward(&p, odd, dq[1], dk[1], dv[1], dsinks[1]);
    assert_true(isnan(dsinks[1][0]));
    assert_true(dsinks[1][1] == 0 && dsinks[1][2] == 0);
    assert_memory_equal(dsinks[0] + 2, dsinks[1] + 2, (HEADS - 2) * sizeof(float));
    for (int64_t i = 0; i < N; i++)
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t d = 0; d < DIM; d++) {
                const float x = dq[1][i * ROW + h * DIM + d];
                assert_true(h == 0   ? isnan(x)
                            : h == 1 ? x == 0
                                     : x == dq[0][i * ROW + h * DIM + d]);
            }
    /* The second kv head has nothing to do with it. */
    for (int64_t i = 0; i < N; i++) {
        const size_t at = (size_t)(i * KV_HEADS + 1) * DIM;
        assert_memory_equal(dk[0] + at, dk[1] + at, DIM * sizeof(float));
        assert_memory_equal(dv[0] + at, dv[1] + at, DIM * sizeof(float));
        assert_true(isnan(dk[1][at - DIM]) && isnan(dv[1][at - DIM]));
    }
    attention_problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_probabilities),
        cmocka_unit_test(test_far_out),
        cmocka_unit_test(test_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
