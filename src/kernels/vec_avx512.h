/* SPDX-License-Identifier: MIT
 *
 * vec_avx512.h - the vector vocabulary in AVX-512 F, BW, DQ and VL
 *
 * Opens a region of functions compiled for this target; vec_end.h closes it.  bf16
 * stores are integer code: VCVTNEPS2BF16 flushes subnormals. */
#ifndef PE_VEC_AVX512_H
#define PE_VEC_AVX512_H

#include "base/dtype.h"
#include "kernels/sincos.h"

#include <immintrin.h>

#if defined(__clang__)
#  pragma clang attribute push(                                                    \
      __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))), \
      apply_to = function)
#else
#  pragma GCC push_options
#  pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#endif

enum { VLEN = 16, DLEN = 8 };
typedef __m512 vf;
typedef __m512d vd;
typedef __m512i vu;

/* ------------------------------------------------------------------- floats --- */

static inline vf vf_zero(void)
{
    return _mm512_setzero_ps();
}
static inline vf vf_set1(float x)
{
    return _mm512_set1_ps(x);
}
static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
static inline vf vf_fnma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

static inline __mmask16 first_lanes(int64_t count)
{
    return (__mmask16)((1u << count) - 1);
}

static inline vf vf_load_f32(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline void vf_store_f32(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}
static inline vf vf_load_part_f32(const float *p, int64_t count)
{
    return count >= VLEN ? vf_load_f32(p)
                         : _mm512_maskz_loadu_ps(first_lanes(count), p);
}
static inline void vf_store_part_f32(float *p, vf v, int64_t count)
{
    if (count >= VLEN)
        vf_store_f32(p, v);
    else
        _mm512_mask_storeu_ps(p, first_lanes(count), v);
}

static inline __m256i load_part_16(const uint16_t *p, int64_t count)
{
    return count >= VLEN ? _mm256_loadu_si256((const __m256i *)p)
                         : _mm256_maskz_loadu_epi16(first_lanes(count), p);
}
static inline void store_part_16(uint16_t *p, __m256i v, int64_t count)
{
    if (count >= VLEN)
        _mm256_storeu_si256((__m256i *)p, v);
    else
        _mm256_mask_storeu_epi16(p, first_lanes(count), v);
}

static inline vf vf_from_f16(__m256i h)
{
    return _mm512_cvtph_ps(h);
}
static inline __m256i vf_to_f16(vf v)
{
    return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vf vf_from_bf16(__m256i h)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
static inline __m256i vf_to_bf16(vf v)
{
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd =
        _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(_mm512_set1_epi32(0x7fff), odd));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i quiet =
        _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(quiet, 16));
}

static inline vf vf_load_f16(const uint16_t *p)
{
    return vf_from_f16(_mm256_loadu_si256((const __m256i *)p));
}
static inline void vf_store_f16(uint16_t *p, vf v)
{
    _mm256_storeu_si256((__m256i *)p, vf_to_f16(v));
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
    return vf_from_bf16(_mm256_loadu_si256((const __m256i *)p));
}
static inline void vf_store_bf16(uint16_t *p, vf v)
{
    _mm256_storeu_si256((__m256i *)p, vf_to_bf16(v));
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
static inline vf vf_from_i8(__m128i b)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(b));
}
static inline __m128i vf_to_i8(vf v)
{
    return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v));
}
static inline vf vf_load_i8(const int8_t *p)
{
    return vf_from_i8(_mm_loadu_si128((const __m128i *)p));
}
static inline void vf_store_i8(int8_t *p, vf v)
{
    _mm_storeu_si128((__m128i *)p, vf_to_i8(v));
}
/* The lanes of four. */
static inline void vf_store4_i8(int8_t *p, vf a, vf b, vf c, vf d)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i ab = _mm512_packs_epi32(_mm512_cvtps_epi32(a), _mm512_cvtps_epi32(b));
    const __m512i cd = _mm512_packs_epi32(_mm512_cvtps_epi32(c), _mm512_cvtps_epi32(d));
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, _mm512_packs_epi16(ab, cd)));
}
static inline vf vf_load_part_i8(const int8_t *p, int64_t count)
{
    return count >= VLEN ? vf_load_i8(p)
                         : vf_from_i8(_mm_maskz_loadu_epi8(first_lanes(count), p));
}
static inline void vf_store_part_i8(int8_t *p, vf v, int64_t count)
{
    if (count >= VLEN)
        vf_store_i8(p, v);
    else
        _mm_mask_storeu_epi8(p, first_lanes(count), vf_to_i8(v));
}

