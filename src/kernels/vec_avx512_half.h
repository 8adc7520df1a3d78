/* SPDX-License-Identifier: MIT
 *
 * vec_avx512_half.h - the vocabulary of rotation in halves of AVX-512's vectors
 *
 * With its 32 registers and two-source permutations.  16-bit types turn in these, as a
 * conversion between halves is one step where one between a whole and a half is two
 * (Zen 4, f16, 16 elements in L1: 0.80 ns against 1.03); so do floats whose count is odd
 * in halves, where every other whole would lie across two cache lines. */
#ifndef PE_VEC_AVX512_HALF_H
#define PE_VEC_AVX512_HALF_H

#include "kernels/vec_avx512.h"
#include "kernels/vec_pairs.h"

enum { NLEN = 8 };
typedef __m256 vn;

static inline vn vn_zero(void)
{
    return _mm256_setzero_ps();
}
static inline vn vn_set1(float x)
{
    return _mm256_set1_ps(x);
}
static inline vn vn_add(vn a, vn b)
{
    return _mm256_add_ps(a, b);
}
static inline vn vn_mul(vn a, vn b)
{
    return _mm256_mul_ps(a, b);
}
static inline vn vn_fma(vn a, vn b, vn c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vn vn_fnma(vn a, vn b, vn c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

static inline __mmask8 vn_lanes(int64_t count)
{
    return (__mmask8)(count >= NLEN ? 0xff : (1u << count) - 1);
}

static inline vn vn_load_f32(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline void vn_store_f32(float *p, vn v)
{
    _mm256_storeu_ps(p, v);
}
static inline vn vn_load_part_f32(const float *p, int64_t count)
{
    return _mm256_maskz_loadu_ps(vn_lanes(count), p);
}
static inline void vn_store_part_f32(float *p, vn v, int64_t count)
{
    _mm256_mask_storeu_ps(p, vn_lanes(count), v);
}

static inline vn vn_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
static inline void vn_store_f16(uint16_t *p, vn v)
{
    __m128i h = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    VF_KEEP(h); /* a conversion that stores, too, takes twice as long (Zen 4) */
    _mm_storeu_si128((__m128i *)p, h);
}
static inline vn vn_load_part_f16(const uint16_t *p, int64_t count)
{
    return _mm256_cvtph_ps(_mm_maskz_loadu_epi16(vn_lanes(count), p));
}
static inline void vn_store_part_f16(uint16_t *p, vn v, int64_t count)
{
    _mm_mask_storeu_epi16(p, vn_lanes(count),
                          _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline __m128i vn_to_bf16(vn v)
{
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(_mm256_set1_epi32(0x7fff), odd));
    const __mmask8 nan = _mm256_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m256i quiet =
        _mm256_mask_or_epi32(rounded, nan, bits, _mm256_set1_epi32(0x400000));
    return _mm256_cvtepi32_epi16(_mm256_srli_epi32(quiet, 16));
}
static inline vn vn_from_bf16(__m128i h)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
static inline vn vn_load_bf16(const uint16_t *p)
{
    return vn_from_bf16(_mm_loadu_si128((const __m128i *)p));
}
static inline void vn_store_bf16(uint16_t *p, vn v)
{
    _mm_storeu_si128((__m128i *)p, vn_to_bf16(v));
}
static inline vn vn_load_part_bf16(const uint16_t *p, int64_t count)
{
    return vn_from_bf16(_mm_maskz_loadu_epi16(vn_lanes(count), p));
}
static inline void vn_store_part_bf16(uint16_t *p, vn v, int64_t count)
{
    _mm_mask_storeu_epi16(p, vn_lanes(count), vn_to_bf16(v));
}

/* --------------------------------------------------------------------- sums --- */

static inline void vn_widen(vn v, vd *d)
{
    d[0] = _mm512_cvtps_pd(v);
}
static inline vn vn_narrow(const vd *d)
{
    return _mm512_cvtpd_ps(d[0]);
}

static inline int vn_any_nan(vn a, vn b)
{
    return _mm256_cmp_ps_mask(a, b, _CMP_UNORD_Q) != 0;
}

/* Twice the bits of floats less a number, modulo 2^32: zero and small floats far up. */
#define VF_FUSED /* vn_fma rounds once */
typedef __m256i vw;
static inline vw vw_above(vn v, uint32_t least)
{
    const __m256i bits = _mm256_castps_si256(v);
    return _mm256_sub_epi32(_mm256_add_epi32(bits, bits),
                            _mm256_set1_epi32((int)least));
}
static inline vw vw_max(vw a, vw b)
{
    return _mm256_max_epu32(a, b);
}
static inline int vw_any_past(vw a, uint32_t most)
{
    return _mm256_cmpgt_epu32_mask(a, _mm256_set1_epi32((int)most)) != 0;
}

/* -------------------------------------------------------------------- pairs --- */

#define vn_swap_pairs(v) _mm256_permute_ps(v, 0xb1)

static inline void vn_unzip(vn lo, vn hi, vn *a, vn *b)
{
    *a = _mm256_permutex2var_ps(lo, _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14), hi);
    *b = _mm256_permutex2var_ps(lo, _mm256_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15), hi);
}
static inline void vn_zip(vn a, vn b, vn *lo, vn *hi)
{
    *lo = _mm256_permutex2var_ps(a, _mm256_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11), b);
    *hi = _mm256_permutex2var_ps(a, _mm256_setr_epi32(4, 12, 5, 13, 6, 14, 7, 15), b);
}
VEC_UNZIP(vn, NLEN, float, f32)
VEC_ZIP(vn, NLEN, float, f32)

VEC_UNZIP(vn, NLEN, uint16_t, f16) /* sorted before it is converted: no faster */

static inline void vn_zip_f16(uint16_t *p, vn a, vn b)
{
    const __m128i h = _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT);
    const __m128i g = _mm256_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)p, _mm_unpacklo_epi16(h, g));
    _mm_storeu_si128((__m128i *)p + 1, _mm_unpackhi_epi16(h, g));
}

