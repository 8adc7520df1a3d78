/* SPDX-License-Identifier: MIT
 *
 * sinusoidal.c - rows of sines and cosines that are computed, at any position
 *
 * A float entry, value_scale included, is correctly rounded (angle/turns.h).  The table
 * is a cache of whole positions and changes no bit. */
#include "sinusoidal/sinusoidal.h"

#include "absolute/absolute.h"
#include "angle/imitate.h"
#include "base/at.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/spec.h"

#include <string.h>

typedef struct {
    pe_absolute base;
    pe_sinusoid_columns columns;
    int32_t num_axes;
    int has_padding;
    int64_t padding_position;
    pe_factor factor;
    pe_turns turns;
    float *hf_inv_freq;     /* PE_ANGLES_HF_F32, else NULL */
    const uint8_t *hf_axis; /* [num_pairs] zeroes */
    float *table;           /* [table_len][columns.dim] */
    int64_t table_len;
} sinusoidal;

/* A token's position on one axis: id, unless fractional. */
typedef struct {
    int fractional;
    int64_t id;
    double value;
} place;

/* -------------------------------------------------------------------- rows --- */

/* Those of pairs [i, i + n). */
static pe_turns turns_from(const pe_turns *all, int64_t i, int64_t n)
{
    return (pe_turns){.n = n,
                      .hi = all->hi + i,
                      .lo = all->lo + i,
                      .exact = all->exact + i,
                      .head = all->head + i,
                      .tail = all->tail + i,
                      .still_begin = all->still_begin - i,
                      .still_end = all->still_end - i};
}

/* Cosines and sines of pairs [i, i + n). */
static void row_of_pairs(const sinusoidal *s, const place *p, int64_t i, int64_t n,
                         float *cosines, float *sines)
{
    if (s->hf_inv_freq != NULL) {
        const float position = p->fractional ? (float)p->value : (float)p->id;
        pe_hf_row(s->hf_inv_freq + i, n, s->hf_axis + i, &position,
                  (float)s->factor.value, cosines, sines);
        return;
    }
    const pe_turns turns = turns_from(&s->turns, i, n);
    const pe_angle_term term = {.turns = &turns,
                                .ids = p->fractional ? NULL : &p->id,
                                .values = p->fractional ? &p->value : NULL};
    pe_angle_row(s->base.kernels, &term, 1, &s->factor, cosines, sines);
}

/* Values i = from .. to - 1 belong to columns first + i * step; writes those that lie in
 * [begin, end), which starts at out. */
static void place_columns(const float *values, int64_t from, int64_t to, int64_t first,
                          int64_t step, int64_t begin, int64_t end, float *out)
{
    const int64_t low = begin > first ? (begin - first + step - 1) / step : 0;
    const int64_t high = end > first ? (end - first + step - 1) / step : 0;
    const int64_t stop = to < high ? to : high, start = from > low ? from : low;
    if (start < stop && step == 1)
        memcpy(out + first + start - begin, values + (start - from),
               (size_t)(stop - start) * sizeof *out);
    else
        for (int64_t i = start; i < stop; i++)
            out[first + i * step - begin] = values[i - from];
}

