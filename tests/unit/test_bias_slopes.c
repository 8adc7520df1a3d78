/* SPDX-License-Identifier: MIT
 *
 * test_bias_slopes.c - slopes are rounded once, and T5's buckets begin where they should
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "bias/real.h"

#include "../support/bias_reference.h"

static pe_bias *create(const pe_bias_spec *spec)
{
    pe_bias *bias = NULL;
    pe_error error;

    if (pe_bias_create(&bias, spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    return bias;
}

static pe_bias_spec alibi(pe_bias_form form, int32_t num_heads)
{
    return (pe_bias_spec){.struct_size = sizeof(pe_bias_spec),
                          .type = PE_BIAS_ALIBI,
                          .form = form,
                          .num_heads = num_heads};
}

static void test_slopes(void **state)
{
    static const double max_biases[] = {0, 8, 1, 2, 4, 16, 7.3, 0.01, 126};
    (void)state;
    for (size_t m = 0; m < sizeof max_biases / sizeof *max_biases; m++)
        for (int32_t recipe = 0; recipe <= PE_SLOPES_GEOMETRIC; recipe++)
            for (int32_t n = 1; n <= 260; n++) {
                pe_bias_spec spec = alibi(PE_BIAS_CAUSAL, n);
                spec.max_bias = max_biases[m];
                spec.slope_recipe = recipe;
                pe_bias *bias = create(&spec);
                const double max_bias = max_biases[m] == 0 ? 8 : max_biases[m];
                for (int32_t h = 0; h < n; h++)
                    /* long double is exact enough to name the nearest float: no slope
                     * here is within 2^-60 of the middle between two. */
                    assert_true(pe_bias_slopes(bias)[h] ==
                                (float)ref_slope(recipe, h, n, max_bias));
                pe_bias_destroy(bias);
            }
}

static void test_other_types_have_no_slopes(void **state)
{
    test_rng r = {1};
    ref_bias ref;
    (void)state;
    ref_bias_random(&ref, &r, PE_BIAS_T5, PE_BIAS_CAUSAL, 4, 0);
    pe_bias *bias = create(&ref.spec);
    assert_null(pe_bias_slopes(bias));
    pe_bias_destroy(bias);
}

/* ----------------------------------------------------------------- buckets --- */

/* Smallest distance of each bucket of one side, as PyTorch 1.13's float32 code gives
 * them (the function of Raffel et al. in Hugging Face's form). */
static const int64_t edges_32_128[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                       11, 12, 13, 14, 15, 16, 19, 21, 24, 27, 31,
                                       35, 40, 46, 52, 59, 67, 77, 87, 99, 113};
static const int64_t edges_both_32_128[] = {0, 1,  2,  3,  4,  5,  6,  7,
                                            8, 12, 16, 23, 32, 46, 64, 91};
static const int64_t edges_32_4096[] = {
    0,  1,  2,  3,  4,  5,  6,   7,   8,   9,   10,  11,  12,   13,   14,   15,
    16, 23, 32, 46, 64, 91, 128, 182, 256, 363, 512, 725, 1024, 1449, 2048, 2897};
static const int64_t edges_both_64_1000[] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11,  12,  13,  14,  15,
    16, 21, 27, 35, 45, 59, 76, 98, 127, 164, 213, 275, 356, 461, 597, 773};
static const int64_t edges_8_20[] = {0, 1, 2, 3, 4, 6, 9, 14};
static const int64_t edges_both_10_33[] = {0, 1, 2, 6, 13};
static const int64_t edges_17_129[] = {0,  1,  2,  3,  4,  5,  6,  7, 8,
                                       11, 15, 21, 28, 38, 52, 70, 95};

static const struct {
    int32_t num_buckets;
    int64_t max_distance;
    pe_bias_form form;
    const int64_t *edges;
} bucket_cases[] = {
    {32, 128, PE_BIAS_CAUSAL, edges_32_128},
    {32, 128, PE_BIAS_BIDIRECTIONAL, edges_both_32_128},
    {32, 4096, PE_BIAS_CAUSAL, edges_32_4096},
    {64, 1000, PE_BIAS_BIDIRECTIONAL, edges_both_64_1000},
    {8, 20, PE_BIAS_CAUSAL, edges_8_20},
    {10, 33, PE_BIAS_BIDIRECTIONAL, edges_both_10_33},
    {17, 129, PE_BIAS_CAUSAL, edges_17_129},
};

