/* SPDX-License-Identifier: MIT
 *
 * test_bias_softmax.c - softmax rows with the bias in them
 *
 * The bound that docs/bias.md states is checked against long double; then what must hold
 * exactly: hidden keys, empty rows, slices, threads, in place. */
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

enum { MAX_K = 4100 };

static long double worst_ratio;

/* One row: query at q, keys at k0, k0 + step, ... */
static void check_row(const ref_bias *ref, const test_box *x, const test_box *y,
                      int64_t b, int64_t t, int64_t h, double scale, int causal,
                      int64_t q, int64_t k0)
{
    const int64_t n = y->t.dim;
    static long double logit[MAX_K];
    long double max = -INFINITY, sum = 0, size = 0, row = 0;
    for (int64_t j = 0; j < n; j++) {
        const long double scaled =
            (long double)scale * (long double)test_box_get(x, b, t, h, j);
        const long double bias =
            ref_bias_at(ref, ref->spec.head_start + (int32_t)h, q, k0 + j);
        logit[j] = causal && k0 + j > q ? -INFINITY : scaled + bias;
        if (logit[j] > -INFINITY)
            size = fmaxl(size, fabsl(scaled) + fabsl(bias));
        max = fmaxl(max, logit[j]);
    }
    for (int64_t j = 0; j < n; j++)
        sum += max > -INFINITY ? expl(logit[j] - max) : 0;
    for (int64_t j = 0; j < n; j++) {
        const double got = test_box_get(y, b, t, h, j);
        if (logit[j] == -INFINITY) {
            assert_true(got == 0 && !signbit(got));
            continue;
        }
        const long double exact = expl(logit[j] - max) / sum;
        const int kerple = ref->spec.type >= PE_BIAS_KERPLE_LOG;
        const long double relative = 2 * (size * (kerple ? 0x1p-45L : 0x1p-50L) +
                                          0x1p-50L + (long double)n * 0x1p-56L) +
                                     (y->t.dtype == PE_F32 ? 0 : 0x1p-24L);
        const int in_float = ref->spec.type == PE_BIAS_ALIBI &&
                             ref->spec.round_to == 0 && x->t.dtype == PE_F32 &&
                             y->t.dtype == PE_F32;
        const long double allowed =
            in_float ? 0x1p-20L * (size + 6) * exact + 0x1p-125L
                     : (long double)test_half_ulp(y->t.dtype, (double)exact) +
                           relative * exact;
        if (!(fabsl((long double)got - exact) <= allowed))
            fail_msg("key %lld: %.9g, expected %.15Lg, allowed %.3Lg", (long long)j,
                     got, exact, allowed);
        worst_ratio = fmaxl(worst_ratio, fabsl((long double)got - exact) / allowed);
        row += (long double)got;
    }
    if (max > -INFINITY && y->t.dtype == PE_F32)
        assert_true(fabsl(row - 1) <= (long double)(n + 64) * 0x1p-24L);
}

