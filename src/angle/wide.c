/* SPDX-License-Identifier: MIT
 *
 * wide.c - arithmetic of the 128-bit software float
 *
 * Functions of it (log2, exp2, cos, sin) are in wide_functions.c. */
#include "angle/wide.h"

#include "angle/wide_int.h"
#include "base/dtype.h"

/* From 400-bit values, rounded. */
const pe_wide PE_WIDE_INV_2PI = {0xa2f9836e4e441529u, 0xfc2757d1f534ddc1u, -3, 0};

static const pe_wide ZERO = {0, 0, 0, 0};

/* Normalises m:guard, whose m has weight 2^(exponent - 127), and rounds to nearest. */
static pe_wide pack(int negative, int32_t exponent, pe_u128 m, uint64_t guard)
{
    if (!(m.hi | m.lo | guard))
        return ZERO;
    while (m.hi == 0) {
        m.hi = m.lo;
        m.lo = guard;
        guard = 0;
        exponent -= 64;
    }
    const int shift = pe_clz64(m.hi);
    if (shift != 0) {
        m.hi = m.hi << shift | m.lo >> (64 - shift);
        m.lo = m.lo << shift | guard >> (64 - shift);
        guard <<= shift;
        exponent -= shift;
    }
    if (guard >> 63) {
        m = pe_add128(m, (pe_u128){0, 1});
        if (!(m.hi | m.lo)) {
            m.hi = (uint64_t)1 << 63;
            exponent++;
        }
    }
    return (pe_wide){m.hi, m.lo, exponent, negative};
}

pe_wide pe_wide_from_int(int64_t v)
{
    const uint64_t magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    return pack(v < 0, 63, (pe_u128){magnitude, 0}, 0);
}

pe_wide pe_wide_from_double(double x)
{
    const uint64_t bits = pe_f64_bits(x);
    const int biased = (int)(bits >> 52 & 0x7ff);
    const uint64_t fraction = bits & 0xfffffffffffffu;
    const uint64_t m = biased != 0 ? fraction | (uint64_t)1 << 52 : fraction;
    return pack((int)(bits >> 63), (biased != 0 ? biased : 1) - 1023 + 11,
                (pe_u128){m, 0}, 0);
}

pe_wide pe_wide_from_fraction(const uint64_t *words, int count)
{
    for (int i = 0; i < count; i++)
        if (words[i] != 0)
            return pack(0, -64 * i - 1,
                        (pe_u128){words[i], i + 1 < count ? words[i + 1] : 0},
                        i + 2 < count ? words[i + 2] : 0);
    return ZERO;
}

/* The top bits of the mantissa rounded to nearest even; the result may be 2^bits. */
static uint64_t round_mantissa(pe_wide a, int bits)
{
    const uint64_t half = (uint64_t)1 << 63;
    if (bits < 0)
        return 0;
    if (bits == 0) /* the mantissa is in [1/2, 1) of the last place */
        return a.hi > half || a.lo != 0;
    const uint64_t kept = a.hi >> (64 - bits);
    const uint64_t rest = a.hi << bits;
    const int up = rest > half || (rest == half && (a.lo != 0 || (kept & 1)));
    return kept + (uint64_t)up;
}

/* Bits of an IEEE format with the given precision (hidden bit included) and bias. */
static uint64_t to_ieee(pe_wide a, int precision, int bias)
{
    if (pe_wide_is_zero(a))
        return 0;
    const uint64_t infinity = (uint64_t)(2 * bias + 1) << (precision - 1);
    if (a.exponent > bias)
        return infinity;
    if (a.exponent >= 1 - bias) /* a carry out of the mantissa moves the exponent up */
        return ((uint64_t)(a.exponent + bias - 1) << (precision - 1)) +
               round_mantissa(a, precision);
    return round_mantissa(a, precision + a.exponent - (1 - bias));
}

double pe_wide_to_double(pe_wide a)
{
    return pe_f64_from_bits(to_ieee(a, 53, 1023) | (uint64_t)a.negative << 63);
}

float pe_wide_to_float(pe_wide a)
{
    return pe_f32_from_bits((uint32_t)to_ieee(a, 24, 127) | (uint32_t)a.negative << 31);
}

pe_wide pe_wide_neg(pe_wide a)
{
    a.negative ^= a.hi != 0;
    return a;
}

pe_wide pe_wide_mul(pe_wide a, pe_wide b)
{
    if (pe_wide_is_zero(a) || pe_wide_is_zero(b))
        return ZERO;
    uint64_t product[4];
    pe_mul128((pe_u128){a.hi, a.lo}, (pe_u128){b.hi, b.lo}, product);
    return pack(a.negative ^ b.negative, a.exponent + b.exponent + 1,
                (pe_u128){product[0], product[1]}, product[2]);
}

