/* SPDX-License-Identifier: MIT
 *
 * test_tensor_copy.c - the shapes of the constructors, and copies between all of them
 *
 * A copy converts each element to the nearest one that y's dtype has; equal dtypes keep
 * their bits, NaN payloads included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../support/box.h"
#include "../support/executor.h"
#include "../support/refusal.h"

static const pe_dtype dtypes[] = {PE_F32, PE_F16, PE_BF16, PE_I8, PE_CODED};

/* Largest element of y's group, which sets its step. */
static double largest(const test_box *x, int64_t b, int64_t t, int64_t h)
{
    double top = 0;

    for (int64_t i = 0; i < x->t.dim; i++)
        top = fmax(top, fabs(test_box_get(x, b, t, h, i)));
    return top;
}

static void compare(const test_box *x, const test_box *y, int64_t b, int64_t t,
                    int64_t h, int number)
{
    const double top = largest(x, b, t, h);

    for (int64_t i = 0; i < x->t.dim; i++) {
        const double want = test_box_get(x, b, t, h, i);
        const double got = test_box_get(y, b, t, h, i);
        double allowed = 0;      /* the same dtype, or a wider one */
        if (y->t.dtype == PE_I8) /* middles, too: 127 steps, rounded three times */
            allowed = test_box_scale(y, b, t, h, i) * (0.5 + 127 * 3 * 0x1p-24);
        else if (y->t.dtype == PE_CODED)
            allowed = top / 32767 * (0.5 + 0x1p-8);
        else if (y->t.dtype != PE_F32 && y->t.dtype != x->t.dtype)
            allowed = test_half_ulp(y->t.dtype, want);
        if (!(fabs(got - want) <= allowed))
            fail_msg("case %d: dtype %d to %d, %.9g became %.9g", number, x->t.dtype,
                     y->t.dtype, want, got);
    }
}

static void test_every_pair(void **state)
{
    test_rng r = {41};

    (void)state;
    for (int number = 0; number < 2000; number++) {
        static const pe_executor *const executors[] = {NULL, &test_executor_backwards,
                                                       &test_executor_threads};
        const pe_executor *executor = executors[number % 50 == 0 ? 2 : number % 2];
        pe_env env = {.struct_size = sizeof env};
        const int64_t batch = test_rng_int(&r, 1, 3), seq_len = test_rng_int(&r, 0, 5);
        const int64_t heads = test_rng_int(&r, 1, 3);
        const pe_dtype in = dtypes[test_rng_int(&r, 0, 4)];
        const pe_dtype out = dtypes[test_rng_int(&r, 0, 4)];
        int64_t dim = test_rng_int(&r, 1, number % 20 == 0 ? 9000 : 70);
        test_box x, y;
        pe_error error;

        if (executor != NULL)
            env.executor = *executor;
        if (in == PE_CODED || out == PE_CODED)
            dim = TEST_BLOCK_LEN * (dim / TEST_BLOCK_LEN + 1);
        if (in == PE_I8 || out == PE_I8) /* groups of a whole long head have a limit */
            dim = dim > 4096 ? 4096 : dim;
        test_box_init(&x, &r, in, (test_layout)test_rng_int(&r, 0, TEST_PAGED), batch,
                      seq_len, heads, dim);
        test_box_init(&y, &r, out, (test_layout)test_rng_int(&r, 0, TEST_PAGED), batch,
                      seq_len, heads, dim);
        test_box_fill(&x, &r);
        if (pe_tensor_copy(&x.t, &y.t, &env, &error) != PE_OK)
            fail_msg("case %d: %s", number, error.message);
        assert_true(test_box_is_unchanged(&x));
        assert_true(test_box_only_elements_changed(&y));
        for (int64_t b = 0; b < batch; b++)
            for (int64_t t = 0; t < seq_len; t++)
                for (int64_t h = 0; h < heads; h++)
                    if (test_box_is_present(&x, b, t) && test_box_is_present(&y, b, t))
                        compare(&x, &y, b, t, h, number);
        test_box_free(&x);
        test_box_free(&y);
    }
}