/* The larger magnitude, lane by lane, as integers: a NaN is above all. */
static inline vf vf_max_magnitude(vf top, vf v)
{
    return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(top),
                                                _mm512_castps_si512(_mm512_abs_ps(v))));
}
static inline float vf_top_magnitude(vf top)
{
    return pe_f32_from_bits(_mm512_reduce_max_epu32(_mm512_castps_si512(top)));
}

/* What 32 registers hold in rotate.inc: vectors of a row's cosines, and of its sines,
 * across heads; vectors of first elements, and of second ones, loaded before a store,
 * beside such a row and without one. */
#define VF_HELD  8
#define VF_GROUP 4
#define VF_WHOLE 8

/* Holds a value in a register: see rotate.inc. */
#define VF_KEEP(v) __asm__("" : "+v"(v))

/* 64 bytes to a line, past the caches. */
#define VF_STREAMS
static inline void stream_line(const void *x, void *y)
{
    _mm512_stream_si512((__m512i *)y, _mm512_load_si512(x));
}
static inline void stream_fence(void)
{
    _mm_sfence();
}

/* b0 a0 b1 a1 ...; a vocabulary without it keeps to vf_unzip. */
#define vf_swap_pairs(v) _mm512_permute_ps(v, 0xb1)

/* lo hi = a0 b0 a1 b1 ... */
static inline void vf_unzip(vf lo, vf hi, vf *a, vf *b)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    *a = _mm512_permutex2var_ps(lo, even, hi);
    *b = _mm512_permutex2var_ps(lo, odd, hi);
}
static inline void vf_zip(vf a, vf b, vf *lo, vf *hi)
{
    const __m512i lower =
        _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i upper =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    *lo = _mm512_permutex2var_ps(a, lower, b);
    *hi = _mm512_permutex2var_ps(a, upper, b);
}

/* --------------------------------------------------- doubles and 64-bit integers --- */

static inline vd vd_set1(double x)
{
    return _mm512_set1_pd(x);
}
static inline vd vd_add(vd a, vd b)
{
    return _mm512_add_pd(a, b);
}
static inline vd vd_sub(vd a, vd b)
{
    return _mm512_sub_pd(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return _mm512_mul_pd(a, b);
}
static inline vd vd_min(vd a, vd b)
{
    return _mm512_min_pd(a, b);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return _mm512_fmadd_pd(a, b, c);
}
static inline vd vd_fnma(vd a, vd b, vd c)
{
    return _mm512_fnmadd_pd(a, b, c);
}
static inline vd vd_load_f32(const float *p)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));
}
static inline void vd_store_f32(float *p, vd v)
{
    _mm256_storeu_ps(p, _mm512_cvtpd_ps(v));
}

#define VD_FUSED /* vd_fma rounds once */
static inline vd vd_fms(vd a, vd b, vd c)
{
    return _mm512_fmsub_pd(a, b, c);
}
static inline vd vd_load(const double *p)
{
    return _mm512_loadu_pd(p);
}
static inline void vd_store(double *p, vd v)
{
    _mm512_storeu_pd(p, v);
}
/* p[i] - q, at most 2^53 in size. */
static inline vd vd_from_distance(const int64_t *p, int64_t q)
{
    return _mm512_cvtepi64_pd(
        _mm512_sub_epi64(_mm512_loadu_si512(p), _mm512_set1_epi64(q)));
}
static inline vu vd_bits(vd v)
{
    return _mm512_castpd_si512(v);
}
/* x < 2^52 */
static inline vd vd_from_u64(vu x)
{
    return _mm512_cvtepu64_pd(x);
}

static inline vu vu_set1(uint64_t x)
{
    return _mm512_set1_epi64((int64_t)x);
}
static inline vu vu_load(const uint64_t *p)
{
    return _mm512_loadu_si512(p);
}
static inline vu vu_add(vu a, vu b)
{
    return _mm512_add_epi64(a, b);
}
static inline vu vu_and(vu a, vu b)
{
    return _mm512_and_si512(a, b);
}
static inline vu vu_mullo(vu a, vu b)
{
    return _mm512_mullo_epi64(a, b);
}
static inline vu vu_mul32(vu a, vu b)
{
    return _mm512_mul_epu32(a, b);
}
#define vu_shl(a, count) _mm512_slli_epi64(a, count)
#define vu_shr(a, count) _mm512_srli_epi64(a, count)

/* 4 (hi + lo 2^-32) modulo 2^64, signed: x of sincos.h.  lo < 2^32. */
static inline vd vu_signed_quarter(vu hi, vu lo)
{
    return _mm512_fmadd_pd(_mm512_cvtepu64_pd(lo), _mm512_set1_pd(0x1p-30),
                           _mm512_cvtepi64_pd(_mm512_slli_epi64(hi, 2)));
}

static inline int vd_any_less(vd a, vd b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ) != 0;
}
/* The smaller of a, not negative, and |b|. */
static inline vd vd_min_magnitude(vd a, vd b)
{
    return _mm512_range_pd(a, b, 0xa);
}

