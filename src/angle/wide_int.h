/* SPDX-License-Identifier: MIT
 *
 * wide_int.h - 128-bit integers from 64-bit ones
 *
 * Written without __int128, which is an extension and is missing on 32-bit targets; this
 * runs at plan time only. */
#ifndef PE_WIDE_INT_H
#define PE_WIDE_INT_H

#include <stdint.h>

typedef struct {
    uint64_t hi, lo;
} pe_u128;

static inline pe_u128 pe_add128(pe_u128 a, pe_u128 b)
{
    pe_u128 r = {a.hi + b.hi, a.lo + b.lo};
    r.hi += r.lo < a.lo;
    return r;
}

static inline pe_u128 pe_sub128(pe_u128 a, pe_u128 b)
{
    return (pe_u128){a.hi - b.hi - (a.lo < b.lo), a.lo - b.lo};
}

static inline int pe_less128(pe_u128 a, pe_u128 b)
{
    return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
}

static inline int pe_clz64(uint64_t x) /* x is not 0 */
{
    int n = 0;
    for (int step = 32; step != 0; step >>= 1)
        if (!(x >> (64 - step))) {
            n += step;
            x <<= step;
        }
    return n;
}

static inline pe_u128 pe_mul64(uint64_t a, uint64_t b)
{
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0;
    const uint64_t middle = (p00 >> 32) + (uint32_t)p01 + (uint32_t)p10;
    return (pe_u128){a1 * b1 + (p01 >> 32) + (p10 >> 32) + (middle >> 32),
                     middle << 32 | (uint32_t)p00};
}

/* All 256 bits of a * b, most significant word first. */
static inline void pe_mul128(pe_u128 a, pe_u128 b, uint64_t r[4])
{
    const pe_u128 ll = pe_mul64(a.lo, b.lo), lh = pe_mul64(a.lo, b.hi);
    const pe_u128 hl = pe_mul64(a.hi, b.lo), hh = pe_mul64(a.hi, b.hi);
    pe_u128 middle = pe_add128((pe_u128){0, ll.hi}, (pe_u128){0, lh.lo});
    middle = pe_add128(middle, (pe_u128){0, hl.lo});
    pe_u128 top = pe_add128(hh, (pe_u128){0, lh.hi});
    top = pe_add128(top, (pe_u128){0, hl.hi});
    top = pe_add128(top, (pe_u128){0, middle.hi});
    r[0] = top.hi;
    r[1] = top.lo;
    r[2] = middle.lo;
    r[3] = ll.lo;
}

/* The high half of a * b, truncated. */
static inline pe_u128 pe_mulhi128(pe_u128 a, pe_u128 b)
{
    uint64_t r[4];
    pe_mul128(a, b, r);
    return (pe_u128){r[0], r[1]};
}

/* a / k, truncated. */
static inline pe_u128 pe_div128_small(pe_u128 a, uint32_t k)
{
    const uint64_t limbs[4] = {a.hi >> 32, (uint32_t)a.hi, a.lo >> 32, (uint32_t)a.lo};
    uint64_t q[4], rest = 0;
    for (int i = 0; i < 4; i++) {
        const uint64_t v = rest << 32 | limbs[i];
        q[i] = v / k;
        rest = v % k;
    }
    return (pe_u128){q[0] << 32 | q[1], q[2] << 32 | q[3]};
}

static inline pe_u128 pe_shr128(pe_u128 a, int shift) /* shift >= 0 */
{
    if (shift >= 128)
        return (pe_u128){0, 0};
    if (shift >= 64)
        return (pe_u128){0, a.hi >> (shift - 64)};
    if (shift == 0)
        return a;
    return (pe_u128){a.hi >> shift, a.lo >> shift | a.hi << (64 - shift)};
}

#endif /* PE_WIDE_INT_H */
