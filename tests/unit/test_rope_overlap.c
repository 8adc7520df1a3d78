/* SPDX-License-Identifier: MIT
 *
 * test_rope_overlap.c - x and y are one tensor, or apart; neighbours are not overlaps
 *
 * What surely overlaps is refused and left alone; slices that interleave in memory
 * without sharing an element must work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../support/refusal.h"

enum { TOKENS = 6, HEADS = 4, DIM = 8, SIZE = 2 * TOKENS * HEADS * DIM };

static float memory[SIZE], before[SIZE];
static pe_rope *rope;

static int set_up(void **state)
{
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = DIM,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .freqs = {.rope_theta = 10000}};

    (void)state;
    for (int i = 0; i < SIZE; i++)
        before[i] = memory[i] = (float)(i % 97) / 128;
    return pe_rope_create(&rope, &spec, NULL, NULL) != PE_OK;
}

static int tear_down(void **state)
{
    (void)state;
    pe_rope_destroy(rope);
    return 0;
}

static void refused(const pe_tensor *x, const pe_tensor *y)
{
    const pe_positions at = {.start = 1};
    pe_error error;
    const pe_status got = pe_rope_apply(rope, &at, x, y, &error);
    const char *complaint =
        test_refusal(&error, got, PE_E_ARGUMENT, "y overlaps x|very same tensor");

    if (complaint != NULL)
        fail_msg("%s", complaint);
    assert_int_equal(pe_rope_shift(rope, 1, x, y, NULL), PE_E_ARGUMENT);
    assert_int_equal(pe_tensor_copy(x, y, NULL, NULL), PE_E_ARGUMENT);
    assert_memory_equal(memory, before, sizeof memory);
}

static void test_overlaps(void **state)
{
    static const int64_t distances[] = {1, DIM - 1, DIM, HEADS * DIM, SIZE / 2 - 1};
    pe_tensor x, y;

    (void)state;
    pe_tensor_bshd(&x, PE_F32, memory, 1, TOKENS, HEADS, DIM);
    for (int i = 0; i < 5; i++) {
        y = x;
        y.data = memory + distances[i];
        refused(&x, &y);
        refused(&y, &x);
    }
    pe_tensor_bhsd(&y, PE_F32, memory, 1, HEADS, TOKENS, DIM); /* other strides */
    refused(&x, &y);
    y = x;
    y.dtype = PE_F16; /* narrower, over the same bytes */
    refused(&x, &y);
    /* A head slice moved by half a head. */
    x.num_heads = 2;
    y = x;
    y.data = memory + DIM / 2;
    refused(&x, &y);
}

/* y's elements as computed apart from x. */
static void check_apart(const pe_tensor *x, const pe_tensor *y)
{
    static float expected[SIZE];
    const pe_positions at = {.start = 1};
    pe_tensor apart;
    pe_error error;

    pe_tensor_bshd(&apart, PE_F32, expected, x->batch, x->seq_len, x->num_heads,
                   x->dim);
    assert_int_equal(pe_rope_apply(rope, &at, x, &apart, NULL), PE_OK);
    if (pe_rope_apply(rope, &at, x, y, &error) != PE_OK)
        fail_msg("%s", error.message);
    for (int64_t t = 0; t < x->seq_len; t++)
        for (int64_t h = 0; h < x->num_heads; h++)
            assert_memory_equal(
                (float *)y->data + t * y->seq_stride + h * y->head_stride,
                expected + (t * x->num_heads + h) * DIM, DIM * sizeof(float));
    memcpy(memory, before, sizeof memory);
}

static void test_neighbours(void **state)
{
    pe_tensor x, y;

    (void)state;
    pe_tensor_bshd(&x, PE_F32, memory, 1, TOKENS, HEADS, DIM);
    y = x;
    y.data = memory + SIZE / 2; /* behind it */
    check_apart(&x, &y);
    x.num_heads = y.num_heads = 2; /* heads 0, 1 into heads 2, 3 of the same tokens */
    y.data = memory + 2 * DIM;
    check_apart(&x, &y);
    check_apart(&y, &x);
    x.num_heads = y.num_heads = HEADS; /* even tokens into odd ones */
    x.seq_len = y.seq_len = TOKENS / 2;
    x.seq_stride = y.seq_stride = 2 * HEADS * DIM;
    y.data = memory + HEADS * DIM;
    check_apart(&x, &y);
    check_apart(&x, &x);
}

