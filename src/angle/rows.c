/* SPDX-License-Identifier: MIT
 *
 * rows.c - rows of exact cosines and sines, by kernels
 *
 * An entry that a kernel hands back is made in the 128-bit software float. */
#include "angle/phases.h"

/* What belongs into a row's pairs that never turn. */
static void fill_still(const pe_turns *turns, const pe_factor *factor, int64_t rows,
                       float *cos_out, float *sin_out, int64_t stride)
{
    const int64_t begin = turns->still_begin < 0 ? 0 : turns->still_begin;
    const int64_t end = turns->still_end < turns->n ? turns->still_end : turns->n;
    if (begin >= end)
        return;
    const float cosine = pe_wide_to_float(factor->exact);
    for (int64_t i = begin; i < end; i++)
        for (int64_t r = 0; pe_wide_is_zero(turns->exact[i]) && r < rows; r++) {
            cos_out[r * stride + i] = cosine;
            sin_out[r * stride + i] = 0;
        }
}

/* ------------------------------------------------------------- the slow way --- */

static pe_wide term_turns(const pe_angle_term *term, int64_t i)
{
    const int axis = term->pair_axis != NULL ? term->pair_axis[i] : 0;
    const pe_wide position = term->ids != NULL
                                 ? pe_wide_from_int(term->ids[axis])
                                 : pe_wide_from_double(term->values[axis]);
    const pe_wide turns = pe_wide_mul(position, term->turns->exact[i]);
    return term->negative ? pe_wide_neg(turns) : turns;
}

static void exact_entry(const pe_angle_term *terms, int num_terms, pe_wide factor,
                        int64_t i, float *cos_out, float *sin_out)
{
    pe_wide turns = term_turns(&terms[0], i), c, s;
    if (num_terms == 2)
        turns = pe_wide_add(turns, term_turns(&terms[1], i));
    if (pe_wide_is_zero(turns)) { /* pairs that never turn are common: no series */
        cos_out[i] = pe_wide_to_float(factor);
        sin_out[i] = 0;
        return;
    }
    pe_wide_cos_sin(turns, &c, &s);
    cos_out[i] = pe_wide_to_float(pe_wide_mul(c, factor));
    sin_out[i] = pe_wide_to_float(pe_wide_mul(s, factor));
}

/* Rows in the making, for entries that a kernel hands back. */
typedef struct {
    const pe_turns *turns;
    const int64_t *positions; /* NULL: they follow the first */
    int64_t position, stride;
    pe_wide factor;
    float *cos_out, *sin_out;
} row_run;

static void redo_entry(void *ctx, int64_t row, int64_t i)
{
    const row_run *run = ctx;
    const int64_t position = run->positions != NULL
                                 ? run->positions[row]
                                 : (int64_t)((uint64_t)run->position + (uint64_t)row);
    const pe_angle_term term = {.turns = run->turns, .ids = &position};
    exact_entry(&term, 1, run->factor, i, run->cos_out + row * run->stride,
                run->sin_out + row * run->stride);
}

static pe_table_source source_of(const pe_turns *turns, const pe_factor *factor,
                                 void (*redo)(void *ctx, int64_t row, int64_t i),
                                 void *ctx)
{
    return (pe_table_source){turns->hi, turns->lo,     turns->head, turns->tail,
                             turns->n,  factor->value, redo,        ctx};
}

void pe_angle_rows(const pe_kernels *kernels, const pe_turns *turns, int64_t position,
                   int64_t rows, const pe_factor *factor, float *cos_out,
                   float *sin_out, int64_t stride)
{
    row_run run = {turns, NULL, position, stride, factor->exact, cos_out, sin_out};
    const pe_table_source source = source_of(turns, factor, redo_entry, &run);
    kernels->table_rows(&source, position, rows, cos_out, sin_out, stride);
    fill_still(turns, factor, rows, cos_out, sin_out, stride);
}

/* How many positions follow each other from the first on. */
static int64_t run_length(const int64_t *positions, int64_t count)
{
    int64_t n = 1;
    while (n < count && positions[n - 1] != INT64_MAX &&
           positions[n] == positions[n - 1] + 1)
        n++;
    return n;
}

