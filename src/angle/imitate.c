/* SPDX-License-Identifier: MIT
 *
 * imitate.c - the float arithmetic of Hugging Face models and of ggml
 */
#include "angle/imitate.h"

#include "angle/wide.h"
#include "kernels/sincos.h"

/* floor(2^256 / (2 pi)), least significant word first. */
static const uint64_t INV_2PI[4] = {0x7f9458eaf7aef158u, 0x36d8a5664f10e410u,
                                    0x7f09d5f47d4d3770u, 0x28be60db9391054au};

/* Bits [at, at + 64) of a number of 5 words; bits outside it are 0. */
static uint64_t bits_at(const uint64_t words[5], int at)
{
    uint64_t r = 0;
    for (int k = 0; k < 5; k++) {
        const int shift = 64 * k - at;
        if (shift > -64 && shift < 64)
            r |= shift >= 0 ? words[k] << shift : words[k] >> -shift;
    }
    return r;
}

/* The fraction of |angle| / (2 pi), most significant word first; angle is finite and at
 * least 2^-40 in size.  mantissa * 2^exponent * INV_2PI * 2^-256, so the binary point of
 * the product lies at bit 256 - exponent. */
static void turns_fraction(float angle, uint64_t fraction[3])
{
    const uint32_t bits = pe_f32_bits(angle);
    const uint64_t mantissa = (bits & 0x7fffffu) | 0x800000u;
    const int exponent = (int)(bits >> 23 & 0xff) - 127 - 23;
    uint64_t product[5], carry = 0;
    for (int k = 0; k < 4; k++) {
        const uint64_t low = mantissa * (INV_2PI[k] & 0xffffffffu) + carry;
        const uint64_t high = mantissa * (INV_2PI[k] >> 32) + (low >> 32);
        product[k] = high << 32 | (low & 0xffffffffu);
        carry = high >> 32;
    }
    product[4] = carry;
    for (int k = 0; k < 3; k++)
        fraction[k] = bits_at(product, 256 - exponent - 64 * (k + 1));
}

void pe_cos_sin_f32(float angle, float *cosine, float *sine)
{
    const uint32_t magnitude = pe_f32_bits(angle) & 0x7fffffffu;
    if (magnitude >= 0x7f800000u) {
        *cosine = *sine = pe_f32_from_bits(0x7fc00000u);
        return;
    }
    if (magnitude < 0x30800000u) { /* below 2^-30: 1 - a^2/2 and a - a^3/6 round so */
        *cosine = 1;
        *sine = angle;
        return;
    }
    /* Truncation to 2^-96 turn, against sincos.h's 2^-51 of the distance. */
    const double distance = 0x1p21;
    uint64_t fraction[3];
    turns_fraction(angle, fraction);
    if (pe_sincos_f32(fraction[0], fraction[1] >> 32, 1, distance, cosine, sine)) {
        pe_wide c, s;
        pe_wide_cos_sin(pe_wide_from_fraction(fraction, 3), &c, &s);
        *cosine = pe_wide_to_float(c);
        *sine = pe_wide_to_float(s);
    }
    if (angle < 0)
        *sine = -*sine;
}

static float mul_rounded(float a, float b)
{
    float r = a * b;
    PE_KEEP(r);
    return r;
}

void pe_hf_row(const float *inv_freq, int64_t n, const uint8_t *pair_axis,
               const float *positions, float factor, float *cos_out, float *sin_out)
{
    for (int64_t i = 0; i < n; i++) {
        float c, s;
        pe_cos_sin_f32(mul_rounded(positions[pair_axis[i]], inv_freq[i]), &c, &s);
        cos_out[i] = mul_rounded(c, factor);
        sin_out[i] = mul_rounded(s, factor);
    }
}

/* 1 where the pair keeps its frequency, 0 where it is interpolated. */
static float ggml_ramp(const pe_ggml_freqs *f, int32_t pair)
{
    const float width = f->corr_high - f->corr_low;
    const float y = ((float)pair - f->corr_low) / (width > 0.001f ? width : 0.001f);
    return 1 - (y < 0 ? 0 : y > 1 ? 1 : y);
}

void pe_ggml_row(const pe_ggml_freqs *f, int64_t n, const uint8_t *pair_axis,
                 const float *positions, float *cos_out, float *sin_out)
{
    float theta[4] = {0};
    for (int64_t i = 0; i < n; i++) {
        const int axis = pair_axis[i];
        for (int a = 0; a < 4; a++)
            theta[a] = f->ladder[i] == 0 ? positions[a]
                                         : mul_rounded(theta[a], f->theta_scale);
        const float extrapolated =
            f->freq_factors != NULL ? theta[axis] / f->freq_factors[i] : theta[axis];
        float angle = mul_rounded(f->freq_scale, extrapolated);
        if (f->ext_factor != 0) {
            const float mix = mul_rounded(ggml_ramp(f, f->ladder[i]), f->ext_factor);
            angle = mul_rounded(angle, 1 - mix) + mul_rounded(extrapolated, mix);
        }
        float c, s;
        pe_cos_sin_f32(angle, &c, &s);
        cos_out[i] = mul_rounded(c, f->magnitude);
        sin_out[i] = mul_rounded(s, f->magnitude);
    }
}
