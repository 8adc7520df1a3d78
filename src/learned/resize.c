/* SPDX-License-Identifier: MIT
 *
 * resize.c - stretching a learned table to another length or grid
 *
 * The rules of PyTorch's interpolate (mode linear, bilinear, bicubic; antialias off).
 * Target sizes are given, never computed from a factor, and a source coordinate is a
 * fraction of whole numbers, so no floor ever falls on the wrong side.  Taps are summed
 * in double and rounded once. */
#include "absolute/absolute.h"

#include "angle/wide.h"
#include "base/error.h"

#include <string.h>

enum { MAX_GRID = 1 << 30, CHUNK = PE_MAX_VECTOR_DIM };

/* One axis of a grid. */
typedef struct {
    int64_t from, to;
    double scale; /* 0: from / to */
    int align_corners;
    pe_resize_mode mode;
} axis;

/* The source rows that one output row is a sum of. */
typedef struct {
    int64_t index[4];
    double weight[4];
    int count;
} taps;

/* Source coordinate of output o: whole, and a fraction in [0, 1). */
static void coordinate(const axis *a, int64_t o, int64_t *whole, double *fraction)
{
    int64_t numerator = 0, denominator = 1;
    if (a->scale != 0) { /* (o + 1/2) / scale - 1/2 */
        const pe_wide twice =
            pe_wide_div(pe_wide_from_int(2 * o + 1), pe_wide_from_double(a->scale));
        const pe_wide half = pe_wide_from_double(0.5);
        const pe_wide x = pe_wide_sub(pe_wide_mul(twice, half), half);
        *whole = pe_wide_floor(x);
        *fraction = pe_wide_to_double(pe_wide_sub(x, pe_wide_from_int(*whole)));
        return;
    }
    if (!a->align_corners) { /* (o + 1/2) from / to - 1/2 */
        numerator = (2 * o + 1) * a->from - a->to;
        denominator = 2 * a->to;
    } else if (a->to > 1) {
        numerator = o * (a->from - 1);
        denominator = a->to - 1;
    }
    int64_t rest = numerator % denominator;
    if (rest < 0)
        rest += denominator;
    *whole = (numerator - rest) / denominator;
    *fraction = (double)rest / (double)denominator;
}

static double times(double a, double b)
{
    double r = a * b;
    PE_KEEP(r);
    return r;
}

/* Cubic convolution (Keys 1981) with a = -3/4, for |x| <= 1 and for 1 < |x| < 2. */
static double near_weight(double x)
{
    return times(times(times(1.25, x) - 2.25, x), x) + 1;
}

static double far_weight(double x)
{
    return times(times(times(-0.75, x) + 3.75, x) - 6, x) + 3;
}

/* Neighbours past an edge are the edge, wherever the coordinate falls. */
static taps taps_of(const axis *a, int64_t o)
{
    int64_t whole;
    double t;
    coordinate(a, o, &whole, &t);
    taps r = {{whole, whole + 1}, {1 - t, t}, 2};
    if (a->mode == PE_RESIZE_CUBIC)
        r = (taps){
            {whole - 1, whole, whole + 1, whole + 2},
            {far_weight(1 + t), near_weight(t), near_weight(1 - t), far_weight(2 - t)},
            4};
    for (int k = 0; k < r.count; k++)
        r.index[k] = r.index[k] < 0         ? 0
                     : r.index[k] < a->from ? r.index[k]
                                            : a->from - 1;
    return r;
}

typedef struct {
    const pe_tensor *weight, *out;
    axis y, x;
    int64_t prefix, chunk;
} resizing;

/* sum += w * row, or sum = w * row: a lone tap of weight 1 keeps every bit. */
static void add_row(double *sum, const float *row, int64_t n, double w, int is_first)
{
    for (int64_t i = 0; i < n; i++) {
        const double term = times(w, (double)row[i]);
        sum[i] = is_first ? term : sum[i] + term;
    }
}

static void resize_rows(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const resizing *job = arg;
    double sum[CHUNK];
    float row[CHUNK];
    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        const int64_t place = r - job->prefix;
        taps ty = {{r}, {1}, 1}, tx = {{0}, {1}, 1}; /* a prefix row */
        if (place >= 0) {
            ty = taps_of(&job->y, place / job->x.to);
            tx = taps_of(&job->x, place % job->x.to);
            for (int j = 0; j < ty.count; j++)
                ty.index[j] = job->prefix + ty.index[j] * job->x.from;
        }
        for (int64_t e = 0; e < job->out->dim; e += job->chunk) {
            const int64_t n =
                job->out->dim - e < job->chunk ? job->out->dim - e : job->chunk;
            int is_first = 1;
            for (int j = 0; j < ty.count; j++)
                for (int k = 0; k < tx.count; k++) {
                    const double w = times(ty.weight[j], tx.weight[k]);
                    if (w == 0) /* so that an infinity beside is not 0 * inf */
                        continue;
                    pe_vector_load(job->weight,
                                   pe_table_row(job->weight, ty.index[j] + tx.index[k]),
                                   e, n, row);
                    add_row(sum, row, n, w, is_first);
                    is_first = 0;
                }
            for (int64_t i = 0; i < n; i++)
                row[i] = (float)sum[i];
            pe_vector_store(job->out, pe_table_row(job->out, r), e, n, row);
        }
    }
}

