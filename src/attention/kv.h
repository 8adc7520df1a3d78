/* SPDX-License-Identifier: MIT
 *
 * kv.h - what a pe_kv holds
 *
 * Keys lie head by head, so that decoding streams. */
#ifndef PE_ATTENTION_KV_H
#define PE_ATTENTION_KV_H

#include "attention/attention_plan.h"

enum { PE_KV_CHUNK = 16 }; /* tokens that are turned together: they stay in the cache */

struct pe_kv {
    pe_kv_info info;
    pe_env env;
    pe_kv_spec spec;
    size_t size; /* of the one block that holds all of it */
    int64_t num_axes, num_runs;
    pe_tensor k, v;      /* the whole capacity */
    int64_t *ids;        /* [num_axes][capacity] */
    double *errors;      /* [capacity]: bound on |key - exact key| over the heads */
    float *norms;        /* [num_runs of capacity][heads] */
    float *packed_norms; /* [heads][runs in use], what info shows */
    float *turned;       /* [PE_KV_CHUNK][heads][head_dim] */
};

/* Bytes of one head vector. */
int64_t pe_kv_row_size(const pe_tensor *x);

/* Brings info up to date with what is held. */
void pe_kv_refresh(pe_kv *kv);

#endif /* PE_ATTENTION_KV_H */
