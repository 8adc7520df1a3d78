/* SPDX-License-Identifier: MIT
 *
 * test_rotary_apply.c - rotation over the caller's own cos and sin
 *
 * Hugging Face's way (a row per token, shared by heads or not, width d/2 or d) and
 * ONNX's (rows of a cache by id), against sums of double products. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../support/box.h"

enum { ROUNDS = 1500, MAX_ROWS = 40, MAX_DIM = 64, MAX_TOKENS = 8 };

static const pe_dtype dtypes[] = {PE_F32, PE_F16, PE_BF16};

struct scene {
    pe_pairs pairs;
    int32_t d, start, dim;
    test_box x, y, cos_box, sin_box;
    int by_rows;
    int64_t ids[3 * MAX_TOKENS];
};

static void places(const struct scene *s, pe_pairing pairing, int32_t i, int32_t *first,
                   int32_t *second)
{
    *first = s->start + (pairing == PE_INTERLEAVED ? 2 * i : i);
    *second = *first + (pairing == PE_INTERLEAVED ? 1 : s->d / 2);
}

/* The entry for pair i, at place (in the window) of y. */
static double entry(const struct scene *s, const test_box *box, int64_t b, int64_t t,
                    int64_t h, int32_t i, int32_t place)
{
    const int64_t e = box->t.dim == s->d ? place : i;

    if (s->by_rows)
        return test_box_get(box, 0, s->ids[b * s->y.t.seq_len + t], 0, e);
    return test_box_get(box, box->t.batch == 1 ? 0 : b, t,
                        box->t.num_heads == 1 ? 0 : h, e);
}

static void near(const struct scene *s, int64_t b, int64_t t, int64_t h, int32_t place,
                 double exact, double size, int round)
{
    const double got = test_box_get(&s->y, b, t, h, place);
    double allowed = 2 * 0x1p-24 * size + 0x1p-150;

    if (s->y.t.dtype != PE_F32)
        allowed += test_half_ulp(s->y.t.dtype, fabs(exact) + allowed);
    if (!(fabs(got - exact) <= allowed))
        fail_msg("round %d, (%d, %d, %d, %d): %.17g is not %.17g", round, (int)b,
                 (int)t, (int)h, place, got, exact);
}

static void compare(const struct scene *s, int64_t b, int64_t t, int64_t h, int round)
{
    const pe_pairing out =
        s->pairs.out_pairing ? s->pairs.out_pairing : s->pairs.pairing;
    const double sign = s->pairs.reversed ? -1 : 1;

    for (int32_t i = 0; i < s->d / 2; i++) {
        int32_t p, q, u, v;
        places(s, s->pairs.pairing, i, &p, &q);
        places(s, out, i, &u, &v);
        const double a0 = test_box_get(&s->x, b, t, h, p);
        const double a1 = test_box_get(&s->x, b, t, h, q);
        const double c0 = entry(s, &s->cos_box, b, t, h, i, u - s->start);
        const double s0 = sign * entry(s, &s->sin_box, b, t, h, i, u - s->start);
        const double c1 = entry(s, &s->cos_box, b, t, h, i, v - s->start);
        const double s1 = sign * entry(s, &s->sin_box, b, t, h, i, v - s->start);
        near(s, b, t, h, u, a0 * c0 - a1 * s0, fabs(a0 * c0) + fabs(a1 * s0), round);
        near(s, b, t, h, v, a0 * s1 + a1 * c1, fabs(a0 * s1) + fabs(a1 * c1), round);
    }
    for (int32_t i = 0; i < s->dim; i++)
        if (i < s->start || i >= s->start + s->d)
            near(s, b, t, h, i, test_box_get(&s->x, b, t, h, i), 0, round);
}

static test_layout draw_layout(test_rng *r)
{
    return (test_layout)test_rng_int(r, TEST_BSHD, TEST_BACKWARDS);
}

