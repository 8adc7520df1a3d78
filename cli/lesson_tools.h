/* SPDX-License-Identifier: MIT
 *
 * lesson_tools.h - short questions to the library, as the lesson asks them
 *
 * Each returns CLI_DONE, or says what the library says. */
#ifndef POSENC_CLI_LESSON_TOOLS_H
#define POSENC_CLI_LESSON_TOOLS_H

#include "cli.h"

#include "posenc/env.h"

/* Of every plan: the reference kernels, so that no digit depends on the machine. */
extern const pe_env lesson_env;

#define LESSON_PI 3.14159265358979323846

/* [count][dim]: positions first, first + 1, ... in the order of Vaswani et al. */
int lesson_sinusoids(int64_t first, int64_t count, int32_t dim, float *out);

/* inv_freq [head_dim / 2]; NULL: those of theta 10000. */
int lesson_rope_create(pe_rope **out, int32_t head_dim, pe_pairing pairing,
                       const double *inv_freq);
/* y [head_dim] is x turned to the position. */
int lesson_turn(const pe_rope *rope, int64_t position, const float *x, float *y);
/* The score of a query at q_position and a key at k_position: a dot product. */
int lesson_score(const pe_rope *rope, const float *q, int64_t q_position,
                 const float *k, int64_t k_position, double *score);
/* cos and sin [head_dim / 2] of the angles at a position. */
int lesson_cos_sin(const pe_rope *rope, int64_t position, float *cosines, float *sines);

/* ALiBi, causal; slopes [num_heads], NULL: the published ones. */
int lesson_alibi_create(pe_bias **out, int32_t num_heads, const float *slopes);

double lesson_dot(const float *a, const float *b, int32_t dim);

#endif /* POSENC_CLI_LESSON_TOOLS_H */