static int less_magnitude(pe_wide a, pe_wide b)
{
    if (pe_wide_is_zero(a) || pe_wide_is_zero(b))
        return pe_wide_is_zero(a) && !pe_wide_is_zero(b);
    return a.exponent != b.exponent
               ? a.exponent < b.exponent
               : pe_less128((pe_u128){a.hi, a.lo}, (pe_u128){b.hi, b.lo});
}

/* Sixty-four guard bits: nothing is lost when the exponents differ by less than 64, so
 * cancellation costs no precision. */
pe_wide pe_wide_add(pe_wide a, pe_wide b)
{
    if (less_magnitude(a, b)) {
        const pe_wide t = a;
        a = b;
        b = t;
    }
    if (pe_wide_is_zero(b) || (int64_t)a.exponent - b.exponent > 130)
        return a;
    int shift = a.exponent - b.exponent;
    uint64_t w[3] = {b.hi, b.lo, 0};
    for (; shift >= 64; shift -= 64) {
        w[2] = w[1];
        w[1] = w[0];
        w[0] = 0;
    }
    if (shift != 0) {
        w[2] = w[2] >> shift | w[1] << (64 - shift);
        w[1] = w[1] >> shift | w[0] << (64 - shift);
        w[0] >>= shift;
    }
    const pe_u128 m = {a.hi, a.lo};
    if (a.negative == b.negative) {
        const pe_u128 sum = pe_add128(m, (pe_u128){w[0], w[1]});
        if (!pe_less128(sum, m))
            return pack(a.negative, a.exponent, sum, w[2]);
        const pe_u128 halved = {(uint64_t)1 << 63 | sum.hi >> 1,
                                sum.hi << 63 | sum.lo >> 1};
        return pack(a.negative, a.exponent + 1, halved, w[2] >> 1 | sum.lo << 63);
    }
    pe_u128 difference = pe_sub128(m, (pe_u128){w[0], w[1]});
    if (w[2] != 0)
        difference = pe_sub128(difference, (pe_u128){0, 1});
    return pack(a.negative, a.exponent, difference, 0 - w[2]);
}

pe_wide pe_wide_sub(pe_wide a, pe_wide b)
{
    return pe_wide_add(a, pe_wide_neg(b));
}

int pe_wide_less(pe_wide a, pe_wide b)
{
    return pe_wide_sub(a, b).negative;
}

/* Long division, a bit at a time. */
pe_wide pe_wide_div(pe_wide a, pe_wide b)
{
    if (pe_wide_is_zero(a))
        return a;
    const pe_u128 divisor = {b.hi, b.lo};
    pe_u128 rest = {a.hi, a.lo}, quotient = {0, 0};
    int32_t exponent = a.exponent - b.exponent;
    int carry = 0; /* bit 128 of rest */
    if (pe_less128(rest, divisor)) {
        exponent--;
        carry = (int)(rest.hi >> 63);
        rest = pe_add128(rest, rest);
    }
    for (int i = 0; i < 128; i++) {
        quotient = pe_add128(quotient, quotient);
        if (carry || !pe_less128(rest, divisor)) {
            rest = pe_sub128(rest, divisor);
            quotient.lo |= 1;
        }
        carry = (int)(rest.hi >> 63);
        rest = pe_add128(rest, rest);
    }
    const int half = carry || !pe_less128(rest, divisor);
    return pack(a.negative ^ b.negative, exponent, quotient, (uint64_t)half << 63);
}

int64_t pe_wide_floor(pe_wide a)
{
    if (pe_wide_is_zero(a))
        return 0;
    if (a.exponent < 0)
        return a.negative ? -1 : 0;
    const int drop = 63 - a.exponent;
    const int64_t whole = (int64_t)(a.hi >> drop);
    const int inexact = a.lo != 0 || (drop != 0 && a.hi << (64 - drop) != 0);
    return a.negative ? -whole - inexact : whole;
}

int64_t pe_wide_ceil(pe_wide a)
{
    return -pe_wide_floor(pe_wide_neg(a));
}

pe_wide pe_wide_fraction(pe_wide a)
{
    if (a.exponent < 0)
        return a;
    if (a.exponent >= 127)
        return ZERO;
    const int whole_bits = a.exponent + 1;
    pe_u128 m = {a.hi, a.lo};
    if (whole_bits < 64) {
        m.hi = m.hi << whole_bits >> whole_bits;
    } else {
        m.hi = 0;
        m.lo = m.lo << (whole_bits - 64) >> (whole_bits - 64);
    }
    return pack(a.negative, a.exponent, m, 0);
}
