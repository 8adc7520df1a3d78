/* SPDX-License-Identifier: MIT
 *
 * sincos.h - cosine and sine of a phase, in double, and when their rounding is certain
 *
 * A phase is a number of turns modulo one in 96-bit fixed point: hi in units of 2^-64
 * turn, lo in units of 2^-96.  x = 4 * phase modulo one turn, read as signed, is the
 * distance to the nearest quarter turn: no range reduction, no compare.  Then two
 * polynomials on |x| <= 1/8 turn (tools/sincos_coefficients.py; x counts 2^-66 turns):
 *     sin  degree 13, relative error 2^-54.2
 *     cos  degree 12, absolute error 2^-54.0
 * and the quadrant swaps and negates.  With roundings, the result is within 2^-50.7 of
 * the true value, relative, and times factor within PE_SINCOS_MARGIN units of its last
 * place; docs/numerics.md has the count. */
#ifndef PE_SINCOS_H
#define PE_SINCOS_H

#include "base/dtype.h"
#include "kernels/unroll.h"

/* Minimax coefficients in powers of x: sin = x S(x^2), cos = 1 + x^2 C(x^2). */
#define PE_SIN_0 0x1.921fb54442d18p-64
#define PE_SIN_1 -0x1.4abbce625bdaep-193
#define PE_SIN_2 0x1.466bc6774afcep-324
#define PE_SIN_3 -0x1.32d2ccd46a5cep-456
#define PE_SIN_4 0x1.507821d514078p-589
#define PE_SIN_5 -0x1.e2f3f44bbf9bfp-723
#define PE_SIN_6 0x1.dfc94e94d144ep-857
#define PE_COS_0 -0x1.3bd3cc9be45a5p-128
#define PE_COS_1 0x1.03c1f081b14e9p-258
#define PE_COS_2 -0x1.55d3c7dcb891ep-390
#define PE_COS_3 0x1.e1f4fbfe5052fp-523
#define PE_COS_4 -0x1.a6ca018c8f440p-656
#define PE_COS_5 0x1.f3ef91cfc2882p-790

/* For table_quick.inc, x in quarters of a turn, |x| <= 1/2: sin of degree 11, relative
 * error 2^-47.3; cos of degree 10, absolute error 2^-43.8. */
#define PE_QUARTER_SIN_0 0x1.921fb54442cf8p+0
#define PE_QUARTER_SIN_1 -0x1.4abbce62576f5p-1
#define PE_QUARTER_SIN_2 0x1.466bc670ef219p-4
#define PE_QUARTER_SIN_3 -0x1.32d2c61fe534ap-8
#define PE_QUARTER_SIN_4 0x1.5071bb164b32dp-13
#define PE_QUARTER_SIN_5 -0x1.dd4de66f53eb2p-19
#define PE_QUARTER_COS_0 -0x1.3bd3cc9bd806fp+0
#define PE_QUARTER_COS_1 0x1.03c1f076c56f2p-2
#define PE_QUARTER_COS_2 -0x1.55d3bb4b0074fp-6
#define PE_QUARTER_COS_3 0x1.e1e85be67b271p-11
#define PE_QUARTER_COS_4 -0x1.a1084ebba0a4cp-16

/* And x in sixteenths, |x| <= 1/2: degree 7, 2^-44.2; degree 6, 2^-40.8. */
#define PE_SIXTEENTH_SIN_0 0x1.921fb54442bc7p-2
#define PE_SIXTEENTH_SIN_1 -0x1.4abbce610b118p-7
#define PE_SIXTEENTH_SIN_2 0x1.466bb9519eb00p-14
#define PE_SIXTEENTH_SIN_3 -0x1.327eb0bf9a800p-22
#define PE_SIXTEENTH_COS_0 -0x1.3bd3cc992194bp-4
#define PE_SIXTEENTH_COS_1 0x1.03c1dfbfa214dp-10
#define PE_SIXTEENTH_COS_2 -0x1.55601e68aaa8fp-18

/* cos of the sixteenths themselves. */
#define PE_COS_1_16 0x1.d906bcf328d46p-1
#define PE_COS_2_16 0x1.6a09e667f3bcdp-1
#define PE_COS_3_16 0x1.87de2a6aea963p-2

/* Units in the last place of a double that factor * cos may be off by: 2^-50 relative
 * is at most 8; doubled for the phase's own share. */
#define PE_SINCOS_MARGIN 16

/* A phase's own error, in units of 2^-66 turn, must stay below |x| 2^-51, or the entry
 * is unsure.  Turns err by at most 2^-97 a token: |x| >= |position| 2^20 suffices. */
