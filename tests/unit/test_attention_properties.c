/* SPDX-License-Identifier: MIT
 *
 * test_attention_properties.c - what attention must keep whatever the numbers are
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/attention_case.h"
#include "../support/attention_problem.h"
#include "../support/executor.h"
#include "posenc/env.h"

static void assert_near(const float *a, const float *b, int64_t count, double allowed)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= allowed))
            fail_msg("%lld: %.9g against %.9g", (long long)i, (double)a[i],
                     (double)b[i]);
}

/* --------------------------------------------------------------------- equalities --- */

static void test_threads(void **state)
{
    (void)state;
    const pe_executor *const executors[] = {&test_executor_backwards,
                                            &test_executor_threads};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        attention_case a, b;
        const int flags = seed % 3 ? 0 : CASE_MANY_KEYS | CASE_NO_FAR | CASE_NO_SCORES;
        attention_case_init(&a, seed, flags);
        int64_t blocks_a[2], blocks_b[2];
        a.args.num_blocks = blocks_a;
        assert_null(attention_case_forward(&a, NULL));
        for (size_t i = 0; i < 2; i++) {
            const pe_env env = {.struct_size = sizeof env, .executor = *executors[i]};
            attention_case_init(&b, seed, flags);
            b.args.num_blocks = blocks_b;
            assert_null(attention_case_forward(&b, &env));
            assert_int_equal(a.out.size, b.out.size);
            assert_memory_equal(a.out.bytes, b.out.bytes, a.out.size);
            assert_memory_equal(a.lse, b.lse,
                                (size_t)(a.ref.batch * a.ref.heads * a.ref.q_len) *
                                    sizeof(float));
            assert_memory_equal(blocks_a, blocks_b, sizeof blocks_a);
            attention_case_free(&b);
        }
        attention_case_free(&a);
    }
}

static void test_packed_is_separate(void **state)
{
    (void)state;
    static const int32_t cu[] = {0, 1, 71, 71, 200, 207};
    test_rng r = {5};
    attention_problem p;
    pe_rope *turn = attention_problem_rope(40);
    int64_t ids[207];

    attention_problem_init(&p, &r, 207, 207, 4, 2, 40);
    assert_int_equal(pe_positions_packed(cu, 5, ids, NULL), PE_OK);
    p.q_at = p.k_at = (pe_positions){.ids = ids};
    p.spec.q_rope = p.spec.k_rope = turn;
    p.args.num_seqs = 5;
    p.args.q_cu_seqlens = cu;
    attention_problem_run(&p, NULL);
    for (int s = 0; s < 5; s++) {
        const int64_t n = cu[s + 1] - cu[s], row = 4 * 40, kv_row = 2 * 40;
        attention_problem one;
        if (n == 0)
            continue;
        attention_problem_init(&one, &r, n, n, 4, 2, 40);
        memcpy(one.q, p.q + cu[s] * row, (size_t)(n * row) * sizeof(float));
        memcpy(one.k, p.k + cu[s] * kv_row, (size_t)(n * kv_row) * sizeof(float));
        memcpy(one.v, p.v + cu[s] * kv_row, (size_t)(n * kv_row) * sizeof(float));
        one.spec.q_rope = one.spec.k_rope = turn;
        attention_problem_run(&one, NULL);
        assert_near(p.out + cu[s] * row, one.out, n * row, 1e-6);
        attention_problem_free(&one);
    }
    pe_rope_destroy(turn);
    attention_problem_free(&p);
}

static void test_decode_is_prefill(void **state)
{
    (void)state;
    test_rng r = {6};
    attention_problem p;
    pe_bias *bias = attention_problem_alibi(6, PE_BIAS_CAUSAL, 1);
    pe_rope *turn = attention_problem_rope(64);
    const int64_t n = 150, row = 6 * 64;

    attention_problem_init(&p, &r, n, n, 6, 2, 64);
    p.spec.bias[0] = bias;
    p.spec.q_rope = p.spec.k_rope = turn;
    attention_problem_run(&p, NULL);
    for (int64_t t = 0; t < n; t++) {
        attention_problem step = p;
        float out[6 * 64];
        step.args.q = &step.q_t;
        step.args.k = &step.k_t;
        step.args.v = &step.v_t;
        step.args.out = &step.out_t;
        step.args.q_at = &step.q_at;
        step.args.k_at = &step.k_at;
        step.args.num_blocks = NULL;
        step.args.lse = NULL;
        pe_tensor_bshd(&step.q_t, PE_F32, p.q + t * row, 1, 1, 6, 64);
        pe_tensor_bshd(&step.out_t, PE_F32, out, 1, 1, 6, 64);
        step.k_t.seq_len = step.v_t.seq_len = t + 1;
        step.q_at = (pe_positions){.start = t};
        attention_problem_run(&step, NULL);
        assert_near(out, p.out + t * row, row, 1e-6);
    }
    pe_bias_destroy(bias);
    pe_rope_destroy(turn);
    attention_problem_free(&p);
}

