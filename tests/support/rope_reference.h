/* SPDX-License-Identifier: MIT
 *
 * rope_reference.h - every rotation by the textbook, one head vector at a time
 *
 * long double angles and libm: exact to 1e-15 for positions up to some thousands, and
 * nothing shared with the library but the definitions in posenc.h. */
#ifndef PE_TESTS_ROPE_REFERENCE_H
#define PE_TESTS_ROPE_REFERENCE_H

#include "posenc/posenc.h"

enum { REF_MAX_DIM = 512, REF_MAX_AXES = 4 };

typedef struct ref_rope {
    int32_t head_dim, rotary_dim, rotary_start;
    pe_pairing in, out;
    int reversed;
    long double attention_factor;
    long double inv_freq[REF_MAX_DIM / 2];
    uint8_t pair_axis[REF_MAX_DIM / 2];
} ref_rope;

/* From a spec of PE_ROPE_DEFAULT by theta^(-2i/d); any other rule takes frequencies and
 * factor from info, and axes come from there as well. */
void ref_rope_init(ref_rope *ref, const pe_rope_spec *spec, const pe_rope_info *info);

/* y[0 .. head_dim) = factor * R(sign * angle) x, pairs read by from, written by to, the
 * rest copied; size[i] = |a c| + |b s| of y's element, factor included, 0 for the rest.
 * position[axis]. */
void ref_rope_turn(const ref_rope *ref, int sign, long double factor, pe_pairing from,
                   pe_pairing to, const long double *position, const double *x,
                   double *y, double *size);

void ref_rope_apply(const ref_rope *ref, const long double *position, const double *x,
                    double *y, double *size);
void ref_rope_transpose(const ref_rope *ref, const long double *position,
                        const double *dy, double *dx, double *size);
void ref_rope_inverse(const ref_rope *ref, const long double *position, const double *y,
                      double *x, double *size);
/* Both reversed or neither. */
void ref_rope_rebase(const ref_rope *from, const long double *from_position,
                     const ref_rope *to, const long double *to_position,
                     const double *x, double *y, double *size);
void ref_rope_shift(const ref_rope *ref, long double delta, const double *x, double *y,
                    double *size);

#endif /* PE_TESTS_ROPE_REFERENCE_H */
