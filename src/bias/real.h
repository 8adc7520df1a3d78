/* SPDX-License-Identifier: MIT
 *
 * real.h - exp and ln in double from arithmetic alone, the same bits everywhere
 *
 * Relative error below 2^-50 (exp, |t| <= 700) and 2^-50 of max(1, |ln x|) (ln).  Both
 * are free of branches, so that compilers make vectors of them. */
#ifndef PE_BIAS_REAL_H
#define PE_BIAS_REAL_H

#include "base/dtype.h"

/* t = n ln 2 + r with |r| <= 0.3466; Taylor to r^12 leaves r^13 / 13! < 2^-52.  ln 2 is
 * split so that n times its head is exact. */
static inline double pe_real_exp(double t)
{
    const double round = 0x1.8p52; /* adding it leaves the nearest integer, low bits */
    const double shifted = t * 0x1.71547652b82fep0 + round;
    const double n = shifted - round;
    const double r = (t - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    double sum = 1.0 / 479001600;
    sum = sum * r + 1.0 / 39916800;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 0.5;
    sum = sum * r + 1.0;
    sum = sum * r + 1.0;
    const uint64_t exponent = pe_f64_bits(shifted) << 52;
    return sum * pe_f64_from_bits(exponent + 0x3ff0000000000000u);
}

/* x normal and positive.  x = 2^e m with m in [0.7072, 1.4143); z = (m - 1) / (m + 1),
 * |z| < 0.1716; ln m = 2 z sum z^2k / (2k + 1), whose terms past k = 10 are below 2^-60. */
static inline double pe_real_ln(double x)
{
    const uint64_t bits = pe_f64_bits(x);
    const uint64_t offset = bits - 0x3fe6a09e00000000u; /* m starts at about 1/sqrt 2 */
    const uint64_t e = (offset >> 52) - (offset >> 63 << 12); /* modulo 2^64 */
    const double m = pe_f64_from_bits(bits - (e << 52));
    const double z = (m - 1) / (m + 1), s = z * z;
    double sum = 1.0 / 21;
    sum = sum * s + 1.0 / 19;
    sum = sum * s + 1.0 / 17;
    sum = sum * s + 1.0 / 15;
    sum = sum * s + 1.0 / 13;
    sum = sum * s + 1.0 / 11;
    sum = sum * s + 1.0 / 9;
    sum = sum * s + 1.0 / 7;
    sum = sum * s + 1.0 / 5;
    sum = sum * s + 1.0 / 3;
    sum = sum * s + 1.0;
    /* e as a double, without an instruction that vectors lack. */
    const double exponent = pe_f64_from_bits(0x4338000000000000u + e) - 0x1.8p52;
    return exponent * 0x1.62e42feep-1 +
           (2 * z * sum + exponent * 0x1.a39ef35793c76p-33);
}

/* ln(1 + x), x >= 0, with full relative precision near 0: the quotient gives back what
 * the sum lost, which is all of x when u is 1. */
static inline double pe_real_ln1p(double x)
{
    const double u = 1 + x;
    return pe_real_ln(u) + (x - (u - 1)) / u;
}

#endif /* PE_BIAS_REAL_H */
