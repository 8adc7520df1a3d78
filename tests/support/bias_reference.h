/* SPDX-License-Identifier: MIT
 *
 * bias_reference.h - every score bias by the textbook, one score at a time
 *
 * long double and libm; nothing shared with the library but the definitions in
 * posenc.h. */
#ifndef PE_TESTS_BIAS_REFERENCE_H
#define PE_TESTS_BIAS_REFERENCE_H

#include "posenc/posenc.h"
#include "rng.h"

enum { REF_MAX_HEADS = 16, REF_MAX_BUCKETS = 64 };

/* A spec and the arrays that it points to. */
typedef struct ref_bias {
    pe_bias_spec spec;
    float slopes[REF_MAX_HEADS], p[REF_MAX_HEADS], a[REF_MAX_HEADS];
    float table[REF_MAX_BUCKETS * REF_MAX_HEADS];
} ref_bias;

/* A spec of that type and form with random parameters. */
void ref_bias_random(ref_bias *ref, test_rng *r, pe_bias_type type, pe_bias_form form,
                     int32_t num_heads, int32_t head_start);

/* Slope of head h of n: the code that models use, or the paper's sentence. */
long double ref_slope(pe_slope_recipe recipe, int32_t h, int32_t n, double max_bias);

/* T5's bucket of k - q, with float steps as the reference takes them. */
int32_t ref_bucket(int32_t num_buckets, int64_t max_distance, int bidirectional,
                   int64_t relative);

/* Bias of a head, counted in the model, for a query at q and a key at k. */
long double ref_bias_at(const ref_bias *ref, int32_t head, int64_t q, int64_t k);

#endif /* PE_TESTS_BIAS_REFERENCE_H */
