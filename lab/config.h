/* SPDX-License-Identifier: MIT
 *
 * config.h - one training run, as numbers
 */
#ifndef POSENC_LAB_CONFIG_H
#define POSENC_LAB_CONFIG_H

#include "lab.h"

typedef int32_t lab_method;
enum {
    LAB_NONE = 0,
    LAB_SIN = 1,     /* added to the input: interleaved, base 10000 */
    LAB_LEARNED = 2, /* added to the input: [length][width] */
    LAB_ROPE = 3,    /* half-split, base 10000 */
    LAB_ALIBI = 4,   /* published slopes */
    LAB_T5 = 5,      /* 32 causal buckets, max_distance 128, one table for all layers */
    LAB_KERPLE = 6,  /* logarithmic; p and a for each layer and head */
    LAB_NUM_METHODS = 7
};

enum { LAB_MAX_LAYERS = 32, LAB_MAX_HEADS = 64 };
enum { LAB_NAME_SIZE = 320 }; /* room for any lab_config_name */

/* How a model is read at a length that it was not trained on; mode.h explains it. */
typedef int32_t lab_mode_type;
enum {
    LAB_MODE_BASE = 0,
    LAB_MODE_WINDOW = 1,
    LAB_MODE_PI = 2,
    LAB_MODE_NTK = 3,
    LAB_MODE_DYN = 4,
    LAB_MODE_YARN = 5,
    LAB_MODE_CLAMP = 6,
    LAB_MODE_WRAP = 7,
    LAB_MODE_INTERP = 8
};

typedef struct lab_mode {
    lab_mode_type type;
    int32_t no_temperature; /* parts-bN */
    double times;           /* ntkxM; else 1 */
    double fixed;           /* ntk@S; 0: T / L */
    double beta;            /* yarn; 32 by default */
} lab_mode;

typedef struct lab_config {
    int32_t layers, width, heads; /* width is a multiple of 2 * heads */
    int32_t length;               /* tokens of a training row: L */
    int32_t batch, steps, warmup;
    int32_t learn_slopes; /* ALiBi: slopes are parameters, from the published ones */
    lab_method input;     /* LAB_NONE, LAB_SIN or LAB_LEARNED */
    lab_method layer[LAB_MAX_LAYERS]; /* LAB_NONE, or LAB_ROPE and later */
    double peak_rate; /* linear warmup, then a cosine down to a tenth at steps */
    double weight_decay, clip; /* AdamW: beta 0.9 and 0.95, epsilon 1e-8 */
    uint64_t seed;
    /* Training that went on at a longer length: rope (PI, NTK, YARN) or sin (PI) is read
     * by this mode with L = first_length and s = length / first_length at every length
     * from then on; INTERP: the learned table was stretched, once.  fixed stays 0.
     * LAB_MODE_BASE and first_length 0: trained at one length only. */
    lab_mode extension;
    int32_t first_length;
} lab_config;

extern const lab_config lab_config_a, lab_config_b; /* method NONE, seed 0 */

/* "rope"; NULL outside the list. */
const char *lab_method_name(lab_method method);
/* 1 and *out, or 0. */
int lab_method_find(const char *name, lab_method *out);
/* One method for the whole model: input or every layer. */
void lab_config_set_method(lab_config *config, lab_method method);
/* "rope,none,rope": a method for each layer, and how many layers; input stays. */
pe_status lab_config_set_layers(lab_config *config, const char *list, pe_error *error);
/* Whether a layer has that method. */
int lab_config_has(const lab_config *config, lab_method method);
/* "rope", "learned+rope,none,rope" of a mixture, "alibi-slopes" with learned ones,
 * "rope-yarn-b8" of an extended model; what results and folders are named by.  size at
 * least LAB_NAME_SIZE. */
void lab_config_name(const lab_config *config, char *out, size_t size);
/* Every field in range; the first that is not is named with its bound. */
pe_status lab_config_check(const lab_config *config, pe_error *error);
/* The learning rate of a step. */
double lab_config_rate(const lab_config *config, int64_t step);

#endif /* POSENC_LAB_CONFIG_H */
