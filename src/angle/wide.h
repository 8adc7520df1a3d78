/* SPDX-License-Identifier: MIT
 *
 * wide.h - a software float with a 128-bit mantissa, made of integers
 *
 * value = (-1)^negative * mantissa * 2^(exponent - 127) with the mantissa in
 * [2^127, 2^128), or 0.  No libm and no floating point, so the bits are the same on
 * every platform and in every rounding mode.  Relative error of one operation:
 *     add, sub, mul, div       2^-127
 *     log2, exp2, ln, pow      2^-120 (exp2 and pow: plus the error of the exponent)
 *     sin, cos of turns        2^-118 of the result
 * There is no infinity: callers keep exponents below 2^20 in size.  For plan time and
 * for the rare entry whose rounding the fast path cannot decide. */
#ifndef PE_WIDE_H
#define PE_WIDE_H

#include "base/base.h"

typedef struct {
    uint64_t hi, lo; /* mantissa */
    int32_t exponent;
    int32_t negative;
} pe_wide;

extern const pe_wide PE_WIDE_INV_2PI; /* 1 / (2 pi) */

pe_wide pe_wide_from_int(int64_t v);
pe_wide pe_wide_from_double(double x); /* x finite; exact, subnormals too */
/* From the binary fraction 0.w0 w1 w2 ... of 64-bit words, in [0, 1). */
pe_wide pe_wide_from_fraction(const uint64_t *words, int count);

/* Nearest, ties to even; past the range infinity, below it subnormal or zero. */
double pe_wide_to_double(pe_wide a);
float pe_wide_to_float(pe_wide a);

static inline int pe_wide_is_zero(pe_wide a)
{
    return a.hi == 0;
}
pe_wide pe_wide_neg(pe_wide a);
pe_wide pe_wide_add(pe_wide a, pe_wide b);
pe_wide pe_wide_sub(pe_wide a, pe_wide b);
pe_wide pe_wide_mul(pe_wide a, pe_wide b);
pe_wide pe_wide_div(pe_wide a, pe_wide b); /* b is not zero */
int pe_wide_less(pe_wide a, pe_wide b);

/* Largest integer at most a, and smallest at least a; |a| < 2^62. */
int64_t pe_wide_floor(pe_wide a);
int64_t pe_wide_ceil(pe_wide a);
pe_wide pe_wide_fraction(pe_wide a); /* a - trunc(a), exact, for any size of a */

pe_wide pe_wide_log2(pe_wide x); /* x > 0 */
pe_wide pe_wide_ln(pe_wide x);
pe_wide pe_wide_exp2(pe_wide y);
pe_wide pe_wide_pow(pe_wide x, pe_wide y); /* x > 0 */
pe_wide pe_wide_sqrt(pe_wide x);           /* x >= 0 */

/* Cosine and sine of 2 pi turns. */
void pe_wide_cos_sin(pe_wide turns, pe_wide *cosine, pe_wide *sine);

#endif /* PE_WIDE_H */