/* The same keys, in one part and in several. */
static void test_split_is_whole(void **state)
{
    (void)state;
    test_rng r = {7};
    attention_problem p;
    const int64_t n = 5000, row = 2 * 32;

    attention_problem_init(&p, &r, 1, n, 4, 2, 32);
    attention_problem_run(&p, NULL);
    /* Three queries are too many rows to stream: the last one is the same query. */
    attention_problem tall;
    attention_problem_init(&tall, &r, 3, n, 4, 2, 32);
    memcpy(tall.k, p.k, (size_t)(n * row) * sizeof(float));
    memcpy(tall.v, p.v, (size_t)(n * row) * sizeof(float));
    memcpy(tall.q + 2 * 4 * 32, p.q, 4 * 32 * sizeof(float));
    pe_tensor scores;
    float *all = case_array(4 * n, sizeof *all);
    pe_tensor_bhsd(&scores, PE_F32, all, 1, 4, 1, n);
    tall.args.scores = &scores;
    tall.args.scores_start = 2;
    attention_problem_run(&tall, NULL);
    assert_near(tall.out + 2 * 4 * 32, p.out, 4 * 32, 1e-6);
    assert_near(tall.lse + 2, p.lse, 1, 2e-6);
    for (int h = 0; h < 4; h++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += (double)all[h * n + j];
        assert_true(fabs(sum - 1) < 1e-5);
    }
    free(all);
    attention_problem_free(&tall);
    attention_problem_free(&p);
}

static pe_bias *table_bias(pe_bias_type type, pe_bias_form form, int32_t heads)
{
    static float table[32 * 8], p[8], a[8];
    test_rng r = {77};
    pe_bias_spec spec = {.struct_size = sizeof spec,
                         .type = type,
                         .form = form,
                         .num_heads = heads,
                         .round_to = type == PE_BIAS_ALIBI ? PE_BF16 : 0};
    pe_bias *bias;

    for (int i = 0; i < 32 * 8; i++)
        table[i] = test_rng_float(&r);
    for (int i = 0; i < 8; i++) {
        p[i] = 0.3f + 0.02f * (float)i;
        a[i] = 0.5f + 0.03f * (float)i;
    }
    spec.table = type == PE_BIAS_T5 ? table : NULL;
    if (type == PE_BIAS_KERPLE_LOG || type == PE_BIAS_KERPLE_POWER) {
        spec.kerple_p = p;
        spec.kerple_a = a;
    }
    assert_int_equal(pe_bias_create(&bias, &spec, NULL, NULL), PE_OK);
    return bias;
}

/* Queries that count up by one share their distances; in another order each has its
 * own.  The rows are the same bits. */
static void check_shared_distances(const pe_bias *one, const pe_bias *two, int32_t kv)
{
    enum { N = 80, K = 200, HEADS = 6, DIM = 16, ROW = HEADS * DIM };
    test_rng r = {21};
    attention_problem p, q;
    int64_t ids[N];

    attention_problem_init(&p, &r, N, K, HEADS, kv, DIM);
    p.spec.visible.mask = PE_MASK_NONE;
    p.spec.bias[0] = one;
    p.spec.bias[1] = two;
    attention_problem_run(&p, NULL);
    attention_problem_init(&q, &r, N, K, HEADS, kv, DIM);
    memcpy(q.k, p.k, (size_t)(K * kv * DIM) * sizeof(float));
    memcpy(q.v, p.v, (size_t)(K * kv * DIM) * sizeof(float));
    for (int64_t i = 0; i < N; i++) {
        const int64_t from = (i * 37 + 11) % N;
        ids[i] = K - N + from;
        memcpy(q.q + i * ROW, p.q + from * ROW, ROW * sizeof(float));
    }
    q.spec = p.spec;
    q.q_at = (pe_positions){.ids = ids};
    attention_problem_run(&q, NULL);
    for (int64_t i = 0; i < N; i++)
        assert_memory_equal(q.out + i * ROW, p.out + (i * 37 + 11) % N * ROW,
                            ROW * sizeof(float));
    attention_problem_free(&p);
    attention_problem_free(&q);
}

