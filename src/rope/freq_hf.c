/* SPDX-License-Identifier: MIT
 *
 * freq_hf.c - the frequency rules in the float steps of Hugging Face's code
 *
 * Follows modeling_rope_utils.py of transformers 5: Python numbers are doubles, tensors
 * floats, and each tensor operation rounds once.  pow is correctly rounded here, where
 * torch's may be a unit off. */
#include "rope/freq.h"

static float keep(float x)
{
    PE_KEEP(x);
    return x;
}

static float pow_f32(float base, float exponent)
{
    return pe_wide_to_float(
        pe_wide_pow(pe_wide_from_double(base), pe_wide_from_double(exponent)));
}

static double pow_f64(double base, double exponent)
{
    return pe_wide_to_double(
        pe_wide_pow(pe_wide_from_double(base), pe_wide_from_double(exponent)));
}

/* base ** (arange(0, d, 2).float() / d), one entry. */
static float pos_freq(double base, int32_t i, int32_t d)
{
    return pow_f32((float)base, (float)(2 * i) / (float)d);
}

/* The base of the NTK rules in Python doubles, where a huge factor overflows or cancels
 * against itself: 0 if alpha is lost, anything at all if only its digits are. */
static double ntk_base(const pe_freq_rule *rule, int32_t d)
{
    double alpha = rule->factor;
    if (rule->spec.rope_type == PE_ROPE_DYNAMIC) {
        const int64_t trained = rule->spec.max_position_embeddings;
        const int64_t n = rule->seq_len > trained ? rule->seq_len : trained;
        double ratio = rule->factor * (double)n;
        PE_KEEP(ratio);
        alpha = ratio / (double)trained - (rule->factor - 1);
    }
    if (!(alpha > 0 && alpha <= DBL_MAX))
        return 0;
    double stretched =
        rule->spec.rope_theta * pow_f64(alpha, (double)d / (double)(d - 2));
    PE_KEEP(stretched);
    return stretched;
}

static float yarn(const pe_freq_rule *rule, int32_t i, int32_t d)
{
    const pe_yarn_range range = pe_yarn_ramp(rule, d);
    const float low = pe_wide_to_float(range.low);
    const float width =
        (float)(pe_wide_to_double(range.high) - pe_wide_to_double(range.low));
    const float p = pos_freq(rule->spec.rope_theta, i, d);
    const float extrapolated = 1 / p, interpolated = 1 / keep((float)rule->factor * p);
    const float linear = ((float)i - low) / width;
    const float keeps = 1 - (linear < 0 ? 0 : linear > 1 ? 1 : linear);
    return keep(interpolated * (1 - keeps)) + keep(extrapolated * keeps);
}

static float llama3(const pe_freq_rule *rule, float f)
{
    const double original = (double)rule->original;
    const double low = rule->spec.low_freq_factor, high = rule->spec.high_freq_factor;
    const float factor = (float)rule->factor;
    const float wavelength = (float)6.283185307179586 / f;
    const float slow = f / factor;
    if (wavelength < (float)(original / high))
        return f;
    if (wavelength > (float)(original / low) || low == high)
        return slow;
    const float smooth =
        ((float)original / wavelength - (float)low) / (float)(high - low);
    return keep((1 - smooth) * f) / factor + keep(smooth * f);
}

static float entry(const pe_freq_rule *rule, int32_t pair, int32_t i, int32_t d)
{
    const double theta = rule->spec.rope_theta;
    const float factor = (float)rule->factor;
    switch (rule->spec.rope_type) {
    case PE_ROPE_LINEAR:
        return keep(1 / pos_freq(theta, i, d)) / factor;
    case PE_ROPE_NTK:
    case PE_ROPE_DYNAMIC: {
        const double base = ntk_base(rule, d);
        const int is_float = base >= FLT_MIN && base <= FLT_MAX;
        return is_float ? 1 / pos_freq(base, i, d) : -1; /* the caller refuses it */
    }
    case PE_ROPE_YARN:
        return yarn(rule, i, d);
    case PE_ROPE_LONGROPE: {
        const double *list = rule->seq_len > rule->original ? rule->spec.long_factor
                                                            : rule->spec.short_factor;
        return 1 / keep((float)list[pair] * pos_freq(theta, i, d));
    }
    case PE_ROPE_LLAMA3:
        return llama3(rule, 1 / pos_freq(theta, i, d));
    case PE_ROPE_PROPORTIONAL:
        return i < pe_proportional_pairs(rule, d)
                   ? keep(1 / pos_freq(theta, i, d)) / factor
                   : 0;
    case PE_ROPE_CUSTOM:
        return (float)rule->spec.inv_freq[pair];
    default:
        return 1 / pos_freq(theta, i, d);
    }
}

void pe_freq_fill_hf(const pe_freq_rule *rule, int32_t num_pairs,
                     const pe_axis_layout *layout, float *inv_freq)
{
    for (int32_t i = 0; i < num_pairs; i++) {
        inv_freq[i] = entry(rule, i, layout->rung[i], layout->ladder_dim[i]);
        if (rule->spec.freq_factors != NULL)
            inv_freq[i] = keep(inv_freq[i]) / (float)rule->spec.freq_factors[i];
    }
}
