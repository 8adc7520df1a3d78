/* SPDX-License-Identifier: MIT
 *
 * vec_avx2.h - the vector vocabulary in AVX2 with FMA and F16C
 *
 * Opens a region of functions compiled for this target; vec_end.h closes it. */
#ifndef PE_VEC_AVX2_H
#define PE_VEC_AVX2_H

#include "base/dtype.h"
#include "kernels/vec_pairs.h"

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

/* Holds a value in a register: see rotate.inc. */
#define VF_KEEP(v) __asm__("" : "+x"(v))

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
    __m128i h = vf_to_f16(v);
    VF_KEEP(h); /* a conversion that stores, too, takes twice as long (Zen 4) */
    _mm_storeu_si128((__m128i *)p, h);
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

/* int8; stores round to nearest even and take nothing beyond 127. */
static inline vf vf_from_i8(__m128i b)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b));
}
static inline __m128i vf_to_i8(vf v)
{
    const __m256i whole = _mm256_cvtps_epi32(v);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(whole),
                                          _mm256_extracti128_si256(whole, 1));
    return _mm_packs_epi16(words, words);
}
static inline vf vf_load_i8(const int8_t *p)
{
    return vf_from_i8(_mm_loadl_epi64((const __m128i *)p));
}
static inline void vf_store_i8(int8_t *p, vf v)
{
    _mm_storel_epi64((__m128i *)p, vf_to_i8(v));
}
/* The lanes of four. */
static inline void vf_store4_i8(int8_t *p, vf a, vf b, vf c, vf d)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i ab = _mm256_packs_epi32(_mm256_cvtps_epi32(a), _mm256_cvtps_epi32(b));
    const __m256i cd = _mm256_packs_epi32(_mm256_cvtps_epi32(c), _mm256_cvtps_epi32(d));
    _mm256_storeu_si256((__m256i *)p,
                        _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), order));
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
    const __m256i magnitude =
        _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(INT32_MAX));
    return _mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(top), magnitude));
}
static inline float vf_top_magnitude(vf top)
{
    const __m256i bits = _mm256_castps_si256(top);
    __m128i half =
        _mm_max_epu32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
    half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4e));
    half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(half));
}

/* Of 16 registers; see rotate.inc and vec_avx512.h. */
#define VF_GROUP 2
#define VF_WHOLE 4

/* 64 bytes to a line, past the caches. */
#define VF_STREAMS
static inline void stream_line(const void *x, void *y)
{
    _mm256_stream_si256((__m256i *)y, _mm256_load_si256((const __m256i *)x));
    _mm256_stream_si256((__m256i *)y + 1, _mm256_load_si256((const __m256i *)x + 1));
}
static inline void stream_fence(void)
{
    _mm_sfence();
}

/* b0 a0 b1 a1 ..., where rotate.inc does without vf_unzip. */
#define vf_swap_pairs(v) _mm256_permute_ps(v, 0xb1)

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
VEC_UNZIP(vf, VLEN, float, f32)
VEC_ZIP(vf, VLEN, float, f32)

static inline void vf_unzip_f16(const uint16_t *p, vf *a, vf *b)
{
    const __m256i even_odd =
        _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1, 4,
                         5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m256i sorted = _mm256_permute4x64_epi64(
        _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)p), even_odd), 0xd8);
    *a = vf_from_f16(_mm256_castsi256_si128(sorted));
    *b = vf_from_f16(_mm256_extracti128_si256(sorted, 1));
}
static inline void vf_zip_f16(uint16_t *p, vf a, vf b)
{
    const __m128i h = vf_to_f16(a), g = vf_to_f16(b);
    _mm_storeu_si128((__m128i *)p, _mm_unpacklo_epi16(h, g));
    _mm_storeu_si128((__m128i *)p + 1, _mm_unpackhi_epi16(h, g));
}

/* Elements of even and of odd place at p: the halves of 32-bit words. */
static inline void vf_unzip_bf16(const uint16_t *p, vf *even, vf *odd)
{
    const __m256i words = _mm256_loadu_si256((const __m256i *)p);
    *even = _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
    *odd = _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(-65536)));
}
VEC_ZIP(vf, VLEN, uint16_t, bf16)