static void test_shared_distances(void **state)
{
    (void)state;
    for (pe_bias_type type = PE_BIAS_ALIBI; type <= PE_BIAS_KERPLE_POWER; type++)
        for (pe_bias_form form = PE_BIAS_CAUSAL; form <= PE_BIAS_BIDIRECTIONAL;
             form++) {
            pe_bias *bias = table_bias(type, form, 6);
            pe_bias *other = table_bias(PE_BIAS_T5, form, 6);
            check_shared_distances(bias, NULL, 6);
            check_shared_distances(bias, other, 2);
            pe_bias_destroy(bias);
            pe_bias_destroy(other);
        }
}

/* --------------------------------------------------------------------- symmetries --- */

/* Without positions or mask, queries only shuffle and keys do not matter in order. */
static void test_permutation(void **state)
{
    (void)state;
    test_rng r = {8};
    attention_problem p, q;
    const int64_t n = 130, row = 2 * 24;
    int64_t order[130];

    attention_problem_init(&p, &r, n, n, 2, 2, 24);
    p.spec.visible.mask = PE_MASK_NONE;
    attention_problem_run(&p, NULL);
    attention_problem_init(&q, &r, n, n, 2, 2, 24);
    q.spec.visible.mask = PE_MASK_NONE;
    for (int64_t i = 0; i < n; i++)
        order[i] = (i * 37 + 11) % n;
    for (int64_t i = 0; i < n; i++) {
        memcpy(q.q + i * row, p.q + order[i] * row, (size_t)row * sizeof(float));
        memcpy(q.k + i * row, p.k + order[i] * row, (size_t)row * sizeof(float));
        memcpy(q.v + i * row, p.v + order[i] * row, (size_t)row * sizeof(float));
    }
    attention_problem_run(&q, NULL);
    for (int64_t i = 0; i < n; i++)
        assert_near(q.out + i * row, p.out + order[i] * row, row, 1e-6);
    attention_problem_free(&p);
    attention_problem_free(&q);
}

static void check_shift(pe_bias *bias, pe_rope *turn, int64_t shift, double allowed)
{
    test_rng r = {9};
    attention_problem p;
    const int64_t n = 100, count = n * 4 * 32;

    attention_problem_init(&p, &r, n, n, 4, 4, 32);
    p.spec.bias[0] = bias;
    p.spec.q_rope = p.spec.k_rope = turn;
    attention_problem_run(&p, NULL);
    float *before = case_array(count, sizeof *before);
    memcpy(before, p.out, (size_t)count * sizeof *before);
    p.q_at.start += shift;
    p.k_at.start += shift;
    attention_problem_run(&p, NULL);
    assert_near(before, p.out, count, allowed);
    free(before);
    attention_problem_free(&p);
}

static void test_shift_invariance(void **state)
{
    (void)state;
    pe_rope *turn = attention_problem_rope(32);

    for (pe_bias_form form = PE_BIAS_CAUSAL; form <= PE_BIAS_KEY_ONLY; form++) {
        pe_bias *bias = attention_problem_alibi(4, form, 1);
        check_shift(bias, NULL, (int64_t)1 << 40, 0);
        pe_bias_destroy(bias);
    }
    check_shift(NULL, turn, 1000003, 2e-6);
    check_shift(NULL, turn, (int64_t)1 << 40, 2e-6);
    pe_rope_destroy(turn);
}

/* ---------------------------------------------------------------------- bad numbers --- */

