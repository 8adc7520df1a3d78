/* SPDX-License-Identifier: MIT
 *
 * int8.h - symmetric int8 with a scale to each group: the numbers that every loop shares
 *
 * A value is its int8 times the scale of its group.  Plain C here; kernels/int8.inc gives
 * the same bits in vectors. */
#ifndef PE_INT8_H
#define PE_INT8_H

#include "base/dtype.h"

#include <float.h>

/* How a group is stored: x becomes x * lift * steps, rounded to nearest even. */
typedef struct {
    float scale, lift, steps;
} pe_i8_steps;

/* top: the largest magnitude of the group, NaN if one is NaN; it becomes 127.  A group
 * that holds a NaN or an infinity cannot be told in int8: its scale becomes NaN, so that
 * every value of it reads back as NaN. */
static inline pe_i8_steps pe_i8_steps_of(float top)
{
    pe_i8_steps s = {pe_f32_from_bits(0x7fc00000u), 1, 0};
    if (!(top <= FLT_MAX))
        return s;
    s.scale = top / 127;
    /* Among subnormals the quotient may round to far less, which 127 would not reach. */
    if (s.scale < FLT_MIN && s.scale * 127 < top)
        s.scale = pe_f32_from_bits(pe_f32_bits(s.scale) + 1);
    /* The reciprocal of a subnormal scale overflows; bring both into range. */
    s.lift = s.scale < 0x1p-100f ? 0x1p100f : 1;
    s.steps = s.scale > 0 ? 1 / (s.scale * s.lift) : 0;
    return s;
}

/* The largest magnitude of n values; NaN if one is NaN. */
static inline float pe_i8_top(const float *x, int64_t n)
{
    uint32_t top = 0; /* magnitudes compare as integers, NaNs above all */
    for (int64_t i = 0; i < n; i++) {
        const uint32_t magnitude = pe_f32_bits(x[i]) & 0x7fffffffu;
        top = magnitude > top ? magnitude : top;
    }
    return pe_f32_from_bits(top);
}

/* count values, whole groups, and their scales. */
static inline void pe_i8_store(const float *x, int64_t group, int8_t *out,
                               float *scales, int64_t count)
{
    const float rounder =
        0x1.8p23f; /* adding it rounds to whole numbers, ties to even */
    for (int64_t g = 0; g < count; g += group) {
        const pe_i8_steps s = pe_i8_steps_of(pe_i8_top(x + g, group));
        scales[g / group] = s.scale;
        for (int64_t i = g; i < g + group; i++) {
            const float v = s.scale > 0 ? x[i] * s.lift * s.steps : 0;
            out[i] = (int8_t)(pe_f32_bits(v + rounder) - pe_f32_bits(rounder));
        }
    }
}

static inline void pe_i8_load(const int8_t *x, const float *scales, int64_t group,
                              float *out, int64_t count)
{
    for (int64_t g = 0; g < count; g += group)
        for (int64_t i = g; i < g + group; i++)
            out[i] = (float)x[i] * scales[g / group];
}

#endif /* PE_INT8_H */
