/* SPDX-License-Identifier: MIT
 *
 * attention_avx512.c - attention's inner loops for AVX-512 F, BW, DQ and VL
 */
#include "kernels/attention_kernels.h"

#if defined(__x86_64__)

#  include "kernels/vec_avx512.h"

enum { TILE_ROWS = 6, TILE_VECTORS = 4, STREAM_TILE = 4 };

static inline vf vf_iota(void)
{
    return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

static inline vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b); /* the second operand when unordered */
}

static inline vf vf_abs(vf a)
{
    return _mm512_abs_ps(a);
}

/* a > b ? x : y */
static inline vf vf_select_gt(vf a, vf b, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x);
}

#  define VF_EXP2_PARTS

/* To the nearest whole number, ties to even. */
static inline vf vf_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* p 2^n where x is above the limit or NaN, else +0. */
static inline vf vf_scale_above(vf p, vf n, vf x, vf limit)
{
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLE_UQ), p, n);
}

/* 2^(k / 32), each less k in the exponent's place: what adding y's bits there makes good. */
#  define VF_EXP2_STEPS 32
typedef struct {
    __m512i low, high;
} powers;

static inline powers powers_make(void)
{
    return (powers){_mm512_setr_epi32(0x3f800000, 0x3f7ecd87, 0x3f7daac3, 0x3f7c980f,
                                      0x3f7b95c2, 0x3f7aa43a, 0x3f79c3d3, 0x3f78f4f0,
                                      0x3f7837f0, 0x3f778d3a, 0x3f76f532, 0x3f767043,
                                      0x3f75fed7, 0x3f75a15b, 0x3f75583f, 0x3f7523f6),
                    _mm512_setr_epi32(0x3f7504f3, 0x3f74fbaf, 0x3f7508a4, 0x3f752c4d,
                                      0x3f75672a, 0x3f75b9be, 0x3f76248c, 0x3f76a81e,
                                      0x3f7744fd, 0x3f77fbb8, 0x3f78ccdf, 0x3f79b907,
                                      0x3f7ac0c7, 0x3f7be4ba, 0x3f7d257d, 0x3f7e83b3)};
}

/* 2^(i / 32) for y = 0x1.8p18 + i / 32. */
static inline vf powers_pick(const powers *table, vf y)
{
    const __m512i i = _mm512_castps_si512(y);
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_permutex2var_epi32(table->low, i, table->high),
                         _mm512_slli_epi32(i, 18)));
}

/* 2^f - 1 within 5.4e-8, |f| <= 1/64. */
static inline vf powers_rest(vf f)
{
    return vf_mul(vf_fma(vf_set1(0.240226537f), f, vf_set1(0.693157315f)), f);
}

/* a b + c where x is above the limit or NaN, else +0. */
static inline vf vf_fma_above(vf a, vf b, vf c, vf x, vf limit)
{
    return _mm512_maskz_fmadd_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLE_UQ), a, b, c);
}

static inline int vf_any_gt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0;
}

static inline float vf_total(vf a)
{
    return _mm512_reduce_add_ps(a);
}

static inline float vf_maximum(vf a)
{
    return _mm512_reduce_max_ps(a);
}

static inline void vf_total4(vf a, vf b, vf c, vf d, float *out)
{
    const __m512d ab = _mm512_castps_pd(
        _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));
    const __m512d cd = _mm512_castps_pd(
        _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d)));
    const __m512 lanes = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
                                       _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)));
    const __m256 half =
        _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
    _mm_storeu_ps(
        out, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
}

#  include "kernels/attention.inc"

const pe_attention_kernels pe_attention_kernels_avx512 =
    PE_ATTENTION_TABLE(PE_ISA_AVX512);

#  include "kernels/vec_end.h"

#endif
