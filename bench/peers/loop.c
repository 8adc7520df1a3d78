/* SPDX-License-Identifier: MIT
 *
 * loop.c - our side of a comparison that a script makes: a rotation, many times
 *
 * A library of flat calls for ctypes, so that a script's own overhead is not in our
 * time; the peer's is in its, as its users pay it.  Times are of the thread's CPU. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "posenc/posenc.h"

#include <stdlib.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct peer_rope {
    pe_rope *rope;
    pe_positions at;
    pe_tensor q, q_out, k, k_out;
} peer_rope;

void peer_rope_destroy(peer_rope *r);
peer_rope *peer_rope_create(int dtype, int pairing, int64_t tokens, int64_t q_heads,
                            int64_t k_heads, int32_t head_dim, int is_tabulated,
                            int64_t start, void *q, void *q_out, void *k, void *k_out);
double peer_rope_run(const peer_rope *r, int64_t times);

EXPORT void peer_rope_destroy(peer_rope *r)
{
    if (r != NULL)
        pe_rope_destroy(r->rope);
    free(r);
}

/* Tensors are [tokens][heads][head_dim]; q_out may be q, k_out may be k.  NULL: refused. */
EXPORT peer_rope *peer_rope_create(int dtype, int pairing, int64_t tokens,
                                   int64_t q_heads, int64_t k_heads, int32_t head_dim,
                                   int is_tabulated, int64_t start, void *q,
                                   void *q_out, void *k, void *k_out)
{
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = head_dim,
                               .table_len = is_tabulated ? start + tokens : 0,
                               .pairs = {.pairing = pairing},
                               .freqs = {.rope_theta = 10000}};
    peer_rope *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->at.start = start;
    pe_tensor_bshd(&r->q, dtype, q, 1, tokens, q_heads, head_dim);
    pe_tensor_bshd(&r->q_out, dtype, q_out, 1, tokens, q_heads, head_dim);
    pe_tensor_bshd(&r->k, dtype, k, 1, tokens, k_heads, head_dim);
    pe_tensor_bshd(&r->k_out, dtype, k_out, 1, tokens, k_heads, head_dim);
    if (pe_rope_create(&r->rope, &spec, NULL, NULL) == PE_OK &&
        pe_rope_apply_qk(r->rope, &r->at, &r->q, &r->q_out, &r->k, &r->k_out, NULL) ==
            PE_OK)
        return r;
    peer_rope_destroy(r);
    return NULL;
}

/* Nanoseconds for one. */
EXPORT double peer_rope_run(const peer_rope *r, int64_t times)
{
    struct timespec begin, end;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int64_t i = 0; i < times; i++)
        (void)pe_rope_apply_qk(r->rope, &r->at, &r->q, &r->q_out, &r->k, &r->k_out,
                               NULL);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 +
            (double)(end.tv_nsec - begin.tv_nsec)) /
           (double)times;
}
