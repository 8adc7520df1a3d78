/* SPDX-License-Identifier: MIT
 *
 * exp2.h - powers of two for the few places outside the inner loops
 */
#ifndef PE_ATTENTION_EXP2_H
#define PE_ATTENTION_EXP2_H

#include "attention/attention_plan.h"
#include "bias/real.h"

/* 2^x within 2^-50; +0 below 2^-1000. */
static inline double pe_exp2(double x)
{
    return x < -1000 ? 0 : pe_real_exp(x * PE_LN2);
}

/* A weight of a merge, x <= 0: like the inner loops, +0 at and below PE_EXP2_ZERO. */
static inline float pe_exp2_weight(double x)
{
    return x <= (double)PE_EXP2_ZERO ? 0 : (float)pe_exp2(x);
}

#endif /* PE_ATTENTION_EXP2_H */
