/* SPDX-License-Identifier: MIT
 *
 * test_absolute_layouts.c - fill and add over every dtype and layout against plain code
 *
 * Random odd widths; each case draws the kind, every field of the spec, the position
 * source, dtypes and layouts.  An encoding is the float nearest to the true one, a sum
 * rounds once more, and a narrower store adds half a unit of its own.  Bytes that belong
 * to no element must not change, nor must x. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "../support/box.h"
#include "../support/sinusoid_reference.h"

enum { NUM_CASES = 4000, MAX_TOKENS = 24, MAX_AXES = 3, ROWS = 40, REACH = 3000 };

static const pe_dtype dtypes[] = {PE_F32, PE_F16, PE_BF16, PE_I8, PE_CODED};

struct scene {
    int is_learned, is_add;
    pe_sinusoidal_spec sinusoidal;
    test_box weight;
    int32_t offset;
    double embed_scale;
    pe_absolute *plan;
    pe_positions at;
    int64_t starts[4], ids[MAX_AXES * MAX_TOKENS];
    double values[MAX_AXES * MAX_TOKENS];
};

static double pick(test_rng *r, const double *list, int count)
{
    return list[test_rng_int(r, 0, count - 1)];
}

static void draw_sinusoidal(struct scene *s, test_rng *r, int32_t dim)
{
    static const double bases[] = {0, 10000, 100, 20, 3.5}, shifts[] = {0, 1, 0.5};
    static const double scales[] = {0, 1, 0.25, 3}, values[] = {0, 0.1, -2, 1};
    pe_sinusoidal_spec *spec = &s->sinusoidal;
    pe_error error;

    *spec = (pe_sinusoidal_spec){.struct_size = sizeof *spec,
                                 .order = (pe_sinusoid_order)test_rng_int(r, 1, 3),
                                 .model_dim = dim,
                                 .base = pick(r, bases, 5),
                                 .downscale_freq_shift = pick(r, shifts, 3),
                                 .position_scale = pick(r, scales, 4),
                                 .value_scale = pick(r, values, 4),
                                 .embed_scale = s->embed_scale};
    const int32_t axes = (int32_t)test_rng_int(r, 1, MAX_AXES);
    if (dim % axes == 0 && dim / axes >= 2)
        spec->num_axes = axes;
    if (test_rng_int(r, 0, 1))
        spec->table_len = test_rng_int(r, 1, 50);
    if (spec->num_axes <= 1 && test_rng_int(r, 0, 1)) {
        spec->has_padding = 1;
        spec->padding_position = test_rng_int(r, -2, 2);
    }
    if (pe_sinusoidal_create(&s->plan, spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
}

static void draw_learned(struct scene *s, test_rng *r, int32_t dim, pe_dtype dtype)
{
    pe_error error;

    s->offset = (int32_t)test_rng_int(r, 0, 5);
    test_box_init(&s->weight, r, dtype, (test_layout)test_rng_int(r, 0, TEST_PAGED - 1),
                  1, ROWS, 1, dim);
    test_box_fill(&s->weight, r);
    const pe_learned_spec spec = {.struct_size = sizeof spec,
                                  .weight = &s->weight.t,
                                  .position_offset = s->offset,
                                  .embed_scale = s->embed_scale};
    if (pe_learned_create(&s->plan, &spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    assert_int_equal(pe_absolute_capacity(s->plan), ROWS - s->offset);
}

static void draw_positions(struct scene *s, test_rng *r, int64_t batch, int64_t seq_len)
{
    const int32_t axes = s->sinusoidal.num_axes;
    const int64_t low = s->is_learned ? -s->offset : -REACH;
    const int64_t high = s->is_learned ? ROWS - s->offset - 1 : REACH;
    const int64_t last = s->is_learned ? high - seq_len : high;
    const int source = (int)test_rng_int(r, 0, s->is_learned ? 2 : 3);

    s->at = (pe_positions){0};
    for (int i = 0; i < MAX_AXES * MAX_TOKENS; i++) {
        s->ids[i] = test_rng_int(r, low, high);
        if (!s->is_learned && i % 3 == 0)
            s->ids[i] %= 50; /* in the table, and the padding position */
        s->values[i] = (double)test_rng_int(r, -REACH, REACH) +
                       (double)test_rng_float(r) * (double)test_rng_int(r, 0, 1);
        if (i % 4 == 0)
            s->values[i] = (double)test_rng_int(r, -2, 2);
    }
    for (int64_t b = 0; b < batch; b++)
        s->starts[b] = test_rng_int(r, low, last);
    if (source == 0)
        s->at.start = test_rng_int(r, low, last);
    else if (source == 1)
        s->at.starts = s->starts;
    else if (source == 2)
        s->at.ids = s->ids;
    else
        s->at.values = s->values;
    if (source < 2)
        return;
    s->at.batch_stride = test_rng_int(r, 0, 3) ? seq_len : 0;
    if (axes > 1 && test_rng_int(r, 0, 3)) {
        s->at.num_axes = axes;
        s->at.axis_stride = batch * seq_len > 0 ? batch * seq_len : 1;
    }
}

static long double position_of(const struct scene *s, int64_t axis, int64_t b,
                               int64_t t)
{
    const int64_t plane = s->at.num_axes > 1 ? axis : 0;
    const int64_t n = plane * s->at.axis_stride + b * s->at.batch_stride + t;

    if (s->at.values != NULL)
        return s->at.values[n];
    if (s->at.ids != NULL)
        return s->at.ids[n];
    return (s->at.starts != NULL ? s->starts[b] : s->at.start) + t;
}

