/* SPDX-License-Identifier: MIT
 *
 * extend.h - ways to serve more tokens than a model was trained on
 *
 * Every way starts from the frequencies that the model was trained with, without any
 * scaling that its files ask for. */
#ifndef POSENC_CLI_EXTEND_H
#define POSENC_CLI_EXTEND_H

#include "model_arg.h"
#include "options.h"
#include "turns.h"

#include <json-c/json_object.h>

typedef int32_t cli_extend_method;
enum {
    CLI_EXTEND_LINEAR = 0,
    CLI_EXTEND_NTK = 1,
    CLI_EXTEND_DYNAMIC = 2,
    CLI_EXTEND_YARN = 3,
    CLI_EXTEND_LLAMA3 = 4,
    CLI_EXTEND_LONGROPE = 5,
    CLI_EXTEND_METHODS = 6
};

extern const cli_choice cli_extend_names[];

enum { CLI_EXTEND_DISTANCES = 3 };
extern const int64_t cli_extend_distances[CLI_EXTEND_DISTANCES];

/* What is to be extended. */
typedef struct cli_extend_base {
    pe_rope_spec spec;           /* its scaling rule taken out */
    double freqs[CLI_MAX_PAIRS]; /* of training */
    double rope_theta;
    int32_t num_pairs, rotary_dim;
    int64_t trained_len, length;
    double factor; /* length / trained_len */
} cli_extend_base;

typedef struct cli_extend_change {
    double radians;
    int32_t pair;
} cli_extend_change;

/* One way, resolved. */
typedef struct cli_extended {
    cli_extend_method method;
    pe_freqs freqs;                    /* as the spec would have it */
    double long_factor[CLI_MAX_PAIRS]; /* LongRoPE */
    double short_factor[CLI_MAX_PAIRS];
    double inv_freq[CLI_MAX_PAIRS];
    double attention_factor;
    double
        rope_theta; /* that the same frequencies have as a base change, or the base */
    double ramp_low, ramp_high;
    cli_turns turns;
    /* radians past the angles that training saw: a pair that turned fully saw all */
    double beyond[CLI_MAX_PAIRS];
    int32_t num_beyond, worst_pair;
    cli_extend_change changes[CLI_EXTEND_DISTANCES];
} cli_extended;

int cli_extend_resolve(cli_extended *out, cli_extend_method method,
                       const cli_extend_base *base);

/* extend_settings.c: {"rope_type": ..., ...} of the scaling block, in new memory; NULL:
 * the method needs none, theta changes instead. */
json_object *cli_extend_block(const cli_extended *way, const cli_extend_base *base);
/* max_position_embeddings that goes with the block. */
int64_t cli_extend_max_positions(const cli_extended *way, const cli_extend_base *base);
/* What has to be said on the command line of an engine, in new memory. */
char *cli_extend_llama_cpp(const cli_extended *way, const cli_extend_base *base);
char *cli_extend_vllm(const cli_extended *way, const cli_extend_base *base);
/* The settings to paste, in one line, in new memory. */
char *cli_extend_hugging_face(const cli_extended *way, const cli_extend_base *base);

/* extend_report.c */
int cli_extend_print(const cli_model *model, const char *layers,
                     const cli_extend_base *base, const cli_extended *const *ways,
                     size_t num_ways);
int cli_extend_print_json(const cli_model *model, const char *layers,
                          const cli_extend_base *base, const cli_extended *const *ways,
                          size_t num_ways);

/* extend_write.c: the model's config.json with the settings of way. */
int cli_extend_write(const char *path, const char *argument, const cli_model *model,
                     int32_t rope, const cli_extended *way,
                     const cli_extend_base *base);

#endif /* POSENC_CLI_EXTEND_H */
