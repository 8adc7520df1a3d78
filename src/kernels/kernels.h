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

/* How x is scaled before a row is added to it, and what is rounded. */
typedef enum {
    PE_SUM_PLAIN,  /* scale is 1: the sum alone */
    PE_SUM_FLOATS, /* the product to float, then the sum */
    PE_SUM_FUSED,  /* scale is a power of two, so the product is exact: the sum alone.
                    * The bits of PE_SUM_DOUBLES. */
    PE_SUM_DOUBLES /* the product to double, the sum to double and then to float */
} pe_sum_rule;

typedef struct {
    pe_sum_rule rule;
    double scale; /* PE_SUM_FLOATS, PE_SUM_FUSED: a float */
} pe_sum;

/* y = scale x + row over n elements; the sum is rounded to float, then to y's type.  y
 * may be x, of the same type; else they are apart. */
typedef void pe_sum_fn(const pe_sum *how, const void *x, const void *row, void *y,
                       int64_t n);

typedef enum { PE_FUSED_NONE, PE_FUSED_SOME, PE_FUSED_ALL } pe_fused;

/* factor * (first + i * step), i = 0, 1 ..: ALiBi's bias at keys that follow each other.
 * step is -1, 0 or 1; numbers are at most 2^53 in size. */
typedef struct {
    double factor;
    int64_t first;
    int step;
    int in_floats;  /* factor is a float, and so is every number */
    pe_fused fused; /* where a fused multiply-add of floats has the bits of doubles */
    uint32_t least,
        span; /* SOME: added to x whose bits, doubled, less least are at most
                           * span */
} pe_ramp;

/* Distances of keys that lie anywhere: k - q where that is below 0, and past the query: */
typedef enum {
    PE_PAST_ZERO,     /* 0 */
    PE_PAST_MIRRORED, /* q - k */
    PE_PAST_SAME      /* k - q */
} pe_past;

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

    /* Copies bytes, a multiple of 64, between places aligned to 64, past the caches, and
     * fetches as many from ahead on, which may be anywhere.  After stream_end, what this
     * thread writes is not seen before what it streamed.  NULL: no such stores. */
    void (*stream)(const void *x, void *y, int64_t bytes, const void *ahead);
    void (*stream_end)(void);

    /* count elements to and from float; stores round to nearest even. */
    void (*load[PE_K_DTYPES])(const void *x, float *out, int64_t count);
    void (*store[PE_K_DTYPES])(const float *x, void *out, int64_t count);

    /* The same for int8 in whole groups of group elements, each times a scale of its own:
     * count, a multiple of group, or num_groups that lie side by side in x, and out_step
     * and scale_step apart in out.  Bits are those of base/int8.h. */
    void (*load_i8)(const int8_t *x, const float *scales, int64_t group, float *out,
                    int64_t count);
    void (*store_i8)(const float *x, int64_t group, int64_t num_groups, int8_t *out,
                     int64_t out_step, float *scales, int64_t scale_step);

    /* *square = |a - b|^2, *length = |a|^2: sums of n doubles in any order. */
    void (*distance)(const float *a, const float *b, int64_t n, double *square,
                     double *length);

    /* By the types of x and y: rows of floats, and of x's type. */
    pe_sum_fn *sum[PE_K_DTYPES][PE_K_DTYPES], *sum_own[PE_K_DTYPES][PE_K_DTYPES];

    /* y = value + x, the sum rounded to double, to float, to y's type.  y may be x. */
    void (*sum_doubles[PE_K_DTYPES][PE_K_DTYPES])(const double *value, const void *x,
                                                  void *y, int64_t n);

    /* y = ramp + x, the product rounded to double, then as sum_doubles; and the ramp
     * alone, rounded to double, float, y's type. */
    void (*sum_ramp[PE_K_DTYPES][PE_K_DTYPES])(const pe_ramp *ramp, const void *x,
                                               void *y, int64_t n);
    void (*ramp[PE_K_DTYPES])(const pe_ramp *ramp, void *y, int64_t n);

    /* out = factor * the distance of keys at k[] from q, at most 2^53 apart. */
    void (*alibi)(double factor, pe_past past, int64_t q, const int64_t *k, double *out,
                  int64_t n);
    void (*narrow)(const double *x, float *out, int64_t n);
} pe_kernels;

extern const pe_kernels pe_kernels_scalar, pe_kernels_avx2, pe_kernels_avx512,
    pe_kernels_neon, pe_kernels_wasm128;

/* The table of an instruction set that pe_isa_available() has said yes to. */
const pe_kernels *pe_kernels_get(pe_isa isa);

#endif /* PE_KERNELS_H */