static void draw(struct scene *s, test_rng *r)
{
    const int64_t batch = test_rng_int(r, 1, 3),
                  tokens = test_rng_int(r, 1, MAX_TOKENS);
    const int64_t heads = test_rng_int(r, 1, 3);
    const pe_dtype table = dtypes[test_rng_int(r, 0, 2)];

    *s = (struct scene){.dim = (int32_t)test_rng_int(r, 2, MAX_DIM)};
    s->d = 2 * (int32_t)test_rng_int(r, 1, s->dim / 2);
    s->start = (int32_t)test_rng_int(r, 0, s->dim - s->d);
    s->pairs = (pe_pairs){.pairing = (pe_pairing)test_rng_int(r, 1, 2),
                          .out_pairing = (pe_pairing)test_rng_int(r, 0, 2),
                          .rotary_dim = s->d,
                          .rotary_start = s->start,
                          .reversed = (int32_t)test_rng_int(r, 0, 1)};
    test_box_init(&s->x, r, dtypes[test_rng_int(r, 0, 2)], draw_layout(r), batch,
                  tokens, heads, s->dim);
    test_box_init(&s->y, r, dtypes[test_rng_int(r, 0, 2)], draw_layout(r), batch,
                  tokens, heads, s->dim);
    s->by_rows = (int)test_rng_int(r, 0, 1);
    const int64_t width = test_rng_int(r, 0, 1) ? s->d : s->d / 2;
    const int64_t rows = s->by_rows ? test_rng_int(r, 1, MAX_ROWS) : tokens;
    const int64_t table_batch = s->by_rows || test_rng_int(r, 0, 1) ? 1 : batch;
    const int64_t table_heads = s->by_rows || test_rng_int(r, 0, 1) ? 1 : heads;
    test_box_init(&s->cos_box, r, table, draw_layout(r), table_batch, rows, table_heads,
                  width);
    test_box_init(&s->sin_box, r, table, draw_layout(r), table_batch, rows, table_heads,
                  width);
    for (int i = 0; i < 3 * MAX_TOKENS; i++)
        s->ids[i] = test_rng_int(r, 0, rows - 1);
    test_box_fill(&s->x, r);
    test_box_fill(&s->y, r);
    test_box_fill(&s->cos_box, r);
    test_box_fill(&s->sin_box, r);
}

static void finish(struct scene *s)
{
    test_box_free(&s->x);
    test_box_free(&s->y);
    test_box_free(&s->cos_box);
    test_box_free(&s->sin_box);
}

static void test_against_products(void **state)
{
    test_rng r = {31};

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct scene s;
        pe_error error;

        draw(&s, &r);
        const int64_t tokens = s.y.t.seq_len;
        const pe_positions rows = {.ids = s.ids, .batch_stride = tokens};
        if (pe_rotary_apply(&s.pairs, &s.cos_box.t, &s.sin_box.t,
                            s.by_rows ? &rows : NULL, &s.x.t, &s.y.t, NULL,
                            &error) != PE_OK)
            fail_msg("round %d: %s", round, error.message);
        assert_true(test_box_is_unchanged(&s.x));
        assert_true(test_box_is_unchanged(&s.cos_box));
        assert_true(test_box_is_unchanged(&s.sin_box));
        assert_true(test_box_only_elements_changed(&s.y));
        for (int64_t b = 0; b < s.y.t.batch; b++)
            for (int64_t t = 0; t < tokens; t++)
                for (int64_t h = 0; h < s.y.t.num_heads; h++)
                    compare(&s, b, t, h, round);
        finish(&s);
    }
}

/* An id outside the cache: which row, which token, what bound; y untouched. */
static void test_rows_outside(void **state)
{
    static const int64_t bad[] = {-1, 5, INT64_MAX, INT64_MIN};
    const pe_pairs pairs = {.pairing = PE_HALF_SPLIT};
    float cache[5 * 4] = {0}, x[6 * 8] = {0}, y[6 * 8] = {0};
    pe_tensor cos_t, x_t, y_t;
    pe_error error;

    (void)state;
    pe_tensor_bshd(&cos_t, PE_F32, cache, 1, 5, 1, 4);
    pe_tensor_bshd(&x_t, PE_F32, x, 2, 3, 1, 8);
    pe_tensor_bshd(&y_t, PE_F32, y, 2, 3, 1, 8);
    y[0] = 42;
    for (int i = 0; i < 4; i++) {
        const int64_t ids[6] = {0, 1, 2, 3, bad[i], 4};
        const pe_positions rows = {.ids = ids, .batch_stride = 3};
        assert_int_equal(
            pe_rotary_apply(&pairs, &cos_t, &cos_t, &rows, &x_t, &y_t, NULL, &error),
            PE_E_POSITION);
        assert_non_null(strstr(error.message, "5"));
        assert_true(y[0] == 42);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_products),
        cmocka_unit_test(test_rows_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
