/* SPDX-License-Identifier: MIT
 *
 * plan.h - what a pe_rope holds, and how its rows are reached
 *
 * Everything is computed at creation and const afterwards. */
#ifndef PE_PLAN_H
#define PE_PLAN_H

#include "angle/imitate.h"
#include "angle/turns.h"
#include "base/memory.h"
#include "rope/axes.h"

/* What multiplies cos and sin: a rotation carries the attention factor, moving a cached
 * key carries none, and the inverse divides by it. */
typedef enum { PE_SCALE_FULL, PE_SCALE_NONE, PE_SCALE_INVERSE } pe_row_scale;

struct pe_rope {
    pe_rope_info info;
    pe_env env;
    const pe_kernels *kernels;
    size_t size; /* of the one block that holds the plan and its arrays */
    pe_pairs pairs;
    pe_angles angles;
    pe_factor factors[3]; /* by pe_row_scale */
    pe_turns turns;
    pe_axis_layout axes;
    float *hf_inv_freq; /* PE_ANGLES_HF_F32, else NULL */
    pe_ggml_freqs ggml; /* PE_ANGLES_GGML_F32 */
    float *table;       /* [table_len][2][num_pairs], cos then sin; NULL: none */
};

/* Room for one row in the hands of one worker. */
typedef struct {
    float cos[PE_MAX_PAIRS], sin[PE_MAX_PAIRS];
} pe_row_buffer;

/* A row of num_pairs cosines and sines, in a buffer or in the plan's table. */
typedef struct {
    const float *cos, *sin;
} pe_row;

/* Positions of one token on every axis of the plan. */
typedef struct {
    int whole; /* ids hold, else values */
    int64_t ids[PE_MAX_AXES];
    double values[PE_MAX_AXES];
} pe_place;

pe_place pe_place_read(const pe_rope *rope, const pe_positions *at, int64_t b,
                       int64_t t);

/* The row of the plan's own angles (pairs.reversed not yet applied). */
pe_row pe_rope_row(const pe_rope *rope, const pe_place *place, pe_row_scale scale,
                   pe_row_buffer *buffer);

/* The table's row of a whole position that serves all axes; cos is NULL where the table
 * has none. */
pe_row pe_rope_tabulated(const pe_rope *rope, int64_t position, pe_row_scale scale);

/* 1: token t of a batch row stands t after its first, so that pe_rope_run serves. */
int pe_rope_has_runs(const pe_rope *rope, const pe_positions *at);

/* Rows of consecutive positions, each num_pairs after the one before; rows * num_pairs
 * is at most PE_MAX_PAIRS. */
pe_row pe_rope_run(const pe_rope *rope, int64_t start, int64_t rows, pe_row_scale scale,
                   pe_row_buffer *buffer);

/* Turns one token of one batch row from x to y, and from x2 to y2 where x2 is not NULL,
 * if all that they are given is plain; 0, with nothing touched, if it is not, or wrong. */
int pe_rope_one_token(const pe_rope *rope, const pe_positions *at, const pe_tensor *x,
                      const pe_tensor *y, const pe_tensor *x2, const pe_tensor *y2);

/* Negates the count sines of a row or run, moving it into buffer if it is not there. */
pe_row pe_row_negate(pe_row row, int64_t count, pe_row_buffer *buffer);

#endif /* PE_PLAN_H */
