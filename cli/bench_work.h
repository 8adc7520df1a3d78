/* SPDX-License-Identifier: MIT
 *
 * bench_work.h - a rotation of q and k, with its limits, as sides of a row
 */
#ifndef POSENC_CLI_BENCH_WORK_H
#define POSENC_CLI_BENCH_WORK_H

#include "bench.h"

enum { BENCH_Q_HEADS = 32, BENCH_K_HEADS = 8, BENCH_START = 1000 };

typedef struct bench_shape {
    int dtype; /* of bench_dtypes */
    int64_t tokens, head_dim;
    pe_pairs pairs;
    int is_tabulated; /* rows given; else made on the fly */
    int is_mrope;     /* three axes, each with its own positions */
    pe_isa isa;
    const pe_executor *executor; /* NULL: this thread */
} bench_shape;

typedef struct bench_work {
    bench_shape shape;
    pe_rope *rope;
    pe_positions at;
    pe_tensor q, k;
    void *data; /* q, then k: one run of memory */
    int64_t *ids;
    int64_t count; /* elements */
    const bench_limits *limits;
} bench_work;

/* In place over data made here, or, when data is not NULL, over that.  On failure says
 * so and sets b->status. */
void bench_work_open(bench *b, bench_work *work, const bench_shape *shape, void *data);
/* Leaves data that was given. */
void bench_work_close(bench_work *work);
double bench_work_bytes(const bench_work *work); /* read and written */
double bench_work_flops(const bench_work *work);

/* Sides; ctx is a bench_work. */
void bench_work_rotate(void *work);
void bench_work_back(void *work);    /* the transpose of that */
void bench_work_scale(void *work);   /* limit: the same bytes as floats */
void bench_work_convert(void *work); /* limit of a 16-bit dtype */

#endif /* POSENC_CLI_BENCH_WORK_H */
