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

void pe_turns_set(pe_turns *turns, int64_t i, pe_wide inv_freq)
{
    turns->exact[i] = pe_wide_mul(inv_freq, PE_WIDE_INV_2PI);
    to_fixed96(turns->exact[i], &turns->hi[i], &turns->lo[i]);
    pe_wide quarters = pe_wide_fraction(turns->exact[i]);
    if (!pe_wide_is_zero(quarters))
        quarters.exponent += 2;
    turns->head[i] = pe_wide_to_double(quarters);
    turns->tail[i] =
        pe_wide_to_double(pe_wide_sub(quarters, pe_wide_from_double(turns->head[i])));
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

/* Adds a term's phase for pair i; distance gathers what |x| must exceed (sincos.h).
 * Returns 0 when only the software float will do. */
static int add_term(const pe_angle_term *term, int64_t i, uint64_t *hi, uint64_t *lo,
                    double *distance)
{
    const int axis = term->pair_axis != NULL ? term->pair_axis[i] : 0;
    const uint64_t turns_hi = term->turns->hi[i], turns_lo = term->turns->lo[i];
    uint64_t phase_hi, phase_lo;
    int negative = term->negative;
    if (term->ids != NULL) {
        pe_phase(term->ids[axis], turns_hi, turns_lo, &phase_hi, &phase_lo);
        *distance += pe_position_size(term->ids[axis]) * PE_SINCOS_UNSURE_PER_TOKEN;
    } else {
        uint64_t whole, part, part_hi, part_lo;
        const double p = term->values[axis];
        if (!split_position(p, &whole, &part) || term->turns->exact[i].exponent >= 0)
            return 0;
        negative ^= p < 0;
        pe_phase((int64_t)whole, turns_hi, turns_lo, &phase_hi, &phase_lo);
        if (part != 0) {
            scale_turns(part, turns_hi, turns_lo, &part_hi, &part_lo);
            const uint64_t sum = phase_lo + part_lo;
            phase_lo = sum & 0xffffffffu;
            phase_hi += part_hi + (sum >> 32);
            *distance +=
                3 * PE_SINCOS_UNSURE_PER_TOKEN; /* truncation: 1.5 units more */
        }
        *distance += (p < 0 ? -p : p) * PE_SINCOS_UNSURE_PER_TOKEN;
    }
    if (negative) { /* 2^96 minus the phase */
        phase_hi = 0 - phase_hi - (phase_lo != 0);
        phase_lo = (0 - phase_lo) & 0xffffffffu;
    }
    const uint64_t sum = *lo + phase_lo;
    *lo = sum & 0xffffffffu;
    *hi += phase_hi + (sum >> 32);
    return 1;
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
    return 1;
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
    for (int64_t i = 0; i < n; i++) {
        uint64_t hi = 0, lo = 0;
        double distance = 0;
        int sure = 1;
        for (int k = 0; k < num_terms; k++)
            sure = sure && add_term(&terms[k], i, &hi, &lo, &distance);
        if (!sure ||
            pe_sincos_f32(hi, lo, factor->value, distance, cos_out + i, sin_out + i))
            exact_entry(terms, num_terms, factor->exact, i, cos_out, sin_out);
    }
}
