/* SPDX-License-Identifier: MIT
 *
 * test_lab_random.c - Philox against published answers, and what is drawn from it
 */
#include "lab/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* tests/kat_vectors of Random123 (D. E. Shaw Research), the lines "philox4x32 10". */
static void known_answers(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(cases); i++) {
        uint32_t got[4];
        lab_random_block(cases[i].key, cases[i].counter, got);
        assert_memory_equal(got, cases[i].answer, sizeof got);
    }
}

/* Seed, counter and stream are the key and the two halves of the counter. */
static void bits_are_the_first_half_of_a_block(void **state)
{
    (void)state;
    assert_int_equal(
        lab_random_bits(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
        0x94fdccebd16cfe09);
}

static void every_argument_matters(void **state)
{
    (void)state;
    for (uint64_t bit = 0; bit < 64; bit++) {
        const uint64_t one = UINT64_C(1) << bit;
        const uint64_t same = lab_random_bits(5, 6, 7);
        const uint64_t others[] = {lab_random_bits(5 ^ one, 6, 7),
                                   lab_random_bits(5, 6 ^ one, 7),
                                   lab_random_bits(5, 6, 7 ^ one)};
        for (size_t i = 0; i < LAB_COUNT(others); i++) {
            int differing = 0;
            for (uint64_t x = same ^ others[i]; x != 0; x &= x - 1)
                differing++;
            /* 32 expected with a deviation of 4. */
            assert_in_range(differing, 8, 56);
        }
    }
}

/* Bounds are kept, and every value comes about as often as it should: chi-square of 9
 * degrees of freedom, 99.999% below 41.4; the seed is fixed, so this never flickers. */
static void below_is_uniform_and_bounded(void **state)
{
    enum { DRAWS = 100000, BOUND = 10 };
    static const int64_t bounds[] = {1, 2, 3, 1000003, INT64_MAX};
    int64_t counts[BOUND] = {0};
    double chi = 0;
    (void)state;
    for (size_t b = 0; b < LAB_COUNT(bounds); b++)
        for (uint64_t i = 0; i < 1000; i++) {
            const int64_t x = lab_random_below(b, 2, i, bounds[b]);
            assert_true(x >= 0 && x < bounds[b]);
        }
    for (uint64_t i = 0; i < DRAWS; i++)
        counts[lab_random_below(1, LAB_STREAM_OFFSETS, i, BOUND)]++;
    for (int i = 0; i < BOUND; i++) {
        const double off = (double)counts[i] - DRAWS / BOUND;
        chi += off * off / (DRAWS / BOUND);
    }
    assert_true(chi < 41.4);
}

/* The product of a draw and a bound beyond 32 bits keeps its carries: against the
 * schoolbook product in halves of another shape. */
static void below_is_the_high_half_of_a_product(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        const uint64_t bits = lab_random_bits(3, 4, i);
        const int64_t bound = (int64_t)(lab_random_bits(9, 9, i) >> (1 + i % 60)) + 1;
        /* Long multiplication, bit by bit, the high word kept. */
        uint64_t high = 0, low = 0;
        for (int bit = 63; bit >= 0; bit--) {
            high = high << 1 | low >> 63;
            low <<= 1;
            if (bits >> bit & 1) {
                low += (uint64_t)bound;
                high += low < (uint64_t)bound;
            }
        }
        assert_int_equal(lab_random_below(3, 4, i, bound), high);
    }
}

static void units_are_in_the_half_open_interval(void **state)
{
    enum { DRAWS = 200000 };
    double sum = 0, low = 1, high = 0;
    (void)state;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const double x = lab_random_unit(11, LAB_STREAM_COPY, i);
        assert_true(x >= 0 && x < 1);
        sum += x;
        low = fmin(low, x);
        high = fmax(high, x);
    }
    /* Five deviations of the mean of uniforms. */
    assert_true(fabs(sum / DRAWS - 0.5) < 5 / sqrt(12.0 * DRAWS));
    assert_true(low < 1e-4 && high > 1 - 1e-4);
}

/* Mean, variance, skewness and kurtosis within five of their own deviations. */
static void normals_have_the_moments(void **state)
{
    enum { DRAWS = 200000 };
    double sums[5] = {0};
    static const double expected[5] = {1, 0, 1, 0, 3};
    static const double variances[5] = {1, 1, 2, 15, 96};
    (void)state;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const double x = lab_random_normal(2026, LAB_STREAM_WEIGHTS, i);
        double power = 1;
        assert_true(isfinite(x));
        for (int k = 0; k < 5; k++, power *= x)
            sums[k] += power;
    }
    for (int k = 1; k < 5; k++)
        assert_true(fabs(sums[k] / DRAWS - expected[k]) <
                    5 * sqrt(variances[k] / DRAWS));
}

/* Correlations of neighbouring streams, counters and seeds within five deviations. */
static void streams_are_independent(void **state)
{
    enum { DRAWS = 100000 };
    double sums[3] = {0};
    (void)state;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const double x = lab_random_normal(1, 1, i);
        sums[0] += x * lab_random_normal(1, 2, i);
        sums[1] += x * lab_random_normal(1, 1, i + 1);
        sums[2] += x * lab_random_normal(2, 1, i);
    }
    for (int k = 0; k < 3; k++)
        assert_true(fabs(sums[k] / DRAWS) < 5 / sqrt(DRAWS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(bits_are_the_first_half_of_a_block),
        cmocka_unit_test(every_argument_matters),
        cmocka_unit_test(below_is_uniform_and_bounded),
        cmocka_unit_test(below_is_the_high_half_of_a_product),
        cmocka_unit_test(units_are_in_the_half_open_interval),
        cmocka_unit_test(normals_have_the_moments),
        cmocka_unit_test(streams_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