#define PE_SINCOS_UNSURE_PER_TOKEN 0x1p20

static inline double pe_mul_rounded(double a, double b)
{
    double r = a * b;
    PE_KEEP(r);
    return r;
}

/* Returns |x|, the distance to the nearest quarter turn in units of 2^-66 turn.
 * Even and odd coefficients run as separate Horner chains in w = z^2: 10-15% faster than
 * one chain per function. */
static inline double pe_sincos_f64(uint64_t hi, uint64_t lo, double *cosine,
                                   double *sine)
{
    const int64_t quarter = (int64_t)(hi << 2 | lo >> 30);
    const double x = (double)quarter + (double)(lo << 2 & 0xffffffffu) * 0x1p-32;
    const double z = pe_mul_rounded(x, x), w = pe_mul_rounded(z, z);
    double se = pe_mul_rounded(PE_SIN_6, w) + PE_SIN_4;
    double so = pe_mul_rounded(PE_SIN_5, w) + PE_SIN_3;
    se = pe_mul_rounded(se, w) + PE_SIN_2;
    so = pe_mul_rounded(so, w) + PE_SIN_1;
    se = pe_mul_rounded(se, w) + PE_SIN_0;
    const double s = pe_mul_rounded(se + pe_mul_rounded(so, z), x);
    double ce = pe_mul_rounded(PE_COS_5, w) + PE_COS_3;
    double co = pe_mul_rounded(PE_COS_4, w) + PE_COS_2;
    ce = pe_mul_rounded(ce, w) + PE_COS_1;
    co = pe_mul_rounded(co, w) + PE_COS_0;
    const double c = (pe_mul_rounded(co, z) + 1.0) + pe_mul_rounded(ce, w);

    /* b = phase + 1/8 turn: bit 62 says swap, bit 63 negates sin, bit 63 of b + 1/4 turn
     * negates cos.  No branch: the quadrant is random. */
    const uint64_t sign = (uint64_t)1 << 63, eighth = (uint64_t)1 << 61;
    const uint64_t b = hi + eighth, u = pe_f64_bits(s), v = pe_f64_bits(c);
    const uint64_t swap = (u ^ v) & (0 - (b >> 62 & 1));
    *sine = pe_f64_from_bits(u ^ swap ^ (b & sign));
    *cosine = pe_f64_from_bits(v ^ swap ^ ((b + 2 * eighth) & sign));
    return x < 0 ? -x : x;
}

/* 1: v may lie on either side of the middle between two floats. */
static inline int pe_rounding_unsure(double v)
{
    const uint32_t tail = (uint32_t)pe_f64_bits(v) & 0x1fffffffu;
    return tail - (0x10000000u - PE_SINCOS_MARGIN) <= 2 * PE_SINCOS_MARGIN;
}

/* factor * cos and sin of a phase, rounded to float; distance is the |x| under which the
 * phase itself is not precise enough.  Returns 1 if a rounding is unsure. */
static inline int pe_sincos_f32(uint64_t hi, uint64_t lo, double factor,
                                double distance, float *cosine, float *sine)
{
    double c, s;
    const double x = pe_sincos_f64(hi, lo, &c, &s);
    c = pe_mul_rounded(c, factor);
    s = pe_mul_rounded(s, factor);
    *cosine = (float)c;
    *sine = (float)s;
    return x < distance || pe_rounding_unsure(c) || pe_rounding_unsure(s);
}

/* position * (hi + lo 2^-32) modulo one turn, exact for every int64: with position =
 * 2^32 a + b, b unsigned, the product of b and lo is the only one with a fraction. */
static inline void pe_phase(int64_t position, uint64_t hi, uint64_t lo,
                            uint64_t *phase_hi, uint64_t *phase_lo)
{
    const uint64_t p = (uint64_t)position;
    const uint64_t upper = p >> 32 | (position < 0 ? (uint64_t)0xffffffff << 32 : 0);
    const uint64_t low = (p & 0xffffffffu) * lo;
    *phase_hi = p * hi + upper * lo + (low >> 32);
    *phase_lo = low & 0xffffffffu;
}

/* |position| as a double, for PE_SINCOS_UNSURE_PER_TOKEN. */
static inline double pe_position_size(int64_t position)
{
    const double p = (double)position;
    return p < 0 ? -p : p;
}

#if defined(__GNUC__)
#  define ALWAYS_INLINE __attribute__((always_inline))
#  define NEVER_INLINE  __attribute__((noinline))
#else
#  define ALWAYS_INLINE
#  define NEVER_INLINE
#endif

#endif /* PE_SINCOS_H */