/* The encoding; *slack: what the reference itself may be off by. */
static double encoding_of(const struct scene *s, int64_t b, int64_t t, int64_t i,
                          double *slack)
{
    const pe_sinusoidal_spec *spec = &s->sinusoidal;
    long double position[MAX_AXES];

    *slack = 0;
    if (s->is_learned)
        return test_box_get(&s->weight, 0, (int64_t)position_of(s, 0, b, t) + s->offset,
                            0, i);
    for (int a = 0; a < MAX_AXES; a++)
        position[a] = position_of(s, a, b, t);
    if (spec->has_padding && position[0] == spec->padding_position)
        return 0;
    *slack = 3e-14;
    return (double)ref_sinusoid(spec, i, position);
}

static void compare(const struct scene *s, const test_box *y, const double *before,
                    int64_t b, int64_t t, int number)
{
    const int64_t dim = y->t.dim;
    const double scale = s->embed_scale != 0 ? s->embed_scale : 1;
    double exact[128], single[128], top = 0;

    for (int64_t i = 0; i < dim; i++) {
        double slack;
        const double e = encoding_of(s, b, t, i, &slack);
        single[i] = slack + (s->is_learned ? 0 : test_half_ulp(PE_F32, fabs(e)));
        exact[i] = e;
        if (s->is_add) {
            exact[i] += scale * before[i];
            single[i] += test_half_ulp(PE_F32, fabs(exact[i]) + single[i]) + 1e-15;
        }
        top = fmax(top, fabs(exact[i]) + single[i]);
    }
    for (int64_t i = 0; i < dim; i++) {
        const double got = test_box_get(y, b, t, 0, i);
        double allowed = single[i];
        if (y->t.dtype == PE_I8)
            allowed += test_box_scale(y, b, t, 0, i) * 0.5 * (1 + 1e-5);
        else if (y->t.dtype == PE_CODED)
            allowed += top / 32767 * (0.5 + 0x1p-8);
        else if (y->t.dtype != PE_F32)
            allowed += test_half_ulp(y->t.dtype, fabs(exact[i]) + single[i]);
        if (!(fabs(got - exact[i]) <= allowed))
            fail_msg("case %d (%s %s), (%d, %d, %d): %.17g is not %.17g, off by %.3g "
                     "of %.3g; dtype %d layout %d",
                     number, s->is_learned ? "learned" : "sinusoidal",
                     s->is_add ? "add" : "fill", (int)b, (int)t, (int)i, got, exact[i],
                     fabs(got - exact[i]), allowed, y->t.dtype, (int)y->layout);
    }
}

static void run_case(test_rng *r, int number)
{
    static const double embeds[] = {0, 1, 22.62741699796952, -0.5};
    const pe_dtype in = dtypes[test_rng_int(r, 0, 4)];
    const pe_dtype out = dtypes[test_rng_int(r, 0, 4)];
    const pe_dtype table = dtypes[test_rng_int(r, 0, 4)];
    const int in_place = test_rng_int(r, 0, 2) == 0;
    const int64_t batch = test_rng_int(r, 1, 3), seq_len = test_rng_int(r, 0, 7);
    int32_t dim = (int32_t)test_rng_int(r, 2, 90);
    struct scene s = {.is_learned = (int)test_rng_int(r, 0, 1),
                      .is_add = (int)test_rng_int(r, 0, 1),
                      .embed_scale = pick(r, embeds, 4)};
    double before[3 * 7][96];
    test_box x, y;
    pe_error error;

    if (in == PE_CODED || out == PE_CODED || table == PE_CODED)
        dim = TEST_BLOCK_LEN * (dim / TEST_BLOCK_LEN + 1);
    if (s.is_learned)
        draw_learned(&s, r, dim, table);
    else
        draw_sinusoidal(&s, r, dim);
    draw_positions(&s, r, batch, seq_len);
    test_box_init(&x, r, in, (test_layout)test_rng_int(r, 0, TEST_NUM_LAYOUTS - 1),
                  batch, seq_len, 1, dim);
    test_box_init(&y, r, out, (test_layout)test_rng_int(r, 0, TEST_NUM_LAYOUTS - 1),
                  batch, seq_len, 1, dim);
    test_box_fill(&x, r);
    for (int64_t n = 0; n < batch * seq_len; n++)
        for (int64_t i = 0;
             i < dim && test_box_is_present(&x, n / seq_len, n % seq_len); i++)
            before[n][i] = test_box_get(&x, n / seq_len, n % seq_len, 0, i);
    test_box *result = in_place ? &x : &y;
    const pe_status status =
        s.is_add ? pe_absolute_add(s.plan, &s.at, &x.t, &result->t, &error)
                 : pe_absolute_fill(s.plan, &s.at, &result->t, &error);
    if (status != PE_OK)
        fail_msg("case %d: %s", number, error.message);

    if (!in_place && !test_box_is_unchanged(&x))
        fail_msg("case %d: x was written", number);
    for (int64_t n = 0; n < batch * seq_len; n++) {
        const int64_t b = n / seq_len, t = n % seq_len;
        if (test_box_is_present(result, b, t) &&
            (!s.is_add || test_box_is_present(&x, b, t)))
            compare(&s, result, before[n], b, t, number);
    }
    if (!test_box_only_elements_changed(result))
        fail_msg("case %d: bytes outside the tensor were written", number);
    pe_absolute_destroy(s.plan);
    if (s.is_learned)
        test_box_free(&s.weight);
    test_box_free(&x);
    test_box_free(&y);
}

static void test_against_reference(void **state)
{
    test_rng r = {20261129};

    (void)state;
    for (int i = 0; i < NUM_CASES; i++)
        run_case(&r, i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_reference)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
