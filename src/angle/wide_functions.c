/* SPDX-License-Identifier: MIT
 *
 * wide_functions.c - log2, exp2, pow, sqrt, cos and sin of the 128-bit software float
 *
 * Series in 128-bit fixed point whose terms do not cancel, so that truncations add up to
 * a few units of 2^-127. */
#include "angle/wide.h"
#include "angle/wide_int.h"

static const pe_wide LN2 = {0xb17217f7d1cf79abu, 0xc9e3b39803f2f6afu, -1, 0};
static const pe_wide TWO_OVER_LN2 = {0xb8aa3b295c17f0bbu, 0xbe87fed0691d3e89u, 1, 0};
static const pe_wide TWO_PI = {0xc90fdaa22168c234u, 0xc4c6628b80dc1cd1u, 2, 0};
static const pe_u128 ONE_Q127 = {(uint64_t)1 << 63, 0};

/* A fixed-point number in units of 2^-127 as a wide. */
static pe_wide from_q127(pe_u128 q)
{
    const uint64_t words[2] = {q.hi, q.lo};
    pe_wide r = pe_wide_from_fraction(words, 2);
    r.exponent += r.hi != 0;
    return r;
}

/* x in [0, 1) as fixed point in units of 2^-128. */
static pe_u128 to_q128(pe_wide x)
{
    return pe_wide_is_zero(x) ? (pe_u128){0, 0}
                              : pe_shr128((pe_u128){x.hi, x.lo}, -x.exponent - 1);
}

/* x = 2^e m with m in [1/sqrt 2, sqrt 2]; z = (m - 1) / (m + 1), |z| <= 0.1716, and
 * log2 m = 2/ln 2 * z * sum z^2k / (2k + 1).  z^2 <= 2^-5.08, so 26 terms leave 2^-137.
 * z keeps its full relative precision, hence so does the result near x = 1. */
pe_wide pe_wide_log2(pe_wide x)
{
    const pe_wide one = pe_wide_from_int(1);
    int64_t e = x.exponent;
    x.exponent = 0;
    if (x.hi > 0xb504f333f9de6484u) {
        x.exponent = -1;
        e++;
    }
    const pe_wide z = pe_wide_div(pe_wide_sub(x, one), pe_wide_add(x, one));
    if (pe_wide_is_zero(z))
        return pe_wide_from_int(e);
    const pe_u128 square = to_q128(pe_wide_mul(z, z));
    pe_u128 sum = pe_div128_small(ONE_Q127, 53);
    for (int k = 25; k >= 0; k--)
        sum = pe_add128(pe_mulhi128(square, sum),
                        pe_div128_small(ONE_Q127, (uint32_t)(2 * k + 1)));
    const pe_wide log2_m = pe_wide_mul(pe_wide_mul(z, from_q127(sum)), TWO_OVER_LN2);
    return pe_wide_add(pe_wide_from_int(e), log2_m);
}

pe_wide pe_wide_ln(pe_wide x)
{
    return pe_wide_mul(pe_wide_log2(x), LN2);
}

/* y = n + r with r in [0, 1); t = r ln 2 < 0.6932; Taylor by Horner's rule, whose rest
 * is below t^36 / 36! < 2^-156. */
pe_wide pe_wide_exp2(pe_wide y)
{
    if (!pe_wide_is_zero(y) && y.exponent >= 20) {
        pe_wide clamped = pe_wide_from_int(!y.negative);
        clamped.exponent = y.negative ? 0 : 1 << 20;
        return clamped;
    }
    int64_t n = pe_wide_floor(y);
    pe_wide r = pe_wide_sub(y, pe_wide_from_int(n));
    if (!pe_wide_is_zero(r) &&
        r.exponent >= 0) { /* a hair below n + 1, rounded to it */
        n++;
        r = pe_wide_from_int(0);
    }
    const pe_u128 t = to_q128(pe_wide_mul(r, LN2));
    pe_u128 sum = ONE_Q127;
    for (uint32_t k = 35; k != 0; k--)
        sum = pe_add128(ONE_Q127, pe_div128_small(pe_mulhi128(t, sum), k));
    pe_wide result = from_q127(sum);
    result.exponent += (int32_t)n;
    return result;
}

pe_wide pe_wide_pow(pe_wide x, pe_wide y)
{
    return pe_wide_exp2(pe_wide_mul(pe_wide_log2(x), y));
}

pe_wide pe_wide_sqrt(pe_wide x)
{
    if (pe_wide_is_zero(x))
        return x;
    pe_wide half = pe_wide_log2(x);
    half.exponent--;
    return pe_wide_exp2(half);
}

/* 1 - s/(k (k+1)) (1 - s/((k+2) (k+3)) (1 - ...)) with k = first, in units of 2^-127;
 * s <= 0.617 in units of 2^-128.  Every factor is in (1/2, 1], so nothing cancels; 18
 * steps leave 0.617^18 / 36! < 2^-150. */
static pe_u128 alternating(pe_u128 s, int first)
{
    pe_u128 sum = ONE_Q127;
    for (int k = first + 34; k >= first; k -= 2)
        sum = pe_sub128(ONE_Q127,
                        pe_div128_small(pe_mulhi128(s, sum), (uint32_t)(k * (k + 1))));
    return sum;
}

/* The distance r to the nearest quarter turn is at most 1/8, so t = 2 pi r <= 0.7854. */
void pe_wide_cos_sin(pe_wide turns, pe_wide *cosine, pe_wide *sine)
{
    const pe_wide half = {(uint64_t)1 << 63, 0, -1, 0};
    const int32_t negative = turns.negative; /* cos is even, sin odd */
    pe_wide quarters = pe_wide_fraction(turns);
    quarters.negative = 0;
    if (!pe_wide_is_zero(quarters))
        quarters.exponent += 2;
    const int64_t quadrant = pe_wide_floor(pe_wide_add(quarters, half));
    pe_wide r = pe_wide_sub(quarters, pe_wide_from_int(quadrant));
    if (!pe_wide_is_zero(r))
        r.exponent -= 2;
    const pe_wide t = pe_wide_mul(r, TWO_PI);
    const pe_u128 square = to_q128(pe_wide_mul(t, t));
    const pe_wide s = pe_wide_mul(t, from_q127(alternating(square, 2)));
    const pe_wide c = from_q127(alternating(square, 1));
    switch (quadrant & 3) {
    case 0:
        *cosine = c;
        *sine = s;
        break;
    case 1:
        *cosine = pe_wide_neg(s);
        *sine = c;
        break;
    case 2:
        *cosine = pe_wide_neg(c);
        *sine = pe_wide_neg(s);
        break;
    default:
        *cosine = s;
        *sine = pe_wide_neg(c);
    }
    if (negative)
        *sine = pe_wide_neg(*sine);
}