/* Elements of even and of odd place at p: the halves of 32-bit words. */
static inline void vn_unzip_bf16(const uint16_t *p, vn *even, vn *odd)
{
    const __m256i words = _mm256_loadu_si256((const __m256i *)p);
    *even = _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
    *odd = _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(-65536)));
}
VEC_ZIP(vn, NLEN, uint16_t, bf16)

/* Writes them back, rounded to nearest even; a NaN must be quiet and have no bit set that
 * goes.  In 16-bit lanes: the upper halves, plus one where the lower half is past the
 * middle, or at it and the upper half is odd; that carry is the top bit of the average of
 * the lower half and of 0x7ffe or 0x7fff. */
static inline void vn_join_bf16(uint16_t *p, vn even, vn odd)
{
    const __m256i e = _mm256_castps_si256(even), o = _mm256_castps_si256(odd);
    const __m256i upper = _mm256_permutex2var_epi16(
        e, _mm256_setr_epi16(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31),
        o);
    const __m256i lower = _mm256_permutex2var_epi16(
        e, _mm256_setr_epi16(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
        o);
    /* (upper & 1) | 0x7ffe */
    const __m256i middle = _mm256_ternarylogic_epi32(upper, _mm256_set1_epi16(1),
                                                     _mm256_set1_epi16(0x7ffe), 0xea);
    const __m256i carry = _mm256_srli_epi16(_mm256_avg_epu16(lower, middle), 15);
    _mm256_storeu_si256((__m256i *)p, _mm256_add_epi16(upper, carry));
}

VEC_UNZIP(vf, VLEN, float, f32)
VEC_ZIP(vf, VLEN, float, f32)

#define VF_HAS_HALF
#define VF_JOINS_BF16

#endif /* PE_VEC_AVX512_HALF_H */
