/* SPDX-License-Identifier: MIT
 *
 * loop_attention.c - our side of a comparison that a script makes: causal attention
 *
 * As loop.c: flat calls for ctypes, times of the thread's CPU. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "posenc/attention.h"

#include <stdlib.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct peer_attention {
    pe_attention *plan;
    pe_bias *alibi;
    pe_tensor q, k, v, out;
    pe_positions q_at, k_at;
    pe_attention_args args;
    void *scratch;
    size_t size;
} peer_attention;

void peer_attention_destroy(peer_attention *a);
peer_attention *peer_attention_create(int dtype, int64_t q_len, int64_t k_len,
                                      int32_t heads, int32_t kv_heads, int32_t head_dim,
                                      int by_token, int has_alibi, void *q, void *k,
                                      void *v, void *out);
double peer_attention_run(const peer_attention *a, int64_t times);

EXPORT void peer_attention_destroy(peer_attention *a)
{
    if (a == NULL)
        return;
    pe_attention_destroy(a->plan);
    pe_bias_destroy(a->alibi);
    free(a->scratch);
    free(a);
}

static int plan(peer_attention *a, int32_t heads, int32_t kv_heads, int32_t head_dim,
                int has_alibi)
{
    const pe_bias_spec bias_spec = {.struct_size = sizeof bias_spec,
                                    .type = PE_BIAS_ALIBI,
                                    .form = PE_BIAS_CAUSAL,
                                    .num_heads = heads};
    pe_attention_spec spec = {.struct_size = sizeof spec,
                              .num_heads = heads,
                              .num_kv_heads = kv_heads,
                              .head_dim = head_dim,
                              .visible = {.mask = PE_MASK_CAUSAL}};
    if (pe_bias_create(&a->alibi, &bias_spec, NULL, NULL) != PE_OK)
        return 0;
    spec.bias[0] = has_alibi ? a->alibi : NULL;
    a->args = (pe_attention_args){.struct_size = sizeof a->args,
                                  .q = &a->q,
                                  .k = &a->k,
                                  .v = &a->v,
                                  .out = &a->out,
                                  .q_at = &a->q_at,
                                  .k_at = &a->k_at};
    if (pe_attention_create(&a->plan, &spec, NULL, NULL) != PE_OK ||
        pe_attention_workspace(a->plan, &a->args, &a->size, NULL, NULL) != PE_OK)
        return 0;
    a->scratch = aligned_alloc(64, (a->size + 63) / 64 * 64);
    return a->scratch != NULL;
}

/* q and out are float32, k and v of dtype: [tokens][heads][dim] by token, else heads
 * first.  NULL: refused. */
EXPORT peer_attention *peer_attention_create(int dtype, int64_t q_len, int64_t k_len,
                                             int32_t heads, int32_t kv_heads,
                                             int32_t head_dim, int by_token,
                                             int has_alibi, void *q, void *k, void *v,
                                             void *out)
{
    peer_attention *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->q_at.start = k_len - q_len;
    if (by_token) {
        pe_tensor_bshd(&a->q, PE_F32, q, 1, q_len, heads, head_dim);
        pe_tensor_bshd(&a->k, dtype, k, 1, k_len, kv_heads, head_dim);
        pe_tensor_bshd(&a->v, dtype, v, 1, k_len, kv_heads, head_dim);
        pe_tensor_bshd(&a->out, PE_F32, out, 1, q_len, heads, head_dim);
    } else {
        pe_tensor_bhsd(&a->q, PE_F32, q, 1, heads, q_len, head_dim);
        pe_tensor_bhsd(&a->k, dtype, k, 1, kv_heads, k_len, head_dim);
        pe_tensor_bhsd(&a->v, dtype, v, 1, kv_heads, k_len, head_dim);
        pe_tensor_bhsd(&a->out, PE_F32, out, 1, heads, q_len, head_dim);
    }
    if (plan(a, heads, kv_heads, head_dim, has_alibi))
        return a;
    peer_attention_destroy(a);
    return NULL;
}

/* Nanoseconds for one; negative: refused. */
EXPORT double peer_attention_run(const peer_attention *a, int64_t times)
{
    struct timespec begin, end;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int64_t i = 0; i < times; i++)
        if (pe_attention_forward(a->plan, &a->args, a->scratch, a->size, NULL) != PE_OK)
            return -1;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 +
            (double)(end.tv_nsec - begin.tv_nsec)) /
           (double)times;
}
