/* SPDX-License-Identifier: MIT
 *
 * vec_avx2.h - the vector vocabulary in AVX2 with FMA and F16C
 *
 * Opens a region of functions compiled for this target; vec_end.h closes it. */
#ifndef PE_VEC_AVX2_H
#define PE_VEC_AVX2_H

#include "base/dtype.h"

#include <immintrin.h>

#if defined(__clang__)
#  pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), \
                               apply_to = function)
#else
#  pragma GCC push_options
#  pragma GCC target("avx2,fma,f16c")
#endif

enum { VLEN = 8, DLEN = 4 };
typedef __m256 vf;
typedef __m256d vd;
typedef __m256i vu;

/* ------------------------------------------------------------------- floats --- */

static inline vf vf_zero(void)
{
    return _mm256_setzero_ps();
}
static inline vf vf_set1(float x)
{
    return _mm256_set1_ps(x);
}
static inline vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vf vf_fnma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

static inline __m256i first_lanes(int64_t count)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane);
}

static inline vf vf_load_f32(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline void vf_store_f32(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}
static inline vf vf_load_part_f32(const float *p, int64_t count)
{
    return count >= VLEN ? vf_load_f32(p) : _mm256_maskload_ps(p, first_lanes(count));
}
static inline void vf_store_part_f32(float *p, vf v, int64_t count)
{
    if (count >= VLEN)
        vf_store_f32(p, v);
    else
        _mm256_maskstore_ps(p, first_lanes(count), v);
}

static inline __m128i load_part_16(const uint16_t *p, int64_t count)
{
    uint16_t lanes[VLEN] = {0};
    memcpy(lanes, p, (size_t)(count < VLEN ? count : VLEN) * sizeof *p);
    return _mm_loadu_si128((const __m128i *)lanes);
}
static inline void store_part_16(uint16_t *p, __m128i v, int64_t count)
{
    uint16_t lanes[VLEN];
    _mm_storeu_si128((__m128i *)lanes, v);
    memcpy(p, lanes, (size_t)(count < VLEN ? count : VLEN) * sizeof *p);
}

static inline vf vf_from_f16(__m128i h)
{
    return _mm256_cvtph_ps(h);
}
static inline __m128i vf_to_f16(vf v)
{
    return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
}
static inline vf vf_from_bf16(__m128i h)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
static inline __m128i vf_to_bf16(vf v)
{
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(_mm256_set1_epi32(0x7fff), odd));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    const __m256i packed =
        _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0xd8);
    return _mm256_castsi256_si128(packed);
}

static inline vf vf_load_f16(const uint16_t *p)
{
    return vf_from_f16(_mm_loadu_si128((const __m128i *)p));
}
static inline void vf_store_f16(uint16_t *p, vf v)
{
    _mm_storeu_si128((__m128i *)p, vf_to_f16(v));
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
    return vf_from_bf16(_mm_loadu_si128((const __m128i *)p));
}
static inline void vf_store_bf16(uint16_t *p, vf v)
{
    _mm_storeu_si128((__m128i *)p, vf_to_bf16(v));
}
static inline vf vf_load_part_bf16(const uint16_t *p, int64_t count)
{
    return vf_from_bf16(load_part_16(p, count));
}
static inline void vf_store_part_bf16(uint16_t *p, vf v, int64_t count)
{
    store_part_16(p, vf_to_bf16(v), count);
}

/* lo hi = a0 b0 a1 b1 ... */
static inline void vf_unzip(vf lo, vf hi, vf *a, vf *b)
{
    const vd even = _mm256_castps_pd(_mm256_shuffle_ps(lo, hi, 0x88));
    const vd odd = _mm256_castps_pd(_mm256_shuffle_ps(lo, hi, 0xdd));
    *a = _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8));
    *b = _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8));
}
static inline void vf_zip(vf a, vf b, vf *lo, vf *hi)
{
    const vf x = _mm256_unpacklo_ps(a, b), y = _mm256_unpackhi_ps(a, b);
    *lo = _mm256_permute2f128_ps(x, y, 0x20);
    *hi = _mm256_permute2f128_ps(x, y, 0x31);
}

/* --------------------------------------------------- doubles and 64-bit integers --- */

