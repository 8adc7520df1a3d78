/* SPDX-License-Identifier: MIT
 *
 * learned.c - gathers, offsets, padding, the table's gradient, and resized tables
 */
#include "absolute.h"

#include <math.h>
#include <string.h>

typedef struct {
    float *data;
    int64_t rows, dim;
} table;

static table table_of(const vec_case *c)
{
    int64_t shape[4];
    int rank;
    table t = {vec_input(c, "table", shape, &rank), 0, 0};

    if (rank != 2)
        vec_fail(c, "table has %d axes, must have 2", rank);
    t.rows = shape[0];
    t.dim = shape[1];
    return t;
}

/* batch and seq of a result whose last axis is the table's dim. */
static void tokens_of(const vec_case *c, const table *t, int64_t *batch, int64_t *seq)
{
    int64_t axes;
    const int64_t *shape = vec_integers(c, c->expect, "shape", &axes);

    if (axes < 2 || axes > 3 || shape[axes - 1] != t->dim)
        vec_fail(c, "shape has %lld axes and does not end in %lld", (long long)axes,
                 (long long)t->dim);
    *batch = axes == 3 ? shape[0] : 1;
    *seq = shape[axes - 2];
}

static void same(const vec_case *c, const char *what, const float *got,
                 const double *expected, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        vec_nearest(c, what, i, got[i], expected[i]);
}

