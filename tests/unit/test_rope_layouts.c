/* SPDX-License-Identifier: MIT
 *
 * test_rope_layouts.c - every rotation over every dtype and layout against the textbook
 *
 * Random odd shapes; each case draws pairing, out pairing, window, direction, axes,
 * position source, instruction set, dtypes and layouts of x and y.  A float result must lie within
 * 3u(|ac| + |bs|) plus half a subnormal of the true one, u of it for the rounded table; a
 * narrower store adds half an ulp of its own.  Bytes that belong to no element must not change, nor must x. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/box.h"
#include "../support/rope_reference.h"
#include "posenc/env.h"

enum { NUM_CASES = 4000, MAX_TOKENS = 64 };
enum operation { APPLY, TRANSPOSE, INVERSE, SHIFT, REBASE, NUM_OPERATIONS };

static const pe_dtype dtypes[] = {PE_F32, PE_F16, PE_BF16, PE_I8, PE_CODED};

struct positions {
    pe_positions at;
    int64_t starts[8], ids[4 * MAX_TOKENS];
    double values[4 * MAX_TOKENS];
    int num_axes; /* planes; 1 serves every axis */
};

static void draw_positions(struct positions *p, test_rng *r, int64_t batch,
                           int64_t seq_len, int plan_axes)
{
    *p = (struct positions){.num_axes = 1};
    for (size_t i = 0; i < sizeof p->ids / sizeof p->ids[0]; i++) {
        p->ids[i] = test_rng_int(r, -3000, 3000);
        p->values[i] = (double)test_rng_int(r, -3000, 3000) + test_rng_float(r);
    }
    const int shared = test_rng_int(r, 0, 3) == 0;
    switch (test_rng_int(r, 0, 3)) {
    case 0:
        p->at.start = test_rng_int(r, -3000, 3000);
        return;
    case 1:
        for (int64_t b = 0; b < batch; b++)
            p->starts[b] = test_rng_int(r, -3000, 3000);
        p->at.starts = p->starts;
        return;
    case 2:
        p->at.ids = p->ids;
        break;
    default:
        p->at.values = p->values;
    }
    p->at.batch_stride = shared ? 0 : seq_len;
    if (plan_axes > 1 && test_rng_int(r, 0, 3) > 0) {
        p->num_axes = p->at.num_axes = plan_axes;
        p->at.axis_stride = batch * seq_len + test_rng_int(r, 0, 2);
        if (p->at.axis_stride == 0)
            p->at.axis_stride = 1;
    }
}

static void position_of(const struct positions *p, int64_t b, int64_t t,
                        long double position[REF_MAX_AXES])
{
    for (int a = 0; a < REF_MAX_AXES; a++) {
        const int64_t plane = p->num_axes > 1 && a < p->num_axes ? a : 0;
        const int64_t n = plane * p->at.axis_stride + b * p->at.batch_stride + t;
        if (p->at.values != NULL)
            position[a] = p->at.values[n];
        else if (p->at.ids != NULL)
            position[a] = p->at.ids[n];
        else
            position[a] = (p->at.starts ? p->at.starts[b] : p->at.start) + t;
    }
}

static void draw_axes(pe_axes *axes, test_rng *r, int32_t num_pairs)
{
    static uint8_t pair_axis[REF_MAX_DIM / 2];
    static const pe_axis_map maps[] = {PE_AXIS_CHUNKED, PE_AXIS_INTERLEAVED,
                                       PE_AXIS_IMROPE,  PE_AXIS_ERNIE,
                                       PE_AXIS_SPLIT,   PE_AXIS_CUSTOM};

    *axes = (pe_axes){.map = PE_AXIS_SINGLE};
    if (num_pairs < 6 || test_rng_int(r, 0, 1) == 0)
        return;
    axes->map = maps[test_rng_int(r, 0, 5)];
    if (axes->map == PE_AXIS_CUSTOM) {
        for (int32_t i = 0; i < num_pairs; i++)
            pair_axis[i] = (uint8_t)test_rng_int(r, 0, 2);
        pair_axis[num_pairs - 1] = 2; /* three axes, whatever was drawn */
        axes->pair_axis = pair_axis;
    } else if (axes->map == PE_AXIS_ERNIE) {
        axes->section[0] = axes->section[1] = num_pairs / 3;
        axes->section[2] = num_pairs - 2 * (num_pairs / 3);
    } else {
        axes->section[1] = axes->section[2] = num_pairs / 3;
        axes->section[0] = num_pairs - 2 * (num_pairs / 3);
    }
}