/* As vn_join_bf16 of vec_avx512_half.h. */
#define VF_JOINS_BF16
static inline void vf_join_bf16(uint16_t *p, vf even, vf odd)
{
    const __m256i e = _mm256_castps_si256(even), o = _mm256_castps_si256(odd);
    const __m256i upper = _mm256_blend_epi16(_mm256_srli_epi32(e, 16), o, 0xaa);
    const __m256i lower = _mm256_blend_epi16(e, _mm256_slli_epi32(o, 16), 0xaa);
    const __m256i middle = _mm256_or_si256(
        _mm256_and_si256(upper, _mm256_set1_epi16(1)), _mm256_set1_epi16(0x7ffe));
    const __m256i carry = _mm256_srli_epi16(_mm256_avg_epu16(lower, middle), 15);
    _mm256_storeu_si256((__m256i *)p, _mm256_add_epi16(upper, carry));
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
static inline vd vd_sub(vd a, vd b)
{
    return _mm256_sub_pd(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return _mm256_mul_pd(a, b);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return _mm256_fmadd_pd(a, b, c);
}
static inline vd vd_fnma(vd a, vd b, vd c)
{
    return _mm256_fnmadd_pd(a, b, c);
}
static inline vd vd_load_f32(const float *p)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
}
static inline void vd_store_f32(float *p, vd v)
{
    _mm_storeu_ps(p, _mm256_cvtpd_ps(v));
}

#define VD_FUSED /* vd_fma rounds once */
static inline vd vd_fms(vd a, vd b, vd c)
{
    return _mm256_fmsub_pd(a, b, c);
}
static inline vd vd_load(const double *p)
{
    return _mm256_loadu_pd(p);
}
static inline void vd_store(double *p, vd v)
{
    _mm256_storeu_pd(p, v);
}
static inline vu vd_bits(vd v)
{
    return _mm256_castpd_si256(v);
}
/* x < 2^52 */
static inline vd vd_from_u64(vu x)
{
    const vd base = _mm256_set1_pd(0x1p52);
    return _mm256_sub_pd(_mm256_or_pd(_mm256_castsi256_pd(x), base), base);
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

/* 4 (hi + lo 2^-32) modulo 2^64, signed: x of sincos.h.  lo < 2^32.  Without a
 * conversion from 64-bit integers: the low word under the exponent of 2^52, the high one,
 * sign flipped, under that of 2^84; their sum less both bases is the integer, rounded
 * once.  lo counts 2^-30 under the exponent of 2^22, whose base goes with the others. */
static inline vd vu_signed_quarter(vu hi, vu lo)
{
    const vu shifted = _mm256_slli_epi64(hi, 2);
    const vd low = _mm256_castsi256_pd(
        _mm256_blend_epi32(vu_set1(0x4330000000000000u), shifted, 0x55));
    const vd high = _mm256_castsi256_pd(
        _mm256_xor_si256(_mm256_srli_epi64(shifted, 32), vu_set1(0x4530000080000000u)));
    const vd below = _mm256_castsi256_pd(vu_or(lo, vu_set1(0x4150000000000000u)));
    const vd whole = _mm256_add_pd(
        _mm256_sub_pd(high, _mm256_set1_pd(0x1.00000801p84)), /* 2^84 + 2^63 + 2^52 */
        low);
    return _mm256_add_pd(whole, _mm256_sub_pd(below, _mm256_set1_pd(0x1p22)));
}

static inline vd vd_abs(vd a)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a);
}
static inline vd vd_min(vd a, vd b)
{
    return _mm256_min_pd(a, b);
}
static inline int vd_any_less(vd a, vd b)
{
    return _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ)) != 0;
}
/* The smaller of a, not negative, and |b|. */
static inline vd vd_min_magnitude(vd a, vd b)
{
    return vd_min(a, vd_abs(b));
}

/* Whether a float is undecided: some lane of c or s lies within margin units in the last
 * place, a power of two, of the middle between two floats. */
