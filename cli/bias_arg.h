/* SPDX-License-Identifier: MIT
 *
 * bias_arg.h - the score bias that slopes and bias are asked about
 *
 * An operand that is a number is a head count, to which the options below say the rest;
 * any other is a MODEL, which says it itself. */
#ifndef POSENC_CLI_BIAS_ARG_H
#define POSENC_CLI_BIAS_ARG_H

#include "model_arg.h"
#include "names.h"

typedef struct cli_bias_args {
    const char *max_bias;
    int64_t index;                  /* of a model's biases; -1: not given */
    int32_t recipe, form, round_to; /* -1, 0, 0: not given */
} cli_bias_args;

#define CLI_BIAS_DEFAULTS     \
  {                           \
    .index = -1, .recipe = -1 \
  }

/* In the option table of args_type, whose member bias is a cli_bias_args. */
/* clang-format off */
#define CLI_BIAS_OPTIONS(args_type)                                                  \
  {.name = "max-bias", .argument = "X", .type = CLI_TEXT,                            \
   .offset = offsetof(args_type, bias.max_bias),                                     \
   .help = "of a head count: the last slope is 2^-X; default 8"},                    \
  {.name = "recipe", .argument = "NAME", .type = CLI_CHOICE,                         \
   .choices = cli_recipe_names, .offset = offsetof(args_type, bias.recipe),          \
   .help = "of a head count: published (default) is what models use"},               \
  {.name = "round-to", .argument = "DTYPE", .type = CLI_CHOICE,                      \
   .choices = cli_float_names, .offset = offsetof(args_type, bias.round_to),         \
   .help = "of a head count: imitate code that computes in this dtype"},             \
  {.name = "index", .argument = "N", .type = CLI_INTEGER, .max = INT32_MAX,          \
   .offset = offsetof(args_type, bias.index),                                        \
   .help = "of a model: its bias N, as inspect numbers them; default 0"}
/* clang-format on */

#define CLI_BIAS_HELP                                                                  \
  "The operand is a number of heads, or a MODEL: a config.json, a folder that holds\n" \
  "one, - (standard input), or the name of a preset (see posenc presets)."

typedef struct cli_bias {
    pe_bias_spec spec;
    pe_bias *plan;
    const char *name; /* of the model; NULL: a head count */
    cli_model model;
    float *table;     /* T5 without a table: table[bucket][head] is the bucket */
    int shows_bucket; /* 1: that is the case */
} cli_bias;

/* form 0: the spec's own, causal for a head count.  Says what went wrong and returns an
 * exit code. */
int cli_bias_open(cli_bias *out, const char *operand, const cli_bias_args *args);
void cli_bias_close(cli_bias *bias);

#endif /* POSENC_CLI_BIAS_ARG_H */