/* ------------------------------------------------------------------ checks --- */

static pe_status check_how(const pe_resize *how, pe_error *error)
{
    if (how == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "how is NULL");
    if (how->mode != PE_RESIZE_LINEAR && how->mode != PE_RESIZE_CUBIC)
        return pe_fail(error, PE_E_ARGUMENT,
                       how->mode == 0 ? "mode is not set, must be: it has no default"
                                      : "mode is %d, must be PE_RESIZE_LINEAR (1) or "
                                        "PE_RESIZE_CUBIC (2)",
                       how->mode);
    if (how->align_corners != 0 && how->align_corners != 1)
        return pe_fail(error, PE_E_ARGUMENT, "align_corners is %d, must be 0 or 1",
                       how->align_corners);
    const struct {
        const char *name;
        int64_t value, min;
    } sizes[] = {{"prefix_rows", how->prefix_rows, 0},
                 {"from_h", how->from_h, 1},
                 {"from_w", how->from_w, 1},
                 {"to_h", how->to_h, 1},
                 {"to_w", how->to_w, 1}};
    for (size_t i = 0; i < PE_COUNT(sizes); i++)
        if (sizes[i].value < sizes[i].min || sizes[i].value > MAX_GRID)
            return pe_fail(error, PE_E_ARGUMENT, "%s is %lld, must be in %lld .. 2^30",
                           sizes[i].name, (long long)sizes[i].value,
                           (long long)sizes[i].min);
    const struct {
        const char *name;
        double value;
    } scales[] = {{"scale_h", how->scale_h}, {"scale_w", how->scale_w}};
    for (size_t i = 0; i < PE_COUNT(scales); i++) {
        if (scales[i].value == 0)
            continue;
        if (!(scales[i].value >= 0x1p-30 && scales[i].value <= 0x1p30))
            return pe_fail(error, PE_E_ARGUMENT, "%s is %g, must be in 2^-30 .. 2^30",
                           scales[i].name, scales[i].value);
        if (how->align_corners)
            return pe_fail(error, PE_E_ARGUMENT,
                           "%s is %g, must be 0 with align_corners, which fixes the "
                           "coordinate map",
                           scales[i].name, scales[i].value);
    }
    return PE_OK;
}

static pe_status check_table(const pe_tensor *table, pe_direction direction,
                             const char *name, int64_t prefix, const int64_t grid[2],
                             pe_error *error)
{
    const pe_status status = pe_tensor_check(table, direction, name, error);
    if (status != PE_OK)
        return status;
    if (table->batch != 1 || table->num_heads != 1)
        return pe_fail(error, PE_E_SHAPE,
                       "%s has batch %lld and num_heads %lld, must be (1, rows, 1, "
                       "model_dim)",
                       name, (long long)table->batch, (long long)table->num_heads);
    if (table->page_table != NULL)
        return pe_fail(error, PE_E_ARGUMENT, "%s.page_table is set, must be NULL",
                       name);
    if (table->seq_len != grid[0] * grid[1] + prefix)
        return pe_fail(
            error, PE_E_SHAPE, "%s has %lld rows, must have %lld x %lld + %lld = %lld",
            name, (long long)table->seq_len, (long long)grid[0], (long long)grid[1],
            (long long)prefix, (long long)(grid[0] * grid[1] + prefix));
    return PE_OK;
}

pe_status pe_learned_resize(const pe_resize *how, const pe_tensor *weight,
                            const pe_tensor *out, const pe_env *env, pe_error *error)
{
    pe_status status;
    pe_env full;
    if ((status = check_how(how, error)) != PE_OK ||
        (status = pe_env_resolve(&full, env, error)) != PE_OK)
        return status;
    const int64_t from[2] = {how->from_h, how->from_w}, to[2] = {how->to_h, how->to_w};
    if ((status = check_table(weight, PE_INPUT, "weight", how->prefix_rows, from,
                              error)) != PE_OK ||
        (status = check_table(out, PE_OUTPUT, "out", how->prefix_rows, to, error)) !=
            PE_OK)
        return status;
    if (out->dim != weight->dim)
        return pe_fail(error, PE_E_SHAPE, "out.dim is %lld, must be weight.dim (%lld)",
                       (long long)out->dim, (long long)weight->dim);
    if (out->data == weight->data)
        return pe_fail(error, PE_E_ARGUMENT, "out is weight, must be another tensor");
    if ((status = pe_tensor_check_overlap(weight, "weight", out, "out", error)) !=
        PE_OK)
        return status;
    resizing job = {
        .weight = weight,
        .out = out,
        .y = {how->from_h, how->to_h, how->scale_h, how->align_corners, how->mode},
        .x = {how->from_w, how->to_w, how->scale_w, how->align_corners, how->mode},
        .prefix = how->prefix_rows,
    };
    const int64_t groups[3] = {pe_tensor_group(weight), pe_tensor_group(out), 1};
    if ((status = pe_absolute_chunk(out->dim, groups, "out", &job.chunk, error)) !=
        PE_OK)
        return status;
    pe_run(&full, out->seq_len, 4, resize_rows, &job);
    return PE_OK;
}