/* dtype 0: drawn, for x and y each. */
static void random_call(test_rng *r, pe_bias_type type, pe_bias_form form,
                        pe_dtype dtype, const pe_env *env)
{
    static const int64_t lengths[] = {1, 3, 8, 65, 511, 513, 1200, 4096, MAX_K};
    const int64_t batch = test_rng_int(r, 1, 2), q_len = test_rng_int(r, 1, 4);
    const int64_t k_len = lengths[test_rng_int(r, 0, 8)];
    const int32_t all = (int32_t)test_rng_int(r, 1, 6);
    const int32_t first = (int32_t)test_rng_int(r, 0, all - 1);
    const int64_t heads = test_rng_int(r, 1, all - first);
    const int64_t q0 = test_rng_int(r, -5, k_len + 5), k0 = test_rng_int(r, -3, 3);
    const double drawn = 4 * (double)test_rng_float(r);
    const double scale = dtype == 0 ? drawn : fabs(drawn);
    const pe_mask mask = (pe_mask)test_rng_int(r, PE_MASK_NONE, PE_MASK_CAUSAL);
    const pe_positions q_at = {.start = q0}, k_at = {.start = k0};
    test_box x, y;
    ref_bias ref;
    pe_error error;

    ref_bias_random(&ref, r, type, form, all, first);
    test_box_init(&x, r, dtype ? dtype : (pe_dtype)test_rng_int(r, PE_F32, PE_BF16),
                  (test_layout)test_rng_int(r, 0, TEST_NUM_LAYOUTS - 1), batch, q_len,
                  heads, k_len);
    test_box_init(&y, r, dtype ? dtype : (pe_dtype)test_rng_int(r, PE_F32, PE_BF16),
                  (test_layout)test_rng_int(r, 0, TEST_NUM_LAYOUTS - 1), batch, q_len,
                  heads, k_len);
    test_box_fill(&x, r);
    test_box_fill(&y, r);
    test_box_mark(&y);
    pe_bias *bias = create(&ref.spec, env);
    if (pe_bias_softmax(bias, scale, mask, &q_at, &k_at, &x.t, &y.t, &error) != PE_OK)
        fail_msg("%s", error.message);
    pe_bias_destroy(bias);
    assert_true(test_box_only_elements_changed(&y));
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < q_len; t++)
            for (int64_t h = 0; h < heads; h++)
                if (test_box_is_present(&x, b, t) && test_box_is_present(&y, b, t))
                    check_row(&ref, &x, &y, b, t, h, scale, mask == PE_MASK_CAUSAL,
                              q0 + t, k0);
    test_box_free(&x);
    test_box_free(&y);
}

static void test_bound(void **state)
{
    test_rng r = {6};
    pe_env threads = {.struct_size = sizeof threads, .executor = test_executor_threads};
    (void)state;
    for (int round = 0; round < 16; round++)
        for (pe_bias_type type = PE_BIAS_ALIBI; type <= PE_BIAS_KERPLE_POWER; type++)
            for (pe_bias_form form = PE_BIAS_CAUSAL; form <= PE_BIAS_KEY_ONLY; form++)
                if (form != PE_BIAS_KEY_ONLY || type == PE_BIAS_ALIBI)
                    random_call(&r, type, form, 0, round % 2 ? &threads : NULL);
    print_message("largest error: %.3Lf of the bound\n", worst_ratio);
}

/* The kernel of every instruction set that runs here. */
static void test_float_rows(void **state)
{
    test_rng r = {7};
    (void)state;
    for (pe_isa isa = PE_ISA_AUTO; isa <= PE_ISA_WASM128; isa++) {
        const pe_env env = {.struct_size = sizeof env, .isa = isa};
        if (!pe_isa_available(isa))
            continue;
        for (int round = 0; round < 40; round++)
            for (pe_bias_form form = PE_BIAS_CAUSAL; form <= PE_BIAS_KEY_ONLY; form++)
                random_call(&r, PE_BIAS_ALIBI, form, PE_F32, &env);
    }
}

static pe_bias_spec alibi(pe_bias_form form, int32_t num_heads)
{
    return (pe_bias_spec){.struct_size = sizeof(pe_bias_spec),
                          .type = PE_BIAS_ALIBI,
                          .form = form,
                          .num_heads = num_heads};
}

static void softmax(const pe_bias *bias, pe_mask mask, int64_t q, const pe_tensor *x,
                    const pe_tensor *y)
{
    const pe_positions q_at = {.start = q}, k_at = {0};
    pe_error error;

    if (pe_bias_softmax(bias, 0.125, mask, &q_at, &k_at, x, y, &error) != PE_OK)
        fail_msg("%s", error.message);
}

