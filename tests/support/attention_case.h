/* SPDX-License-Identifier: MIT
 *
 * attention_case.h - random attention problems with everything that attention has
 *
 * A case draws shapes, dtypes, layouts, masks, ropes, biases and rules, owns all of it,
 * and knows the right answer by attention_reference.h. */
#ifndef PE_TESTS_ATTENTION_CASE_H
#define PE_TESTS_ATTENTION_CASE_H

#include "attention_reference.h"
#include "box.h"

enum { CASE_FAR_RULES = 2 };

typedef struct attention_case {
    test_rng rng;
    char about[256];
    pe_attention_spec spec;
    pe_attention_args args;
    ref_attention ref;
    pe_rope *q_rope, *k_rope;
    pe_bias *bias[2];
    pe_bias_spec bias_spec[2];
    test_box q, k, v, out;
    test_box mask;
    int has_mask;
    int64_t *q_ids, *k_ids, *k_lens;
    int64_t *far_q[CASE_FAR_RULES], *far_k[CASE_FAR_RULES];
    int32_t *q_cu, *k_cu;
    float *sinks, *lse, *norms, *scores;
    pe_tensor scores_tensor;
    pe_positions q_at, k_at, far_q_at[CASE_FAR_RULES], far_k_at[CASE_FAR_RULES];
    pe_far far_rules[CASE_FAR_RULES];
    double *dots, *biases, *bias_sizes, *values, *factors;
    double *probs, *exact, *exact_lse;
    double product_size; /* largest scaled sum of |q_i k_i| */
    /* By variant, near positions first: [batch][heads][len][head_dim]. */
    double *q_turned[1 + CASE_FAR_RULES], *k_turned[1 + CASE_FAR_RULES];
    unsigned char *absent;
    size_t work_size;
    void *work;
} attention_case;

enum {
    CASE_PLAIN_DTYPES = 1, /* f32 everywhere, dense */
    CASE_NO_FAR = 2,
    CASE_MANY_KEYS = 4, /* up to some thousands, few queries */
    CASE_NO_SCORES = 8,
    CASE_FAR = 16 /* ropes and far rules wherever head_dim is even */
};

void attention_case_init(attention_case *c, uint64_t seed, int flags);
void attention_case_free(attention_case *c);

/* Runs forward with env; NULL, or what went wrong. */
const char *attention_case_forward(attention_case *c, const pe_env *env);

/* Compares out, lse and scores with the reference; NULL, or the first difference. */
const char *attention_case_compare(attention_case *c);

/* Whose positions query i and key j of row b stand at: 0, or 1 + the index of a far
 * rule. */
int attention_case_variant(const attention_case *c, int64_t b, int64_t i, int64_t j);

/* Parts of attention_case_init. */
void case_draw(attention_case *c, int flags);
void *case_array(int64_t count, size_t size); /* zeroed, or the test ends */
int case_chance(test_rng *r, int percent);
void case_note(attention_case *c, const char *what);
void case_must(pe_status status, const pe_error *error);

#endif /* PE_TESTS_ATTENTION_CASE_H */
