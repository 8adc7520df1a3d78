/* SPDX-License-Identifier: MIT
 *
 * vec_wasm128.h - the vector vocabulary in WebAssembly SIMD128
 *
 * Without fused multiply-add, and without conversions of half floats, which go one by
 * one through dtype.h. */
#ifndef PE_VEC_WASM128_H
#define PE_VEC_WASM128_H

#include "base/dtype.h"
#include "kernels/vec_pairs.h"

#include <wasm_simd128.h>

enum { VLEN = 4, DLEN = 2 };
typedef v128_t vf;
typedef v128_t vd;
typedef v128_t vu;

/* ------------------------------------------------------------------- floats --- */

static inline vf vf_zero(void)
{
    return wasm_f32x4_splat(0);
}
static inline vf vf_set1(float x)
{
    return wasm_f32x4_splat(x);
}
static inline vf vf_add(vf a, vf b)
{
    return wasm_f32x4_add(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return wasm_f32x4_sub(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return wasm_f32x4_mul(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return vf_add(vf_mul(a, b), c);
}
static inline vf vf_fnma(vf a, vf b, vf c)
{
    return vf_sub(c, vf_mul(a, b));
}

static inline vf vf_load_f32(const float *p)
{
    return wasm_v128_load(p);
}
static inline void vf_store_f32(float *p, vf v)
{
    wasm_v128_store(p, v);
}
static inline vf vf_load_part_f32(const float *p, int64_t count)
{
    float lanes[VLEN] = {0};
    memcpy(lanes, p, (size_t)(count < VLEN ? count : VLEN) * sizeof *p);
    return wasm_v128_load(lanes);
}
static inline void vf_store_part_f32(float *p, vf v, int64_t count)
{
    float lanes[VLEN];
    wasm_v128_store(lanes, v);
    memcpy(p, lanes, (size_t)(count < VLEN ? count : VLEN) * sizeof *p);
}

static inline vf vf_load_part_f16(const uint16_t *p, int64_t count)
{
    float lanes[VLEN] = {0};
    for (int64_t i = 0; i < count && i < VLEN; i++)
        lanes[i] = pe_f16_to_f32(p[i]);
    return wasm_v128_load(lanes);
}
static inline void vf_store_part_f16(uint16_t *p, vf v, int64_t count)
{
    float lanes[VLEN];
    wasm_v128_store(lanes, v);
    for (int64_t i = 0; i < count && i < VLEN; i++)
        p[i] = pe_f16_from_f32(lanes[i]);
}
static inline vf vf_load_f16(const uint16_t *p)
{
    return vf_load_part_f16(p, VLEN);
}
static inline void vf_store_f16(uint16_t *p, vf v)
{
    vf_store_part_f16(p, v, VLEN);
}

static inline vf vf_load_bf16(const uint16_t *p)
{
    return wasm_i32x4_shl(wasm_u32x4_load16x4(p), 16);
}
/* The high words of the rounded lanes, each in 32 bits. */
static inline v128_t vf_to_bf16(vf v)
{
    const v128_t odd = wasm_v128_and(wasm_u32x4_shr(v, 16), wasm_i32x4_splat(1));
    const v128_t rounded =
        wasm_i32x4_add(v, wasm_i32x4_add(wasm_i32x4_splat(0x7fff), odd));
    const v128_t quiet = wasm_v128_or(v, wasm_i32x4_splat(0x400000));
    return wasm_u32x4_shr(wasm_v128_bitselect(rounded, quiet, wasm_f32x4_eq(v, v)), 16);
}
static inline void vf_store_bf16(uint16_t *p, vf v)
{
    const v128_t high = vf_to_bf16(v);
    const v128_t packed = wasm_u16x8_narrow_i32x4(high, high);
    wasm_v128_store64_lane(p, packed, 0);
}
static inline vf vf_load_part_bf16(const uint16_t *p, int64_t count)
{
    uint16_t lanes[VLEN] = {0};
    memcpy(lanes, p, (size_t)(count < VLEN ? count : VLEN) * sizeof *p);
    return vf_load_bf16(lanes);
}
static inline void vf_store_part_bf16(uint16_t *p, vf v, int64_t count)
{
    uint16_t lanes[VLEN];
    vf_store_bf16(lanes, v);
    memcpy(p, lanes, (size_t)(count < VLEN ? count : VLEN) * sizeof *p);
}

/* int8; stores round to nearest even and take nothing beyond 127. */
static inline vf vf_load_i8(const int8_t *p)
{
    const v128_t bytes = wasm_v128_load32_zero(p);
    return wasm_f32x4_convert_i32x4(
        wasm_i32x4_extend_low_i16x8(wasm_i16x8_extend_low_i8x16(bytes)));
}
static inline v128_t vf_to_words(vf a, vf b)
{
    return wasm_i16x8_narrow_i32x4(wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(a)),
                                   wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(b)));
}
static inline void vf_store_i8(int8_t *p, vf v)
{
    const v128_t words = vf_to_words(v, v);
    wasm_v128_store32_lane(p, wasm_i8x16_narrow_i16x8(words, words), 0);
}
/* The lanes of four. */
static inline void vf_store4_i8(int8_t *p, vf a, vf b, vf c, vf d)
{
    wasm_v128_store(p, wasm_i8x16_narrow_i16x8(vf_to_words(a, b), vf_to_words(c, d)));
}
static inline vf vf_load_part_i8(const int8_t *p, int64_t count)
{
    int8_t lanes[VLEN] = {0};
    memcpy(lanes, p, (size_t)(count < VLEN ? count : VLEN));
    return vf_load_i8(lanes);
}
static inline void vf_store_part_i8(int8_t *p, vf v, int64_t count)
{
    int8_t lanes[VLEN];
    vf_store_i8(lanes, v);
    memcpy(p, lanes, (size_t)(count < VLEN ? count : VLEN));
}

/* The larger magnitude, lane by lane, as integers: a NaN is above all. */
static inline vf vf_max_magnitude(vf top, vf v)
{
    return wasm_u32x4_max(top, wasm_v128_and(v, wasm_i32x4_splat(0x7fffffff)));
}
static inline float vf_top_magnitude(vf top)
{
    const v128_t half = wasm_u32x4_max(top, wasm_i32x4_shuffle(top, top, 2, 3, 0, 1));
    return wasm_f32x4_extract_lane(
        wasm_u32x4_max(half, wasm_i32x4_shuffle(half, half, 1, 0, 3, 2)), 0);
}

#define VF_KEEP(v) ((void)(v))

/* Of perhaps 16 registers; see rotate.inc and vec_avx512.h. */
#define VF_GROUP 2
#define VF_WHOLE 4

/* b0 a0 b1 a1 ..., where rotate.inc does without vf_unzip. */
#define vf_swap_pairs(v) wasm_i32x4_shuffle(v, v, 1, 0, 3, 2)

/* lo hi = a0 b0 a1 b1 ... */
static inline void vf_unzip(vf lo, vf hi, vf *a, vf *b)
{
    *a = wasm_i32x4_shuffle(lo, hi, 0, 2, 4, 6);
    *b = wasm_i32x4_shuffle(lo, hi, 1, 3, 5, 7);
}
static inline void vf_zip(vf a, vf b, vf *lo, vf *hi)
{
    *lo = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5);
    *hi = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7);
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
    return wasm_f64x2_splat(x);
}
static inline vd vd_add(vd a, vd b)
{
    return wasm_f64x2_add(a, b);
}
static inline vd vd_sub(vd a, vd b)
{
    return wasm_f64x2_sub(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return wasm_f64x2_mul(a, b);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return vd_add(vd_mul(a, b), c);
}
static inline vd vd_fnma(vd a, vd b, vd c)
{
    return wasm_f64x2_sub(c, vd_mul(a, b));
}
static inline vd vd_abs(vd a)
{
    return wasm_f64x2_abs(a);
}
static inline vd vd_min(vd a, vd b)
{
    return wasm_f64x2_pmin(a, b);
}
static inline int vd_any_less(vd a, vd b)
{
    return wasm_v128_any_true(wasm_f64x2_lt(a, b));
}
/* The smaller of a, not negative, and |b|. */
static inline vd vd_min_magnitude(vd a, vd b)
{
    return vd_min(a, vd_abs(b));
}

/* Whether a float is undecided: some lane of c or s lies within margin units in the last
 * place, a power of two, of the middle between two floats. */
typedef v128_t vt; /* zero in some lane */
static inline vt vt_none(void)
{
    return wasm_i32x4_splat(-1);
}
static inline vt vt_note(vt ties, vd c, vd s, int margin)
{
    const v128_t low = wasm_i32x4_shuffle(c, s, 0, 2, 4, 6);
    const v128_t shifted = wasm_i32x4_add(low, wasm_i32x4_splat(margin + 0x10000000));
    return wasm_u32x4_min(
        ties, wasm_v128_and(shifted, wasm_i32x4_splat(0x20000000 - 2 * margin)));
}
static inline int vt_any(vt ties)
{
    return !wasm_i32x4_all_true(ties);
}
static inline vd vd_load_f32(const float *p)
{
    return wasm_f64x2_promote_low_f32x4(wasm_v128_load64_zero(p));
}
static inline void vd_store_f32(float *p, vd v)
{
    wasm_v128_store64_lane(p, wasm_f32x4_demote_f64x2_zero(v), 0);
}

static inline vu vu_set1(uint64_t x)
{
    return wasm_i64x2_splat((int64_t)x);
}
static inline vu vu_load(const uint64_t *p)
{
    return wasm_v128_load(p);
}
static inline vu vu_add(vu a, vu b)
{
    return wasm_i64x2_add(a, b);
}
static inline vu vu_and(vu a, vu b)
{
    return wasm_v128_and(a, b);
}
static inline vu vu_mullo(vu a, vu b)
{
    return wasm_i64x2_mul(a, b);
}
static inline vu vu_mul32(vu a, vu b) /* operands below 2^32 */
{
    return wasm_i64x2_mul(a, b);
}
#define vu_shl(a, count) wasm_i64x2_shl(a, count)
#define vu_shr(a, count) wasm_u64x2_shr(a, count)

/* 4 (hi + lo 2^-32) modulo 2^64, signed: x of sincos.h.  lo < 2^32.  Without a
 * conversion from 64-bit integers: see vec_avx2.h. */
static inline vd vu_signed_quarter(vu hi, vu lo)
{
    const vu shifted = wasm_i64x2_shl(hi, 2);
    const vd low = wasm_v128_or(wasm_v128_and(shifted, wasm_i64x2_splat(0xffffffff)),
                                wasm_i64x2_splat(0x4330000000000000));
    const vd high = wasm_v128_xor(wasm_u64x2_shr(shifted, 32),
                                  wasm_i64x2_splat(0x4530000080000000));
    const vd below = wasm_v128_or(lo, wasm_i64x2_splat(0x4150000000000000));
    const vd whole =
        vd_add(wasm_f64x2_sub(high, wasm_f64x2_splat(0x1.00000801p84)), low);
    return vd_add(whole, wasm_f64x2_sub(below, wasm_f64x2_splat(0x1p22)));
}

/* Swaps and negates by quadrant (sincos.h). */
static inline void vd_quadrants(vu hi, vd c, vd s, vd *cosine, vd *sine)
{
    const vd top = wasm_f64x2_splat(-0.0);
    const vu b = vu_add(hi, vu_set1((uint64_t)1 << 61));
    const vu swap = wasm_i64x2_shr(wasm_i64x2_shl(b, 1), 63);
    const vu cos_sign = vu_add(b, vu_set1((uint64_t)1 << 62));
    *sine = wasm_v128_xor(wasm_v128_bitselect(c, s, swap), wasm_v128_and(b, top));
    *cosine =
        wasm_v128_xor(wasm_v128_bitselect(s, c, swap), wasm_v128_and(cos_sign, top));
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

static inline vd vd_load(const double *p)
{
    return wasm_v128_load(p);
}
static inline void vd_store(double *p, vd v)
{
    wasm_v128_store(p, v);
}
static inline void vf_widen(vf v, vd *d)
{
    d[0] = wasm_f64x2_promote_low_f32x4(v);
    d[1] = wasm_f64x2_promote_low_f32x4(wasm_i32x4_shuffle(v, v, 2, 3, 2, 3));
}
static inline vf vf_narrow(const vd *d)
{
    return wasm_i32x4_shuffle(wasm_f32x4_demote_f64x2_zero(d[0]),
                              wasm_f32x4_demote_f64x2_zero(d[1]), 0, 1, 4, 5);
}

/* p[i] - q, at most 2^53 in size.  In two words, as vu_signed_quarter. */
static inline vd vd_from_distance(const int64_t *p, int64_t q)
{
    const v128_t x = wasm_i64x2_sub(wasm_v128_load(p), wasm_i64x2_splat(q));
    const v128_t low = wasm_v128_or(wasm_v128_and(x, wasm_i64x2_splat(0xffffffff)),
                                    wasm_i64x2_splat(0x4330000000000000));
    const v128_t high =
        wasm_v128_xor(wasm_u64x2_shr(x, 32), wasm_i64x2_splat(0x4530000080000000));
    return vd_add(vd_sub(high, wasm_f64x2_splat(0x1.00000801p84)), low);
}

#endif /* PE_VEC_WASM128_H */
