/* SPDX-License-Identifier: MIT
 *
 * bench_limits.h - loops that nothing can outrun, in the instruction set of a kernel
 */
#ifndef POSENC_CLI_BENCH_LIMITS_H
#define POSENC_CLI_BENCH_LIMITS_H

#include "posenc/env.h"
#include "posenc/posenc.h"

typedef struct bench_limits {
    pe_isa isa;
    /* x *= factor in place: count floats. */
    void (*scale)(float *x, int64_t count, float factor);
    /* The same over 16-bit elements: load, convert, multiply, convert, store.  bf16
     * rounds to nearest even and gives NaN no thought. */
    void (*scale_f16)(uint16_t *x, int64_t count, float factor);
    void (*scale_bf16)(uint16_t *x, int64_t count, float factor);
    /* y = e^-x for x in [0, 80], to some 2^-22; x may be y, over and over. */
    void (*exponential)(const float *x, float *y, int64_t count);
    /* Softmax over count keys of scale * x + mask, in place, as engines do it that are
     * given the bias as an array. */
    void (*masked_softmax)(float *x, const float *mask, float scale, int64_t count);
    /* rounds times flops_per_round operations on registers. */
    float (*multiply_add)(int64_t rounds, float factor);
    int64_t flops_per_round;
} bench_limits;

/* 1, which compilers do not know: times it data stay what they are. */
extern volatile float bench_one;

/* scale over count elements of f32, f16 or bf16, taken for floats: the limit of whatever
 * reads and writes as many bytes. */
void bench_scale(const bench_limits *limits, pe_dtype dtype, void *x, int64_t count);
/* scale_f16 or scale_bf16. */
void bench_convert(const bench_limits *limits, pe_dtype dtype, void *x, int64_t count);

/* For an instruction set that is available here, or scalar's. */
const bench_limits *bench_limits_get(pe_isa isa);

#endif /* POSENC_CLI_BENCH_LIMITS_H */