/* What differs by a constant in a row has one softmax: within the bound of each. */
static void test_forms_agree(void **state)
{
    enum { H = 12, Q = 3, K = 700, COUNT = H * Q * K };
    static float x_data[COUNT], y_data[3][COUNT];
    test_rng r = {7};
    pe_tensor x, y;
    (void)state;
    for (int i = 0; i < COUNT; i++)
        x_data[i] = 8 * test_rng_float(&r);
    pe_tensor_bhsd(&x, PE_F32, x_data, 1, H, Q, K);
    for (pe_bias_form form = PE_BIAS_CAUSAL; form <= PE_BIAS_KEY_ONLY; form++) {
        const pe_bias_spec spec = alibi(form, H);
        pe_bias *bias = create(&spec, NULL);
        pe_tensor_bhsd(&y, PE_F32, y_data[form - 1], 1, H, Q, K);
        softmax(bias, PE_MASK_CAUSAL, K - Q, &x, &y);
        pe_bias_destroy(bias);
    }
    assert_memory_equal(y_data[0], y_data[1], sizeof y_data[0]);
    for (int i = 0; i < COUNT; i++) {
        const double a = (double)y_data[0][i], b = (double)y_data[2][i];
        assert_true(fabs(a - b) <= 0x1.001p-23 * a + 0x1p-149);
    }
}

static void test_threads_slices_and_place(void **state)
{
    enum { H = 8, PART = 2, Q = 5, K = 1000, COUNT = H * Q * K };
    static float x_data[COUNT], whole[COUNT], other[COUNT];
    test_rng r = {8};
    pe_tensor x, y;
    pe_bias_spec spec = alibi(PE_BIAS_CAUSAL, H);
    const pe_executor *const executors[] = {&test_executor_backwards,
                                            &test_executor_threads};
    (void)state;
    for (int i = 0; i < COUNT; i++)
        x_data[i] = 8 * test_rng_float(&r);
    pe_tensor_bhsd(&x, PE_F32, x_data, 1, H, Q, K);
    pe_tensor_bhsd(&y, PE_F32, whole, 1, H, Q, K);
    pe_bias *bias = create(&spec, NULL);
    softmax(bias, PE_MASK_CAUSAL, K / 2, &x, &y);
    for (size_t e = 0; e < 2; e++) {
        const pe_env env = {.struct_size = sizeof env, .executor = *executors[e]};
        pe_bias *spread = create(&spec, &env);
        pe_tensor_bhsd(&y, PE_F32, other, 1, H, Q, K);
        memset(other, 0xff, sizeof other);
        softmax(spread, PE_MASK_CAUSAL, K / 2, &x, &y);
        pe_bias_destroy(spread);
        assert_memory_equal(other, whole, sizeof other);
    }
    for (spec.head_start = 0; spec.head_start < H; spec.head_start += PART) {
        pe_bias *slice = create(&spec, NULL);
        const int64_t at = (int64_t)spec.head_start * Q * K;
        pe_tensor_bhsd(&x, PE_F32, x_data + at, 1, PART, Q, K);
        pe_tensor_bhsd(&y, PE_F32, other + at, 1, PART, Q, K);
        memset(other + at, 0xff, PART * Q * K * sizeof *other);
        softmax(slice, PE_MASK_CAUSAL, K / 2, &x, &y);
        pe_bias_destroy(slice);
    }
    assert_memory_equal(other, whole, sizeof other);
    pe_tensor_bhsd(&x, PE_F32, x_data, 1, H, Q, K);
    softmax(bias, PE_MASK_CAUSAL, K / 2, &x, &x);
    assert_memory_equal(x_data, whole, sizeof whole);
    pe_bias_destroy(bias);
}

