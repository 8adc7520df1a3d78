/* SPDX-License-Identifier: MIT
 *
 * bias_plan.h - what a pe_bias holds, and the bias of one row of scores
 *
 * A bias depends on a head, a query's position and a key's position, and on nothing
 * else; every call is a walk over rows of it. */
#ifndef PE_BIAS_PLAN_H
#define PE_BIAS_PLAN_H

#include "base/memory.h"

enum {
    PE_MAX_BIAS_HEADS = 65536,
    PE_MAX_BUCKETS = 4096,
    PE_BIAS_CHUNK = 512 /* keys handled together; a multiple of the 8 lanes of sums */
};

struct pe_bias {
    pe_env env;
    size_t size; /* of the one block that holds the plan and its arrays */
    pe_bias_type type;
    pe_bias_form form;
    int32_t num_heads, head_start;
    pe_dtype round_to; /* 0: none */
    double scale;
    float *slopes;      /* ALIBI: [num_heads], as used */
    float *p, *a;       /* KERPLE: [num_heads] */
    float *table;       /* T5: [num_buckets][num_heads] */
    double *edges;      /* T5: smallest distance of each bucket of one side */
    int32_t num_edges;  /* num_buckets, half of it when both sides have buckets */
    int32_t later_side; /* BIDIRECTIONAL: where the buckets of k > q begin, else 0 */
};

/* Bias of head (counted in the model) for a query at q and n keys at k[]; positions are
 * whole and at most 2^52 in size, so that distances are exact. */
void pe_bias_row(const pe_bias *bias, int32_t head, double q, const double *k,
                 int64_t n, double *out);

/* T5: pe_bias_row for n keys from first on, which costs little more than writing it. */
void pe_bias_t5_run(const pe_bias *bias, int32_t head, double q, double first,
                    int64_t n, double *out);

/* T5: the bucket of a key at distance k - q.  CAUSAL plans: k <= q only. */
int32_t pe_bias_bucket(const pe_bias *bias, double q, double k);

/* ALIBI: what a slope is multiplied by. */
void pe_bias_distances(const pe_bias *bias, double q, const double *k, int64_t n,
                       double *out);

/* sums += the gradients of one head's parameters from one row of dscores: ALIBI one,
 * KERPLE p then a, T5 each bucket (at most PE_MAX_BUCKETS).  k and ds are disordered;
 * n is at most PE_BIAS_CHUNK. */
void pe_bias_row_gradient(const pe_bias *bias, int32_t head, double q, double *k,
                          float *ds, int64_t n, double *sums);
int64_t pe_bias_num_gradients(const pe_bias *bias); /* of a head */
/* grad, laid out as pe_bias_backward's, += sums. */
void pe_bias_store_gradients(const pe_bias *bias, int32_t head, const double *sums,
                             float *grad);

#endif /* PE_BIAS_PLAN_H */
