/* SPDX-License-Identifier: MIT
 *
 * test_bias_apply.c - fill and add over every type, form, dtype and layout
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/bias_reference.h"
#include "../support/box.h"
#include "../support/executor.h"
#include "posenc/env.h"

static pe_bias *create(const pe_bias_spec *spec, const pe_env *env)
{
    pe_bias *bias = NULL;
    pe_error error;

    if (pe_bias_create(&bias, spec, env, &error) != PE_OK)
        fail_msg("%s", error.message);
    return bias;
}

/* Positions from one of the three sources, random, some of them far. */
typedef struct {
    pe_positions at;
    int64_t *ids, starts[8];
} random_at;

static void random_positions(random_at *p, test_rng *r, int64_t batch, int64_t len)
{
    const int64_t far = test_rng_int(r, 0, 3) == 0 ? (int64_t)1 << 40 : 0;
    memset(p, 0, sizeof *p);
    p->ids = calloc((size_t)(batch * (len + 3)), sizeof *p->ids);
    assert_non_null(p->ids);
    switch (test_rng_int(r, 0, 3)) {
    case 0:
        p->at.start = far + test_rng_int(r, -50, 50);
        break;
    case 1:
        for (int64_t b = 0; b < batch; b++)
            p->starts[b] = far + test_rng_int(r, -50, 50);
        p->at.starts = p->starts;
        break;
    default:
        for (int64_t i = 0; i < batch * (len + 3); i++)
            p->ids[i] = far + test_rng_int(r, -600, 600);
        p->at.ids = p->ids;
        p->at.batch_stride = test_rng_int(r, 0, 1) ? len + 3 : 0;
    }
}

static int64_t position(const pe_positions *at, int64_t b, int64_t t)
{
    if (at->ids != NULL)
        return at->ids[b * at->batch_stride + t];
    return (at->starts != NULL ? at->starts[b] : at->start) + t;
}

static void check_box(const test_box *y, const test_box *x, const ref_bias *ref,
                      const pe_positions *q_at, const pe_positions *k_at)
{
    for (int64_t b = 0; b < y->t.batch; b++)
        for (int64_t t = 0; t < y->t.seq_len; t++) {
            if (!test_box_is_present(y, b, t) ||
                (x != NULL && !test_box_is_present(x, b, t)))
                continue;
            for (int64_t h = 0; h < y->t.num_heads; h++)
                for (int64_t j = 0; j < y->t.dim; j++) {
                    long double exact =
                        ref_bias_at(ref, ref->spec.head_start + (int32_t)h,
                                    position(q_at, b, t), position(k_at, b, j));
                    const long double size = fabsl(exact);
                    if (x != NULL)
                        exact += (long double)test_box_get(x, b, t, h, j);
                    const double got = test_box_get(y, b, t, h, j);
                    /* Past the range of binary16 lies infinity. */
                    if (y->t.dtype == PE_F16 && fabsl(exact) >= 65520) {
                        assert_true(isinf(got) && (got > 0) == (exact > 0));
                        continue;
                    }
                    /* One rounding to float, one to dtype, and double arithmetic. */
                    const long double allowed =
                        (long double)test_half_ulp(y->t.dtype, (double)exact) +
                        fabsl(exact) * 0x1.001p-24L + size * 0x1p-48L + 0x1p-149L;
                    if (!(fabsl((long double)got - exact) <= allowed))
                        fail_msg("%.9g, expected %.12Lg, allowed %.3Lg", got, exact,
                                 allowed);
                }
        }
}

static void random_call(test_rng *r, pe_bias_type type, pe_bias_form form, int add,
                        const pe_env *env)
{
    static const int64_t lengths[] = {1, 2, 7, 31, 64, 511, 512, 513, 1200};
    const int64_t batch = test_rng_int(r, 1, 3), q_len = test_rng_int(r, 1, 5);
    const int64_t k_len = lengths[test_rng_int(r, 0, 8)];
    const int32_t all = (int32_t)test_rng_int(r, 1, REF_MAX_HEADS);
    const int32_t first = (int32_t)test_rng_int(r, 0, all - 1);
    const int64_t heads = test_rng_int(r, 1, all - first);
    const pe_dtype x_type = (pe_dtype)test_rng_int(r, PE_F32, PE_BF16);
    const pe_dtype y_type = (pe_dtype)test_rng_int(r, PE_F32, PE_BF16);
    random_at q, k;
    test_box x, y;
    ref_bias ref;
    pe_error error;
    pe_status status;

    ref_bias_random(&ref, r, type, form, all, first);
    random_positions(&q, r, batch, q_len);
    random_positions(&k, r, batch, k_len);
    test_box_init(&x, r, x_type, (test_layout)test_rng_int(r, 0, TEST_NUM_LAYOUTS - 1),
                  batch, q_len, heads, k_len);
    test_box_init(&y, r, y_type, (test_layout)test_rng_int(r, 0, TEST_NUM_LAYOUTS - 1),
                  batch, q_len, heads, k_len);
    test_box_fill(&x, r);
    test_box_fill(&y, r);
    test_box_mark(&x);
    test_box_mark(&y);
    pe_bias *bias = create(&ref.spec, env);
    if (add)
        status = pe_bias_add(bias, &q.at, &k.at, &x.t, &y.t, &error);
    else
        status = pe_bias_fill(bias, &q.at, &k.at, &y.t, &error);
    if (status != PE_OK)
        fail_msg("%s", error.message);
    pe_bias_destroy(bias);
    check_box(&y, add ? &x : NULL, &ref, &q.at, &k.at);
    assert_true(test_box_is_unchanged(&x));
    assert_true(test_box_only_elements_changed(&y));
    test_box_free(&x);
    test_box_free(&y);
    free(q.ids);
    free(k.ids);
}

