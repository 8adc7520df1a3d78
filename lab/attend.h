/* SPDX-License-Identifier: MIT
 *
 * attend.h - attention of every layer of a pass, with its rotations and biases
 */
#ifndef POSENC_LAB_ATTEND_H
#define POSENC_LAB_ATTEND_H

#include "memory.h"
#include "pass.h"

typedef struct lab_attend lab_attend;
/* memory must outlive it. */
pe_status lab_attend_create(lab_attend **out, const lab_pass_spec *spec,
                            lab_memory *memory, pe_error *error);
void lab_attend_destroy(lab_attend *attend);

/* Before each forward: biases with parameters are made anew from the weights. */
pe_status lab_attend_update(lab_attend *attend, const float *weights, pe_error *error);
/* qkv [rows][tokens][3 width], whose q and k it may turn in place; out
 * [rows][tokens][width]. */
pe_status lab_attend_forward(lab_attend *attend, int32_t layer, float *qkv, float *out,
                             pe_error *error);
/* qkv and out as forward left them.  Overwrites dqkv, adds to the gradients of the
 * layer's bias. */
pe_status lab_attend_backward(lab_attend *attend, int32_t layer, float *qkv, float *out,
                              float *dout, float *dqkv, float *grads, pe_error *error);

#endif /* POSENC_LAB_ATTEND_H */
