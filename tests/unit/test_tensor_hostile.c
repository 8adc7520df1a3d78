/* SPDX-License-Identifier: MIT
 *
 * test_tensor_hostile.c - numbers in tensors and positions that nobody should write
 *
 * What cannot be addressed is refused before anything is read; what is not in use may
 * hold anything and changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "../support/box.h"
#include "../support/refusal.h"

enum { HEADS = 3, DIM = 8, TOKENS = 4, SIZE = TOKENS * HEADS * DIM };

static pe_rope *rope, *crossing; /* crossing: half-split in, interleaved out */

static int set_up(void **state)
{
    pe_rope_spec spec = {.struct_size = sizeof spec,
                         .head_dim = DIM,
                         .pairs = {.pairing = PE_HALF_SPLIT},
                         .freqs = {.rope_theta = 10000}};

    (void)state;
    if (pe_rope_create(&rope, &spec, NULL, NULL) != PE_OK)
        return 1;
    spec.pairs.out_pairing = PE_INTERLEAVED;
    return pe_rope_create(&crossing, &spec, NULL, NULL) != PE_OK;
}

static int tear_down(void **state)
{
    (void)state;
    pe_rope_destroy(rope);
    pe_rope_destroy(crossing);
    return 0;
}

static void refused(const pe_tensor *x, const pe_tensor *y, pe_status expected,
                    const char *words)
{
    const pe_positions at = {.start = 1};
    pe_error error;
    const char *complaint =
        test_refusal(&error, pe_rope_apply(rope, &at, x, y, &error), expected, words);

    if (complaint != NULL)
        fail_msg("%s", complaint);
    complaint =
        test_refusal(&error, pe_tensor_copy(x, y, NULL, &error), expected, words);
    if (complaint != NULL)
        fail_msg("%s", complaint);
}

static void test_pages(void **state)
{
    static float pool[SIZE], y[SIZE];
    static const int32_t pages[] = {0, 7, 0, 0};
    pe_tensor x_t, y_t;

    (void)state;
    pe_tensor_paged(&x_t, PE_F32, pool, 1, 2, HEADS, DIM, pages, 1, 2);
    pe_tensor_bshd(&y_t, PE_F32, y, 1, TOKENS, HEADS, DIM);
    refused(&x_t, &y_t, PE_E_POSITION, "page_table[0][1]|7|capacity");
    /* One page holds all tokens, and more than int64 can add to. */
    x_t.page_len = INT64_MAX;
    x_t.page_table = pages + 1;
    refused(&x_t, &y_t, PE_E_POSITION, "page_table[0][0]|7|capacity");
    x_t.page_table = pages;
    refused(&x_t, &y_t, PE_E_POSITION, "page_table[0][0]|0|capacity");
    pe_tensor_paged(&x_t, PE_F32, pool, 2, 2, HEADS, DIM, pages, 3, 2);
    y_t.batch = 3;
    x_t.page_table_stride = INT64_MAX;
    refused(&x_t, &y_t, PE_E_SHAPE, "page_table_stride|3 rows");
    y_t.batch = 1;
    /* Nobody's capacity: page 0 lies where it lies. */
    pe_tensor_paged(&x_t, PE_F32, pool, 2, 2, HEADS, DIM, pages + 2, 1, 2);
    x_t.capacity = INT64_MAX;
    assert_int_equal(pe_tensor_copy(&x_t, &y_t, NULL, NULL), PE_OK);
    assert_int_equal(pe_tensor_copy(&y_t, &x_t, NULL, NULL), PE_OK);
}

static void no_decode(void *ctx, const void *src, float *dst, int64_t count)
{
    (void)ctx, (void)src, (void)dst, (void)count;
    fail();
}

static void no_encode(void *ctx, const float *src, void *dst, int64_t count)
{
    (void)ctx, (void)src, (void)dst, (void)count;
    fail();
}

static void test_sizes(void **state)
{
    static float y[SIZE];
    static int8_t bytes[1];
    static float scales[1];
    const int64_t wide = (int64_t)1 << 33;
    const pe_codec codec = {4, INT64_MAX / 2, no_decode, no_encode, NULL};
    pe_tensor x_t, y_t;
    pe_error error;

    (void)state;
    pe_tensor_bshd(&x_t, PE_CODED, bytes, 1, TOKENS, HEADS, DIM);
    pe_tensor_bshd(&y_t, PE_F32, y, 1, TOKENS, HEADS, DIM);
    x_t.codec = &codec;
    refused(&x_t, &y_t, PE_E_SHAPE, "x|int64 can address");
    /* Groups whose product is 2^64: 0, were it not checked. */
    pe_tensor_bshd(&x_t, PE_I8, bytes, 1, 1, 1, wide);
    x_t.scales = scales;
    y_t = x_t;
    y_t.data = (void *)((uintptr_t)bytes + (uintptr_t)(2 * wide)); /* never reached */
    y_t.scale_len = wide / 4;
    const pe_status got = pe_tensor_copy(&x_t, &y_t, NULL, &error);
    const char *complaint = test_refusal(&error, got, PE_E_LIMIT, "8589934592");
    if (complaint != NULL)
        fail_msg("%s", complaint);
}

