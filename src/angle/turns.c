/* SPDX-License-Identifier: MIT
 *
 * turns.c - exact angles
 *
 * phase = position * turns modulo one turn is integer arithmetic and exact; turns have
 * 96 bits behind the point, since with 64 of them 0.03-0.1% of the entries at position
 * 2^26 would not be the nearest float. */
#include "angle/turns.h"

#include "angle/wide_int.h"
#include "kernels/sincos.h"

#include <string.h>

/* The fraction of |x| in units of 2^-96, rounded to nearest, modulo one. */
static void to_fixed96(pe_wide x, uint64_t *hi, uint64_t *lo)
{
    const pe_wide f = pe_wide_fraction(x);
    *hi = *lo = 0;
    if (pe_wide_is_zero(f))
        return;
    const pe_u128 q128 = pe_shr128((pe_u128){f.hi, f.lo}, -f.exponent - 1);
    const pe_u128 rounded = pe_add128(q128, (pe_u128){0, (uint64_t)1 << 31});
    *hi = rounded.hi;
    *lo = rounded.lo >> 32;
}

/* Given to kernels for a pair that never turns: no small part of a turn. */
#define ANY_TURNS_HI       0x13c6ef372fe94f82u
#define ANY_TURNS_LO       0xf39cc060u
#define ANY_TURNS_QUARTERS 0.30899

static void set_still(pe_turns *turns, int64_t i)
{
    turns->hi[i] = ANY_TURNS_HI;
    turns->lo[i] = ANY_TURNS_LO;
    turns->head[i] = ANY_TURNS_QUARTERS;
    turns->tail[i] = 0;
    if (turns->still_begin == turns->still_end)
        turns->still_begin = turns->still_end = i;
    turns->still_begin = i < turns->still_begin ? i : turns->still_begin;
    turns->still_end = i < turns->still_end ? turns->still_end : i + 1;
}

static int is_still(const pe_turns *turns, int64_t i)
{
    return i >= turns->still_begin && i < turns->still_end &&
           pe_wide_is_zero(turns->exact[i]);
}

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

/* exact[i] is at least 0. */
static void derive(pe_turns *turns, int64_t i)
{
    if (pe_wide_is_zero(turns->exact[i])) {
        set_still(turns, i);
        return;
    }
    to_fixed96(turns->exact[i], &turns->hi[i], &turns->lo[i]);
    pe_wide quarters = pe_wide_fraction(turns->exact[i]);
    if (!pe_wide_is_zero(quarters))
        quarters.exponent += 2;
    turns->head[i] = pe_wide_to_double(quarters);
    turns->tail[i] =
        pe_wide_to_double(pe_wide_sub(quarters, pe_wide_from_double(turns->head[i])));
}

void pe_turns_set(pe_turns *turns, int64_t i, pe_wide inv_freq)
{
    turns->exact[i] = pe_wide_mul(inv_freq, PE_WIDE_INV_2PI);
    derive(turns, i);
}

int pe_turns_subtract(pe_turns *out, const pe_turns *a, const pe_turns *b)
{
    int is_faster = 0, is_slower = 0;
    for (int64_t i = 0; i < out->n; i++) {
        is_faster |= pe_wide_less(b->exact[i], a->exact[i]);
        is_slower |= pe_wide_less(a->exact[i], b->exact[i]);
    }
    if (is_faster && is_slower)
        return 0;
    for (int64_t i = 0; i < out->n; i++) {
        out->exact[i] = is_slower ? pe_wide_sub(b->exact[i], a->exact[i])
                                  : pe_wide_sub(a->exact[i], b->exact[i]);
        derive(out, i);
    }
    return is_slower ? -1 : 1;
}

