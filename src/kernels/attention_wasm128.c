/* SPDX-License-Identifier: MIT
 *
 * attention_wasm128.c - attention's inner loops for WebAssembly SIMD128
 */
#include "kernels/attention_kernels.h"

#if defined(__wasm_simd128__)

#  include "kernels/vec_wasm128.h"

enum { TILE_ROWS = 4, TILE_VECTORS = 2, STREAM_TILE = 2 };

static inline vf vf_iota(void)
{
    return wasm_f32x4_make(0, 1, 2, 3);
}

static inline vf vf_div(vf a, vf b)
{
    return wasm_f32x4_div(a, b);
}

/* a > b ? x : y */
static inline vf vf_select_gt(vf a, vf b, vf x, vf y)
{
    return wasm_v128_bitselect(x, y, wasm_f32x4_gt(a, b));
}

/* pmax(b, a) is b < a ? a : b. */
static inline vf vf_max(vf a, vf b)
{
    return wasm_f32x4_pmax(b, a);
}

static inline vf vf_abs(vf a)
{
    return wasm_f32x4_abs(a);
}

/* 2^n for t = 0x1.8p23 + n, n in [-126, 127]. */
static inline vf vf_pow2(vf t)
{
    return wasm_i32x4_add(wasm_i32x4_shl(t, 23), wasm_i32x4_splat(0x3f800000));
}

static inline int vf_any_gt(vf a, vf b)
{
    return wasm_v128_any_true(wasm_f32x4_gt(a, b));
}

static inline float vf_total(vf a)
{
    const vf pairs = wasm_f32x4_add(a, wasm_i32x4_shuffle(a, a, 2, 3, 0, 1));
    return wasm_f32x4_extract_lane(pairs, 0) + wasm_f32x4_extract_lane(pairs, 1);
}

static inline float vf_maximum(vf a)
{
    const vf pairs = vf_max(a, wasm_i32x4_shuffle(a, a, 2, 3, 0, 1));
    const float x = wasm_f32x4_extract_lane(pairs, 0);
    const float y = wasm_f32x4_extract_lane(pairs, 1);
    return x > y ? x : y;
}

static inline void vf_total4(vf a, vf b, vf c, vf d, float *out)
{
    out[0] = vf_total(a);
    out[1] = vf_total(b);
    out[2] = vf_total(c);
    out[3] = vf_total(d);
}

#  include "kernels/attention.inc"

const pe_attention_kernels pe_attention_kernels_wasm128 =
    PE_ATTENTION_TABLE(PE_ISA_WASM128);

#endif