static void test_positions(void **state)
{
    static float x[SIZE];
    static const int64_t ids[TOKENS];
    const pe_positions at[] = {{.ids = ids, .batch_stride = INT64_MAX},
                               {.ids = ids, .batch_stride = INT64_MAX / 2}};
    pe_tensor x_t;
    pe_error error;

    (void)state;
    pe_tensor_bshd(&x_t, PE_F32, x, 3, 1, 1, DIM);
    for (int i = 0; i < 2; i++) {
        const pe_status got = pe_rope_apply(rope, &at[i], &x_t, &x_t, &error);
        const char *complaint =
            test_refusal(&error, got, PE_E_ARGUMENT, "at.batch_stride|2^63");
        if (complaint != NULL)
            fail_msg("%s", complaint);
    }
}

/* Counts of one: their strides may hold anything. */
static void test_strides_not_in_use(void **state)
{
    static const int64_t odd[] = {INT64_MAX, INT64_MIN, -1, INT64_MAX / 4 + 1};
    static const pe_dtype dtypes[] = {PE_F32, PE_F16, PE_BF16, PE_I8};
    static float x[DIM], y[DIM], expected[DIM];
    const pe_positions at = {.start = 5};
    float scale = 0, scale_expected = 0;
    pe_tensor x_t, y_t, want;

    (void)state;
    for (int i = 0; i < DIM; i++)
        x[i] = (float)(i + 1) / 16;
    for (int d = 0; d < 4; d++)
        for (int i = 0; i < 4; i++) {
            memset(y, 0, sizeof y);
            memset(expected, 0, sizeof expected);
            pe_tensor_bshd(&x_t, PE_F32, x, 1, 1, 1, DIM);
            pe_tensor_bshd(&want, dtypes[d], expected, 1, 1, 1, DIM);
            want.scales = &scale_expected;
            assert_int_equal(pe_rope_apply(crossing, &at, &x_t, &want, NULL), PE_OK);
            y_t = want;
            y_t.data = y;
            y_t.scales = &scale;
            x_t.batch_stride = x_t.seq_stride = x_t.head_stride = odd[i];
            y_t.batch_stride = y_t.seq_stride = y_t.head_stride = odd[3 - i];
            assert_int_equal(pe_rope_apply(crossing, &at, &x_t, &y_t, NULL), PE_OK);
            assert_memory_equal(y, expected, sizeof y);
            memset(y, 0, sizeof y);
            assert_int_equal(pe_tensor_copy(&want, &y_t, NULL, NULL), PE_OK);
            assert_memory_equal(y, expected, sizeof y);
        }
}

/* One tensor described twice, with other numbers where none is in use. */
static void test_in_place_whatever_is_not_in_use(void **state)
{
    static float x[SIZE], y[SIZE], expected[SIZE];
    static const int32_t pages[] = {1, 0};
    const pe_positions at = {.start = 2};
    pe_tensor x_t, y_t, want;

    (void)state;
    for (int paged = 0; paged < 2; paged++) {
        for (int i = 0; i < SIZE; i++)
            x[i] = y[i] = (float)(i % 29) / 32;
        pe_tensor_bshd(&x_t, PE_F32, x, 1, TOKENS, HEADS, DIM);
        if (paged)
            pe_tensor_paged(&x_t, PE_F32, x, 2, 2, HEADS, DIM, pages, 1, 2);
        want = x_t;
        want.data = expected;
        assert_int_equal(pe_rope_apply(crossing, &at, &x_t, &want, NULL), PE_OK);
        y_t = x_t;
        y_t.batch_stride = 77;
        y_t.scale_len = 3;
        y_t.page_table_stride = 9;
        if (!paged)
            y_t.page_len = y_t.page_stride = y_t.capacity = 5;
        assert_int_equal(pe_rope_apply(crossing, &at, &x_t, &y_t, NULL), PE_OK);
        assert_memory_equal(x, expected, sizeof x);
    }
}

enum { WIDE = 48, VECTORS = 2 * 3 * 2 };

