/* SPDX-License-Identifier: MIT
 *
 * test_rope_properties.c - what must hold whatever the numbers are
 *
 * u is half an ulp of 1 in float.  A rotated element is off by at most 2u of |ac| +
 * |bs|, which is at most sqrt(2) of its pair's norm: bounds below follow from that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../support/rng.h"
#include "posenc/posenc.h"

#define U 0x1p-24
enum { HEADS = 3, DIM = 30, TOKENS = 11, SIZE = TOKENS * HEADS * DIM, ROUNDS = 200 };

/* Half of the specs have an attention factor, all have a window and random pairing. */
static pe_rope_spec draw_spec(test_rng *r, int with_factor)
{
    pe_rope_spec spec = {.struct_size = sizeof spec, .head_dim = DIM};

    spec.pairs.pairing = (pe_pairing)test_rng_int(r, 1, 2);
    spec.pairs.out_pairing = (pe_pairing)test_rng_int(r, 0, 2);
    spec.pairs.reversed = (int32_t)test_rng_int(r, 0, 1);
    spec.pairs.rotary_dim = 2 * (int32_t)test_rng_int(r, 1, DIM / 2);
    spec.pairs.rotary_start = (int32_t)test_rng_int(r, 0, DIM - spec.pairs.rotary_dim);
    spec.freqs.rope_theta = (double)test_rng_int(r, 2, 1000000);
    if (with_factor) {
        spec.freqs.rope_type = PE_ROPE_YARN;
        spec.freqs.factor = (double)test_rng_int(r, 2, 64);
        spec.freqs.original_max_position_embeddings = 4096;
    }
    return spec;
}

