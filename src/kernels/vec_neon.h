/* SPDX-License-Identifier: MIT
 *
 * vec_neon.h - the vector vocabulary in AArch64 Advanced SIMD
 *
 * Every AArch64 CPU has it, with FMA and the conversions of half floats. */
#ifndef PE_VEC_NEON_H
#define PE_VEC_NEON_H

#include "base/dtype.h"
#include "kernels/vec_pairs.h"

#include <arm_neon.h>

enum { VLEN = 4, DLEN = 2 };
typedef float32x4_t vf;
typedef float64x2_t vd;
typedef uint64x2_t vu;

/* ------------------------------------------------------------------- floats --- */

static inline vf vf_zero(void)
{
    return vdupq_n_f32(0);
}
static inline vf vf_set1(float x)
{
    return vdupq_n_f32(x);
}
static inline vf vf_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return vsubq_f32(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}
static inline vf vf_fnma(vf a, vf b, vf c)
{
    return vfmsq_f32(c, a, b);
}

static inline vf vf_load_f32(const float *p)
{
    return vld1q_f32(p);
}
static inline void vf_store_f32(float *p, vf v)
{
    vst1q_f32(p, v);
}
static inline vf vf_load_part_f32(const float *p, int64_t count)
{
    float lanes[VLEN] = {0};
    memcpy(lanes, p, (size_t)(count < VLEN ? count : VLEN) * sizeof *p);
    return vld1q_f32(lanes);
}
static inline void vf_store_part_f32(float *p, vf v, int64_t count)
{
    float lanes[VLEN];
    vst1q_f32(lanes, v);
    memcpy(p, lanes, (size_t)(count < VLEN ? count : VLEN) * sizeof *p);
}

static inline uint16x4_t load_part_16(const uint16_t *p, int64_t count)
{
    uint16_t lanes[VLEN] = {0};
    memcpy(lanes, p, (size_t)(count < VLEN ? count : VLEN) * sizeof *p);
    return vld1_u16(lanes);
}
static inline void store_part_16(uint16_t *p, uint16x4_t v, int64_t count)
{
    uint16_t lanes[VLEN];
    vst1_u16(lanes, v);
    memcpy(p, lanes, (size_t)(count < VLEN ? count : VLEN) * sizeof *p);
}

static inline vf vf_from_f16(uint16x4_t h)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(h));
}
static inline uint16x4_t vf_to_f16(vf v)
{
    return vreinterpret_u16_f16(vcvt_f16_f32(v));
}
static inline vf vf_from_bf16(uint16x4_t h)
{
    return vreinterpretq_f32_u32(vshll_n_u16(h, 16));
}
static inline uint16x4_t vf_to_bf16(vf v)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(vdupq_n_u32(0x7fff), odd));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), rounded, quiet), 16);
}

static inline vf vf_load_f16(const uint16_t *p)
{
    return vf_from_f16(vld1_u16(p));
}
static inline void vf_store_f16(uint16_t *p, vf v)
{
    vst1_u16(p, vf_to_f16(v));
}
static inline vf vf_load_part_f16(const uint16_t *p, int64_t count)
{
    return vf_from_f16(load_part_16(p, count));
}
static inline void vf_store_part_f16(uint16_t *p, vf v, int64_t count)
{
    store_part_16(p, vf_to_f16(v), count);
}
static inline vf vf_load_bf16(const uint16_t *p)
{
    return vf_from_bf16(vld1_u16(p));
}
static inline void vf_store_bf16(uint16_t *p, vf v)
{
    vst1_u16(p, vf_to_bf16(v));
}
static inline vf vf_load_part_bf16(const uint16_t *p, int64_t count)
{
    return vf_from_bf16(load_part_16(p, count));
}
static inline void vf_store_part_bf16(uint16_t *p, vf v, int64_t count)
{
    store_part_16(p, vf_to_bf16(v), count);
}

/* int8; stores round to nearest even and take nothing beyond 127. */
static inline vf vf_load_part_i8(const int8_t *p, int64_t count)
{
    int8_t lanes[8] = {0};
    memcpy(lanes, p, (size_t)(count < VLEN ? count : VLEN));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vld1_s8(lanes)))));
}
static inline void vf_store_part_i8(int8_t *p, vf v, int64_t count)
{
    int8_t lanes[8];
    const int16x4_t words = vqmovn_s32(vcvtnq_s32_f32(v));
    vst1_s8(lanes, vqmovn_s16(vcombine_s16(words, words)));
    memcpy(p, lanes, (size_t)(count < VLEN ? count : VLEN));
}
static inline vf vf_load_i8(const int8_t *p)
{
    return vf_load_part_i8(p, VLEN);
}
static inline void vf_store_i8(int8_t *p, vf v)
{
    vf_store_part_i8(p, v, VLEN);
}
/* The lanes of four. */
static inline void vf_store4_i8(int8_t *p, vf a, vf b, vf c, vf d)
{
    const int16x8_t ab =
        vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(a)), vqmovn_s32(vcvtnq_s32_f32(b)));
    const int16x8_t cd =
        vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(c)), vqmovn_s32(vcvtnq_s32_f32(d)));
    vst1q_s8(p, vcombine_s8(vqmovn_s16(ab), vqmovn_s16(cd)));
}