static void every_type(int add)
{
    test_rng r = {3};
    pe_env threads = {.struct_size = sizeof threads, .executor = test_executor_threads};
    for (int round = 0; round < 25; round++)
        for (pe_bias_type type = PE_BIAS_ALIBI; type <= PE_BIAS_KERPLE_POWER; type++)
            for (pe_bias_form form = PE_BIAS_CAUSAL; form <= PE_BIAS_KEY_ONLY; form++)
                if (form != PE_BIAS_KEY_ONLY || type == PE_BIAS_ALIBI)
                    random_call(&r, type, form, add, round % 2 ? &threads : NULL);
}

static void test_fill(void **state)
{
    (void)state;
    every_type(0);
}

static void test_add(void **state)
{
    (void)state;
    every_type(1);
}

static void test_add_in_place(void **state)
{
    enum { Q = 3, K = 700, H = 5 };
    static float apart[H * Q * K], same[H * Q * K];
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = PE_BIAS_ALIBI,
                               .form = PE_BIAS_CAUSAL,
                               .num_heads = H};
    const pe_positions q_at = {.start = K - Q}, k_at = {0};
    test_rng r = {4};
    pe_tensor x, y;
    pe_error error;
    (void)state;
    for (int i = 0; i < H * Q * K; i++)
        same[i] = test_rng_float(&r);
    pe_tensor_bhsd(&x, PE_F32, same, 1, H, Q, K);
    pe_tensor_bhsd(&y, PE_F32, apart, 1, H, Q, K);
    pe_bias *bias = create(&spec, NULL);
    assert_int_equal(pe_bias_add(bias, &q_at, &k_at, &x, &y, &error), PE_OK);
    assert_int_equal(pe_bias_add(bias, &q_at, &k_at, &x, &x, &error), PE_OK);
    pe_bias_destroy(bias);
    assert_memory_equal(apart, same, sizeof apart);
}

/* slopes.bfloat16() * arange in PyTorch 1.13, which turns the positions to bfloat16,
 * too: Falcon's bias of 32 heads, at six key positions. */
static const int64_t falcon_keys[] = {1, 255, 257, 1001, 1500, 2047};
static const struct {
    int head;
    float bias[6];
} falcon[] = {
    {0, {0.83984375f, 214, 215, 840, 1264, 1720}},
    {1, {0.70703125f, 180, 181, 708, 1064, 1448}},
    {2, {0.59375f, 151, 152, 592, 892, 1216}},
    {9, {0.176757812f, 45, 45.25f, 177, 266, 362}},
    {31, {0.00390625f, 0.99609375f, 1, 3.90625f, 5.875f, 8}},
};

