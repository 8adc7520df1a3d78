/* SPDX-License-Identifier: MIT
 *
 * bits16.c - binary16 and bfloat16 by arithmetic
 *
 * A value is a whole number of quanta; rounding is one rint() of value / quantum, which
 * is exact before the rounding because quanta are powers of two. */
#include "bits16.h"

#include <math.h>

/* fraction_bits stored bits, exponents up to max_exponent, bias max_exponent. */
static double value_of(uint16_t bits, int fraction_bits, int max_exponent)
{
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const int exponent = (bits & 0x7fff) >> fraction_bits;
    const double sign = bits & 0x8000 ? -1 : 1;

    if (exponent == 2 * max_exponent + 1)
        return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - max_exponent - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits),
                        exponent - max_exponent - fraction_bits);
}

static uint16_t nearest(double value, int fraction_bits, int max_exponent)
{
    const int infinity = (2 * max_exponent + 1) << fraction_bits;
    const int sign = signbit(value) ? 0x8000 : 0;
    int exponent;

    if (isnan(value))
        return (uint16_t)(sign | infinity | 1 << (fraction_bits - 1));
    if (isinf(value))
        return (uint16_t)(sign | infinity);
    (void)frexp(fabs(value), &exponent); /* value = m * 2^exponent, m in [1/2, 1) */
    if (value == 0 || exponent - 1 < 1 - max_exponent)
        exponent = 2 - max_exponent;
    /* Quanta in units of the last place of [2^(exponent-1), 2^exponent). */
    const double quanta = rint(ldexp(fabs(value), fraction_bits + 1 - exponent));
    const int row = exponent - 2 + max_exponent; /* stored exponent less one */
    const double bits = ldexp(row, fraction_bits) + quanta;
    return (uint16_t)(sign | (bits >= infinity ? infinity : (int)bits));
}

double test_f16_value(uint16_t bits)
{
    return value_of(bits, 10, 15);
}

double test_bf16_value(uint16_t bits)
{
    return value_of(bits, 7, 127);
}

uint16_t test_f16_nearest(double value)
{
    return nearest(value, 10, 15);
}

uint16_t test_bf16_nearest(double value)
{
    return nearest(value, 7, 127);
}

int test_f16_is_nan(uint16_t bits)
{
    return (bits & 0x7fff) > 0x7c00;
}

int test_bf16_is_nan(uint16_t bits)
{
    return (bits & 0x7fff) > 0x7f80;
}