typedef __m256i vt; /* zero in some lane */
static inline vt vt_none(void)
{
    return _mm256_set1_epi32(-1);
}
static inline vt vt_note(vt ties, vd c, vd s, int margin)
{
    const __m256i low = _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castpd_ps(c), _mm256_castpd_ps(s), 0x88));
    const __m256i shifted =
        _mm256_add_epi32(low, _mm256_set1_epi32(margin + 0x10000000));
    return _mm256_min_epu32(
        ties, _mm256_and_si256(shifted, _mm256_set1_epi32(0x20000000 - 2 * margin)));
}
static inline int vt_any(vt ties)
{
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(ties, _mm256_setzero_si256())) != 0;
}

/* Swaps and negates by quadrant (sincos.h). */
static inline void vd_quadrants(vu hi, vd c, vd s, vd *cosine, vd *sine)
{
    const vu b = vu_add(hi, vu_set1((uint64_t)1 << 61));
    const vd swap = _mm256_castsi256_pd(vu_shl(b, 1)); /* the top bit counts */
    const vd top = _mm256_set1_pd(-0.0);
    const vd cos_sign = _mm256_castsi256_pd(vu_add(b, vu_set1((uint64_t)1 << 62)));
    *sine = _mm256_xor_pd(_mm256_blendv_pd(s, c, swap),
                          _mm256_and_pd(_mm256_castsi256_pd(b), top));
    *cosine = _mm256_xor_pd(_mm256_blendv_pd(c, s, swap), _mm256_and_pd(cos_sign, top));
}

/* Rounds to float, swaps and negates by quadrant (sincos.h), stores DLEN of each.  The
 * order commutes, rounding to nearest being odd, and floats are half the work. */
static inline void vd_store_quadrants(vu hi, vd c, vd s, float *cos_out, float *sin_out)
{
    const vu eighth = vu_add(hi, vu_set1((uint64_t)1 << 61));
    const __m128 b =
        _mm_shuffle_ps(_mm256_castps256_ps128(_mm256_castsi256_ps(eighth)),
                       _mm256_extractf128_ps(_mm256_castsi256_ps(eighth), 1),
                       0xdd); /* the high words */
    const __m128i bits = _mm_castps_si128(b);
    const __m128 swap = _mm_castsi128_ps(_mm_slli_epi32(bits, 1)); /* top bit counts */
    const __m128 top = _mm_set1_ps(-0.0f);
    const __m128 cos_sign =
        _mm_and_ps(_mm_castsi128_ps(_mm_add_epi32(bits, _mm_set1_epi32(1 << 30))), top);
    const __m128 sine = _mm256_cvtpd_ps(s), cosine = _mm256_cvtpd_ps(c);
    _mm_storeu_ps(sin_out,
                  _mm_xor_ps(_mm_blendv_ps(sine, cosine, swap), _mm_and_ps(b, top)));
    _mm_storeu_ps(cos_out, _mm_xor_ps(_mm_blendv_ps(cosine, sine, swap), cos_sign));
}

/* -------------------------------------------------------------------- sums --- */

static inline void vf_widen(vf v, vd *d)
{
    d[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
    d[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}
static inline vf vf_narrow(const vd *d)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(d[0])),
                                _mm256_cvtpd_ps(d[1]), 1);
}

/* p[i] - q, at most 2^53 in size.  In two words, as vu_signed_quarter. */
static inline vd vd_from_distance(const int64_t *p, int64_t q)
{
    const __m256i x =
        _mm256_sub_epi64(_mm256_loadu_si256((const __m256i *)p), _mm256_set1_epi64x(q));
    const vd low =
        _mm256_castsi256_pd(_mm256_blend_epi32(vu_set1(0x4330000000000000u), x, 0x55));
    const vd high = _mm256_castsi256_pd(
        _mm256_xor_si256(_mm256_srli_epi64(x, 32), vu_set1(0x4530000080000000u)));
    return _mm256_add_pd(_mm256_sub_pd(high, _mm256_set1_pd(0x1.00000801p84)), low);
}

static inline int vf_any_nan(vf a, vf b)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)) != 0;
}

/* Twice the bits of floats less a number, modulo 2^32: zero and small floats far up. */
#define VF_FUSED /* vf_fma rounds once */
typedef __m256i vw;
static inline vw vw_above(vf v, uint32_t least)
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
    const __m256i m = _mm256_set1_epi32((int)most);
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_max_epu32(a, m), m)) != -1;
}

#endif /* PE_VEC_AVX2_H */