static void test_hidden_and_empty(void **state)
{
    enum { K = 600 };
    float x_data[K], y_data[K];
    const pe_bias_spec spec = alibi(PE_BIAS_CAUSAL, 1);
    pe_bias *bias = create(&spec, NULL);
    pe_tensor x, y;
    (void)state;
    pe_tensor_bhsd(&x, PE_F32, x_data, 1, 1, 1, K);
    pe_tensor_bhsd(&y, PE_F32, y_data, 1, 1, 1, K);
    for (int j = 0; j < K; j++)
        x_data[j] = 1;
    /* All keys are later than the query, or hidden by -infinity: zeroes. */
    memset(y_data, 0xff, sizeof y_data);
    softmax(bias, PE_MASK_CAUSAL, -1, &x, &y);
    for (int j = 0; j < K; j++)
        assert_true(y_data[j] == 0 && !signbit(y_data[j]));
    for (int j = 0; j < K; j++)
        x_data[j] = -INFINITY;
    softmax(bias, PE_MASK_NONE, 5, &x, &y);
    for (int j = 0; j < K; j++)
        assert_true(y_data[j] == 0 && !signbit(y_data[j]));
    /* One key left: it has all the weight. */
    x_data[K - 2] = -3;
    softmax(bias, PE_MASK_CAUSAL, K, &x, &y);
    for (int j = 0; j < K; j++)
        assert_true(y_data[j] == (j == K - 2 ? 1 : 0));
    /* A hidden NaN is not seen; a visible one, or +infinity, fills the row. */
    for (int j = 0; j < K; j++)
        x_data[j] = 1;
    x_data[590] = NAN;
    softmax(bias, PE_MASK_CAUSAL, 589, &x, &y);
    assert_true(y_data[0] > 0 && y_data[589] > 0 && y_data[590] == 0);
    softmax(bias, PE_MASK_CAUSAL, 590, &x, &y);
    for (int j = 0; j < K; j++)
        assert_true(isnan(y_data[j]));
    x_data[590] = INFINITY;
    softmax(bias, PE_MASK_NONE, 590, &x, &y);
    assert_true(isnan(y_data[0]) && isnan(y_data[590]));
    pe_bias_destroy(bias);
}

/* Infinities mean the same at every scale: 0 * infinity is no number, and a negative
 * scale would swap them. */
static void test_infinities_at_any_scale(void **state)
{
    enum { K = 3 };
    static const double scales[] = {1, 0, -1, -0x1p100};
    const pe_bias_spec spec = alibi(PE_BIAS_CAUSAL, 1);
    const pe_positions q_at = {0}, k_at = {0};
    pe_bias *bias = create(&spec, NULL);
    float x_data[K], y_data[K];
    pe_tensor x, y;
    (void)state;
    pe_tensor_bhsd(&x, PE_F32, x_data, 1, 1, 1, K);
    pe_tensor_bhsd(&y, PE_F32, y_data, 1, 1, 1, K);
    for (int i = 0; i < 4; i++) {
        x_data[0] = x_data[2] = 2;
        x_data[1] = -INFINITY;
        assert_int_equal(
            pe_bias_softmax(bias, scales[i], PE_MASK_NONE, &q_at, &k_at, &x, &y, NULL),
            PE_OK);
        assert_true(y_data[0] == 0.5f && y_data[1] == 0 && y_data[2] == 0.5f);
        x_data[1] = INFINITY;
        assert_int_equal(
            pe_bias_softmax(bias, scales[i], PE_MASK_NONE, &q_at, &k_at, &x, &y, NULL),
            PE_OK);
        assert_true(isnan(y_data[0]) && isnan(y_data[1]) && isnan(y_data[2]));
    }
    pe_bias_destroy(bias);
}

/* Weights that a float cannot hold are +0, and the smallest one that it can is kept. */
static void test_far_keys(void **state)
{
    enum { K = 4 };
    const float slope = 1;
    pe_bias_spec spec = alibi(PE_BIAS_CAUSAL, 1);
    spec.slopes = &slope;
    pe_bias *bias = create(&spec, NULL);
    const int64_t ids[K] = {0, 10, 14, 114};
    const pe_positions q_at = {.start = 114}, k_at = {.ids = ids};
    float x_data[K] = {0}, y_data[K];
    pe_tensor x, y;
    pe_error error;
    (void)state;
    pe_tensor_bhsd(&x, PE_F32, x_data, 1, 1, 1, K);
    pe_tensor_bhsd(&y, PE_F32, y_data, 1, 1, 1, K);
    assert_int_equal(
        pe_bias_softmax(bias, 1, PE_MASK_CAUSAL, &q_at, &k_at, &x, &y, &error), PE_OK);
    assert_true(y_data[0] == 0 && !signbit(y_data[0])); /* e^-114 */
    assert_true(y_data[1] == 0 && !signbit(y_data[1])); /* e^-104 */
    assert_true(y_data[2] == 0x1.bp-145f);              /* e^-100, a subnormal */
    assert_true(y_data[3] == 1);
    pe_bias_destroy(bias);
}

