/* SPDX-License-Identifier: MIT
 *
 * imitate.h - rows of cosines and sines as other systems compute them, in float
 *
 * For parity with the engines that models were trained or are served with.  Only the
 * float operations that those systems write down are imitated; cos and sin themselves
 * are correctly rounded here, where theirs may be a unit off. */
#ifndef PE_IMITATE_H
#define PE_IMITATE_H

#include "base/base.h"

/* Cosine and sine of a float angle in radians, correctly rounded; NaN unless finite. */
void pe_cos_sin_f32(float angle, float *cosine, float *sine);

/* PyTorch code: angle = position * inv_freq, then cos(angle) * factor, each rounded to
 * float.  positions[a]: on axis a, already a float. */
void pe_hf_row(const float *inv_freq, int64_t n, const uint8_t *pair_axis,
               const float *positions, float factor, float *cos_out, float *sin_out);

/* ggml's rope: theta is multiplied by theta_scale from pair to pair. */
typedef struct {
    float theta_scale;         /* base^(-2 / n_dims) */
    float freq_scale;          /* 1 / factor */
    float ext_factor;          /* 1: YaRN's ramp blends, 0: all pairs are scaled */
    float corr_low, corr_high; /* the ramp, in pairs */
    float magnitude;           /* multiplies cos and sin */
    const float *freq_factors; /* [n] divisors of theta, or NULL */
    const int32_t *ladder;     /* [n] place of the pair on its frequency ladder: theta
                                * starts over where it is 0 */
} pe_ggml_freqs;

void pe_ggml_row(const pe_ggml_freqs *freqs, int64_t n, const uint8_t *pair_axis,
                 const float *positions, float *cos_out, float *sin_out);

#endif /* PE_IMITATE_H */