static pe_rope *create(const pe_rope_spec *spec)
{
    pe_rope *rope = NULL;
    pe_error error;

    if (pe_rope_create(&rope, spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    return rope;
}

static void fill(test_rng *r, float *x, int count)
{
    for (int i = 0; i < count; i++)
        x[i] = test_rng_float(r);
}

static void ok(pe_status status, const pe_error *error)
{
    if (status != PE_OK)
        fail_msg("%s", error->message);
}

static void apply(const pe_rope *rope, const pe_positions *at, const float *x, float *y)
{
    pe_tensor x_t, y_t;
    pe_error error;

    pe_tensor_bshd(&x_t, PE_F32, x, 1, TOKENS, HEADS, DIM);
    pe_tensor_bshd(&y_t, PE_F32, y, 1, TOKENS, HEADS, DIM);
    ok(pe_rope_apply(rope, at, &x_t, &y_t, &error), &error);
}

static double dot(const float *x, const float *y)
{
    double sum = 0;

    for (int i = 0; i < DIM; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

static double norm(const float *x)
{
    return sqrt(dot(x, x));
}

static void test_norm_is_kept(void **state)
{
    test_rng r = {1};
    float x[SIZE], y[SIZE];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const pe_rope_spec spec = draw_spec(&r, 0);
        const pe_positions at = {.start = test_rng_int(&r, -(1 << 30), 1 << 30)};
        pe_rope *rope = create(&spec);
        fill(&r, x, SIZE);
        apply(rope, &at, x, y);
        for (int v = 0; v < SIZE; v += DIM)
            assert_true(fabs(norm(x + v) - norm(y + v)) <= 4 * U * norm(x + v));
        pe_rope_destroy(rope);
    }
}

static void test_scores_depend_on_distance(void **state)
{
    test_rng r = {2};
    float q[SIZE], k[SIZE], q_far[SIZE], k_far[SIZE], q_near[SIZE], k_near[SIZE];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const pe_rope_spec spec = draw_spec(&r, round % 2);
        pe_rope *rope = create(&spec);
        const double a = pe_rope_get_info(rope)->attention_factor;
        const pe_positions q_at = {.start = test_rng_int(&r, 0, 5000)};
        const pe_positions k_at = {.start = test_rng_int(&r, 0, 5000)};
        const int64_t far = test_rng_int(&r, -(1 << 24), 1 << 24);
        const pe_positions q_at_far = {.start = q_at.start + far};
        const pe_positions k_at_far = {.start = k_at.start + far};
        fill(&r, q, SIZE);
        fill(&r, k, SIZE);
        apply(rope, &q_at, q, q_near);
        apply(rope, &k_at, k, k_near);
        apply(rope, &q_at_far, q, q_far);
        apply(rope, &k_at_far, k, k_far);
        for (int v = 0; v < SIZE; v += DIM) {
            const double bound = 16 * U * a * a * norm(q + v) * norm(k + v);
            assert_true(fabs(dot(q_near + v, k_near + v) - dot(q_far + v, k_far + v)) <=
                        bound);
        }
        pe_rope_destroy(rope);
    }
}

/* A^T A = attention_factor^2 on the window and 1 beside it; A^-1 A = 1. */
static void test_transpose_and_inverse(void **state)
{
    test_rng r = {3};
    float x[SIZE], y[SIZE], back[SIZE];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const pe_rope_spec spec = draw_spec(&r, round % 2);
        const pe_positions at = {.start = test_rng_int(&r, -(1 << 30), 1 << 30)};
        pe_rope *rope = create(&spec);
        const double a = pe_rope_get_info(rope)->attention_factor;
        const int first = spec.pairs.rotary_start;
        const int last = first + spec.pairs.rotary_dim;
        pe_tensor y_t, back_t;
        pe_error error;

        assert_true(round % 2 == 0 || a > 1);
        fill(&r, x, SIZE);
        apply(rope, &at, x, y);
        pe_tensor_bshd(&y_t, PE_F32, y, 1, TOKENS, HEADS, DIM);
        pe_tensor_bshd(&back_t, PE_F32, back, 1, TOKENS, HEADS, DIM);
        for (int inverse = 0; inverse < 2; inverse++) {
            ok(inverse ? pe_rope_inverse(rope, &at, &y_t, &back_t, &error)
                       : pe_rope_transpose(rope, &at, &y_t, &back_t, &error),
               &error);
            const double gain = inverse ? 1 : a * a;
            for (int i = 0; i < SIZE; i++) {
                const int inside = i % DIM >= first && i % DIM < last;
                if (inside)
                    assert_true(fabs((double)back[i] - gain * (double)x[i]) <=
                                8 * U * gain * sqrt(2));
                else
                    assert_true(back[i] == x[i]);
            }
        }
        pe_rope_destroy(rope);
    }
}

/* Interleaved over permuted rows is half-split, bit for bit, and the permutation's
 * inverse is the one with the pairings swapped. */
static void test_pairings_are_permutations(void **state)
{
    test_rng r = {4};
    float x[SIZE], permuted[SIZE], half[SIZE], interleaved[SIZE];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pe_rope_spec spec = draw_spec(&r, round % 2);
        const pe_positions at = {.start = test_rng_int(&r, 0, 100000)};
        int64_t to_half[HEADS * DIM], to_interleaved[HEADS * DIM];
        pe_error error;

        spec.pairs.out_pairing = PE_HALF_SPLIT;
        spec.pairs.pairing = PE_INTERLEAVED;
        ok(pe_pairs_permutation(&spec.pairs, HEADS, DIM, to_half, &error), &error);
        spec.pairs.out_pairing = PE_INTERLEAVED;
        spec.pairs.pairing = PE_HALF_SPLIT;
        ok(pe_pairs_permutation(&spec.pairs, HEADS, DIM, to_interleaved, &error),
           &error);
        for (int i = 0; i < HEADS * DIM; i++)
            assert_int_equal(to_half[to_interleaved[i]], i);

        fill(&r, x, SIZE);
        for (int i = 0; i < SIZE; i++)
            permuted[i] =
                x[i / (HEADS * DIM) * (HEADS * DIM) + (int)to_half[i % (HEADS * DIM)]];
        spec.pairs.out_pairing = 0;
        pe_rope *half_rope = create(&spec);
        spec.pairs.pairing = PE_INTERLEAVED;
        pe_rope *interleaved_rope = create(&spec);
        spec.pairs.out_pairing = PE_HALF_SPLIT;
        pe_rope *mixed_rope = create(&spec);
        apply(half_rope, &at, permuted, half);
        apply(interleaved_rope, &at, x, interleaved);
        for (int i = 0; i < SIZE; i++)
            permuted[i] = interleaved[i / (HEADS * DIM) * (HEADS * DIM) +
                                      (int)to_half[i % (HEADS * DIM)]];
        assert_memory_equal(half, permuted, sizeof half);
        /* Interleaved in, halves out: one call does the same. */
        apply(mixed_rope, &at, x, permuted);
        assert_memory_equal(half, permuted, sizeof half);
        pe_rope_destroy(half_rope);
        pe_rope_destroy(interleaved_rope);
        pe_rope_destroy(mixed_rope);
    }
}

