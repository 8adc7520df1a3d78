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
    const int64_t stop = to < high ? to : high;
    for (int64_t i = from > low ? from : low; i < stop; i++)
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

/* Rows of the positions from the first on, which the kernels make quicker together: a few
 * pairs at a time, never so few that they would not fill a block of vectors. */
static void compute_run(const sinusoidal *s, int64_t position, int64_t rows, float *out)
{
    enum { PAIRS = 64, MOST_PAIRS = 96, ROWS = 32 };
    const pe_sinusoid_columns *c = &s->columns;
    float cosines[MOST_PAIRS * ROWS], sines[MOST_PAIRS * ROWS];
    for (int64_t i = 0, n; i < c->num_pairs; i += n) {
        const int64_t left = c->num_pairs - i;
        n = left <= MOST_PAIRS ? left : PAIRS;
        const pe_turns turns = turns_from(&s->turns, i, n);
        for (int64_t r = 0; r < rows; r += ROWS) {
            const int64_t count = smaller(ROWS, rows - r), to = i + n;
            pe_angle_rows(s->base.kernels, &turns, position + r, count, &s->factor,
                          cosines, sines, n);
            for (int64_t k = 0; k < count; k++) {
                float *row = out + (r + k) * c->dim;
                place_columns(sines + k * n, i, smaller(to, c->num_sines),
                              c->first_sine, c->step, 0, c->dim, row);
                place_columns(cosines + k * n, i, smaller(to, c->num_cosines),
                              c->first_cosine, c->step, 0, c->dim, row);
            }
        }
    }
    for (int64_t r = 0; r < rows && c->num_sines + c->num_cosines < c->dim; r++)
        out[(r + 1) * c->dim - 1] = 0;
}

static void encode_group(const sinusoidal *s, const place *p, int64_t begin,
                         int64_t end, float *out)
{
    const size_t size = (size_t)(end - begin) * sizeof *out;
    const int is_padding =
        s->has_padding && (p->fractional ? p->value == (double)s->padding_position
                                         : p->id == s->padding_position);
    if (is_padding)
        memset(out, 0, size);
    else if (!p->fractional && p->id >= 0 && p->id < s->table_len)
        memcpy(out, s->table + p->id * s->columns.dim + begin, size);
    else
        compute_group(s, p, begin, end, out);
}

static void encode(const pe_absolute *plan, const pe_positions *at, int64_t b,
                   int64_t t, int64_t begin, int64_t count, float *out)
{
    const sinusoidal *s = (const sinusoidal *)plan;
    const int64_t dim = s->columns.dim, end = begin + count;
    for (int64_t e = begin; e < end;) {
        const int64_t axis = e / dim, first = axis * dim;
        const int64_t last = smaller(first + dim, end);
        place p = {at->values != NULL, 0, 0};
        if (p.fractional)
            p.value = pe_at_value(at, (int32_t)axis, b, t);
        else
            p.id = pe_at_id(at, (int32_t)axis, b, t);
        encode_group(s, &p, e - first, last - first, out + (e - begin));
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
        compute_run(s, begin, end - begin, s->table + begin * s->columns.dim);
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
    s->base = (pe_absolute){.kind = &sinusoidal_kind,
                            .kernels = pe_kernels_get(full.isa),
                            .env = full,
                            .size = size,
                            .model_dim = own.model_dim,
                            .capacity = INT64_MAX,
                            .group = 1,
                            .embed_scale = own.embed_scale,
                            .float_steps = own.angles == PE_ANGLES_HF_F32};
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
    *out = &s->base;
    return PE_OK;
}
