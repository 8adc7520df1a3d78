/* SPDX-License-Identifier: MIT
 *
 * attention_scalar.c - attention's inner loops in plain C, one lane at a time
 */
#include "base/dtype.h"

enum { VLEN = 1, TILE_ROWS = 4, TILE_VECTORS = 4, STREAM_TILE = 2 };

typedef float vf;

static inline vf vf_load_f32(const float *p)
{
    return *p;
}

static inline void vf_store_f32(float *p, vf a)
{
    *p = a;
}

static inline vf vf_zero(void)
{
    return 0;
}

static inline vf vf_set1(float a)
{
    return a;
}

static inline vf vf_iota(void)
{
    return 0;
}

static inline vf vf_add(vf a, vf b)
{
    return a + b;
}

static inline vf vf_sub(vf a, vf b)
{
    return a - b;
}

static inline vf vf_mul(vf a, vf b)
{
    return a * b;
}

static inline vf vf_div(vf a, vf b)
{
    return a / b;
}

static inline vf vf_fma(vf a, vf b, vf c)
{
    return a * b + c;
}

static inline vf vf_fnma(vf a, vf b, vf c)
{
    return c - a * b;
}

static inline vf vf_max(vf a, vf b)
{
    return a > b ? a : b;
}

static inline vf vf_abs(vf a)
{
    return pe_f32_from_bits(pe_f32_bits(a) & 0x7fffffffu);
}

/* a > b ? x : y */
static inline vf vf_select_gt(vf a, vf b, vf x, vf y)
{
    return a > b ? x : y;
}

/* 2^n for t = 0x1.8p23 + n, n in [-126, 127]. */
static inline vf vf_pow2(vf t)
{
    return pe_f32_from_bits((pe_f32_bits(t) << 23) + 0x3f800000u);
}

static inline int vf_any_gt(vf a, vf b)
{
    return a > b;
}

static inline float vf_total(vf a)
{
    return a;
}

static inline float vf_maximum(vf a)
{
    return a;
}

static inline void vf_total4(vf a, vf b, vf c, vf d, float *out)
{
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

static inline void vf_zip(vf a, vf b, vf *low, vf *high)
{
    *low = a;
    *high = b;
}

static inline vf vf_load_f16(const uint16_t *p)
{
    return pe_f16_to_f32(*p);
}

static inline vf vf_load_bf16(const uint16_t *p)
{
    return pe_bf16_to_f32(*p);
}

static inline vf vf_load_i8(const int8_t *p)
{
    return (float)*p;
}

#include "kernels/attention.inc"

const pe_attention_kernels pe_attention_kernels_scalar =
    PE_ATTENTION_TABLE(PE_ISA_SCALAR);
