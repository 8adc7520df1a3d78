/* SPDX-License-Identifier: MIT
 *
 * phases.c - phases of one row, summed from terms pair by pair
 */
#include "angle/phases.h"

#include "angle/wide_int.h"
#include "kernels/sincos.h"

#include <string.h>

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

static inline void add_phase(pe_phases *sum, int64_t i, uint64_t hi, uint64_t lo,
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

static inline void add_whole(pe_phases *sum, const pe_angle_term *term,
                             const uint8_t *pair_axis)
{
    const pe_turns *turns = term->turns;
    const int negative = term->negative;
    double farthest = 0;
    for (int64_t i = 0; i < turns->n; i++) {
        const int64_t p = term->ids[pair_axis != NULL ? pair_axis[i] : 0];
        const double size = pe_position_size(p);
        uint64_t hi, lo;
        if (pe_turns_is_still(turns, i))
            continue;
        pe_phase(p, turns->hi[i], turns->lo[i], &hi, &lo);
        add_phase(sum, i, hi, lo, negative);
        farthest = size > farthest ? size : farthest;
    }
    sum->farthest += farthest * PE_SINCOS_UNSURE_PER_TOKEN;
}

static void add_term(pe_phases *sum, const pe_angle_term *term)
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
        if (pe_turns_is_still(term->turns, i))
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

/* Pairs that two plans turn alike are common, and so are those that never turn.  The kernel could not be sure of any, and
 * would look through the whole block for them. */
static void set_zeroes_aside(pe_phases *sum, int64_t n)
{
    const uint64_t eighth = (uint64_t)1 << 61;
    for (int64_t i = 0; i < n; i++)
        if ((sum->hi[i] | sum->lo[i]) == 0) {
            sum->hi[i] = eighth;
            sum->lost[sum->num_lost++] = (int16_t)i;
        }
}

void pe_phases_sum(pe_phases *sum, const pe_angle_term *terms, int num_terms)
{
    const int64_t n = terms[0].turns->n;
    memset(sum->hi, 0, (size_t)n * sizeof *sum->hi);
    memset(sum->lo, 0, (size_t)n * sizeof *sum->lo);
    sum->farthest = 0;
    sum->num_lost = 0;
    for (int k = 0; k < num_terms; k++)
        add_term(sum, &terms[k]);
    set_zeroes_aside(sum, n);
}