/* Scores and biases past what a float tells apart: weights depend on differences of a few
 * units between numbers of 2^29, or of biases of 2^23 that scores take back. */
static void test_large_numbers(void **state)
{
    enum { K = 192 };
    static const float slopes[] = {0.5f, 0.90f, 0.924f, 1.848f, 700};
    static const int64_t ahead[] = {0, 75, 1 << 23};
    float x_data[K] = {0}, y_data[K];
    pe_tensor x, y;
    (void)state;
    pe_tensor_bhsd(&x, PE_F32, x_data, 1, 1, 1, K);
    pe_tensor_bhsd(&y, PE_F32, y_data, 1, 1, 1, K);
    for (pe_isa isa = PE_ISA_AUTO; isa <= PE_ISA_WASM128; isa++) {
        const pe_env env = {.struct_size = sizeof env, .isa = isa};
        for (size_t i = 0; i < 5 * 3 * 4 * 3 && pe_isa_available(isa); i++) {
            const float slope = slopes[i % 5];
            const int64_t q = K - 1 + ahead[i / 5 % 3];
            const double sizes[] = {0x1.62p29, -0x1.62p29, 0x1p24,
                                    (double)slope * (double)q};
            const pe_positions q_at = {.start = q}, k_at = {0};
            pe_bias_spec spec = alibi((pe_bias_form)(1 + i / 60), 1);
            spec.slopes = &slope;
            pe_bias *bias = create(&spec, &env);
            long double sum = 0, max = -INFINITY, size = 0;
            pe_error error;
            for (int64_t j = 0; j < K; j++) {
                x_data[j] = (float)sizes[i / 15 % 4] + (j % 32 < 24 ? -300.0f : 0);
                max = fmaxl(max, (long double)x_data[j] + (long double)slope * j);
                size = fmaxl(size, fabsl((long double)x_data[j]) +
                                       (long double)slope * fmaxl(j, q - j));
            }
            for (int64_t j = 0; j < K; j++)
                sum += expl((long double)x_data[j] + (long double)slope * j - max);
            if (pe_bias_softmax(bias, 1, PE_MASK_CAUSAL, &q_at, &k_at, &x, &y,
                                &error) != PE_OK)
                fail_msg("%s", error.message);
            /* The bound of floats, or more than enough for that of doubles. */
            const long double part =
                size <= 0x1.8p20L ? 0x1p-20L * (size + 6) : 0x1p-16L;
            for (int64_t j = 0; j < K; j++) {
                const long double exact =
                    expl((long double)x_data[j] + (long double)slope * j - max) / sum;
                if (!(fabsl((long double)y_data[j] - exact) <=
                      part * exact + 0x1p-125L))
                    fail_msg("%s, slope %g, score %g, query %lld, key %lld: %g is %Lg",
                             pe_isa_name(isa), (double)slope, (double)x_data[j],
                             (long long)q, (long long)j, (double)y_data[j], exact);
            }
            pe_bias_destroy(bias);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_float_rows),
        cmocka_unit_test(test_forms_agree),
        cmocka_unit_test(test_threads_slices_and_place),
        cmocka_unit_test(test_hidden_and_empty),
        cmocka_unit_test(test_infinities_at_any_scale),
        cmocka_unit_test(test_far_keys),
        cmocka_unit_test(test_large_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