static inline vd vd_set1(double x)
{
    return _mm256_set1_pd(x);
}
static inline vd vd_add(vd a, vd b)
{
    return _mm256_add_pd(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return _mm256_mul_pd(a, b);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return _mm256_fmadd_pd(a, b, c);
}

static inline vu vu_set1(uint64_t x)
{
    return _mm256_set1_epi64x((int64_t)x);
}
static inline vu vu_load(const uint64_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
static inline vu vu_add(vu a, vu b)
{
    return _mm256_add_epi64(a, b);
}
static inline vu vu_and(vu a, vu b)
{
    return _mm256_and_si256(a, b);
}
static inline vu vu_or(vu a, vu b)
{
    return _mm256_or_si256(a, b);
}
static inline vu vu_mul32(vu a, vu b)
{
    return _mm256_mul_epu32(a, b);
}
#define vu_shl(a, count) _mm256_slli_epi64(a, count)
#define vu_shr(a, count) _mm256_srli_epi64(a, count)
static inline vu vu_mullo(vu a, vu b)
{
    const vu cross = vu_add(vu_mul32(vu_shr(a, 32), b), vu_mul32(a, vu_shr(b, 32)));
    return vu_add(vu_mul32(a, b), vu_shl(cross, 32));
}

/* The low word under the exponent of 2^52, the high one, sign flipped, under that of
 * 2^84: their sum less both bases is the integer, rounded once. */
static inline vd vu_to_signed_vd(vu a)
{
    const vu low = _mm256_blend_epi32(vu_set1(0x4330000000000000u), a, 0x55);
    const vu high = _mm256_xor_si256(vu_shr(a, 32), vu_set1(0x4530000080000000u));
    const vd bases = _mm256_set1_pd(0x1.00000801p84); /* 2^84 + 2^63 + 2^52 */
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), bases),
                         _mm256_castsi256_pd(low));
}
/* The low 32 bits times 2^-32. */
static inline vd vu_fraction32(vu a)
{
    const vu bits =
        _mm256_blend_epi32(vu_set1(0x4130000000000000u), a, 0x55); /* 2^20 */
    return _mm256_sub_pd(_mm256_castsi256_pd(bits), _mm256_set1_pd(0x1p20));
}

/* Lanes where |x| < distance, or c or s lies within margin units of a rounding tie. */
static inline uint32_t vd_unsure(vd x, vd distance, vd c, vd s, int margin)
{
    const vu tie = _mm256_set1_epi64x(margin - 0x10000000);
    const vu tail = _mm256_set1_epi64x(0x1fffffff);
    const vu at_c = vu_and(vu_add(_mm256_castpd_si256(c), tie), tail);
    const vu at_s = vu_and(vu_add(_mm256_castpd_si256(s), tie), tail);
    const vu nearest = _mm256_min_epu32(at_c, at_s);
    const vu near = _mm256_cmpgt_epi64(_mm256_set1_epi64x(2 * margin + 1), nearest);
    const vd size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
    return (uint32_t)_mm256_movemask_pd(_mm256_or_pd(
        _mm256_castsi256_pd(near), _mm256_cmp_pd(size, distance, _CMP_LT_OQ)));
}

/* Rounds to float, swaps and negates by quadrant (sincos.h), stores DLEN of each. */
static inline void vd_store_quadrants(vu hi, vd c, vd s, float *cos_out, float *sin_out)
{
    const vu b = vu_add(hi, vu_set1((uint64_t)1 << 61));
    const vd swap = _mm256_castsi256_pd(vu_shl(b, 1)); /* blendv reads the top bit */
    const vd top = _mm256_set1_pd(-0.0);
    const vd sin_sign = _mm256_and_pd(_mm256_castsi256_pd(b), top);
    const vd cos_sign =
        _mm256_and_pd(_mm256_castsi256_pd(vu_add(b, vu_set1((uint64_t)1 << 62))), top);
    const vd sine = _mm256_xor_pd(_mm256_blendv_pd(s, c, swap), sin_sign);
    const vd cosine = _mm256_xor_pd(_mm256_blendv_pd(c, s, swap), cos_sign);
    _mm_storeu_ps(cos_out, _mm256_cvtpd_ps(cosine));
    _mm_storeu_ps(sin_out, _mm256_cvtpd_ps(sine));
}

#endif /* PE_VEC_AVX2_H */
