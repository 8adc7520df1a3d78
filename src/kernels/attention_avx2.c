/* SPDX-License-Identifier: MIT
 *
 * attention_avx2.c - attention's inner loops for AVX2, FMA and F16C
 */
#include "kernels/attention_kernels.h"

#if defined(__x86_64__)

#  include "kernels/vec_avx2.h"

enum { TILE_ROWS = 6, TILE_VECTORS = 2, STREAM_TILE = 2 };

static inline vf vf_iota(void)
{
    return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

static inline vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b); /* the second operand when unordered */
}

static inline vf vf_abs(vf a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

/* a > b ? x : y */
static inline vf vf_select_gt(vf a, vf b, vf x, vf y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
}

/* 2^n for t = 0x1.8p23 + n, n in [-126, 127]. */
static inline vf vf_pow2(vf t)
{
    return _mm256_castsi256_ps(_mm256_add_epi32(
        _mm256_slli_epi32(_mm256_castps_si256(t), 23), _mm256_set1_epi32(0x3f800000)));
}

/* 2^(k / 8), each less k in the exponent's place: what adding y's bits there makes good. */
#  define VF_EXP2_STEPS 8
typedef struct {
    __m256i steps;
} powers;

static inline powers powers_make(void)
{
    return (powers){_mm256_setr_epi32(0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7,
                                      0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7)};
}

/* 2^(i / 8) for y = 0x1.8p20 + i / 8. */
static inline vf powers_pick(const powers *table, vf y)
{
    const __m256i i = _mm256_castps_si256(y);
    return _mm256_castsi256_ps(_mm256_add_epi32(
        _mm256_permutevar8x32_epi32(table->steps, i), _mm256_slli_epi32(i, 20)));
}

/* 2^f - 1 within 2.7e-8, |f| <= 1/16. */
static inline vf powers_rest(vf f)
{
    vf p = vf_fma(vf_set1(0.0554962233f), f, vf_set1(0.240257636f));
    p = vf_fma(p, f, vf_set1(0.693147242f));
    return vf_mul(p, f);
}

/* a b + c where x is above the limit or NaN, else +0. */
static inline vf vf_fma_above(vf a, vf b, vf c, vf x, vf limit)
{
    return _mm256_and_ps(_mm256_cmp_ps(x, limit, _CMP_NLE_UQ), vf_fma(a, b, c));
}

static inline int vf_any_gt(vf a, vf b)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)) != 0;
}

static inline float vf_total(vf a)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}

static inline float vf_maximum(vf a)
{
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
}

static inline void vf_total4(vf a, vf b, vf c, vf d, float *out)
{
    const __m256 lanes = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(lanes),
                                  _mm256_extractf128_ps(lanes, 1)));
}

#  include "kernels/attention.inc"

const pe_attention_kernels pe_attention_kernels_avx2 = PE_ATTENTION_TABLE(PE_ISA_AVX2);

#  include "kernels/vec_end.h"

#endif
