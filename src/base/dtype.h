/* SPDX-License-Identifier: MIT
 *
 * dtype.h - f16 and bf16 as bits, converted with integers alone
 *
 * Every store rounds to nearest even; subnormals are kept; a NaN stays a NaN with its
 * sign and the high bits of its payload, made quiet.  The same bits on every machine,
 * whatever its flush-to-zero mode. */
#ifndef PE_DTYPE_H
#define PE_DTYPE_H

#include "base/base.h"

#include <string.h>

static inline uint32_t pe_f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float pe_f32_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t pe_f64_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double pe_f64_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float pe_bf16_to_f32(uint16_t h)
{
    return pe_f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t pe_bf16_from_f32(float x)
{
    const uint32_t bits = pe_f32_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float pe_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exponent = h >> 10 & 0x1fu;
    uint32_t mantissa = h & 0x3ffu;
    if (exponent == 31)
        return pe_f32_from_bits(sign | 0x7f800000u | (mantissa ? 0x400000u : 0) |
                                mantissa << 13);
    if (exponent != 0)
        return pe_f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    if (mantissa == 0)
        return pe_f32_from_bits(sign);
    uint32_t e = 113;
    for (; !(mantissa & 0x400u); mantissa <<= 1)
        e--;
    return pe_f32_from_bits(sign | e << 23 | (mantissa & 0x3ffu) << 13);
}

static inline uint16_t pe_f16_from_f32(float x)
{
    const uint32_t bits = pe_f32_bits(x);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
    if (magnitude >= 0x47800000u) /* 2^16 and up, infinity too */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude >= 0x38800000u) { /* normal in f16: rounding may carry to infinity */
        const uint32_t rebased = magnitude - (112u << 23);
        return (uint16_t)(sign | (rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13);
    }
    if (magnitude < 0x33000000u) /* under half the smallest subnormal, 2^-25 */
        return (uint16_t)sign;
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t shift = 126u - (magnitude >> 23); /* 14 .. 24 */
    const uint32_t kept = mantissa >> shift;
    const uint32_t rest = mantissa & ((1u << shift) - 1);
    const uint32_t half = 1u << (shift - 1);
    return (uint16_t)(sign | (kept + (rest > half || (rest == half && (kept & 1u)))));
}

/* Bytes of one element; 0 for PE_CODED, whose blocks the codec sizes, and for a number
 * that is no dtype. */
static inline int64_t pe_dtype_size(pe_dtype dtype)
{
    switch (dtype) {
    case PE_F32:
        return 4;
    case PE_F16:
    case PE_BF16:
        return 2;
    case PE_I8:
        return 1;
    default:
        return 0;
    }
}

#endif /* PE_DTYPE_H */
