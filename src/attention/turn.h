/* SPDX-License-Identifier: MIT
 *
 * turn.h - a query or key on its way in: loaded as floats and rotated
 */
#ifndef PE_ATTENTION_TURN_H
#define PE_ATTENTION_TURN_H

#include "attention/attention_plan.h"
#include "base/tensor.h"
#include "rope/plan.h"

/* A token's rotation; rope NULL: none. */
typedef struct {
    const pe_rope *rope;
    pe_row row;
} pe_turning;

/* Rotation of token t of batch row b; the row may live in buffer. */
pe_turning pe_turn_make(const pe_rope *rope, const pe_positions *at, int64_t b,
                        int64_t t, pe_row_buffer *buffer);

/* out[0 .. dim) = the vector at element of x, turned.  room: dim floats. */
void pe_turn_load(const pe_attention *plan, const pe_tensor *x, int64_t element,
                  const pe_turning *turning, float *room, float *out);

/* The gradient on its way out: y = A^T x where A is the rotation; x is not y. */
void pe_turn_back(const pe_turning *turning, int64_t dim, const float *x, float *y);

/* 1: neither NaN nor infinity among them. */
int pe_all_finite(const float *x, int64_t n);

/* sqrt of the sum of squares within 2^-40 of itself; not a number: NaN or infinity. */
double pe_length(const float *x, int64_t n);

/* As pe_vector_load, by the plan's kernels. */
void pe_load(const pe_attention *plan, const pe_tensor *x, int64_t element,
             int64_t begin, int64_t count, float *out);

#endif /* PE_ATTENTION_TURN_H */
