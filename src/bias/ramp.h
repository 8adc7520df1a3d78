/* SPDX-License-Identifier: MIT
 *
 * ramp.h - ALiBi over keys that follow each other: at most two lines in each row
 */
#ifndef PE_BIAS_RAMP_H
#define PE_BIAS_RAMP_H

#include "bias/scores.h"
#include "kernels/kernels.h"

/* What a head's rows share. */
typedef struct {
    int32_t index;
    int is_float;
    double factor, size; /* of a distance, and its magnitude */
    double unit;         /* the power of two that it is an odd multiple of */
} pe_ramp_head;

void pe_ramp_head_set(pe_ramp_head *head, const pe_bias *bias, int32_t index);

/* y = bias, or x + bias, of one row of an ALiBi plan without round_to, whose keys have no
 * ids; head is the row's. */
void pe_bias_ramps(const pe_scores_job *job, const pe_kernels *kernels,
                   const pe_ramp_head *head, const pe_scores_row *row);

#endif /* PE_BIAS_RAMP_H */