/* The larger magnitude, lane by lane, as integers: a NaN is above all. */
static inline vf vf_max_magnitude(vf top, vf v)
{
    return vreinterpretq_f32_u32(
        vmaxq_u32(vreinterpretq_u32_f32(top), vreinterpretq_u32_f32(vabsq_f32(v))));
}
static inline float vf_top_magnitude(vf top)
{
    return pe_f32_from_bits(vmaxvq_u32(vreinterpretq_u32_f32(top)));
}

/* Holds a value in a register: see rotate.inc. */
#define VF_KEEP(v) __asm__("" : "+w"(v))

/* Of 32 registers; see rotate.inc and vec_avx512.h. */
#define VF_HELD  8
#define VF_GROUP 4
#define VF_WHOLE 8

/* b0 a0 b1 a1 ..., where rotate.inc does without vf_unzip. */
#define vf_swap_pairs(v) vrev64q_f32(v)

/* lo hi = a0 b0 a1 b1 ... */
static inline void vf_unzip(vf lo, vf hi, vf *a, vf *b)
{
    *a = vuzp1q_f32(lo, hi);
    *b = vuzp2q_f32(lo, hi);
}
static inline void vf_zip(vf a, vf b, vf *lo, vf *hi)
{
    *lo = vzip1q_f32(a, b);
    *hi = vzip2q_f32(a, b);
}
VEC_UNZIP(vf, VLEN, float, f32)
VEC_UNZIP(vf, VLEN, uint16_t, f16)
VEC_UNZIP(vf, VLEN, uint16_t, bf16)
VEC_ZIP(vf, VLEN, float, f32)
VEC_ZIP(vf, VLEN, uint16_t, f16)
VEC_ZIP(vf, VLEN, uint16_t, bf16)

/* --------------------------------------------------- doubles and 64-bit integers --- */