/* shift(a) then shift(b) is shift(a + b), and shifting a key rotated at p gives the key
 * rotated at p + a, whose factor is not applied again. */
static void test_shift(void **state)
{
    test_rng r = {5};
    float x[SIZE], key[SIZE], once[SIZE], fresh[SIZE];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const pe_rope_spec spec = draw_spec(&r, round % 2);
        pe_rope *rope = create(&spec);
        const double f = pe_rope_get_info(rope)->attention_factor;
        const int64_t reach = round % 3 ? 100000 : (int64_t)1 << 40;
        const int64_t a = test_rng_int(&r, -reach, reach);
        const int64_t b = test_rng_int(&r, -reach, reach);
        pe_positions at = {.start = test_rng_int(&r, 0, reach)};
        pe_tensor key_t, once_t;
        pe_error error;

        fill(&r, x, SIZE);
        apply(rope, &at, x, key);
        pe_tensor_bshd(&key_t, PE_F32, key, 1, TOKENS, HEADS, DIM);
        pe_tensor_bshd(&once_t, PE_F32, once, 1, TOKENS, HEADS, DIM);
        ok(pe_rope_shift(rope, a + b, &key_t, &once_t, &error), &error);
        ok(pe_rope_shift(rope, a, &key_t, &key_t, &error), &error);
        ok(pe_rope_shift(rope, b, &key_t, &key_t, &error), &error);
        at.start += a + b;
        apply(rope, &at, x, fresh);
        for (int i = 0; i < SIZE; i++) {
            const double bound = 12 * U * f * sqrt(2);
            assert_true(fabs((double)once[i] - (double)key[i]) <= bound);
            assert_true(fabs((double)once[i] - (double)fresh[i]) <= bound);
        }
        pe_rope_destroy(rope);
    }
}

