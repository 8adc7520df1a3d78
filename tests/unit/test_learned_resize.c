/* SPDX-License-Identifier: MIT
 *
 * test_learned_resize.c - stretched tables against plain code, and what must hold of them
 *
 * The reference walks the grid in long double by the definition: source coordinate,
 * clamped neighbours, weights.  Results round once to float. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../support/box.h"
#include "../support/executor.h"

enum { NUM_CASES = 1500, MAX_DIM = 32 };

static const pe_dtype dtypes[] = {PE_F32, PE_F16, PE_BF16, PE_I8, PE_CODED};

static long double cubic(long double x)
{
    const long double a = -0.75L;

    x = fabsl(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

static long double linear(long double x)
{
    x = fabsl(x);
    return x < 1 ? 1 - x : 0;
}

/* Source coordinate of output o. */
static long double source(const pe_resize *how, int64_t o, int64_t from, int64_t to,
                          double scale)
{
    if (how->align_corners)
        return to > 1 ? (long double)(o * (from - 1)) / (long double)(to - 1) : 0;
    if (scale != 0)
        return (o + 0.5L) / scale - 0.5L;
    return (o + 0.5L) * from / to - 0.5L;
}

static int64_t clamp(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static double reference(const pe_resize *how, const test_box *weight, int64_t row,
                        int64_t i)
{
    const int64_t place = row - how->prefix_rows;
    long double sum = 0;

    if (place < 0)
        return test_box_get(weight, 0, row, 0, i);
    const long double y =
        source(how, place / how->to_w, how->from_h, how->to_h, how->scale_h);
    const long double x =
        source(how, place % how->to_w, how->from_w, how->to_w, how->scale_w);
    for (int64_t j = (int64_t)floorl(y) - 1; j <= (int64_t)floorl(y) + 2; j++)
        for (int64_t k = (int64_t)floorl(x) - 1; k <= (int64_t)floorl(x) + 2; k++) {
            const long double w = how->mode == PE_RESIZE_CUBIC
                                      ? cubic(y - j) * cubic(x - k)
                                      : linear(y - j) * linear(x - k);
            const int64_t from =
                clamp(j, how->from_h) * how->from_w + clamp(k, how->from_w);
            sum += w * test_box_get(weight, 0, how->prefix_rows + from, 0, i);
        }
    return (double)sum;
}

static void draw(pe_resize *how, test_rng *r)
{
    *how = (pe_resize){.mode = (pe_resize_mode)test_rng_int(r, 1, 2),
                       .align_corners = (int32_t)test_rng_int(r, 0, 1),
                       .prefix_rows = test_rng_int(r, 0, 2),
                       .from_h = test_rng_int(r, 1, 6),
                       .from_w = test_rng_int(r, 1, 6),
                       .to_h = test_rng_int(r, 1, 9),
                       .to_w = test_rng_int(r, 1, 9)};
    if (!how->align_corners && test_rng_int(r, 0, 1)) {
        how->scale_h = (double)test_rng_int(r, 3, 30) / 10;
        how->scale_w = (double)(how->to_w) / (double)how->from_w + 0.013;
    }
}

static void run_case(test_rng *r, int number)
{
    const pe_dtype in = dtypes[test_rng_int(r, 0, 4)];
    const pe_dtype out = dtypes[test_rng_int(r, 0, 4)];
    int64_t dim = test_rng_int(r, 1, 30);
    test_box weight, result;
    pe_resize how;
    pe_error error;

    draw(&how, r);
    if (in == PE_CODED || out == PE_CODED)
        dim = TEST_BLOCK_LEN * test_rng_int(r, 1, 3);
    const int64_t rows = how.prefix_rows + how.to_h * how.to_w;
    test_box_init(&weight, r, in, (test_layout)test_rng_int(r, 0, TEST_PAGED - 1), 1,
                  how.prefix_rows + how.from_h * how.from_w, 1, dim);
    test_box_init(&result, r, out, (test_layout)test_rng_int(r, 0, TEST_PAGED - 1), 1,
                  rows, 1, dim);
    test_box_fill(&weight, r);
    if (pe_learned_resize(&how, &weight.t, &result.t, NULL, &error) != PE_OK)
        fail_msg("case %d: %s", number, error.message);
    assert_true(test_box_is_unchanged(&weight));
    assert_true(test_box_only_elements_changed(&result));
    for (int64_t row = 0; row < rows; row++) {
        double exact[MAX_DIM], top = 0;
        for (int64_t i = 0; i < dim; i++) {
            exact[i] = reference(&how, &weight, row, i);
            top = fmax(top, fabs(exact[i]));
        }
        for (int64_t i = 0; i < dim; i++) {
            const double got = test_box_get(&result, 0, row, 0, i);
            double allowed = test_half_ulp(PE_F32, fabs(exact[i])) + 1e-14;
            if (out == PE_I8)
                allowed += test_box_scale(&result, 0, row, 0, i) * 0.5 * (1 + 1e-5);
            else if (out == PE_CODED)
                allowed += (top + 1e-7) / 32767 * (0.5 + 0x1p-8);
            else if (out != PE_F32)
                allowed += test_half_ulp(out, fabs(exact[i]) + allowed);
            if (!(fabs(got - exact[i]) <= allowed))
                fail_msg("case %d, (%d, %d): %.17g is not %.17g, off by %.3g of %.3g",
                         number, (int)row, (int)i, got, exact[i], fabs(got - exact[i]),
                         allowed);
        }
    }
    test_box_free(&weight);
    test_box_free(&result);
}

static void test_against_reference(void **state)
{
    test_rng r = {49};

    (void)state;
    for (int i = 0; i < NUM_CASES; i++)
        run_case(&r, i);
}

/* To the same size every bit stays, infinities and the sign of zero included. */
static void test_same_size(void **state)
{
    enum { H = 5, W = 7, DIM = 3, N = (2 + H * W) * DIM };
    float from[N], to[N];
    pe_resize how = {.prefix_rows = 2, .from_h = H, .from_w = W, .to_h = H, .to_w = W};
    pe_tensor weight, out;
    test_rng r = {3};

    (void)state;
    for (int i = 0; i < N; i++)
        from[i] = test_rng_float(&r);
    from[0] = from[40] = INFINITY;
    from[1] = from[50] = -0.0f;
    from[60] = 1e-42f;
    pe_tensor_bshd(&weight, PE_F32, from, 1, 2 + H * W, 1, DIM);
    pe_tensor_bshd(&out, PE_F32, to, 1, 2 + H * W, 1, DIM);
    for (how.mode = PE_RESIZE_LINEAR; how.mode <= PE_RESIZE_CUBIC; how.mode++)
        for (how.align_corners = 0; how.align_corners < 2; how.align_corners++)
            for (int scaled = 0; scaled < 2 - how.align_corners; scaled++) {
                how.scale_h = how.scale_w = scaled;
                memset(to, 0xff, sizeof to);
                assert_int_equal(pe_learned_resize(&how, &weight, &out, NULL, NULL),
                                 PE_OK);
                assert_memory_equal(from, to, sizeof from);
            }
}

/* A plane stays a plane under linear stretching with aligned corners, and any table's
 * corners stay. */
static void test_plane(void **state)
{
    enum { H = 4, W = 3, TH = 10, TW = 9 };
    float from[H * W], to[TH * TW];
    const pe_resize how = {.mode = PE_RESIZE_LINEAR,
                           .align_corners = 1,
                           .from_h = H,
                           .from_w = W,
                           .to_h = TH,
                           .to_w = TW};
    pe_tensor weight, out;

    (void)state;
    for (int i = 0; i < H * W; i++)
        from[i] = 3 * (float)(i / W) + 8 * (float)(i % W);
    pe_tensor_bshd(&weight, PE_F32, from, 1, H * W, 1, 1);
    pe_tensor_bshd(&out, PE_F32, to, 1, TH * TW, 1, 1);
    assert_int_equal(pe_learned_resize(&how, &weight, &out, NULL, NULL), PE_OK);
    for (int i = 0; i < TH * TW; i++)
        assert_true(to[i] == (float)(i / TW) + 2 * (float)(i % TW));
}

static void test_threads(void **state)
{
    enum { FROM = 14, TO = 31, DIM = 16 };
    static float from[FROM * FROM * DIM], one[TO * TO * DIM], many[TO * TO * DIM];
    const pe_resize how = {.mode = PE_RESIZE_CUBIC,
                           .from_h = FROM,
                           .from_w = FROM,
                           .to_h = TO,
                           .to_w = TO};
    const pe_executor *executors[] = {&test_executor_backwards, &test_executor_threads};
    pe_tensor weight, out;
    test_rng r = {12};

    (void)state;
    for (int i = 0; i < FROM * FROM * DIM; i++)
        from[i] = test_rng_float(&r);
    pe_tensor_bshd(&weight, PE_F32, from, 1, FROM * FROM, 1, DIM);
    pe_tensor_bshd(&out, PE_F32, one, 1, TO * TO, 1, DIM);
    assert_int_equal(pe_learned_resize(&how, &weight, &out, NULL, NULL), PE_OK);
    out.data = many;
    for (int n = 0; n < 2; n++) {
        const pe_env env = {.struct_size = sizeof env, .executor = *executors[n]};
        memset(many, 0, sizeof many);
        assert_int_equal(pe_learned_resize(&how, &weight, &out, &env, NULL), PE_OK);
        assert_memory_equal(one, many, sizeof one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_reference),
        cmocka_unit_test(test_same_size),
        cmocka_unit_test(test_plane),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
