/* SPDX-License-Identifier: MIT
 *
 * kernels.h - the inner loops, as a table per instruction set
 *
 * A kernel never allocates, never validates and knows no plan: its caller has checked
 * everything.  Tables are const; a plan keeps a pointer to the one it was made with. */
#ifndef PE_KERNELS_H
#define PE_KERNELS_H

#include "base/base.h"

enum { PE_PAIRS_HALF, PE_PAIRS_INTERLEAVED }; /* indices of pe_kernels.rotate */

typedef struct pe_kernels {
    pe_isa isa;
    const char *name;

    /* One row of a table: cos_out[i], sin_out[i] = factor * cos, sin of position times
     * (hi[i] + lo[i] 2^-32) 2^-64 turns, each rounded to nearest.  Entries whose
     * rounding double arithmetic cannot decide (about one in 2^24; more at positions
     * beyond 2^30) are listed in unsure[], at most n of them, for the caller to redo;
     * returns how many. */
    int64_t (*table_row)(int64_t position, const uint64_t *hi, const uint64_t *lo,
                         int64_t n, double factor, float *cos_out, float *sin_out,
                         int32_t *unsure);

    /* y = the pairs of x turned by (cos, sin): y0 = x0 c - x1 s, y1 = x0 s + x1 c, each
     * within 2 u (|x0 c| + |x1 s|), u = 2^-24.  Pairs lie in x and y as the two indices
     * (of x, of y) say; n pairs, 2 n elements; y is not x. */
    void (*rotate[2][2])(const float *x, float *y, const float *cosine,
                         const float *sine, int64_t n);
} pe_kernels;

extern const pe_kernels pe_kernels_scalar;

/* The table of an instruction set that pe_isa_available() has said yes to. */
const pe_kernels *pe_kernels_get(pe_isa isa);

#endif /* PE_KERNELS_H */
