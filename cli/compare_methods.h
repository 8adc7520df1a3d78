/* SPDX-License-Identifier: MIT
 *
 * compare_methods.h - one small attention problem under every kind of position
 */
#ifndef POSENC_CLI_COMPARE_METHODS_H
#define POSENC_CLI_COMPARE_METHODS_H

#include "cli.h"

#include "posenc/attention.h"

enum {
    CMP_NONE,
    CMP_SINUSOIDAL,
    CMP_LEARNED,
    CMP_ROPE,
    CMP_ALIBI,
    CMP_METHODS,
    CMP_MAX_TOKENS = 64
};

/* The content, without positions: (tokens, heads, dim) each, and the rows of a learned
 * table that was trained for that many positions. */
typedef struct cmp_problem {
    int64_t tokens, heads, dim, trained;
    const float *q, *k, *v;
    float *table; /* [trained][dim] */
} cmp_problem;

/* [heads][tokens][tokens], the same, and [tokens][heads][dim]; hidden scores are NaN. */
typedef struct cmp_result {
    float *scores, *probs, *out;
    char message[240]; /* why there is none: positions outside the learned table */
    int is_refused;
} cmp_result;

typedef struct cmp_tests {
    double bare_shift; /* the same where q and k are 0 but for what a method adds */
    double shift;   /* largest change of a score when all positions move by cmp_shift */
    double shuffle; /* largest change of an output when tokens trade places, unmasked */
    int64_t unseen; /* pairs that have not turned fully within the trained length */
    int64_t pairs;
} cmp_tests;

extern const char *const cmp_names[CMP_METHODS];
extern const char *const cmp_places[CMP_METHODS]; /* what is added where */

enum { CMP_SHIFT = 3 };

/* Causal attention at positions start, start + 1, ...  Says what went wrong and returns
 * an exit code, as the next does; a refusal by the learned table is a result. */
int cmp_attend(const cmp_problem *p, int method, int64_t start, cmp_result *out);
void cmp_release(cmp_result *result);
int cmp_run_tests(const cmp_problem *p, int method, cmp_tests *out);

#endif /* POSENC_CLI_COMPARE_METHODS_H */
