/* SPDX-License-Identifier: MIT
 *
 * attention_kernels.h - the inner loops of attention, as a table per instruction set
 *
 * Scores are kept in log2 units: exp2 is what the loops compute.  Rows come in multiples
 * of PE_ROW_GROUP and columns in multiples of PE_COLUMN_GROUP, so that every instruction
 * set finds whole registers; callers pad with zeroes. */
#ifndef PE_KERNELS_ATTENTION_H
#define PE_KERNELS_ATTENTION_H

#include "base/base.h"

enum {
    PE_KEY_BLOCK = 64,    /* keys that are packed, scored and skipped together */
    PE_ROW_GROUP = 12,    /* a multiple of the rows of every register tile */
    PE_COLUMN_GROUP = 16, /* a multiple of every vector */
    PE_STREAM_ROWS = 8    /* rows that a streaming call handles at most */
};

/* exp2(x) is +0 at and below this, exactly: what lets a block of keys be left out. */
#define PE_EXP2_ZERO (-126.0f)

/* How a distance enters a score: x - slope * distance. */
typedef enum {
    PE_DISTANCE_NONE,
    PE_DISTANCE_CAUSAL,    /* max(query - key, 0) */
    PE_DISTANCE_SYMMETRIC, /* |query - key| */
    PE_DISTANCE_SIGNED     /* query - key */
} pe_distance;

/* Rows of dot products that become weights: one block of keys of an online softmax. */
typedef struct {
    float *s; /* [rows][PE_KEY_BLOCK]: dot products in, weights out */
    int64_t rows;
    float cap, cap_scale; /* s = cap_scale * tanh(s / cap); cap 0: no */
    pe_distance distance;
    const float *key_at;             /* [PE_KEY_BLOCK] */
    const float *query_at, *slope;   /* [rows] */
    const float *extra;              /* [rows][PE_KEY_BLOCK], added; NULL: none */
    const float *first, *end, *sink; /* [rows]: columns [first, end) and [0, sink) are
                                      * seen; NULL: all */
    float *max, *sum;                /* [rows]: running maximum and sum of weights */
    float *out;                      /* [rows][out_row]: rescaled when max grows */
    int64_t out_row;
} pe_softmax_block;

/* A row of scores whose softmax takes an ALiBi bias on the way, never stored. */
typedef struct {
    float scale, ratio; /* scale times log2 e; slope over scale */
    float query;        /* position of the query less that of key 0 */
    pe_distance distance;
    const float *next; /* the row that comes next, brought into the cache; NULL: none */
} pe_alibi_row;

/* What is still to be done to a row: y[from, count) times share. */
typedef struct {
    float *y;
    int64_t from, count;
    float share;
} pe_alibi_owed;

/* Vectors of one dtype: at list[j], or where there is no list, at first + j * step bytes. */
typedef struct {
    const void *const *list;
    const void *first;
    int64_t step;
} pe_rows;

typedef struct pe_attention_kernels {
    pe_isa isa;

    /* c[rows][cols] = (accumulate ? c : 0) + a b.  a has any strides; b and c have
     * contiguous rows. */
    void (*multiply)(int64_t rows, int64_t cols, int64_t depth, const float *a,
                     int64_t a_row, int64_t a_col, const float *b, int64_t b_row,
                     float *c, int64_t c_row, int accumulate);

    /* out[cols][PE_KEY_BLOCK] = the transpose of in[PE_KEY_BLOCK][in_row]; cols is a
     * multiple of PE_COLUMN_GROUP. */
    void (*transpose)(const float *in, int64_t in_row, int64_t cols, float *out);

    /* One block of an online softmax: max, sum and out are brought up to date, s becomes
     * exp2(score - max), +0 where unseen.  NaN scores give NaN weights. */
    void (*softmax)(const pe_softmax_block *block);
    /* s becomes exp2(score - lse) for known lse in max; NaN, -inf: as above.  sum and
     * out are not used. */
    void (*weights)(const pe_softmax_block *block);

    /* y = softmax over the keys [0, visible) of scale (x - ratio distance), +0 over the
     * rest of [0, n); y may be x.  What was owed is done, and what is owed to y noted:
     * alibi_settle comes last.  Returns 0, with nothing but that written, if a logit is not
     * finite or the largest is past 2^20 in log2 units.  Error: docs/bias.md. */
    int (*alibi_softmax)(const float *x, float *y, int64_t n, int64_t visible,
                         const pe_alibi_row *row, pe_alibi_owed *owed);
    void (*alibi_settle)(pe_alibi_owed *owed);

    /* s[rows][PE_KEY_BLOCK] = q[rows][q_row] . key j for the keys [0, n), by dtype PE_F32,
     * PE_F16, PE_BF16, PE_I8 (index dtype - 1; int8 as whole numbers, without scales).  num_ahead rows of the same size, less than n or
     * as many, are asked for on the way: what the next call will read. */
    void (*dots[4])(int64_t rows, const float *q, int64_t q_row, const pe_rows *keys,
                    int64_t n, int64_t dim, float *s, const pe_rows *ahead,
                    int64_t num_ahead);
    /* out[rows][out_row] += s[rows][PE_KEY_BLOCK] values, likewise. */
    void (*sums[4])(int64_t rows, const float *s, const pe_rows *values, int64_t n,
                    int64_t dim, float *out, int64_t out_row, const pe_rows *ahead,
                    int64_t num_ahead);
    /* Asks for the byte at the start of each of count rows. */
    void (*touch)(const pe_rows *rows, int64_t count);

    /* y *= factor over n elements, a multiple of PE_COLUMN_GROUP. */
    void (*scale)(float *y, float factor, int64_t n);

    /* ds = weights * (ds - delta) where a weight is not 0, else 0: [rows][PE_KEY_BLOCK],
     * delta [rows]. */
    void (*score_gradient)(int64_t rows, const float *weights, const float *delta,
                           float *ds);
    /* s = 1 - tanh^2(s / cap); n is a multiple of PE_COLUMN_GROUP. */
    void (*cap_slope)(float *s, float cap, int64_t n);
    void (*times)(float *y, const float *x, int64_t n); /* y *= x */
} pe_attention_kernels;

extern const pe_attention_kernels pe_attention_kernels_scalar,
    pe_attention_kernels_avx2, pe_attention_kernels_avx512, pe_attention_kernels_neon,
    pe_attention_kernels_wasm128;

/* The table of an instruction set that pe_isa_available() has said yes to. */
const pe_attention_kernels *pe_attention_kernels_get(pe_isa isa);

#endif /* PE_KERNELS_ATTENTION_H */