/* Positions whose rows, position + offset, the case may list. */
static void check_rows_listed(const vec_case *c, const char *name, const int64_t *ids,
                              int64_t offset, int64_t n)
{
    int64_t found;
    const int64_t *expected = vec_integers(c, c->expect, name, &found);

    if (found != n)
        vec_fail(c, "%s has %lld numbers, expected %lld", name, (long long)found,
                 (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (ids[i] + offset != expected[i])
            vec_fail(c, "%s[%lld] is %lld, expected %lld", name, (long long)i,
                     (long long)(ids[i] + offset), (long long)expected[i]);
}

static void check_gather(vec_case *c)
{
    const table t = table_of(c);
    int64_t batch, seq, count, shape[4];
    int rank;
    tokens_of(c, &t, &batch, &seq);
    const int64_t *ids = vec_integers(c, c->spec, "positions", &count);
    const float *x = vec_input(c, "x", shape, &rank);
    const pe_positions at = {.ids = ids, .batch_stride = seq};
    const int64_t n = batch * seq * t.dim;

    if (count != batch * seq || rank != 3 || shape[0] * shape[1] * shape[2] != n)
        vec_fail(c, "positions, x and shape do not fit together");
    same(c, "gathered", vec_learned(c, t.data, t.rows, t.dim, 0, &at, batch, seq, NULL),
         vec_expected(c, "gathered", n), n);
    same(c, "added", vec_learned(c, t.data, t.rows, t.dim, 0, &at, batch, seq, x),
         vec_expected(c, "added", n), n);
}

/* positions = past .. past + seq - 1, rows that many further on. */
static void check_past(vec_case *c)
{
    const table t = table_of(c);
    const int64_t past = vec_integer(c, c->spec, "past_length");
    const int64_t offset = vec_integer_or(c, c->spec, "offset", 0);
    int64_t batch, seq;
    tokens_of(c, &t, &batch, &seq);
    const pe_positions at = {.start = past};
    const int64_t n = batch * seq * t.dim;
    int64_t *ids = vec_alloc(c, seq, sizeof *ids);

    for (int64_t i = 0; i < seq; i++)
        ids[i] = past + i;
    check_rows_listed(c, offset == 0 ? "positions" : "rows", ids, offset, seq);
    same(c, "gathered",
         vec_learned(c, t.data, t.rows, t.dim, (int32_t)offset, &at, batch, seq, NULL),
         vec_expected(c, "gathered", n), n);
}

/* Token i of a row stands at start and the number of unmasked tokens before it; masked:
 * -1.  The first past tokens are in a cache. */
static void check_masked(const vec_case *c, const int64_t *mask, int64_t count,
                         int64_t masked_value, int64_t start, int64_t past,
                         int64_t offset, const char *listed)
{
    const table t = table_of(c);
    int64_t batch, seq;
    tokens_of(c, &t, &batch, &seq);
    const int64_t length = seq + past, n = batch * seq * t.dim;
    int64_t *ids = vec_alloc(c, batch * seq, sizeof *ids);

    if (count != batch * length)
        vec_fail(c, "there are %lld tokens, expected %lld", (long long)count,
                 (long long)(batch * length));
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0, seen = start; i < length; i++) {
            const int here = mask[b * length + i] != masked_value;
            const int64_t position = here ? seen++ : -1;
            if (i >= past)
                ids[b * seq + i - past] = position;
        }
    check_rows_listed(c, listed, ids, offset, batch * seq);
    const pe_positions at = {.ids = ids, .batch_stride = seq};
    same(c, "gathered",
         vec_learned(c, t.data, t.rows, t.dim, (int32_t)offset, &at, batch, seq, NULL),
         vec_expected(c, "gathered", n), n);
}

static void check_opt(vec_case *c)
{
    int64_t count;
    const int64_t *mask = vec_integers(c, c->spec, "attention_mask", &count);
    const int64_t offset = vec_integer(c, c->spec, "offset");

    check_masked(c, mask, count, 0, 0, vec_integer(c, c->spec, "past_length"), offset,
                 "rows");
}

/* Row = padding_idx + 1 + position: padding, at position -1, has row padding_idx.  The
 * tokens are the new ones alone, which past_length moves on. */
static void check_roberta(vec_case *c)
{
    int64_t count;
    const int64_t *tokens = vec_integers(c, c->spec, "token_ids", &count);
    const int64_t padding = vec_integer(c, c->spec, "padding_idx");

    check_masked(c, tokens, count, padding, vec_integer(c, c->spec, "past_length"), 0,
                 padding + 1, "position_ids");
}

static void check_gradient(vec_case *c)
{
    const table t = table_of(c);
    int64_t shape[4], count;
    int rank;
    const float *upstream = vec_input(c, "upstream", shape, &rank);
    const int64_t *ids = vec_integers(c, c->spec, "positions", &count);
    const double *expected = vec_expected(c, "d_table", t.rows * t.dim);
    const double abs_tol = vec_number(c, c->tolerance, "exact_abs");
    float *got = vec_alloc(c, t.rows * t.dim, sizeof *got);
    pe_tensor weight, dy, dweight;
    pe_absolute *plan;
    pe_error error;

    if (rank != 3 || shape[2] != t.dim || shape[0] * shape[1] != count)
        vec_fail(c, "positions, upstream and table do not fit together");
    pe_tensor_bshd(&weight, PE_F32, t.data, 1, t.rows, 1, t.dim);
    pe_tensor_bshd(&dweight, PE_F32, got, 1, t.rows, 1, t.dim);
    pe_tensor_bshd(&dy, PE_F32, upstream, shape[0], shape[1], 1, t.dim);
    const pe_learned_spec spec = {.struct_size = sizeof spec, .weight = &weight};
    const pe_positions at = {.ids = ids, .batch_stride = shape[1]};
    pe_status status = pe_learned_create(&plan, &spec, NULL, &error);
    if (status == PE_OK)
        status = pe_absolute_backward(plan, &at, &dy, &dweight, &error);
    pe_absolute_destroy(plan);
    if (status != PE_OK)
        vec_fail(c, "expected a gradient, got %s", error.message);
    /* Sums of up to four floats below 1/2, each step rounded. */
    for (int64_t i = 0; i < t.rows * t.dim; i++)
        vec_near(c, "d_table", i, (double)got[i], expected[i],
                 abs_tol + 3 * vec_float_rounding(expected[i]));
}

static void check_resize(const vec_case *c, const pe_resize *how)
{
    const table t = table_of(c);
    const int64_t rows = how->prefix_rows + how->to_h * how->to_w;
    const double abs_tol = vec_number(c, c->tolerance, "exact_abs");
    const double *exact = vec_expected(c, "exact", rows * t.dim);
    float *got = vec_alloc(c, rows * t.dim, sizeof *got);
    pe_tensor weight, out;
    pe_error error;

    pe_tensor_bshd(&weight, PE_F32, t.data, 1, t.rows, 1, t.dim);
    pe_tensor_bshd(&out, PE_F32, got, 1, rows, 1, t.dim);
    if (pe_learned_resize(how, &weight, &out, NULL, &error) != PE_OK)
        vec_fail(c, "expected a table, got %s", error.message);
    /* One rounding to float of a value below 1 in size, so half of 2^-24 at most. */
    for (int64_t i = 0; i < rows * t.dim; i++)
        vec_near(c, "resized", i, (double)got[i], exact[i],
                 abs_tol + 0x1p-25 * fmax(2 * fabs(exact[i]), 0x1p-20));
}

static void check_line(vec_case *c)
{
    const pe_resize how = {.mode = PE_RESIZE_LINEAR,
                           .align_corners = vec_flag(c, c->spec, "align_corners"),
                           .from_h = 1,
                           .from_w = vec_integer(c, c->spec, "rows_in"),
                           .to_h = 1,
                           .to_w = vec_integer(c, c->spec, "rows_out")};
    check_resize(c, &how);
}

static void check_grid(const vec_case *c, pe_resize_mode mode)
{
    const pe_resize how = {.mode = mode,
                           .align_corners = vec_flag(c, c->spec, "align_corners"),
                           .from_h = vec_integer(c, c->spec, "h_in"),
                           .from_w = vec_integer(c, c->spec, "w_in"),
                           .to_h = vec_integer(c, c->spec, "h_out"),
                           .to_w = vec_integer(c, c->spec, "w_out"),
                           .scale_h = vec_number_or(c, c->spec, "scale_y", 0),
                           .scale_w = vec_number_or(c, c->spec, "scale_x", 0)};
    check_resize(c, &how);
}

static void check_bilinear(vec_case *c)
{
    check_grid(c, PE_RESIZE_LINEAR);
}

static void check_bicubic(vec_case *c)
{
    if (vec_number(c, c->spec, "cubic_a") != -0.75)
        vec_fail(c, "cubic_a is not -0.75");
    check_grid(c, PE_RESIZE_CUBIC);
}

static void check_vit(vec_case *c)
{
    const int64_t grid = vec_integer(c, c->spec, "grid_in");
    const pe_resize how = {.mode = PE_RESIZE_CUBIC,
                           .prefix_rows = 1,
                           .from_h = grid,
                           .from_w = grid,
                           .to_h = vec_integer(c, c->spec, "h_out"),
                           .to_w = vec_integer(c, c->spec, "w_out")};
    check_resize(c, &how);
}

const vec_kind vec_learned_kinds[] = {
    {"gather", check_gather},
    {"gather-past", check_past},
    {"opt-offset2", check_opt},
    {"bart-offset2", check_past},
    {"roberta-padding-offset", check_roberta},
    {"gather-grad", check_gradient},
    {"interp-linear-1d", check_line},
    {"interp-bicubic", check_bicubic},
    {"interp-bilinear", check_bilinear},
    {"interp-bicubic-scale", check_bicubic},
    {"vit-interp", check_vit},
    {NULL, NULL},
};