/* factor 1 half of the time, else a YaRN attention factor. */
static void draw_spec(pe_rope_spec *spec, test_rng *r, int32_t head_dim)
{
    *spec = (pe_rope_spec){.struct_size = sizeof *spec, .head_dim = head_dim};
    pe_pairs *pairs = &spec->pairs;
    pairs->pairing = (pe_pairing)test_rng_int(r, 1, 2);
    pairs->out_pairing = (pe_pairing)test_rng_int(r, 0, 2);
    pairs->reversed = (int32_t)test_rng_int(r, 0, 1);
    if (head_dim % 2 != 0 || test_rng_int(r, 0, 1)) {
        pairs->rotary_dim = 2 * (int32_t)test_rng_int(r, 2, head_dim / 2);
        pairs->rotary_start = (int32_t)test_rng_int(r, 0, head_dim - pairs->rotary_dim);
    }
    const int32_t d = pairs->rotary_dim != 0 ? pairs->rotary_dim : head_dim;
    draw_axes(&spec->axes, r, d / 2);
    spec->freqs.rope_theta = test_rng_int(r, 0, 1) ? 10000 : 500;
    if (test_rng_int(r, 0, 1)) {
        spec->freqs.rope_type = PE_ROPE_YARN;
        spec->freqs.factor = 4;
        spec->freqs.original_max_position_embeddings = 512;
    }
    if (test_rng_int(r, 0, 1))
        spec->table_len = test_rng_int(r, 1, 100);
}

struct scene {
    enum operation op;
    pe_rope_spec spec, to_spec;
    pe_rope *rope, *to;
    ref_rope ref, to_ref;
    struct positions at, to_at;
    int64_t delta;
};

static pe_status run(const struct scene *s, const pe_tensor *x, const pe_tensor *y,
                     pe_error *error)
{
    switch (s->op) {
    case APPLY:
        return pe_rope_apply(s->rope, &s->at.at, x, y, error);
    case TRANSPOSE:
        return pe_rope_transpose(s->rope, &s->at.at, x, y, error);
    case INVERSE:
        return pe_rope_inverse(s->rope, &s->at.at, x, y, error);
    case SHIFT:
        return pe_rope_shift(s->rope, s->delta, x, y, error);
    default:
        return pe_rope_rebase(s->rope, &s->at.at, s->to, &s->to_at.at, x, y, error);
    }
}

/* One head vector by the textbook: in doubles, with the size of each bound. */
static void reference(const struct scene *s, int64_t b, int64_t t, const double *x,
                      double *y, double *size)
{
    long double from[REF_MAX_AXES], to[REF_MAX_AXES];

    position_of(&s->at, b, t, from);
    switch (s->op) {
    case APPLY:
        ref_rope_apply(&s->ref, from, x, y, size);
        break;
    case TRANSPOSE:
        ref_rope_transpose(&s->ref, from, x, y, size);
        break;
    case INVERSE:
        ref_rope_inverse(&s->ref, from, x, y, size);
        break;
    case SHIFT:
        ref_rope_shift(&s->ref, s->delta, x, y, size);
        break;
    default:
        position_of(&s->to_at, b, t, to);
        ref_rope_rebase(&s->ref, from, &s->to_ref, to, x, y, size);
    }
}

/* What y's element may be off by. */
static double allowance(const struct scene *s, const test_box *y, int64_t b, int64_t t,
                        int64_t h, int64_t i, double exact, double size, double top)
{
    /* Frequencies are doubles in info and long doubles here: 3000 of them apart. */
    const double angle = 2 * 3000 * 0x1p-52 * (s->op == REBASE ? 2 : 1);
    const double single = 3 * 0x1p-24 * size + 0x1p-150 + angle * size;

    switch (y->t.dtype) {
    case PE_F32:
        return single;
    case PE_I8: /* half a step, and the rounding of value * scale in the box */
        return single + test_box_scale(y, b, t, h, i) * 0.5 * (1 + 1e-5);
    case PE_CODED: /* half a step of the codec, whose float quotient is 2^-9 steps off */
        return single + top / 32767 * (0.5 + 0x1p-8);
    default:
        return single + test_half_ulp(y->t.dtype, fabs(exact) + single);
    }
}

/* Head vectors of x before the call, when x may be y. */
static double *read_all(const test_box *x)
{
    const pe_tensor *t = &x->t;
    double *all = calloc((size_t)(t->batch * t->seq_len * t->num_heads * t->dim) + 1,
                         sizeof *all);

    assert_non_null(all);
    for (int64_t b = 0, n = 0; b < t->batch; b++)
        for (int64_t k = 0; k < t->seq_len; k++)
            for (int64_t h = 0; h < t->num_heads; h++)
                for (int64_t i = 0; i < t->dim; i++, n++)
                    if (test_box_is_present(x, b, k))
                        all[n] = test_box_get(x, b, k, h, i);
    return all;
}

