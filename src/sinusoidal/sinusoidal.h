/* SPDX-License-Identifier: MIT
 *
 * sinusoidal.h - one sinusoidal ladder: its frequencies and where they stand in a row
 *
 * The columns of a row fall into num_axes groups of equal width, and each group is the
 * same ladder at its own axis' position.  A group of width g holds
 *     SIN_COS_INTERLEAVED  s0 c0 s1 c1 ..              odd g ends in a sine
 *     SIN_COS_HALVES       s0 s1 .. c0 c1 ..           odd g, shift 0: one more sine
 *                                                      odd g, other shift: a zero ends
 *     COS_SIN_HALVES       c0 c1 .. s0 s1 ..           odd g: a zero ends
 * with frequency i = position_scale * base^(-i / (half - shift)), where half is g / 2,
 * rounded down where a zero ends the group. */
#ifndef PE_SINUSOIDAL_H
#define PE_SINUSOIDAL_H

#include "angle/turns.h"

/* Sine i stands in column first_sine + i * step of its group; cosines likewise. */
typedef struct {
    int64_t dim; /* columns of a group */
    int64_t num_pairs, num_sines, num_cosines;
    int64_t first_sine, first_cosine, step;
    int64_t twice_half; /* 2 half of the formula above, whole */
} pe_sinusoid_columns;

/* The columns of a checked spec. */
pe_sinusoid_columns pe_sinusoid_layout(const pe_sinusoidal_spec *spec);

/* Everything in the spec; defaults are filled in.  PE_E_ARGUMENT, PE_E_UNSUPPORTED. */
pe_status pe_sinusoid_check(pe_sinusoidal_spec *spec, pe_error *error);

/* Radians per position of each pair, exact or by the float steps of PyTorch code. */
void pe_sinusoid_freqs(const pe_sinusoidal_spec *spec,
                       const pe_sinusoid_columns *columns, pe_turns *turns);
void pe_sinusoid_freqs_hf(const pe_sinusoidal_spec *spec,
                          const pe_sinusoid_columns *columns, float *inv_freq);

#endif /* PE_SINUSOIDAL_H */