static int meets(int64_t from, int64_t to, int64_t first, int64_t step, int64_t begin,
                 int64_t end)
{
    return first + from * step < end && first + (to - 1) * step >= begin;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Columns [begin, end) of one group. */
static void compute_group(const sinusoidal *s, const place *p, int64_t begin,
                          int64_t end, float *out)
{
    const pe_sinusoid_columns *c = &s->columns;
    float cosines[PE_MAX_PAIRS], sines[PE_MAX_PAIRS];
    for (int64_t i = 0; i < c->num_pairs; i += PE_MAX_PAIRS) {
        const int64_t to = smaller(i + PE_MAX_PAIRS, c->num_pairs);
        if (!meets(i, to, c->first_sine, c->step, begin, end) &&
            !meets(i, to, c->first_cosine, c->step, begin, end))
            continue;
        row_of_pairs(s, p, i, to - i, cosines, sines);
        place_columns(sines, i, smaller(to, c->num_sines), c->first_sine, c->step,
                      begin, end, out);
        place_columns(cosines, i, smaller(to, c->num_cosines), c->first_cosine, c->step,
                      begin, end, out);
    }
    if (c->num_sines + c->num_cosines < c->dim && end == c->dim)
        out[c->dim - 1 - begin] = 0;
}

/* Positions on one axis: ids, or where they are NULL, from first on. */
typedef struct {
    const int64_t *ids;
    int64_t first, rows;
} run;

static void rows_of_pairs(const sinusoidal *s, const run *p, int64_t r, int64_t rows,
                          int64_t i, int64_t n, float *cosines, float *sines)
{
    const pe_turns turns = turns_from(&s->turns, i, n);
    if (p->ids != NULL)
        pe_angle_rows_at(s->base.kernels, &turns, p->ids + r, rows, &s->factor, cosines,
                         sines, n);
    else
        pe_angle_rows(s->base.kernels, &turns, p->first + r, rows, &s->factor, cosines,
                      sines, n);
}

/* Columns [begin, end) of one group of each row, which the kernels make quicker together:
 * a few pairs at a time, never so few that they would not fill a block of vectors. */
static void compute_run(const sinusoidal *s, const run *p, int64_t begin, int64_t end,
                        float *out, int64_t stride)
{
    enum { PAIRS = 64, MOST_PAIRS = 96, ROWS = 32 };
    const pe_sinusoid_columns *c = &s->columns;
    float cosines[MOST_PAIRS * ROWS], sines[MOST_PAIRS * ROWS];
    for (int64_t i = 0, n; i < c->num_pairs; i += n) {
        const int64_t left = c->num_pairs - i;
        n = left <= MOST_PAIRS ? left : PAIRS;
        const int64_t to = i + n;
        if (!meets(i, to, c->first_sine, c->step, begin, end) &&
            !meets(i, to, c->first_cosine, c->step, begin, end))
            continue;
        for (int64_t r = 0; r < p->rows; r += ROWS) {
            const int64_t count = smaller(ROWS, p->rows - r);
            rows_of_pairs(s, p, r, count, i, n, cosines, sines);
            for (int64_t k = 0; k < count; k++) {
                float *row = out + (r + k) * stride;
                place_columns(sines + k * n, i, smaller(to, c->num_sines),
                              c->first_sine, c->step, begin, end, row);
                place_columns(cosines + k * n, i, smaller(to, c->num_cosines),
                              c->first_cosine, c->step, begin, end, row);
            }
        }
    }
    if (c->num_sines + c->num_cosines < c->dim && end == c->dim)
        for (int64_t r = 0; r < p->rows; r++)
            out[r * stride + c->dim - 1 - begin] = 0;
}

static int is_padding(const sinusoidal *s, const place *p)
{
    return s->has_padding && (p->fractional ? p->value == (double)s->padding_position
                                            : p->id == s->padding_position);
}

static int is_in_table(const sinusoidal *s, const place *p)
{
    return !p->fractional && p->id >= 0 && p->id < s->table_len;
}

static place place_of(const pe_positions *at, int64_t axis, int64_t b, int64_t t)
{
    place p = {at->values != NULL, 0, 0};
    if (p.fractional)
        p.value = pe_at_value(at, (int32_t)axis, b, t);
    else
        p.id = pe_at_id(at, (int32_t)axis, b, t);
    return p;
}

static void encode_group(const sinusoidal *s, const place *p, int64_t begin,
                         int64_t end, float *out)
{
    const size_t size = (size_t)(end - begin) * sizeof *out;
    if (is_padding(s, p))
        memset(out, 0, size);
    else if (is_in_table(s, p))
        memcpy(out, s->table + p->id * s->columns.dim + begin, size);
    else
        compute_group(s, p, begin, end, out);
}

/* How many of the places from the first on are for compute_run. */
static int64_t run_length(const sinusoidal *s, const place *places, int64_t count)
{
    int64_t n = 0;
    while (n < count && s->hf_inv_freq == NULL && !places[n].fractional &&
           !is_padding(s, &places[n]) && !is_in_table(s, &places[n]))
        n++;
    return n;
}

/* Columns [begin, end) of one group, of a row for each place. */
static void encode_groups(const sinusoidal *s, const place *places, int64_t count,
                          int64_t begin, int64_t end, float *out, int64_t stride)
{
    for (int64_t k = 0, n; k < count; k += n) {
        int64_t ids[PE_ENCODE_TOKENS];
        n = run_length(s, places + k, count - k);
        if (n == 0) {
            encode_group(s, places + k, begin, end, out + k * stride);
            n = 1;
            continue;
        }
        int in_order = 1;
        for (int64_t i = 0; i < n; i++) {
            ids[i] = places[k + i].id;
            in_order &= (uint64_t)ids[i] - (uint64_t)ids[0] == (uint64_t)i;
        }
        const run rows = {in_order ? NULL : ids, ids[0], n};
        compute_run(s, &rows, begin, end, out + k * stride, stride);
    }
}

static void encode(const pe_absolute *plan, const pe_positions *at, int64_t b,
                   int64_t t, int64_t tokens, int64_t begin, int64_t count, float *out)
{
    const sinusoidal *s = (const sinusoidal *)plan;
    const int64_t dim = s->columns.dim, end = begin + count;
    for (int64_t e = begin; e < end;) {
        const int64_t axis = e / dim, first = axis * dim;
        const int64_t last = smaller(first + dim, end);
        place places[PE_ENCODE_TOKENS];
        for (int64_t k = 0; k < tokens; k++)
            places[k] = place_of(at, axis, b, t + k);
        encode_groups(s, places, tokens, e - first, last - first, out + (e - begin),
                      count);
        e = last;
    }
}

static pe_status check(const pe_absolute *plan, const pe_positions *at,
                       const pe_tensor *y, const char *y_name, pe_error *error)
{
    const sinusoidal *s = (const sinusoidal *)plan;
    (void)y_name;
    return pe_at_check(at, y->batch, y->seq_len, s->num_axes, 1, "at", error);
}

/* ------------------------------------------------------------------ create --- */

static const pe_absolute_kind sinusoidal_kind = {encode, check, NULL};

static void fill_table(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const sinusoidal *s = arg;
    (void)worker;
    if (s->hf_inv_freq == NULL) {
        const run rows = {NULL, begin, end - begin};
        compute_run(s, &rows, 0, s->columns.dim, s->table + begin * s->columns.dim,
                    s->columns.dim);
        return;
    }
    for (int64_t p = begin; p < end; p++) {
        const place here = {0, p, 0};
        compute_group(s, &here, 0, s->columns.dim, s->table + p * s->columns.dim);
    }
}

/* The plan, its arrays and its table in one block, in order of falling alignment;
 * returns 0 if it has no size. */
static int block_size(const pe_sinusoidal_spec *spec, const pe_sinusoid_columns *c,
                      size_t *size)
{
    const int64_t per_pair =
        sizeof(pe_wide) + 2 * sizeof(uint64_t) + 2 * sizeof(double) + sizeof(float) + 1;
    const int64_t fixed = (int64_t)sizeof(sinusoidal) + c->num_pairs * per_pair;
    int64_t row, table, total;
    if (!pe_mul_i64(c->dim, (int64_t)sizeof(float), &row) ||
        !pe_mul_i64(row, spec->table_len, &table) ||
        !pe_add_i64(table, fixed, &total) || (uint64_t)total > SIZE_MAX / 2)
        return 0;
    *size = (size_t)total;
    return 1;
}

static void place_arrays(sinusoidal *s, const pe_sinusoidal_spec *spec)
{
    const int64_t n = s->columns.num_pairs;
    pe_wide *exact = (pe_wide *)(s + 1);
    uint64_t *hi = (uint64_t *)(exact + n), *lo = hi + n;
    double *head = (double *)(lo + n), *tail = head + n;
    float *freqs = (float *)(tail + n);
    s->turns = (pe_turns){
        .n = n, .hi = hi, .lo = lo, .exact = exact, .head = head, .tail = tail};
    s->hf_inv_freq = spec->angles == PE_ANGLES_HF_F32 ? freqs : NULL;
    s->table = freqs + n;
    s->hf_axis = (const uint8_t *)(s->table + spec->table_len * s->columns.dim);
}

pe_status pe_sinusoidal_create(pe_absolute **out, const pe_sinusoidal_spec *spec,
                               const pe_env *env, pe_error *error)
{
    pe_sinusoidal_spec own;
    pe_env full;
    pe_status status;
    size_t size = 0;
    if (out == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "out is NULL");
    *out = NULL;
    if ((status = pe_spec_read(&own, sizeof own, spec, PE_SINUSOIDAL_SPEC_SIZE_V1,
                               "pe_sinusoidal_spec", error)) != PE_OK ||
        (status = pe_env_resolve(&full, env, error)) != PE_OK ||
        (status = pe_sinusoid_check(&own, error)) != PE_OK)
        return status;
    const pe_sinusoid_columns columns = pe_sinusoid_layout(&own);
    if (!block_size(&own, &columns, &size))
        return pe_fail(error, PE_E_ARGUMENT,
                       "table_len is %lld, a table of that many rows has no size",
                       (long long)own.table_len);
    sinusoidal *s = pe_alloc(&full, size);
    if (s == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for a plan of %zu bytes",
                       size);
    s->base = (pe_absolute){
        .kind = &sinusoidal_kind,
        .kernels = pe_kernels_get(full.isa),
        .env = full,
        .size = size,
        .model_dim = own.model_dim,
        .capacity = INT64_MAX,
        .group = 1,
        .sum = pe_absolute_sum(own.embed_scale, own.angles == PE_ANGLES_HF_F32)};
    s->columns = columns;
    s->num_axes = own.num_axes;
    s->has_padding = own.has_padding;
    s->padding_position = own.padding_position;
    s->factor = pe_factor_make(pe_wide_from_double(own.value_scale));
    place_arrays(s, &own);
    if (own.angles == PE_ANGLES_HF_F32)
        pe_sinusoid_freqs_hf(&own, &columns, s->hf_inv_freq);
    else
        pe_sinusoid_freqs(&own, &columns, &s->turns);
    pe_run(&full, own.table_len, 64, fill_table, s);
    s->table_len = own.table_len;
    if (s->num_axes == 1)
        s->base.rows = (pe_absolute_rows){
            .data = (const unsigned char *)s->table,
            .count = own.table_len,
            .stride = columns.dim * (int64_t)sizeof *s->table,
            .without = own.has_padding ? own.padding_position : INT64_MIN,
            .kind = PE_K_F32};
    *out = &s->base;
    return PE_OK;
}
