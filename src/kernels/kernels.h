/* SPDX-License-Identifier: MIT
 *
 * kernels.h - the inner loops, as a table per instruction set
 *
 * A kernel never allocates, never validates and knows no plan: its caller has checked
 * everything.  Tables are const; a plan keeps a pointer to the one it was made with. */
#ifndef PE_KERNELS_H
#define PE_KERNELS_H

#include "base/base.h"

/* Indices of pe_kernels.rotate and friends: dtypes whose elements stand alone ... */
enum { PE_K_F32, PE_K_F16, PE_K_BF16, PE_K_DTYPES };
/* ... and how pairs lie. */
enum { PE_K_HALF, PE_K_INTERLEAVED, PE_K_PAIRINGS };

enum { PE_K_MAX_PAIRS = 2048 };

/* What table kernels read: n frequencies as turns (angle/turns.h) and a factor, and
 * whom they ask about an entry whose rounding double arithmetic cannot decide (about
 * one in 2^22; more at positions beyond 2^30): redo(ctx, row, i) must write both of its
 * floats, after the kernel has. */
typedef struct {
    const uint64_t *hi, *lo;
    const double *head, *tail; /* quarter turns: their sum is 4 times the turns */
    int64_t n;
    double factor;
    void (*redo)(void *ctx, int64_t row, int64_t i);
    void *ctx;
} pe_table_source;

/* Rotates num_heads vectors of n pairs: y0 = x0 c - x1 s, y1 = x0 s + x1 c, each within
 * 2 u (|x0 c| + |x1 s|) of the exact value, u = 2^-24, 2^-11, 2^-8 by y's dtype, plus
 * half the smallest subnormal (f32 in vectors rounds a product, too: twice that).
 * Strides count elements.  y may be x, with the same stride and dtype; else they are
 * apart. */
typedef void pe_rotate_fn(const void *x, int64_t x_stride, void *y, int64_t y_stride,
                          int64_t num_heads, const float *cosine, const float *sine,
                          int64_t n);

typedef struct pe_kernels {
    pe_isa isa;
    const char *name;

    /* Rows of a table: for row r, cos_out[r * stride + i] = factor * cos of (position +
     * r) * turns[i], and sin_out likewise, each rounded to nearest. */
    void (*table_rows)(const pe_table_source *source, int64_t position, int64_t rows,
                       float *cos_out, float *sin_out, int64_t stride);

    /* The same for rows at positions[r], which need not follow each other. */
    void (*table_rows_at)(const pe_table_source *source, const int64_t *positions,
                          int64_t rows, float *cos_out, float *sin_out, int64_t stride);

    /* One row whose pairs have positions of their own, each in [0, farthest], which is
     * below 2^32. */
    void (*table_row_each)(const pe_table_source *source, const int64_t *positions,
                           int64_t farthest, float *cos_out, float *sin_out);

    /* One row of n phases, (hi + lo 2^-32) 2^-64 turns each, for the source's n and factor.
     * A phase less than distance units of 2^-66 turn from a quarter turn is redone. */
    void (*table_row_phases)(const pe_table_source *source, const uint64_t *hi,
                             const uint64_t *lo, double distance, float *cos_out,
                             float *sin_out);

    pe_rotate_fn *rotate[PE_K_DTYPES][PE_K_DTYPES][PE_K_PAIRINGS][PE_K_PAIRINGS];

    /* count elements to and from float; stores round to nearest even. */
    void (*load[PE_K_DTYPES])(const void *x, float *out, int64_t count);
    void (*store[PE_K_DTYPES])(const float *x, void *out, int64_t count);
} pe_kernels;

extern const pe_kernels pe_kernels_scalar, pe_kernels_avx2, pe_kernels_avx512,
    pe_kernels_neon, pe_kernels_wasm128;

/* The table of an instruction set that pe_isa_available() has said yes to. */
const pe_kernels *pe_kernels_get(pe_isa isa);

#endif /* PE_KERNELS_H */