/* With table[bucket][0] = bucket, the bias is the bucket. */
static float bucket_of(const pe_bias *bias, int64_t q, int64_t k)
{
    const pe_positions q_at = {.start = q}, k_at = {.start = k};
    float y = -1;
    pe_tensor t;
    pe_error error;

    pe_tensor_bhsd(&t, PE_F32, &y, 1, 1, 1, 1);
    if (pe_bias_fill(bias, &q_at, &k_at, &t, &error) != PE_OK)
        fail_msg("%s", error.message);
    return y;
}

static void test_buckets(void **state)
{
    float table[64];
    (void)state;
    for (int i = 0; i < 64; i++)
        table[i] = (float)i;
    for (size_t c = 0; c < sizeof bucket_cases / sizeof *bucket_cases; c++) {
        const int both = bucket_cases[c].form == PE_BIAS_BIDIRECTIONAL;
        const int32_t side = bucket_cases[c].num_buckets / (both ? 2 : 1);
        const pe_bias_spec spec = {.struct_size = sizeof spec,
                                   .type = PE_BIAS_T5,
                                   .form = bucket_cases[c].form,
                                   .num_heads = 1,
                                   .num_buckets = bucket_cases[c].num_buckets,
                                   .max_distance = bucket_cases[c].max_distance,
                                   .table = table};
        pe_bias *bias = create(&spec);
        int32_t bucket = 0;
        for (int64_t d = 0; d < 2 * spec.max_distance; d++) {
            if (bucket + 1 < side && d == bucket_cases[c].edges[bucket + 1])
                bucket++;
            assert_int_equal((int)bucket_of(bias, d + 5, 5), bucket);
            if (both)
                assert_int_equal((int)bucket_of(bias, 5, d + 5),
                                 d > 0 ? side + bucket : 0);
        }
        assert_int_equal((int)bucket_of(bias, (int64_t)1 << 52, 0), side - 1);
        pe_bias_destroy(bias);
    }
}

/* ----------------------------------------------------------------- exp, ln --- */

static void test_exp_and_ln(void **state)
{
    test_rng r = {2};
    long double worst_exp = 0, worst_ln = 0, worst_ln1p = 0;
    (void)state;
    for (int i = 0; i < 400000; i++) {
        const double u = (double)test_rng_float(&r);
        const double t = (i & 1) ? -110 * fabs(u) : 700 * u;
        const long double e = expl((long double)t);
        worst_exp = fmaxl(worst_exp, fabsl(((long double)pe_real_exp(t) - e) / e));
        const double x = ldexp(1 + fabs(u), (int)test_rng_int(&r, -300, 300));
        const long double l = logl((long double)x);
        worst_ln =
            fmaxl(worst_ln, fabsl((long double)pe_real_ln(x) - l) / fmaxl(1, fabsl(l)));
        const double small = ldexp(fabs(u), (int)test_rng_int(&r, -60, 60));
        const long double l1 = log1pl((long double)small);
        if (small > 0)
            worst_ln1p =
                fmaxl(worst_ln1p, fabsl(((long double)pe_real_ln1p(small) - l1) / l1));
    }
    assert_true(pe_real_exp(0) == 1);
    assert_true(pe_real_ln(1) == 0);
    assert_true(pe_real_ln1p(0) == 0);
    print_message("worst relative error: exp %.3Lg, ln %.3Lg, ln1p %.3Lg\n", worst_exp,
                  worst_ln, worst_ln1p);
    assert_true(worst_exp < 0x1p-50L);
    assert_true(worst_ln < 0x1p-50L);
    assert_true(worst_ln1p < 0x1p-50L);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_other_types_have_no_slopes),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_exp_and_ln),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
