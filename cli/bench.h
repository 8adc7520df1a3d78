/* SPDX-License-Identifier: MIT
 *
 * bench.h - measured rows: one piece of work beside the limits and baselines of it
 *
 * The sides of a row take turns within one run, so that their ratios hold although the
 * machine's speed wanders; absolute times do not carry over to another run. */
#ifndef POSENC_CLI_BENCH_H
#define POSENC_CLI_BENCH_H

#include "bench_limits.h"
#include "cli.h"

#include "posenc/env.h"

enum { BENCH_SIDES = 5, BENCH_SAMPLES = 64, BENCH_DTYPES = 3 };

/* Work done once; everything it needs is behind ctx. */
typedef struct bench_side {
    const char
        *name; /* "limit", "naive", ...; of the first side, which is ours, NULL */
    void (*run)(void *ctx);
    void *ctx;
} bench_side;

typedef struct bench_row {
    char id[64];
    double bytes, flops;   /* of the work once: read and written, done */
    double working_set;    /* bytes that it touches */
    double ns, low, high;  /* median and quartiles */
    double limit_fraction; /* of the bytes per second of in-place scale; 0: none */
    const char *vs[BENCH_SIDES];
    double ratio[BENCH_SIDES]; /* time of vs[i] over ours, median of the rounds */
    int num_vs, num_samples;
    double samples[BENCH_SAMPLES]; /* of ours, ns each, evenly chosen */
} bench_row;

typedef struct bench_goal {
    char id[80]; /* "ROW vs SIDE" */
    double goal, got;
    int is_known, at_most;
} bench_goal;

typedef struct bench {
    int32_t quick, isa;
    const char *only; /* measure rows whose id has this in it; NULL: all */
    const bench_limits *limits;
    int32_t by_wall;     /* the next rows have threads; others count their own CPU time,
                      * which a busy machine does not stretch */
    int64_t dram_tokens; /* the longest prefill of this run */
    bench_row *rows;
    size_t num_rows, room;
    bench_goal goals[160];
    size_t num_goals;
    int status; /* of the first failure; nothing is measured after it */
} bench;

extern const char *const bench_dtype_names[BENCH_DTYPES];
extern const pe_dtype bench_dtypes[BENCH_DTYPES];

/* Whether a row of that id is wanted and nothing has failed. */
int bench_wants(const bench *b, const char *id);
/* Measures sides in turn.  A side named "limit" fills limit_fraction, given that it
 * moves limit_bytes; the others go to vs. */
bench_row *bench_measure(bench *b, const char *id, double bytes, double flops,
                         double working_set, double limit_bytes,
                         const bench_side *sides, int num_sides);
/* Adds a goal for "row vs side", read from the rows measured so far. */
void bench_goal_at_least(bench *b, const char *row, const char *side, double goal);
/* Likewise for a number that no row has; got 0: not measured. */
void bench_goal_at_most(bench *b, const char *id, double got, double goal);
void bench_goal_above(bench *b, const char *id, double got, double goal);
const bench_row *bench_find(const bench *b, const char *id);
double bench_ratio(const bench *b, const char *row, const char *side); /* 0: none */

/* Zeroes are never measured: count elements of the dtype in [-1, 1), 64-byte aligned.
 * On failure says so, sets b->status and returns NULL. */
void *bench_alloc(bench *b, pe_dtype dtype, int64_t count);
/* Reports a library call that failed; for the first failure. */
void bench_failed(bench *b, const pe_error *error);

/* The families, in the order of the report. */
void bench_limit_rows(bench *b);
void bench_rope(bench *b);      /* on the fly, row given, shapes */
void bench_uses(bench *b);      /* store to a cache, instruction sets, threads */
void bench_cache(bench *b);     /* keys in a cache, turned on */
void bench_tables(bench *b);    /* rows of cosines and sines */
void bench_bias(bench *b);      /* softmax with ALiBi */
void bench_add(bench *b);       /* encodings to hidden states, ALiBi to scores */
void bench_attention(bench *b); /* prefill, decode, gradients, blocks left out */
void bench_growth(bench *b);    /* part of it */
void bench_peer_goals(bench *b);

int bench_print_text(const bench *b);
int bench_print_json(const bench *b);
int bench_write_svg(const bench *b, const char *path);

#endif /* POSENC_CLI_BENCH_H */
