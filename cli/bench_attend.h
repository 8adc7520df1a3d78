/* SPDX-License-Identifier: MIT
 *
 * bench_attend.h - one call of attention, with what it cannot avoid, as sides of a row
 */
#ifndef POSENC_CLI_BENCH_ATTEND_H
#define POSENC_CLI_BENCH_ATTEND_H

#include "bench.h"

#include "posenc/attention.h"

enum { BENCH_HEADS = 32, BENCH_KV_HEADS = 8, BENCH_HEAD_DIM = 128 };
/* scale * |q| |k| in the median: the least head and the median of one that was measured
 * (docs/attention.md), and where Kimi K2's training cuts products off. */
enum { BENCH_NORMS_SMALL = 8, BENCH_NORMS = 31, BENCH_NORMS_LARGE = 100 };

typedef struct bench_attention_shape {
    int64_t q_len, k_len;
    int32_t heads, kv_heads;
    int has_alibi, has_rope, has_gradients, no_skip;
    double norm_product; /* scale |q| |k|, about; norms are given.  0: no matter */
    int by_token;        /* k and v are (tokens, heads, dim); else heads first */
    pe_dtype cache;      /* of k and v */
    pe_isa isa;          /* 0: the run's */
    const pe_executor *executor; /* NULL: this thread */
} bench_attention_shape;

typedef struct bench_attend {
    pe_attention *plan;
    pe_bias *alibi;
    pe_rope *rope;
    pe_tensor q, k, v, out, dout, dq, dk, dv;
    pe_positions q_at, k_at;
    pe_attention_args args;
    int64_t blocks[2]; /* visited, left out */
    float *norms, *scales, *lse;
    void *data[8];
    void *scratch;
    size_t size, backward_size; /* of scratch */
    const bench_limits *limits;
    double flops, bytes;
} bench_attend;

/* Gradients need one run forward, which is done.  On failure says so and sets b->status;
 * close in any case. */
void bench_attend_open(bench *b, bench_attend *work,
                       const bench_attention_shape *shape);
void bench_attend_close(bench_attend *work);
/* Draws q and k (f32 or f16) for shape->norm_product, and keeps the norms of keys. */
void bench_attend_draw(bench *b, bench_attend *work,
                       const bench_attention_shape *shape);
/* Bytes of scratch, from shapes alone. */
size_t bench_attend_scratch(bench *b, const bench_attention_shape *shape);

/* Sides; ctx is a bench_attend. */
void bench_attend_forward(void *work);
void bench_attend_backward(void *work);
void bench_attend_multiply_add(void *work); /* as many operations, on registers */
void bench_attend_read(void *work);         /* the bytes of k and v */

#endif /* POSENC_CLI_BENCH_ATTEND_H */
