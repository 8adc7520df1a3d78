/* SPDX-License-Identifier: MIT
 *
 * absolute.h - plans of one call for the sinusoidal and learned families
 *
 * A case that fails leaves by longjmp, so nothing here holds a plan across vec_near. */
#ifndef PE_TESTS_VECTORS_ABSOLUTE_H
#define PE_TESTS_VECTORS_ABSOLUTE_H

#include "vectors.h"

/* The encodings of [batch][seq] tokens, [batch * seq * model_dim] floats of the case. */
float *vec_sinusoidal(const vec_case *c, const pe_sinusoidal_spec *spec,
                      const pe_positions *at, int64_t batch, int64_t seq);

/* The same from a table (rows, dim), plus embed_scale * x unless x is NULL. */
float *vec_learned(const vec_case *c, const float *table, int64_t rows, int64_t dim,
                   int32_t offset, const pe_positions *at, int64_t batch, int64_t seq,
                   const float *x);

/* Fails the case unless got is exact as a float nearest to it. */
void vec_nearest(const vec_case *c, const char *what, int64_t index, float got,
                 double exact);

#endif /* PE_TESTS_VECTORS_ABSOLUTE_H */
