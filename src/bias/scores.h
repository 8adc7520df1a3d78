/* SPDX-License-Identifier: MIT
 *
 * scores.h - checking score tensors, and walking their rows
 *
 * A row is the k_len scores of one (batch, query, head): the unit of work of every call,
 * so that threads cannot change a bit. */
#ifndef PE_BIAS_SCORES_H
#define PE_BIAS_SCORES_H

#include "bias/bias_plan.h"

/* One score tensor against the plan: shape, dtype, heads. */
pe_status pe_scores_check(const pe_bias *bias, const pe_tensor *x, int is_output,
                          const char *name, pe_error *error);

/* Both positions against a checked tensor; every one within 2^52 of 0. */
pe_status pe_scores_check_at(const pe_positions *q_at, const pe_positions *k_at,
                             const pe_tensor *x, pe_error *error);

/* What a call works on; x is NULL for fill. */
typedef struct {
    const pe_bias *bias;
    const pe_positions *q_at, *k_at;
    const pe_tensor *x, *y;
    double scale; /* of x */
    int causal;   /* hides keys past the query */
    int by_lines; /* a row costs less beside others of its head */
    void (*work)(void *job, int64_t begin, int64_t end);
} pe_scores_job;

/* Checks all of it, then runs work over rows [0, batch * q_len * num_heads) of y, in the
 * order of memory, cut where no two pieces write one cache line; each has a row. */
pe_status pe_scores_run(pe_scores_job *job, void (*work)(void *, int64_t, int64_t),
                        pe_error *error);

/* One row of a job. */
typedef struct {
    int64_t b, x, y; /* batch row, and the elements at which the row begins */
    int32_t head;    /* in the model */
    double q;
} pe_scores_row;

/* 0: the row lies on an absent page. */
int pe_scores_row_at(const pe_scores_job *job, int64_t index, pe_scores_row *row);

/* Positions of keys [begin, begin + n) of batch row b. */
void pe_scores_keys(const pe_positions *k_at, int64_t b, int64_t begin, int64_t n,
                    double *k);

#endif /* PE_BIAS_SCORES_H */