static void test_imitation(void **state)
{
    float got[32][6] = {{0}};
    pe_bias_spec spec = {.struct_size = sizeof spec,
                         .type = PE_BIAS_ALIBI,
                         .form = PE_BIAS_KEY_ONLY,
                         .num_heads = 32,
                         .round_to = PE_BF16};
    const pe_positions q_at = {0}, k_at = {.ids = falcon_keys};
    pe_tensor t;
    pe_error error;
    (void)state;
    pe_tensor_bhsd(&t, PE_F32, got, 1, 32, 1, 6);
    for (int scaled = 0; scaled < 2; scaled++) {
        spec.scale = scaled ? 0.125 : 0; /* 1 / sqrt(64), an exact factor */
        pe_bias *bias = create(&spec, NULL);
        assert_int_equal(pe_bias_fill(bias, &q_at, &k_at, &t, &error), PE_OK);
        pe_bias_destroy(bias);
        for (size_t i = 0; i < sizeof falcon / sizeof *falcon; i++)
            for (int j = 0; j < 6; j++)
                assert_true(got[falcon[i].head][j] ==
                            falcon[i].bias[j] * (scaled ? 0.125f : 1));
    }
    /* Slope 1/2 at distance 1001: -500.5, or -500 in bfloat16. */
    const float half = 0.5f;
    const pe_positions far = {.start = 1001}, zero = {0};
    spec = (pe_bias_spec){.struct_size = sizeof spec,
                          .type = PE_BIAS_ALIBI,
                          .form = PE_BIAS_CAUSAL,
                          .num_heads = 1,
                          .slopes = &half};
    pe_tensor_bhsd(&t, PE_F32, got, 1, 1, 1, 1);
    for (int imitate = 0; imitate < 2; imitate++) {
        spec.round_to = imitate ? PE_BF16 : 0;
        pe_bias *bias = create(&spec, NULL);
        assert_int_equal(pe_bias_fill(bias, &far, &zero, &t, &error), PE_OK);
        pe_bias_destroy(bias);
        assert_true(got[0][0] == (imitate ? -500 : -500.5f));
    }
}

/* Causal and key-only differ by slope * q in a row; so do the two diagonals' sides. */
static void test_forms_differ_by_a_constant(void **state)
{
    enum { H = 12, K = 40, Q = 4, OFFSET = K - Q };
    static float causal[H][Q][K], both[H][Q][K], key[H][Q][K];
    float(*const tables[])[Q][K] = {causal, both, key};
    const pe_positions q_at = {.start = OFFSET}, k_at = {0};
    pe_error error;
    (void)state;
    for (int form = PE_BIAS_CAUSAL; form <= PE_BIAS_KEY_ONLY; form++) {
        const pe_bias_spec spec = {.struct_size = sizeof spec,
                                   .type = PE_BIAS_ALIBI,
                                   .form = form,
                                   .num_heads = H};
        pe_bias *bias = create(&spec, NULL);
        pe_tensor t;
        pe_tensor_bhsd(&t, PE_F32, tables[form - 1], 1, H, Q, K);
        assert_int_equal(pe_bias_fill(bias, &q_at, &k_at, &t, &error), PE_OK);
        if (form == PE_BIAS_KEY_ONLY)
            for (int h = 0; h < H; h++)
                for (int t_ = 0; t_ < Q; t_++)
                    for (int j = 0; j <= OFFSET + t_; j++) {
                        const double slope = (double)pe_bias_slopes(bias)[h];
                        const double constant = slope * (OFFSET + t_);
                        const double apart =
                            (double)key[h][t_][j] - (double)causal[h][t_][j];
                        assert_true(fabs(apart - constant) <= 0x1p-23 * constant);
                        assert_true(both[h][t_][j] == causal[h][t_][j]);
                    }
        pe_bias_destroy(bias);
    }
    for (int h = 0; h < H; h++)
        for (int t = 0; t < Q; t++)
            for (int j = OFFSET + t + 1; j < K; j++)
                assert_true(causal[h][t][j] == 0 && both[h][t][j] < 0);
}

/* Heads of a slice are those of the whole, bit for bit. */
static void test_slices(void **state)
{
    enum { H = 12, PART = 3, Q = 2, K = 600 };
    static float whole[H * Q * K], part[PART * Q * K];
    const pe_positions q_at = {.start = 100}, k_at = {0};
    test_rng r = {5};
    ref_bias ref;
    pe_error error;
    pe_tensor t;
    (void)state;
    for (pe_bias_type type = PE_BIAS_ALIBI; type <= PE_BIAS_KERPLE_POWER; type++) {
        ref_bias_random(&ref, &r, type, PE_BIAS_BIDIRECTIONAL, H, 0);
        pe_bias *bias = create(&ref.spec, NULL);
        pe_tensor_bhsd(&t, PE_F32, whole, 1, H, Q, K);
        assert_int_equal(pe_bias_fill(bias, &q_at, &k_at, &t, &error), PE_OK);
        pe_bias_destroy(bias);
        for (int first = 0; first < H; first += PART) {
            ref.spec.head_start = first;
            bias = create(&ref.spec, NULL);
            pe_tensor_bhsd(&t, PE_F32, part, 1, PART, Q, K);
            assert_int_equal(pe_bias_fill(bias, &q_at, &k_at, &t, &error), PE_OK);
            pe_bias_destroy(bias);
            assert_memory_equal(part, whole + first * Q * K, sizeof part);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_add_in_place),
        cmocka_unit_test(test_imitation),
        cmocka_unit_test(test_forms_differ_by_a_constant),
        cmocka_unit_test(test_slices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