/* Keys of the short LongRoPE list become keys of the long one, and back. */
static void test_rebase_there_and_back(void **state)
{
    test_rng r = {6};
    float x[SIZE], key[SIZE], moved[SIZE], fresh[SIZE];
    double short_factor[DIM / 2], long_factor[DIM / 2];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pe_rope_spec spec = draw_spec(&r, 0);
        const pe_positions at = {
            .start = test_rng_int(&r, 0, round % 3 ? 4000 : (int64_t)1 << 40)};
        pe_tensor key_t, moved_t;
        pe_error error;

        for (int i = 0; i < DIM / 2; i++) {
            short_factor[i] = 1 + (double)test_rng_int(&r, 0, 100) / 100;
            long_factor[i] = 2 + (double)test_rng_int(&r, 0, 1000) / 10;
        }
        spec.freqs.rope_type = PE_ROPE_LONGROPE;
        spec.freqs.short_factor = short_factor;
        spec.freqs.long_factor = long_factor;
        spec.freqs.max_position_embeddings = 131072;
        spec.freqs.original_max_position_embeddings = 4096;
        pe_rope *near = create(&spec);
        spec.freqs.seq_len = 4097;
        pe_rope *far = create(&spec);
        const pe_rope_info *info = pe_rope_get_info(near);
        const double f = info->attention_factor;
        assert_int_equal(info->seq_len_max, 4096);
        assert_int_equal(pe_rope_get_info(far)->seq_len_min, 4097);
        assert_true(info->fingerprint != pe_rope_get_info(far)->fingerprint);

        fill(&r, x, SIZE);
        apply(near, &at, x, key);
        apply(far, &at, x, fresh);
        pe_tensor_bshd(&key_t, PE_F32, key, 1, TOKENS, HEADS, DIM);
        pe_tensor_bshd(&moved_t, PE_F32, moved, 1, TOKENS, HEADS, DIM);
        ok(pe_rope_rebase(near, &at, far, &at, &key_t, &moved_t, &error), &error);
        for (int i = 0; i < SIZE; i++)
            assert_true(fabs((double)moved[i] - (double)fresh[i]) <=
                        8 * U * f * sqrt(2));
        ok(pe_rope_rebase(far, &at, near, &at, &moved_t, &moved_t, &error), &error);
        for (int i = 0; i < SIZE; i++)
            assert_true(fabs((double)moved[i] - (double)key[i]) <= 8 * U * f * sqrt(2));
        pe_rope_destroy(near);
        pe_rope_destroy(far);
    }
}

/* The first and the last positions there are: every call holds there, too. */
static void test_ends_of_int64(void **state)
{
    static const int64_t starts[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX - TOKENS + 1};
    static const int64_t deltas[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, 0};
    test_rng r = {7};
    float x[SIZE], y[SIZE], back[SIZE];

    (void)state;
    for (int round = 0; round < 24; round++) {
        pe_rope_spec spec = draw_spec(&r, 0);
        const pe_positions at = {.start = starts[round % 3]}, zero = {0};
        pe_tensor x_t, y_t, back_t;
        pe_error error;

        spec.table_len = 4;
        pe_rope *rope = create(&spec);
        fill(&r, x, SIZE);
        apply(rope, &at, x, y);
        pe_tensor_bshd(&x_t, PE_F32, x, 1, TOKENS, HEADS, DIM);
        pe_tensor_bshd(&y_t, PE_F32, y, 1, TOKENS, HEADS, DIM);
        pe_tensor_bshd(&back_t, PE_F32, back, 1, TOKENS, HEADS, DIM);
        ok(pe_rope_inverse(rope, &at, &y_t, &back_t, &error), &error);
        for (int i = 0; i < SIZE; i++)
            assert_true(fabs((double)back[i] - (double)x[i]) <= 8 * U * sqrt(2));
        ok(pe_rope_transpose(rope, &at, &y_t, &back_t, &error), &error);
        for (int i = 0; i < SIZE; i++)
            assert_true(fabs((double)back[i] - (double)x[i]) <= 8 * U * sqrt(2));
        ok(pe_rope_shift(rope, deltas[round % 4], &y_t, &back_t, &error), &error);
        for (int v = 0; v < SIZE; v += DIM)
            assert_true(fabs(norm(back + v) - norm(x + v)) <= 8 * U * norm(x + v));
        /* From one end to the origin and back. */
        ok(pe_rope_rebase(rope, &at, rope, &zero, &y_t, &back_t, &error), &error);
        ok(pe_rope_rebase(rope, &zero, rope, &at, &back_t, &back_t, &error), &error);
        for (int i = 0; i < SIZE; i++)
            assert_true(fabs((double)back[i] - (double)y[i]) <= 8 * U * sqrt(2));
        pe_rope_destroy(rope);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm_is_kept),
        cmocka_unit_test(test_scores_depend_on_distance),
        cmocka_unit_test(test_transpose_and_inverse),
        cmocka_unit_test(test_pairings_are_permutations),
        cmocka_unit_test(test_shift),
        cmocka_unit_test(test_rebase_there_and_back),
        cmocka_unit_test(test_ends_of_int64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
