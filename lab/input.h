/* SPDX-License-Identifier: MIT
 *
 * input.h - embeddings of bytes, and positions added to them
 */
#ifndef POSENC_LAB_INPUT_H
#define POSENC_LAB_INPUT_H

#include "memory.h"
#include "pass.h"

typedef struct lab_input lab_input;
/* memory must outlive it.  Refuses to read a learned table past its end. */
pe_status lab_input_create(lab_input **out, const lab_pass_spec *spec,
                           lab_memory *memory, pe_error *error);
void lab_input_destroy(lab_input *input);

/* x [rows][tokens][width] = sqrt(width) e[bytes[row][token]] + position. */
pe_status lab_input_forward(lab_input *input, const float *weights,
                            const uint8_t *bytes, float *x, pe_error *error);
/* Adds to the gradients of e and p; mode base. */
pe_status lab_input_backward(const lab_input *input, const float *weights,
                             const uint8_t *bytes, float *dx, float *grads,
                             pe_error *error);

#endif /* POSENC_LAB_INPUT_H */
