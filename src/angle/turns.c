/* SPDX-License-Identifier: MIT
 *
 * turns.c - frequencies as turns
 *
 * phase = position * turns modulo one turn is integer arithmetic and exact; turns have
 * 96 bits behind the point, since with 64 of them 0.03-0.1% of the entries at position
 * 2^26 would not be the nearest float. */
#include "angle/turns.h"

#include "angle/wide_int.h"

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