/* Whether a float is undecided: some lane of c or s lies within margin units in the last
 * place, a power of two, of the middle between two floats. */
typedef __mmask16 vt;
static inline vt vt_none(void)
{
    return 0;
}
static inline vt vt_note(vt ties, vd c, vd s, int margin)
{
    const __m512i low = _mm512_castps_si512(
        _mm512_shuffle_ps(_mm512_castpd_ps(c), _mm512_castpd_ps(s), 0x88));
    const __m512i shifted =
        _mm512_add_epi32(low, _mm512_set1_epi32(margin + 0x10000000));
    return (vt)(ties | _mm512_testn_epi32_mask(
                           shifted, _mm512_set1_epi32(0x20000000 - 2 * margin)));
}
static inline int vt_any(vt ties)
{
    return ties != 0;
}

/* factor * cos of the sixteenths of a turn, and sin: two registers each.  A vocabulary
 * without them keeps to quarters. */
#define VD_SIXTEENTHS
typedef struct {
    vd c[2], s[2];
} sixteenths;

static inline sixteenths sixteenths_make(double factor)
{
    const double a = PE_COS_1_16, b = PE_COS_2_16, d = PE_COS_3_16;
    const vd f = _mm512_set1_pd(factor);
    sixteenths t;
    t.c[0] = _mm512_mul_pd(f, _mm512_setr_pd(1, a, b, d, 0, -d, -b, -a));
    t.c[1] = _mm512_mul_pd(f, _mm512_setr_pd(-1, -a, -b, -d, 0, d, b, a));
    t.s[0] = _mm512_mul_pd(f, _mm512_setr_pd(0, d, b, a, 1, a, b, d));
    t.s[1] = _mm512_mul_pd(f, _mm512_setr_pd(0, -d, -b, -a, -1, -a, -b, -d));
    return t;
}

/* Of sixteenth k modulo 16. */
static inline void sixteenths_pick(const sixteenths *t, vu k, vd *c, vd *s)
{
    *c = _mm512_permutex2var_pd(t->c[0], k, t->c[1]);
    *s = _mm512_permutex2var_pd(t->s[0], k, t->s[1]);
}

/* Swaps and negates by quadrant (sincos.h). */
static inline void vd_quadrants(vu hi, vd c, vd s, vd *cosine, vd *sine)
{
    const vu b = vu_add(hi, vu_set1((uint64_t)1 << 61));
    const vu top = vu_set1((uint64_t)1 << 63), half = vu_set1((uint64_t)1 << 62);
    const __mmask8 swap = _mm512_test_epi64_mask(b, half);
    const vu s_bits = _mm512_castpd_si512(_mm512_mask_blend_pd(swap, s, c));
    const vu c_bits = _mm512_castpd_si512(_mm512_mask_blend_pd(swap, c, s));
    /* bits ^ (sign & top) */
    *sine = _mm512_castsi512_pd(_mm512_ternarylogic_epi64(s_bits, b, top, 0x78));
    *cosine = _mm512_castsi512_pd(
        _mm512_ternarylogic_epi64(c_bits, vu_add(b, half), top, 0x78));
}

/* Rounds to float, swaps and negates by quadrant (sincos.h), stores DLEN of each.  The
 * order commutes, rounding to nearest being odd, and floats are half the work. */
static inline void vd_store_quadrants(vu hi, vd c, vd s, float *cos_out, float *sin_out)
{
    const __m256i b = _mm512_cvtepi64_epi32(
        _mm512_srli_epi64(vu_add(hi, vu_set1((uint64_t)1 << 61)), 32));
    const __m256i cos_sign = _mm256_add_epi32(b, _mm256_set1_epi32(1 << 30));
    const __mmask8 swap = _mm256_test_epi32_mask(b, _mm256_set1_epi32(1 << 30));
    const __m256 sine = _mm512_cvtpd_ps(s), cosine = _mm512_cvtpd_ps(c);
    const __m256i top = _mm256_set1_epi32(INT32_MIN);
    const __m256i s_bits =
        _mm256_castps_si256(_mm256_mask_blend_ps(swap, sine, cosine));
    const __m256i c_bits =
        _mm256_castps_si256(_mm256_mask_blend_ps(swap, cosine, sine));
    /* bits ^ (sign & top) */
    _mm256_storeu_si256((__m256i *)sin_out,
                        _mm256_ternarylogic_epi32(s_bits, b, top, 0x78));
    _mm256_storeu_si256((__m256i *)cos_out,
                        _mm256_ternarylogic_epi32(c_bits, cos_sign, top, 0x78));
}

#endif /* PE_VEC_AVX512_H */
