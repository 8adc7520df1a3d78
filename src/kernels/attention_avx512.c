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
