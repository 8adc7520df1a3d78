/* SPDX-License-Identifier: MIT
 *
 * attention_problem.h - one plain attention call in dense float arrays
 */
#ifndef PE_TESTS_ATTENTION_PROBLEM_H
#define PE_TESTS_ATTENTION_PROBLEM_H

#include "box.h"
#include "posenc/attention.h"
#include "posenc/env.h"

/* Arrays are [token][head][dim]; out, lse and blocks are what a run gives. */
typedef struct attention_problem {
    int64_t q_len, k_len;
    pe_attention_spec spec;
    pe_attention_args args;
    pe_tensor q_t, k_t, v_t, out_t;
    float *q, *k, *v, *out, *lse, *norms;
    int64_t blocks[2];
    pe_positions q_at, k_at;
} attention_problem;

/* Random, causal, queries in the last places, no positions used. */
void attention_problem_init(attention_problem *p, test_rng *r, int64_t q_len,
                            int64_t k_len, int32_t heads, int32_t kv_heads,
                            int32_t dim);
void attention_problem_free(attention_problem *p);

/* k_norms = the lengths of the keys as they are now. */
void attention_problem_norms(attention_problem *p);

/* Runs forward in a workspace full of NaN; env NULL: the best kernels, no threads. */
void attention_problem_run(attention_problem *p, const pe_env *env);

pe_bias *attention_problem_alibi(int32_t heads, pe_bias_form form, double scale);
pe_rope *attention_problem_rope(int32_t dim);

#endif /* PE_TESTS_ATTENTION_PROBLEM_H */