pe_factor pe_factor_make(pe_wide exact)
{
    return (pe_factor){pe_wide_to_double(exact), exact};
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

/* -------------------------------------------------------------------- phases --- */

/* p = whole + part 2^-64, for |p| <= 2^52.  Returns 0 when bits of p are lost, which
 * happens only below 2^-11. */
static int split_position(double p, uint64_t *whole, uint64_t *part)
{
    const uint64_t bits = pe_f64_bits(p);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    const uint64_t m = (bits & 0xfffffffffffffu) | (uint64_t)1 << 52;
    *whole = *part = 0;
    if ((bits & 0x7fffffffffffffffu) == 0)
        return 1;
    if (exponent >= 52)
        *whole = m << (exponent - 52);
    else if (exponent >= 0) {
        *whole = m >> (52 - exponent);
        *part = m << (12 + exponent);
    } else if (exponent >= -12)
        *part = m << (12 + exponent);
    else
        return 0;
    return 1;
}

/* part 2^-64 * turns, truncated to units of 2^-96; turns are below one. */
static void scale_turns(uint64_t part, uint64_t hi, uint64_t lo, uint64_t *phase_hi,
                        uint64_t *phase_lo)
{
    const pe_u128 upper = pe_mul64(part, hi);
    const uint64_t lower = pe_mul64(part, lo << 32).hi;
    const uint64_t sum = upper.lo + lower;
    *phase_hi = upper.hi + (sum < lower);
    *phase_lo = sum >> 32;
}

/* position * turns in units of 2^-96.  Returns 0 when only the software float will do;
 * else distance grows by what |x| must exceed (sincos.h). */
static int phase_of_value(double p, const pe_turns *turns, int64_t i, uint64_t *hi,
                          uint64_t *lo, double *distance)
{
    uint64_t whole, part, part_hi, part_lo;
    if (!split_position(p, &whole, &part) || turns->exact[i].exponent >= 0)
        return 0;
    pe_phase((int64_t)whole, turns->hi[i], turns->lo[i], hi, lo);
    if (part != 0) {
        scale_turns(part, turns->hi[i], turns->lo[i], &part_hi, &part_lo);
        const uint64_t sum = *lo + part_lo;
        *lo = sum & 0xffffffffu;
        *hi += part_hi + (sum >> 32);
        *distance += 3 * PE_SINCOS_UNSURE_PER_TOKEN; /* truncation: 1.5 units more */
    }
    *distance += (p < 0 ? -p : p) * PE_SINCOS_UNSURE_PER_TOKEN;
    return 1;
}

/* Phases of a row in the making: sums of terms. */
typedef struct {
    uint64_t hi[PE_MAX_PAIRS], lo[PE_MAX_PAIRS];
    double farthest; /* of all pairs, what |x| must exceed */
    int num_lost;
    int16_t lost[3 * PE_MAX_PAIRS]; /* entries that only the software float can do */
} phases;

static inline void add_phase(phases *sum, int64_t i, uint64_t hi, uint64_t lo,
                             int negative)
{
    if (negative) { /* 2^96 minus the phase */
        hi = 0 - hi - (lo != 0);
        lo = (0 - lo) & 0xffffffffu;
    }
    lo += sum->lo[i];
    sum->lo[i] = lo & 0xffffffffu;
    sum->hi[i] += hi + (lo >> 32);
}

static inline void add_whole(phases *sum, const pe_angle_term *term,
                             const uint8_t *pair_axis)
{
    const pe_turns *turns = term->turns;
    const int negative = term->negative;
    double farthest = 0;
    for (int64_t i = 0; i < turns->n; i++) {
        const int64_t p = term->ids[pair_axis != NULL ? pair_axis[i] : 0];
        const double size = pe_position_size(p);
        uint64_t hi, lo;
        if (is_still(turns, i))
            continue;
        pe_phase(p, turns->hi[i], turns->lo[i], &hi, &lo);
        add_phase(sum, i, hi, lo, negative);
        farthest = size > farthest ? size : farthest;
    }
    sum->farthest += farthest * PE_SINCOS_UNSURE_PER_TOKEN;
}

static void add_term(phases *sum, const pe_angle_term *term)
{
    double farthest = 0;
    if (term->ids != NULL) {
        if (term->pair_axis == NULL)
            add_whole(sum, term, NULL); /* one position, known before the loop */
        else
            add_whole(sum, term, term->pair_axis);
        return;
    }
    for (int64_t i = 0; i < term->turns->n; i++) {
        const double p = term->values[term->pair_axis != NULL ? term->pair_axis[i] : 0];
        double distance = 0;
        uint64_t hi, lo;
        if (is_still(term->turns, i))
            continue;
        if (!phase_of_value(p, term->turns, i, &hi, &lo, &distance)) {
            sum->lost[sum->num_lost++] = (int16_t)i;
            continue;
        }
        add_phase(sum, i, hi, lo, term->negative != (p < 0));
        farthest = distance > farthest ? distance : farthest;
    }
    sum->farthest += farthest;
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

/* Pairs that two plans turn alike are common, and so are those that never turn.  The kernel could not be sure of any, and
 * would look through the whole block for them. */
static void set_zeroes_aside(phases *sum, int64_t n)
{
    const uint64_t eighth = (uint64_t)1 << 61;
    for (int64_t i = 0; i < n; i++)
        if ((sum->hi[i] | sum->lo[i]) == 0) {
            sum->hi[i] = eighth;
            sum->lost[sum->num_lost++] = (int16_t)i;
        }
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
    phases sum;
    const int64_t n = terms[0].turns->n;
    memset(sum.hi, 0, (size_t)n * sizeof *sum.hi);
    memset(sum.lo, 0, (size_t)n * sizeof *sum.lo);
    sum.farthest = sum.num_lost = 0;
    for (int k = 0; k < num_terms; k++)
        add_term(&sum, &terms[k]);
    set_zeroes_aside(&sum, n);
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
