/* SPDX-License-Identifier: MIT
 *
 * attention_plan.h - what a pe_attention holds
 *
 * The spec with its defaults filled in; const after creation. */
#ifndef PE_ATTENTION_PLAN_H
#define PE_ATTENTION_PLAN_H

#include "base/dtype.h"
#include "base/memory.h"
#include "kernels/attention_kernels.h"
#include "kernels/kernels.h"
#include "posenc/attention.h"

enum {
    PE_MAX_ATTENTION_HEADS = 65536,
    PE_MAX_FAR_RULES = 7,
    PE_MAX_VARIANTS = PE_MAX_FAR_RULES + 1 /* near positions, and each rule's */
};

#define PE_LOG2E 0x1.71547652b82fep0
#define PE_LN2   0x1.62e42fefa39efp-1

struct pe_attention {
    pe_env env;
    pe_attention_spec spec; /* scale, v_head_dim resolved */
    const pe_attention_kernels *kernels;
    const pe_kernels *plain;
    int64_t group;        /* q heads that share a kv head */
    int64_t k_pad, v_pad; /* head_dim, v_head_dim rounded up to PE_COLUMN_GROUP */
    int fast_bias;        /* the bias that the softmax loop computes itself, or -1 */
    pe_distance distance; /* of it */
};

/* The larger; NaN if either is one, so that no bound hides it. */
static inline double pe_larger(double a, double b)
{
    return a > b || a != a ? a : b;
}

/* A float above x >= 0 and the roundings, of relative size margin, that made it. */
static inline float pe_above(double x, double margin)
{
    const float f = (float)(x * (1 + margin));
    return (double)f < x ? pe_f32_from_bits(pe_f32_bits(f) + 1) : f;
}

#endif /* PE_ATTENTION_PLAN_H */
