/* SPDX-License-Identifier: MIT
 *
 * test_bias_backward.c - gradients of slopes, T5 table, KERPLE p and a
 *
 * The loss is the sum of bias times a fixed random tensor; gradients are compared with
 * central differences of the textbook bias in long double, and with the bits that other
 * threads give. */
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

enum { B = 2, Q = 3, K = 530, MAX_GRAD = REF_MAX_BUCKETS * REF_MAX_HEADS };

static pe_bias *create(const pe_bias_spec *spec, const pe_env *env)
{
    pe_bias *bias = NULL;
    pe_error error;

    if (pe_bias_create(&bias, spec, env, &error) != PE_OK)
        fail_msg("%s", error.message);
    return bias;
}

/* The parameter that grad[i] belongs to, and how many there are. */
static float *parameter(ref_bias *ref, int64_t i)
{
    switch (ref->spec.type) {
    case PE_BIAS_ALIBI:
        return ref->slopes + i;
    case PE_BIAS_T5:
        return ref->table + i;
    default:
        return i < ref->spec.num_heads ? ref->p + i
                                       : ref->a + (i - ref->spec.num_heads);
    }
}

static int64_t num_parameters(const ref_bias *ref)
{
    const int64_t heads = ref->spec.num_heads;
    if (ref->spec.type == PE_BIAS_T5)
        return heads * ref->spec.num_buckets;
    return ref->spec.type == PE_BIAS_ALIBI ? heads : 2 * heads;
}

/* Sum of ds * bias over one head, and of the sizes of its terms. */
static long double loss(const ref_bias *ref, const test_box *ds, int32_t head,
                        const int64_t *q, const int64_t *k, long double *size)
{
    const int64_t h = head - ref->spec.head_start;
    long double sum = 0;
    *size = 0;
    if (h < 0 || h >= ds->t.num_heads)
        return 0;
    for (int64_t b = 0; b < B; b++)
        for (int64_t t = 0; t < Q; t++)
            for (int64_t j = 0; j < K; j++) {
                if (!test_box_is_present(ds, b, t))
                    continue;
                const long double term =
                    (long double)test_box_get(ds, b, t, h, j) *
                    ref_bias_at(ref, head, q[b * Q + t], k[b * K + j]);
                sum += term;
                *size += fabsl(term);
            }
    return sum;
}

static void check_type(test_rng *r, pe_bias_type type, pe_bias_form form)
{
    static float grad[MAX_GRAD], before[MAX_GRAD];
    const int32_t all = (int32_t)test_rng_int(r, 1, 5);
    const int32_t first = (int32_t)test_rng_int(r, 0, all - 1);
    const pe_dtype dtype = (pe_dtype)test_rng_int(r, PE_F32, PE_BF16);
    int64_t q[B * Q], k[B * K];
    ref_bias ref;
    test_box ds;
    pe_error error;

    ref_bias_random(&ref, r, type, form, all, first);
    test_box_init(&ds, r, dtype, (test_layout)test_rng_int(r, 0, TEST_NUM_LAYOUTS - 1),
                  B, Q, test_rng_int(r, 1, all - first), K);
    test_box_fill(&ds, r);
    for (int i = 0; i < B * Q; i++)
        q[i] = test_rng_int(r, -10, 600);
    for (int i = 0; i < B * K; i++)
        k[i] = test_rng_int(r, -10, 600);
    for (int i = 0; i < MAX_GRAD; i++)
        grad[i] = before[i] = test_rng_float(r);
    const pe_positions q_at = {.ids = q, .batch_stride = Q};
    const pe_positions k_at = {.ids = k, .batch_stride = K};
    pe_bias *bias = create(&ref.spec, NULL);
    if (pe_bias_backward(bias, &q_at, &k_at, &ds.t, grad, &error) != PE_OK)
        fail_msg("%s", error.message);
    pe_bias_destroy(bias);

    const int64_t count = num_parameters(&ref);
    for (int64_t i = 0; i < MAX_GRAD; i++) {
        if (i >= count) {
            assert_true(grad[i] == before[i]);
            continue;
        }
        /* A power of two that is small beside the parameter, and exact in float. */
        float *const value = parameter(&ref, i), kept = *value;
        const int32_t head = (int32_t)(i % ref.spec.num_heads);
        const float step = 0x1p-14f;
        long double size_up, size_down;
        *value = kept + step;
        const long double up_at = (long double)*value;
        const long double up = loss(&ref, &ds, head, q, k, &size_up);
        *value = kept - step;
        const long double down_at = (long double)*value;
        const long double down = loss(&ref, &ds, head, q, k, &size_down);
        *value = kept;
        const long double slope = (up - down) / (up_at - down_at);
        const long double expected = (long double)before[i] + slope;
        /* ALiBi and T5 are linear in their parameters: only rounding differs.  KERPLE
         * bends: step^2 / 6 times a third derivative, which is largest by a, 2 / a^3. */
        const long double size = fmaxl(size_up, size_down);
        long double allowed =
            fabsl(expected) * 0x1p-23L + size * 0x1p-40L / (long double)step;
        if (type >= PE_BIAS_KERPLE_LOG)
            allowed += size * (0x1p-20L + (long double)step * (long double)step /
                                              powl((long double)kept, 3));
        if (!(fabsl((long double)grad[i] - expected) <= allowed))
            fail_msg("type %d, parameter %lld: %.9g, expected %.9Lg, allowed %.3Lg",
                     (int)type, (long long)i, (double)grad[i], expected, allowed);
    }
    test_box_free(&ds);
}