/* NaN and infinity in a token of q, k and v in turn: rows that do not see it stay.  (An infinite value may make infinities, not NaN.) */
static void test_nan_stays(void **state)
{
    (void)state;
    for (int64_t q_len = 1; q_len <= 140; q_len += 139 / 3) {
        const int64_t n = 140, row = 2 * 24;
        for (int which = 0; which < 3; which++)
            for (int k = 0; k < 2; k++) {
                const float bad = k ? INFINITY : NAN;
                test_rng r = {10};
                attention_problem p;
                attention_problem_init(&p, &r, q_len, n, 2, 2, 24);
                attention_problem_run(&p, NULL);
                float *before = case_array(q_len * row, sizeof *before);
                memcpy(before, p.out, (size_t)(q_len * row) * sizeof *before);
                const int64_t at = which == 0 ? q_len / 2 : 120;
                float *x = which == 0 ? p.q : which == 1 ? p.k : p.v;
                for (int64_t d = 0; d < row; d++)
                    x[at * row + d] = bad;
                attention_problem_run(&p, NULL);
                for (int64_t i = 0; i < q_len; i++) {
                    const int sees = which == 0 ? i == at : n - q_len + i >= 120;
                    for (int64_t d = 0; d < row; d++)
                        if (sees && !(k && which == 2))
                            assert_true(isnan(p.out[i * row + d]));
                        else if (!sees)
                            assert_true(fabsf(p.out[i * row + d] -
                                              before[i * row + d]) < 1e-6f);
                }
                free(before);
                attention_problem_free(&p);
            }
    }
}

static void test_nothing_seen(void **state)
{
    (void)state;
    test_rng r = {11};
    attention_problem p;
    static const float sinks[2] = {1, -2};
    float *mask = case_array(5 * 70, sizeof *mask);
    pe_tensor mask_t;

    /* More queries than keys: the first have no place. */
    attention_problem_init(&p, &r, 9, 4, 2, 1, 16);
    attention_problem_run(&p, NULL);
    for (int64_t i = 0; i < 9; i++)
        for (int64_t h = 0; h < 2; h++) {
            const float lse = p.lse[h * 9 + i];
            assert_true(i < 5 ? lse == -INFINITY : fabsf(lse) < 10);
            for (int64_t d = 0; d < 16 && i < 5; d++)
                assert_true(p.out[(i * 2 + h) * 16 + d] == 0);
        }
    p.args.sinks = sinks;
    attention_problem_run(&p, NULL);
    assert_true(p.lse[0] == 1 && p.lse[9] == -2 && p.out[0] == 0);
    attention_problem_free(&p);

    attention_problem_init(&p, &r, 5, 70, 2, 1, 16);
    for (int i = 0; i < 5 * 70; i++)
        mask[i] = -INFINITY;
    mask[3 * 70 + 2] = 0; /* query 3 sees key 2 alone: its output is that value */
    pe_tensor_bhsd(&mask_t, PE_F32, mask, 1, 1, 5, 70);
    p.args.mask = &mask_t;
    attention_problem_run(&p, NULL);
    for (int64_t d = 0; d < 2 * 16; d++) {
        assert_true(p.out[2 * 32 + d] == 0);
        assert_true(p.out[3 * 32 + d] == p.v[2 * 16 + d % 16]);
    }
    assert_true(p.lse[2] == -INFINITY);
    free(mask);
    attention_problem_free(&p);
}

static void test_huge_scores(void **state)
{
    (void)state;
    test_rng r = {12};
    attention_problem p;

    attention_problem_init(&p, &r, 3, 200, 1, 1, 8);
    for (int64_t i = 0; i < 3 * 8; i++)
        p.q[i] *= 1e18f;
    for (int64_t i = 0; i < 200 * 8; i++)
        p.k[i] *= 1e18f;
    attention_problem_run(&p, NULL);
    /* One key wins outright. */
    for (int64_t t = 0; t < 3; t++) {
        int64_t best = -1;
        double top = -INFINITY;
        for (int64_t j = 0; j <= 197 + t; j++) {
            double dot = 0;
            for (int64_t d = 0; d < 8; d++)
                dot += (double)p.q[t * 8 + d] * (double)p.k[j * 8 + d];
            if (dot > top) {
                top = dot;
                best = j;
            }
        }
        assert_near(p.out + t * 8, p.v + best * 8, 8, 0);
    }
    attention_problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_packed_is_separate),
        cmocka_unit_test(test_decode_is_prefill),
        cmocka_unit_test(test_split_is_whole),
        cmocka_unit_test(test_shared_distances),
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_shift_invariance),
        cmocka_unit_test(test_nan_stays),
        cmocka_unit_test(test_nothing_seen),
        cmocka_unit_test(test_huge_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
