/* SPDX-License-Identifier: MIT
 *
 * adamw.h - clipping and AdamW (Loshchilov and Hutter 2019), in pieces
 *
 * Beta 0.9 and 0.95, epsilon 1e-8.  Which floats a piece holds depends on the layout
 * alone, and sums over pieces are added in their order. */
#ifndef POSENC_LAB_ADAMW_H
#define POSENC_LAB_ADAMW_H

#include "trainer.h"

typedef struct lab_adamw lab_adamw;
/* layout is borrowed.  env: its executor and instruction set; NULL: this thread. */
pe_status lab_adamw_create(lab_adamw **out, const lab_layout *layout, const pe_env *env,
                           pe_error *error);
void lab_adamw_destroy(lab_adamw *adamw);

/* grads[0] becomes the sum of all count arrays, in that order; returns its norm. */
double lab_adamw_sum(lab_adamw *adamw, float *const *grads, int64_t count);
/* Scales grads to config.clip if norm is larger, decays and updates the weights, and
 * counts the step. */
void lab_adamw_step(lab_adamw *adamw, lab_state *state, const float *grads, double norm,
                    double rate);

#endif /* POSENC_LAB_ADAMW_H */