static void test_central_differences(void **state)
{
    test_rng r = {9};
    (void)state;
    for (int round = 0; round < 3; round++)
        for (pe_bias_type type = PE_BIAS_ALIBI; type <= PE_BIAS_KERPLE_POWER; type++)
            for (pe_bias_form form = PE_BIAS_CAUSAL; form <= PE_BIAS_KEY_ONLY; form++)
                if (form != PE_BIAS_KEY_ONLY || type == PE_BIAS_ALIBI)
                    check_type(&r, type, form);
}

/* KERPLE's derivatives by formula, in long double: tight. */
static void test_kerple_formulas(void **state)
{
    test_rng r = {10};
    float ds_data[K], grad[2];
    const pe_positions q_at = {.start = 500}, k_at = {0};
    ref_bias ref;
    pe_tensor ds;
    pe_error error;
    (void)state;
    for (int j = 0; j < K; j++)
        ds_data[j] = test_rng_float(&r);
    pe_tensor_bhsd(&ds, PE_F32, ds_data, 1, 1, 1, K);
    for (int round = 0; round < 40; round++) {
        const pe_bias_type type = round % 2 ? PE_BIAS_KERPLE_LOG : PE_BIAS_KERPLE_POWER;
        ref_bias_random(&ref, &r, type, PE_BIAS_BIDIRECTIONAL, 1, 0);
        const long double p = (long double)ref.p[0], a = (long double)ref.a[0];
        const long double scale = (long double)ref.spec.scale;
        long double dp = 0, da = 0, size_p = 0, size_a = 0;
        for (int j = 0; j < K; j++) {
            const long double d = fabsl(500.0L - j), g = (long double)ds_data[j];
            long double by_p, by_a;
            if (type == PE_BIAS_KERPLE_LOG) {
                by_p = -log1pl(a * d);
                by_a = -p * d / (1 + a * d);
            } else {
                by_p = d > 0 ? -a * powl(d, p) * logl(d) : 0;
                by_a = -powl(d, p);
            }
            dp += scale * g * by_p;
            da += scale * g * by_a;
            size_p += fabsl(scale * g * by_p);
            size_a += fabsl(scale * g * by_a);
        }
        grad[0] = grad[1] = 0;
        pe_bias *bias = create(&ref.spec, NULL);
        assert_int_equal(pe_bias_backward(bias, &q_at, &k_at, &ds, grad, &error),
                         PE_OK);
        pe_bias_destroy(bias);
        assert_true(fabsl((long double)grad[0] - dp) <=
                    fabsl(dp) * 0x1.01p-24L + size_p * 0x1p-44L);
        assert_true(fabsl((long double)grad[1] - da) <=
                    fabsl(da) * 0x1.01p-24L + size_a * 0x1p-44L);
    }
}

static void test_threads(void **state)
{
    enum { H = 7 };
    static float ds_data[B * H * Q * K], one[MAX_GRAD], many[MAX_GRAD];
    const pe_executor *const executors[] = {&test_executor_backwards,
                                            &test_executor_threads};
    const pe_positions q_at = {.start = K - Q}, k_at = {0};
    test_rng r = {11};
    ref_bias ref;
    pe_tensor ds;
    pe_error error;
    (void)state;
    for (int i = 0; i < B * H * Q * K; i++)
        ds_data[i] = test_rng_float(&r);
    pe_tensor_bhsd(&ds, PE_F32, ds_data, B, H, Q, K);
    for (pe_bias_type type = PE_BIAS_ALIBI; type <= PE_BIAS_KERPLE_POWER; type++) {
        ref_bias_random(&ref, &r, type, PE_BIAS_CAUSAL, H, 0);
        memset(one, 0, sizeof one);
        pe_bias *bias = create(&ref.spec, NULL);
        assert_int_equal(pe_bias_backward(bias, &q_at, &k_at, &ds, one, &error), PE_OK);
        pe_bias_destroy(bias);
        for (size_t e = 0; e < 2; e++) {
            const pe_env env = {.struct_size = sizeof env, .executor = *executors[e]};
            memset(many, 0, sizeof many);
            bias = create(&ref.spec, &env);
            assert_int_equal(pe_bias_backward(bias, &q_at, &k_at, &ds, many, &error),
                             PE_OK);
            pe_bias_destroy(bias);
            assert_memory_equal(one, many, sizeof one);
        }
    }
}

/* A causal bias is 0 past the query whatever its parameters: NaN there is not read. */
static void test_hidden_keys(void **state)
{
    float ds_data[4] = {1, 2, NAN, NAN}, grad[1] = {0};
    const float slope = 0.5f;
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = PE_BIAS_ALIBI,
                               .form = PE_BIAS_CAUSAL,
                               .num_heads = 1,
                               .slopes = &slope};
    const pe_positions q_at = {.start = 1}, k_at = {0};
    pe_tensor ds;
    pe_error error;
    (void)state;
    pe_tensor_bhsd(&ds, PE_F32, ds_data, 1, 1, 1, 4);
    pe_bias *bias = create(&spec, NULL);
    assert_int_equal(pe_bias_backward(bias, &q_at, &k_at, &ds, grad, &error), PE_OK);
    pe_bias_destroy(bias);
    assert_true(grad[0] == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_central_differences),
        cmocka_unit_test(test_kerple_formulas),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_hidden_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