/* In place, with another pairing on the way out, at every number of pairs. */
static void test_in_place_across_pairings(void **state)
{
    enum { MAX_DIM = 140 };
    static float x[3 * MAX_DIM], y[3 * MAX_DIM];
    const pe_positions at = {.start = 3};

    (void)state;
    for (int32_t dim = 2; dim <= MAX_DIM; dim += 2)
        for (int n = 0; n < 4; n++) {
            const pe_rope_spec spec = {
                .struct_size = sizeof spec,
                .head_dim = dim,
                .pairs = {.pairing = 1 + n % 2, .out_pairing = 1 + n / 2},
                .freqs = {.rope_theta = 10000}};
            pe_tensor x_t, y_t;
            pe_rope *plan = NULL;

            for (int i = 0; i < 3 * dim; i++)
                x[i] = (float)(i % 31) / 32;
            pe_tensor_bshd(&x_t, PE_F32, x, 1, 1, 3, dim);
            pe_tensor_bshd(&y_t, PE_F32, y, 1, 1, 3, dim);
            assert_int_equal(pe_rope_create(&plan, &spec, NULL, NULL), PE_OK);
            assert_int_equal(pe_rope_apply(plan, &at, &x_t, &y_t, NULL), PE_OK);
            assert_int_equal(pe_rope_apply(plan, &at, &x_t, &x_t, NULL), PE_OK);
            assert_memory_equal(x, y, (size_t)(3 * dim) * sizeof *x);
            pe_rope_destroy(plan);
        }
}

/* A factor that f16 cannot hold: infinities where the value says so, nowhere else. */
static void test_factor_beyond_f16(void **state)
{
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = DIM,
        .pairs = {.pairing = PE_HALF_SPLIT},
        .freqs = {.rope_theta = 10000, .attention_factor = 100000}};
    const pe_positions at = {.start = 1};
    float cos_row[DIM / 2] = {0}, sin_row[DIM / 2] = {0}, back[DIM / 2] = {0};
    uint16_t half[2][DIM / 2];
    pe_tensor cos_t, sin_t, cos_half, sin_half, back_t;
    pe_rope *plan = NULL;

    (void)state;
    pe_tensor_bshd(&cos_t, PE_F32, cos_row, 1, 1, 1, DIM / 2);
    pe_tensor_bshd(&sin_t, PE_F32, sin_row, 1, 1, 1, DIM / 2);
    pe_tensor_bshd(&cos_half, PE_F16, half[0], 1, 1, 1, DIM / 2);
    pe_tensor_bshd(&sin_half, PE_F16, half[1], 1, 1, 1, DIM / 2);
    pe_tensor_bshd(&back_t, PE_F32, back, 1, 1, 1, DIM / 2);
    assert_int_equal(pe_rope_create(&plan, &spec, NULL, NULL), PE_OK);
    assert_int_equal(pe_rope_table(plan, &at, &cos_t, &sin_t, NULL), PE_OK);
    assert_int_equal(pe_rope_table(plan, &at, &cos_half, &sin_half, NULL), PE_OK);
    assert_int_equal(pe_tensor_copy(&cos_half, &back_t, NULL, NULL), PE_OK);
    for (int i = 0; i < DIM / 2; i++)
        if (cos_row[i] >= 65520)
            assert_true(isinf(back[i]));
        else
            assert_true(fabsf(back[i] - cos_row[i]) <= 0x1p-11f * cos_row[i]);
    assert_true(isinf(back[3]) && !isinf(back[0])); /* both kinds were met */
    pe_rope_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlaps),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_in_place_across_pairings),
        cmocka_unit_test(test_factor_beyond_f16),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
