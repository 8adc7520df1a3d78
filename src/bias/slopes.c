/* SPDX-License-Identifier: MIT
 *
 * slopes.c - ALiBi's slopes from a recipe
 *
 * Exponents are rational numbers times max_bias; the power is taken in the 128-bit
 * software float and rounded once. */
#include "bias/slopes.h"

#include "angle/wide.h"

/* 2^(-max_bias * numerator / denominator) */
static float slope(double max_bias, int64_t numerator, int64_t denominator)
{
    const pe_wide product =
        pe_wide_mul(pe_wide_from_double(max_bias), pe_wide_from_int(numerator));
    const pe_wide exponent = pe_wide_div(product, pe_wide_from_int(denominator));
    return pe_wide_to_float(pe_wide_exp2(pe_wide_neg(exponent)));
}

/* PUBLISHED: with n2 the largest power of two not above num_heads, the first n2 heads
 * have the series of n2 heads, and the others every second one of the series of 2 n2
 * heads, from its first on (Press et al. 2022, their code and all that follow it).
 * GEOMETRIC: one series for any count (their section 3, taken literally). */
void pe_slopes_fill(pe_slope_recipe recipe, int32_t num_heads, double max_bias,
                    float *slopes)
{
    int32_t n2 = num_heads;
    if (recipe == PE_SLOPES_PUBLISHED)
        for (n2 = 1; n2 <= num_heads / 2;)
            n2 *= 2;
    for (int32_t h = 0; h < num_heads; h++)
        slopes[h] = h < n2
                        ? slope(max_bias, h + 1, n2)
                        : slope(max_bias, 2 * ((int64_t)h - n2) + 1, 2 * (int64_t)n2);
}