static inline vd vd_set1(double x)
{
    return vdupq_n_f64(x);
}
static inline vd vd_add(vd a, vd b)
{
    return vaddq_f64(a, b);
}
static inline vd vd_sub(vd a, vd b)
{
    return vsubq_f64(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return vmulq_f64(a, b);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return vfmaq_f64(c, a, b);
}
static inline vd vd_fnma(vd a, vd b, vd c)
{
    return vfmsq_f64(c, a, b);
}
static inline vd vd_abs(vd a)
{
    return vabsq_f64(a);
}
static inline vd vd_min(vd a, vd b)
{
    return vminq_f64(a, b);
}
static inline int vd_any_less(vd a, vd b)
{
    const uint64x2_t less = vcltq_f64(a, b);
    return (vgetq_lane_u64(less, 0) | vgetq_lane_u64(less, 1)) != 0;
}
/* The smaller of a, not negative, and |b|. */
static inline vd vd_min_magnitude(vd a, vd b)
{
    return vd_min(a, vd_abs(b));
}

/* Whether a float is undecided: some lane of c or s lies within margin units in the last
 * place, a power of two, of the middle between two floats. */
typedef uint32x4_t vt; /* zero in some lane */
static inline vt vt_none(void)
{
    return vdupq_n_u32(UINT32_MAX);
}
static inline vt vt_note(vt ties, vd c, vd s, int margin)
{
    const uint32x4_t low =
        vuzp1q_u32(vreinterpretq_u32_f64(c), vreinterpretq_u32_f64(s));
    const uint32x4_t shifted =
        vaddq_u32(low, vdupq_n_u32((uint32_t)margin + 0x10000000));
    return vminq_u32(
        ties, vandq_u32(shifted, vdupq_n_u32(0x20000000 - 2 * (uint32_t)margin)));
}
static inline int vt_any(vt ties)
{
    return vminvq_u32(ties) == 0;
}
static inline vd vd_load_f32(const float *p)
{
    return vcvt_f64_f32(vld1_f32(p));
}
static inline void vd_store_f32(float *p, vd v)
{
    vst1_f32(p, vcvt_f32_f64(v));
}

#define VD_FUSED /* vd_fma rounds once */
static inline vd vd_fms(vd a, vd b, vd c)
{
    return vfmaq_f64(vnegq_f64(c), a, b);
}
static inline vd vd_load(const double *p)
{
    return vld1q_f64(p);
}
static inline void vd_store(double *p, vd v)
{
    vst1q_f64(p, v);
}
static inline vu vd_bits(vd v)
{
    return vreinterpretq_u64_f64(v);
}
/* x < 2^52 */
static inline vd vd_from_u64(vu x)
{
    return vcvtq_f64_u64(x);
}

static inline vu vu_set1(uint64_t x)
{
    return vdupq_n_u64(x);
}
static inline vu vu_load(const uint64_t *p)
{
    return vld1q_u64(p);
}
static inline vu vu_add(vu a, vu b)
{
    return vaddq_u64(a, b);
}
static inline vu vu_and(vu a, vu b)
{
    return vandq_u64(a, b);
}
static inline vu vu_mul32(vu a, vu b)
{
    return vmull_u32(vmovn_u64(a), vmovn_u64(b));
}
#define vu_shl(a, count) vshlq_n_u64(a, count)
#define vu_shr(a, count) vshrq_n_u64(a, count)
static inline vu vu_mullo(vu a, vu b)
{
    const uint32x4_t cross =
        vmulq_u32(vreinterpretq_u32_u64(a), vrev64q_u32(vreinterpretq_u32_u64(b)));
    return vmlal_u32(vshlq_n_u64(vpaddlq_u32(cross), 32), vmovn_u64(a), vmovn_u64(b));
}

/* 4 (hi + lo 2^-32) modulo 2^64, signed: x of sincos.h.  lo < 2^32. */
static inline vd vu_signed_quarter(vu hi, vu lo)
{
    return vfmaq_f64(vcvtq_f64_s64(vreinterpretq_s64_u64(vshlq_n_u64(hi, 2))),
                     vcvtq_f64_u64(lo), vdupq_n_f64(0x1p-30));
}

/* Swaps and negates by quadrant (sincos.h). */
static inline void vd_quadrants(vu hi, vd c, vd s, vd *cosine, vd *sine)
{
    const vu b = vaddq_u64(hi, vdupq_n_u64((uint64_t)1 << 61));
    const vu top = vdupq_n_u64((uint64_t)1 << 63),
             half = vdupq_n_u64((uint64_t)1 << 62);
    const vu swap = vtstq_u64(b, half);
    const vu s_bits = vreinterpretq_u64_f64(vbslq_f64(swap, c, s));
    const vu c_bits = vreinterpretq_u64_f64(vbslq_f64(swap, s, c));
    *sine = vreinterpretq_f64_u64(veorq_u64(s_bits, vandq_u64(b, top)));
    *cosine =
        vreinterpretq_f64_u64(veorq_u64(c_bits, vandq_u64(vaddq_u64(b, half), top)));
}

/* The same, rounded to float: DLEN of each. */
static inline void vd_store_quadrants(vu hi, vd c, vd s, float *cos_out, float *sin_out)
{
    vd cosine, sine;
    vd_quadrants(hi, c, s, &cosine, &sine);
    vd_store_f32(cos_out, cosine);
    vd_store_f32(sin_out, sine);
}

/* -------------------------------------------------------------------- sums --- */

static inline void vf_widen(vf v, vd *d)
{
    d[0] = vcvt_f64_f32(vget_low_f32(v));
    d[1] = vcvt_high_f64_f32(v);
}
static inline vf vf_narrow(const vd *d)
{
    return vcvt_high_f32_f64(vcvt_f32_f64(d[0]), d[1]);
}

/* p[i] - q, at most 2^53 in size. */
static inline vd vd_from_distance(const int64_t *p, int64_t q)
{
    return vcvtq_f64_s64(vsubq_s64(vld1q_s64(p), vdupq_n_s64(q)));
}

/* Twice the bits of floats less a number, modulo 2^32: zero and small floats far up. */
#define VF_FUSED /* vf_fma rounds once */
typedef uint32x4_t vw;
static inline vw vw_above(vf v, uint32_t least)
{
    return vsubq_u32(vshlq_n_u32(vreinterpretq_u32_f32(v), 1), vdupq_n_u32(least));
}
static inline vw vw_max(vw a, vw b)
{
    return vmaxq_u32(a, b);
}
static inline int vw_any_past(vw a, uint32_t most)
{
    return vmaxvq_u32(a) > most;
}

#endif /* PE_VEC_NEON_H */