void pe_angle_rows_at(const pe_kernels *kernels, const pe_turns *turns,
                      const int64_t *positions, int64_t rows, const pe_factor *factor,
                      float *cos_out, float *sin_out, int64_t stride)
{
    enum { LONG = 32 }; /* what kernels do faster as a run */
    for (int64_t r = 0, n; r < rows; r += n) {
        int64_t run = run_length(positions + r, rows - r);
        float *c = cos_out + r * stride, *s = sin_out + r * stride;
        n = run;
        if (run >= LONG) {
            pe_angle_rows(kernels, turns, positions[r], n, factor, c, s, stride);
            continue;
        }
        for (; r + n < rows && run < LONG; n += run < LONG ? run : 0)
            run = run_length(positions + r + n, rows - r - n);
        row_run all = {turns, positions + r, 0, stride, factor->exact, c, s};
        const pe_table_source source = source_of(turns, factor, redo_entry, &all);
        kernels->table_rows_at(&source, positions + r, n, c, s, stride);
        fill_still(turns, factor, n, c, s, stride);
    }
}

/* A row whose pairs read their positions on axes of their own. */
typedef struct {
    const pe_angle_term *term;
    pe_wide factor;
    float *cos_out, *sin_out;
} axis_row;

static void redo_axis_entry(void *ctx, int64_t row, int64_t i)
{
    const axis_row *r = ctx;
    (void)row;
    exact_entry(r->term, 1, r->factor, i, r->cos_out, r->sin_out);
}

/* Returns 0 if a position does not suit the kernel. */
static int axes_row(const pe_kernels *kernels, const pe_angle_term *term,
                    const pe_factor *factor, float *cos_out, float *sin_out)
{
    int64_t positions[PE_MAX_PAIRS], farthest = 0;
    const int64_t n = term->turns->n;
    for (int64_t i = 0; i < n; i++) {
        positions[i] = term->ids[term->pair_axis[i]];
        if (positions[i] < 0 || positions[i] > 0xffffffff)
            return 0;
        farthest = positions[i] > farthest ? positions[i] : farthest;
    }
    axis_row row = {term, factor->exact, cos_out, sin_out};
    const pe_table_source source =
        source_of(term->turns, factor, redo_axis_entry, &row);
    kernels->table_row_each(&source, positions, farthest, cos_out, sin_out);
    fill_still(term->turns, factor, 1, cos_out, sin_out, n);
    return 1;
}

/* A row whose phases were summed one by one. */
typedef struct {
    const pe_angle_term *terms;
    int num_terms;
    pe_wide factor;
    float *cos_out, *sin_out;
} phase_row;

static void redo_phase(void *ctx, int64_t row, int64_t i)
{
    const phase_row *r = ctx;
    (void)row;
    exact_entry(r->terms, r->num_terms, r->factor, i, r->cos_out, r->sin_out);
}

static void phases_row(const pe_kernels *kernels, const pe_angle_term *terms,
                       int num_terms, const pe_factor *factor, float *cos_out,
                       float *sin_out)
{
    pe_phases sum;
    pe_phases_sum(&sum, terms, num_terms);
    phase_row row = {terms, num_terms, factor->exact, cos_out, sin_out};
    const pe_table_source source = source_of(terms[0].turns, factor, redo_phase, &row);
    kernels->table_row_phases(&source, sum.hi, sum.lo, sum.farthest, cos_out, sin_out);
    for (int k = 0; k < sum.num_lost; k++)
        redo_phase(&row, 0, sum.lost[k]);
}

void pe_angle_row(const pe_kernels *kernels, const pe_angle_term *terms, int num_terms,
                  const pe_factor *factor, float *cos_out, float *sin_out)
{
    const int64_t n = terms[0].turns->n;
    if (num_terms == 1 && terms[0].pair_axis == NULL && terms[0].ids != NULL &&
        !terms[0].negative) {
        pe_angle_rows(kernels, terms[0].turns, terms[0].ids[0], 1, factor, cos_out,
                      sin_out, n);
        return;
    }
    if (num_terms == 1 && terms[0].ids != NULL && !terms[0].negative &&
        terms[0].pair_axis != NULL &&
        axes_row(kernels, terms, factor, cos_out, sin_out))
        return;
    phases_row(kernels, terms, num_terms, factor, cos_out, sin_out);
}