/* The same dtype: bytes, whatever they mean. */
static void test_bits_are_kept(void **state)
{
    static uint16_t x[65536], y[65536];
    static uint32_t wide[4096], wide_out[4096];
    test_rng r = {42};
    pe_tensor x_t, y_t;

    (void)state;
    for (int i = 0; i < 65536; i++)
        x[i] = (uint16_t)i;
    for (int i = 0; i < 2; i++) {
        memset(y, 0, sizeof y);
        pe_tensor_bshd(&x_t, i ? PE_F16 : PE_BF16, x, 1, 1024, 1, 64);
        pe_tensor_bhsd(&y_t, i ? PE_F16 : PE_BF16, y, 1, 1, 1024, 64);
        assert_int_equal(pe_tensor_copy(&x_t, &y_t, NULL, NULL), PE_OK);
        assert_memory_equal(x, y, sizeof x);
    }
    for (int i = 0; i < 4096; i++)
        wide[i] = (uint32_t)test_rng_next(&r) | (i % 3 ? 0 : 0x7f800000u);
    pe_tensor_bshd(&x_t, PE_F32, wide, 1, 64, 1, 64);
    pe_tensor_bshd(&y_t, PE_F32, wide_out, 1, 64, 1, 64);
    assert_int_equal(pe_tensor_copy(&x_t, &y_t, NULL, NULL), PE_OK);
    assert_memory_equal(wide, wide_out, sizeof wide);
}

static void test_constructors(void **state)
{
    static float data[240];
    static const int32_t pages[] = {1, 0};
    pe_tensor t;

    (void)state;
    memset(&t, 0x5a, sizeof t);
    pe_tensor_bshd(&t, PE_F32, data, 2, 3, 4, 10);
    const pe_tensor bshd = {.data = data,
                            .batch = 2,
                            .seq_len = 3,
                            .num_heads = 4,
                            .dim = 10,
                            .batch_stride = 120,
                            .seq_stride = 40,
                            .head_stride = 10,
                            .dtype = PE_F32};
    assert_memory_equal(&t, &bshd, sizeof t);
    memset(&t, 0x5a, sizeof t);
    pe_tensor_bhsd(&t, PE_F32, data, 2, 4, 3, 10);
    const pe_tensor bhsd = {.data = data,
                            .batch = 2,
                            .seq_len = 3,
                            .num_heads = 4,
                            .dim = 10,
                            .batch_stride = 120,
                            .seq_stride = 10,
                            .head_stride = 30,
                            .dtype = PE_F32};
    assert_memory_equal(&t, &bhsd, sizeof t);
    memset(&t, 0x5a, sizeof t);
    pe_tensor_paged(&t, PE_F32, data, 4, 3, 2, 10, pages, 2, 1);
    assert_true(t.data == data && t.page_table == pages && t.page_table_stride == 1);
    assert_true(t.batch == 2 && t.seq_len == 3 && t.num_heads == 2 && t.dim == 10);
    assert_true(t.seq_stride == 20 && t.head_stride == 10);
    assert_true(t.page_len == 3 && t.page_stride == 60 && t.capacity == 240);
    assert_true(t.scales == NULL && t.codec == NULL && t.scale_len == 0);
    assert_true(t.dtype == PE_F32 && t.reserved == 0);
}

static void test_refusals(void **state)
{
    float x[8] = {0}, y[8];
    pe_tensor x_t, y_t;
    pe_error error;

    (void)state;
    for (int i = 0; i < 8; i++)
        y[i] = 42;
    pe_tensor_bshd(&x_t, PE_F32, x, 1, 2, 1, 4);
    pe_tensor_bshd(&y_t, PE_F32, y, 1, 2, 1, 4);
    assert_int_equal(pe_tensor_copy(NULL, &y_t, NULL, &error), PE_E_ARGUMENT);
    assert_int_equal(pe_tensor_copy(&x_t, NULL, NULL, &error), PE_E_ARGUMENT);
    y_t.dim = 3;
    assert_null(test_refusal(&error, pe_tensor_copy(&x_t, &y_t, NULL, &error),
                             PE_E_SHAPE, "y|3|4"));
    y_t.dim = 4;
    y_t.dtype = 17;
    assert_null(test_refusal(&error, pe_tensor_copy(&x_t, &y_t, NULL, &error),
                             PE_E_DTYPE, "y.dtype|17"));
    y_t.dtype = PE_F32;
    const pe_env env = {.struct_size = sizeof env, .isa = -1};
    assert_int_not_equal(pe_tensor_copy(&x_t, &y_t, &env, &error), PE_OK);
    for (int i = 0; i < 8; i++)
        assert_true(y[i] == 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair),
        cmocka_unit_test(test_bits_are_kept),
        cmocka_unit_test(test_constructors),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
