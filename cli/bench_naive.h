/* SPDX-License-Identifier: MIT
 *
 * bench_naive.h - rotation in the published shape of ggml's work, as a baseline
 *
 * A table per tensor and token by sinf and cosf of a running product, then every head,
 * one pair after the other.  On x86 ggml loads f16 through a table of all its values and
 * stores it by arithmetic of its own, also where the CPU could convert at once
 * (GGML_CPU_FP32_TO_FP16 of its simd-mappings.h is GGML_COMPUTE_FP32_TO_FP16, of which
 * v0.5.0 has only the portable form); so does this.  Written anew. */
#ifndef POSENC_CLI_BENCH_NAIVE_H
#define POSENC_CLI_BENCH_NAIVE_H

#include "posenc/posenc.h"

typedef struct bench_naive {
    pe_dtype dtype;
    pe_pairing pairing;
    int64_t tokens, head_dim, start;
    double theta;
    int64_t num_heads[2]; /* of q and k */
    int converts_at_once; /* to f16 by the CPU's instruction: kinder than ggml */
    void *data[2];        /* [tokens][num_heads][head_dim], rotated in place */
} bench_naive;

/* Makes the table of f16; before the first run. */
void bench_naive_start(void);
void bench_naive_run(void *naive);

#endif /* POSENC_CLI_BENCH_NAIVE_H */
