/* SPDX-License-Identifier: MIT
 *
 * attention_neon.c - attention's inner loops for AArch64
 */
#include "kernels/attention_kernels.h"

#if defined(__aarch64__)

#  include "kernels/vec_neon.h"

enum { TILE_ROWS = 6, TILE_VECTORS = 4, STREAM_TILE = 4 };

static inline vf vf_iota(void)
{
    static const float lanes[4] = {0, 1, 2, 3};
    return vld1q_f32(lanes);
}

static inline vf vf_div(vf a, vf b)
{
    return vdivq_f32(a, b);
}

/* a > b ? x : y */
static inline vf vf_select_gt(vf a, vf b, vf x, vf y)
{
    return vbslq_f32(vcgtq_f32(a, b), x, y);
}

/* vmaxq_f32 would keep a NaN of either side. */
static inline vf vf_max(vf a, vf b)
{
    return vf_select_gt(a, b, a, b);
}

static inline vf vf_abs(vf a)
{
    return vabsq_f32(a);
}

/* 2^n for t = 0x1.8p23 + n, n in [-126, 127]. */
static inline vf vf_pow2(vf t)
{
    return vreinterpretq_f32_u32(
        vaddq_u32(vshlq_n_u32(vreinterpretq_u32_f32(t), 23), vdupq_n_u32(0x3f800000)));
}

static inline int vf_any_gt(vf a, vf b)
{
    return vmaxvq_u32(vcgtq_f32(a, b)) != 0;
}

static inline float vf_total(vf a)
{
    return vaddvq_f32(a);
}

static inline float vf_maximum(vf a)
{
    return vmaxvq_f32(a);
}

static inline void vf_total4(vf a, vf b, vf c, vf d, float *out)
{
    vst1q_f32(out, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
}

#  include "kernels/attention.inc"

const pe_attention_kernels pe_attention_kernels_neon = PE_ATTENTION_TABLE(PE_ISA_NEON);

#endif