static pe_rope *create_window(void)
{
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = WIDE,
        .pairs = {.pairing = PE_HALF_SPLIT, .rotary_dim = 16, .rotary_start = 16},
        .freqs = {.rope_theta = 10000}};
    pe_rope *window = NULL;

    assert_int_equal(pe_rope_create(&window, &spec, NULL, NULL), PE_OK);
    return window;
}

static void check_equal(const test_box *x, const test_box *y, int64_t i)
{
    const int64_t b = i / WIDE / 6, t = i / WIDE / 2 % 3, h = i / WIDE % 2;

    assert_true(test_box_get(x, b, t, h, i % WIDE) ==
                test_box_get(y, b, t, h, i % WIDE));
}

/* Blocks that a codec made are moved, not made again. */
static void test_blocks_are_kept(void **state)
{
    const pe_positions at = {.start = 3};
    pe_rope *window = create_window();
    test_rng r = {77};

    (void)state;
    for (int number = 0; number < 100; number++) {
        test_box x, y;
        test_box_init(&x, &r, PE_CODED, (test_layout)test_rng_int(&r, 0, TEST_PADDED),
                      2, 3, 2, WIDE);
        test_box_init(&y, &r, PE_CODED, (test_layout)test_rng_int(&r, 0, TEST_PADDED),
                      2, 3, 2, WIDE);
        test_box_fill(&x, &r);
        assert_int_equal(pe_tensor_copy(&x.t, &y.t, NULL, NULL), PE_OK);
        assert_true(test_box_only_elements_changed(&y));
        for (int64_t i = 0; i < VECTORS * WIDE; i++)
            check_equal(&x, &y, i);
        assert_int_equal(pe_rope_apply(window, &at, &x.t, &y.t, NULL), PE_OK);
        assert_true(test_box_only_elements_changed(&y));
        for (int64_t i = 0; i < VECTORS * WIDE; i++)
            if (i % WIDE < 16 || i % WIDE >= 32)
                check_equal(&x, &y, i);
        test_box_free(&x);
        test_box_free(&y);
    }
    pe_rope_destroy(window);
}

/* int8 numbers whose largest is not 127, as other programs write them: a copy, and what
 * lies beside the window, keep numbers and scales. */
static void test_int8_of_others(void **state)
{
    static int8_t from[VECTORS * WIDE], to[VECTORS * WIDE];
    static float scales[VECTORS * 3], to_scales[VECTORS * 3];
    const pe_positions at = {.start = 3};
    pe_rope *window = create_window();
    pe_tensor x_t, y_t;

    (void)state;
    for (int i = 0; i < VECTORS * WIDE; i++)
        from[i] = (int8_t)(i * 7 % 101 - 50);
    for (int i = 0; i < VECTORS * 3; i++)
        scales[i] = (float)(i + 1) / 64;
    pe_tensor_bshd(&x_t, PE_I8, from, 2, 3, 2, WIDE);
    pe_tensor_bshd(&y_t, PE_I8, to, 2, 3, 2, WIDE);
    x_t.scales = scales;
    y_t.scales = to_scales;
    x_t.scale_len = y_t.scale_len = 16;
    assert_int_equal(pe_tensor_copy(&x_t, &y_t, NULL, NULL), PE_OK);
    assert_memory_equal(from, to, sizeof to);
    assert_memory_equal(scales, to_scales, sizeof scales);
    memset(to, 0, sizeof to);
    memset(to_scales, 0, sizeof to_scales);
    assert_int_equal(pe_rope_apply(window, &at, &x_t, &y_t, NULL), PE_OK);
    for (int v = 0; v < VECTORS; v++)
        for (int part = 0; part < 3; part += 2) {
            assert_memory_equal(from + v * WIDE + part * 16, to + v * WIDE + part * 16,
                                16);
            assert_true(scales[v * 3 + part] == to_scales[v * 3 + part]);
        }
    assert_memory_not_equal(from, to, sizeof to);
    x_t.scale_len = 0; /* the default, or written down: one scale a vector */
    y_t.scale_len = WIDE;
    assert_int_equal(pe_tensor_copy(&x_t, &y_t, NULL, NULL), PE_OK);
    assert_memory_equal(from, to, sizeof to);
    assert_memory_equal(scales, to_scales, VECTORS * sizeof *scales);
    pe_rope_destroy(window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_strides_not_in_use),
        cmocka_unit_test(test_in_place_whatever_is_not_in_use),
        cmocka_unit_test(test_blocks_are_kept),
        cmocka_unit_test(test_int8_of_others),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
