/* SPDX-License-Identifier: MIT
 *
 * slopes.h - ALiBi's slopes from a recipe
 */
#ifndef PE_BIAS_SLOPES_H
#define PE_BIAS_SLOPES_H

#include "base/base.h"

/* slopes[num_heads], each the float nearest to the recipe's real number. */
void pe_slopes_fill(pe_slope_recipe recipe, int32_t num_heads, double max_bias,
                    float *slopes);

#endif /* PE_BIAS_SLOPES_H */