static void compare_head(const struct scene *s, const test_box *y, int64_t b, int64_t t,
                         int64_t h, const double *x, int number)
{
    double exact[REF_MAX_DIM], size[REF_MAX_DIM], top = 0;
    const int64_t dim = y->t.dim;

    reference(s, b, t, x, exact, size);
    for (int64_t i = 0; i < dim; i++)
        top = fmax(top, fabs(exact[i]));
    for (int64_t i = 0; i < dim; i++) {
        const double got = test_box_get(y, b, t, h, i);
        const double allowed = allowance(s, y, b, t, h, i, exact[i], size[i], top);
        if (!(fabs(got - exact[i]) <= allowed))
            fail_msg("case %d, op %d, (%d, %d, %d, %d): %.17g is not %.17g, off by "
                     "%.3g of %.3g; dtype %d layout %d",
                     number, (int)s->op, (int)b, (int)t, (int)h, (int)i, got, exact[i],
                     fabs(got - exact[i]), allowed, y->t.dtype, (int)y->layout);
    }
}

static void draw_scene(struct scene *s, test_rng *r, int32_t head_dim, int64_t batch,
                       int64_t seq_len)
{
    pe_env env = {.struct_size = sizeof env};
    pe_error error;

    do
        env.isa = (pe_isa)test_rng_int(r, PE_ISA_AUTO, PE_ISA_WASM128);
    while (env.isa != PE_ISA_AUTO && !pe_isa_available(env.isa));
    s->op = (enum operation)test_rng_int(r, 0, NUM_OPERATIONS - 1);
    draw_spec(&s->spec, r, head_dim);
    if (pe_rope_create(&s->rope, &s->spec, &env, &error) != PE_OK)
        fail_msg("%s", error.message);
    ref_rope_init(&s->ref, &s->spec, pe_rope_get_info(s->rope));
    const int axes = pe_rope_get_info(s->rope)->num_axes;
    draw_positions(&s->at, r, batch, seq_len, axes);
    draw_positions(&s->to_at, r, batch, seq_len, axes);
    s->delta = test_rng_int(r, -3000, 3000);
    s->to = NULL;
    if (s->op == REBASE) { /* other frequencies, the same window and pairings */
        s->to_spec = s->spec;
        s->to_spec.freqs.rope_theta *= 3;
        s->to_spec.freqs.rope_type = PE_ROPE_YARN;
        s->to_spec.freqs.factor = 8;
        s->to_spec.freqs.original_max_position_embeddings = 512;
        if (pe_rope_create(&s->to, &s->to_spec, &env, &error) != PE_OK)
            fail_msg("%s", error.message);
        ref_rope_init(&s->to_ref, &s->to_spec, pe_rope_get_info(s->to));
    }
}

static void run_case(test_rng *r, int number)
{
    const pe_dtype in = dtypes[test_rng_int(r, 0, 4)];
    const pe_dtype out = dtypes[test_rng_int(r, 0, 4)];
    const int in_place = test_rng_int(r, 0, 2) == 0;
    const int64_t batch = test_rng_int(r, 1, 3), seq_len = test_rng_int(r, 0, 6);
    const int64_t heads = test_rng_int(r, 1, 4);
    int32_t dim = (int32_t)test_rng_int(r, 4, 90);
    struct scene s;
    test_box x, y;
    pe_error error;

    if (in == PE_CODED || out == PE_CODED)
        dim = TEST_BLOCK_LEN * (dim / TEST_BLOCK_LEN + 1);
    draw_scene(&s, r, dim, batch, seq_len);
    test_box_init(&x, r, in, (test_layout)test_rng_int(r, 0, TEST_NUM_LAYOUTS - 1),
                  batch, seq_len, heads, dim);
    test_box_init(&y, r, out, (test_layout)test_rng_int(r, 0, TEST_NUM_LAYOUTS - 1),
                  batch, seq_len, heads, dim);
    test_box_fill(&x, r);
    double *before = read_all(&x);
    test_box *result = in_place ? &x : &y;
    if (run(&s, &x.t, &result->t, &error) != PE_OK)
        fail_msg("case %d, op %d: %s", number, (int)s.op, error.message);

    if (!in_place && !test_box_is_unchanged(&x))
        fail_msg("case %d, op %d: x was written", number, (int)s.op);
    /* A token that x has no page for is not read, so nothing says what y holds. */
    for (int64_t b = 0, n = 0; b < batch; b++)
        for (int64_t t = 0; t < seq_len; t++)
            for (int64_t h = 0; h < heads; h++, n++)
                if (test_box_is_present(&x, b, t) && test_box_is_present(result, b, t))
                    compare_head(&s, result, b, t, h, before + n * dim, number);
    if (!test_box_only_elements_changed(result))
        fail_msg("case %d, op %d: bytes outside the tensor were written", number,
                 (int)s.op);
    free(before);
    test_box_free(&x);
    test_box_free(&y);
    pe_rope_destroy(s.rope);
    pe_rope_destroy(s.to);
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
