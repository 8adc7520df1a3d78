/* SPDX-License-Identifier: MIT
 *
 * weights.h - where each parameter lies in the one array that holds them all
 *
 * Names as in the checkpoints: e [256, width] embedding (times sqrt(width) when read),
 * p [length, width] learned positions, t5 [32, heads], then for layer N b.N.n1.g,
 * b.N.qkv [3 width, width] (rows: q of all heads, then k, then v), b.N.o, b.N.slopes
 * [heads], b.N.kerple [2, heads] (p, a), b.N.n2.g, b.N.f1 [4 width, width], b.N.f2
 * [width, 4 width], and n.g, u [256, width].  Linear layers are y = x W^T.  Gradients and
 * moments have the same layout. */
#ifndef POSENC_LAB_WEIGHTS_H
#define POSENC_LAB_WEIGHTS_H

#include "config.h"

typedef struct lab_parameter {
    char name[24];
    int64_t rows, cols; /* cols 0: a vector of rows */
    int64_t offset;     /* in floats, a multiple of 16 */
    int32_t decays;     /* matrices do; gains, slopes and KERPLE's do not */
    int32_t index;      /* for its random numbers: the same in a model of any method */
    double init_mean, init_sd; /* normal; sd 0: all are the mean */
    double least; /* a step leaves nothing below: KERPLE's are positive; else -inf */
} lab_parameter;

enum { LAB_MAX_PARAMETERS = 5 + 8 * LAB_MAX_LAYERS };

typedef struct lab_layer_offsets {
    int64_t n1, qkv, o, slopes, kerple, n2, f1, f2; /* -1: absent */
} lab_layer_offsets;

typedef struct lab_layout {
    lab_parameter items[LAB_MAX_PARAMETERS];
    int32_t count;
    int64_t size;           /* floats of the whole array, gaps (zeroes) included */
    int64_t num_weights;    /* floats that are parameters */
    int64_t e, p, t5, n, u; /* offsets; -1: absent */
    lab_layer_offsets layer[LAB_MAX_LAYERS];
} lab_layout;

/* config is checked. */
void lab_layout_make(lab_layout *out, const lab_config *config);
/* NULL: no such name. */
const lab_parameter *lab_layout_find(const lab_layout *layout, const char *name);
int64_t lab_parameter_size(const lab_parameter *parameter);
/* All of weights[layout->size], gaps as zeroes.  Learned slopes begin as published. */
pe_status lab_weights_init(float *weights, const lab_layout *layout,
                           const lab_config *config, pe_error *error);

#endif /* POSENC_LAB_WEIGHTS_H */
