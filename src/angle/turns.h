/* SPDX-License-Identifier: MIT
 *
 * turns.h - frequencies as turns per token, and rows of exact cosines and sines
 *
 * Every float that leaves here is factor * cos or sin of the exact angle, correctly
 * rounded for |position| up to 2^40: entries that double arithmetic cannot decide are
 * redone in the 128-bit software float.  So the bits are the same for every compiler,
 * flag and instruction set. */
#ifndef PE_TURNS_H
#define PE_TURNS_H

#include "angle/wide.h"
#include "kernels/kernels.h"

/* Frequencies of n pairs; the arrays belong to whoever owns the plan. */
typedef struct {
    int64_t n;
    uint64_t *hi,
        *lo;        /* turns per token modulo one: (hi + lo 2^-32) 2^-64, lo < 2^32 */
    pe_wide *exact; /* turns per token */
    double *head,
        *tail; /* quarter turns per token modulo four: 106 bits in two doubles */
    /* Pairs that never turn lie in [still_begin, still_end).  Kernels are given other turns
     * for them: of a phase of zero they could never be sure. */
    int64_t still_begin, still_end;
} pe_turns;

/* A frequency at or above this many turns per token is refused by the rules: the
 * software float could not hold its far phases. */
#define PE_MAX_INV_FREQ 0x1p40

enum { PE_MAX_PAIRS = PE_K_MAX_PAIRS }; /* half of the widest head */

/* Pair i turns inv_freq radians per token, 0 <= inv_freq < PE_MAX_INV_FREQ.  Of turns with
 * no pair set, all but n and the arrays is zero. */
void pe_turns_set(pe_turns *turns, int64_t i, pe_wide inv_freq);

static inline int pe_turns_is_still(const pe_turns *turns, int64_t i)
{
    return i >= turns->still_begin && i < turns->still_end &&
           pe_wide_is_zero(turns->exact[i]);
}

/* out = a - b, or b - a where that is the one without negative turns: returns 1 or -1; 0
 * where neither is.  out has n and its arrays. */
int pe_turns_subtract(pe_turns *out, const pe_turns *a, const pe_turns *b);

/* factor for cos and sin, as a double and as it truly is. */
typedef struct {
    double value;
    pe_wide exact;
} pe_factor;

pe_factor pe_factor_make(pe_wide exact);

/* One summand of an angle: sign * position * turns, with the position of pair i read on
 * axis pair_axis[i] (NULL: axis 0) from ids or, when that is NULL, values. */
typedef struct {
    const pe_turns *turns;
    const uint8_t *pair_axis;
    const int64_t *ids;
    const double *values;
    int negative;
} pe_angle_term;

/* Rows of factor * cos and sin of (position + r) * turns, for r in [0, rows), each
 * stride floats after the one before. */
void pe_angle_rows(const pe_kernels *kernels, const pe_turns *turns, int64_t position,
                   int64_t rows, const pe_factor *factor, float *cos_out,
                   float *sin_out, int64_t stride);

/* Rows at positions[r], whatever their order; those that follow each other are quicker. */
void pe_angle_rows_at(const pe_kernels *kernels, const pe_turns *turns,
                      const int64_t *positions, int64_t rows, const pe_factor *factor,
                      float *cos_out, float *sin_out, int64_t stride);

/* Row of factor * cos and sin of the sum of one or two terms, [n] floats each. */
void pe_angle_row(const pe_kernels *kernels, const pe_angle_term *terms, int num_terms,
                  const pe_factor *factor, float *cos_out, float *sin_out);

#endif /* PE_TURNS_H */
