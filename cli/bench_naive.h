/* SPDX-License-Identifier: MIT
 *
 * bench_naive.h - rotation in the published shape of ggml's work, as a baseline
 *
 * A table per tensor and token by sinf and cosf of a running product, then every head,
 * one pair after the other; f16 is loaded through a table of all its values and stored
 * by a scalar conversion.  Written anew from what that program is known to do. */
#ifndef POSENC_CLI_BENCH_NAIVE_H
#define POSENC_CLI_BENCH_NAIVE_H

#include "posenc/posenc.h"

typedef struct bench_naive {
    pe_dtype dtype;
    pe_pairing pairing;
    int64_t tokens, head_dim, start;
    double theta;
    int64_t num_heads[2]; /* of q and k */
    void *data[2];        /* [tokens][num_heads][head_dim], rotated in place */
} bench_naive;

/* Makes the table of f16; before the first run. */
void bench_naive_start(void);
void bench_naive_run(void *naive);

#endif /* POSENC_CLI_BENCH_NAIVE_H */
