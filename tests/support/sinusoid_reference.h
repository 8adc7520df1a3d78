/* SPDX-License-Identifier: MIT
 *
 * sinusoid_reference.h - one entry of a sinusoidal encoding, by the textbook
 *
 * long double and libm, a column at a time from the words of docs/absolute.md: exact to
 * 1e-14 for positions up to some thousands. */
#ifndef PE_TESTS_SINUSOID_REFERENCE_H
#define PE_TESTS_SINUSOID_REFERENCE_H

#include "posenc/posenc.h"

/* position[axis]; whether it is padding is the caller's business. */
long double ref_sinusoid(const pe_sinusoidal_spec *spec, int64_t column,
                         const long double *position);

#endif /* PE_TESTS_SINUSOID_REFERENCE_H */
