/* SPDX-License-Identifier: MIT
 *
 * lab_arg.h - options that verbs of the lab share: the run, its text, its threads
 */
#ifndef POSENC_CLI_LAB_ARG_H
#define POSENC_CLI_LAB_ARG_H

#include "options.h"

#include "lab/config.h"
#include "lab/corpus.h"

#include "posenc/threads.h"

#include <stddef.h>

enum { CLI_LAB_A = 1, CLI_LAB_B = 2, CLI_LAB_MAX_THREADS = 256 };

typedef struct cli_lab_arg {
    const char *method, *layers; /* NULL: not given */
    const char *text, *output;
    double rate;                                /* 0: not given, as the next */
    int64_t width, heads, length, batch, steps; /* of the configuration */
    int64_t warmup, seed;                       /* -1: not given */
    int64_t copy, threads;                      /* copy 0: text; threads 0: one a CPU */
    int32_t config, learn_slopes;               /* config 0: not given, A */
} cli_lab_arg;

/* What the options mean when none is given. */
extern const cli_lab_arg cli_lab_defaults;
extern const cli_choice cli_lab_config_names[];

/* clang-format off */
/* Entries of an option table whose arguments have a cli_lab_arg named lab. */
#define CLI_LAB_OPTION_(args_type, field) .offset = offsetof(args_type, lab.field)

/* Which run, apart from its method. */
#define CLI_LAB_SIZE_OPTIONS(args_type)                                                \
    {.name = "config", .argument = "A|B", .type = CLI_CHOICE,                          \
     .choices = cli_lab_config_names, CLI_LAB_OPTION_(args_type, config),              \
     .help = "what the options below change: A (default), a minute or two for each "   \
             "run, or B, a smaller one"},                                              \
    {.name = "width", .argument = "N", .type = CLI_INTEGER, .min = 1,                  \
     .max = INT32_MAX, CLI_LAB_OPTION_(args_type, width),                              \
     .help = "of the model: A has 96, B 64"},                                          \
    {.name = "heads", .argument = "N", .type = CLI_INTEGER, .min = 1,                  \
     .max = INT32_MAX, CLI_LAB_OPTION_(args_type, heads),                              \
     .help = "attention heads of a layer (4)"},                                        \
    {.name = "length", .argument = "N", .type = CLI_INTEGER, .min = 1,                 \
     .max = INT32_MAX, CLI_LAB_OPTION_(args_type, length),                             \
     .help = "tokens of a training row (64)"},                                         \
    {.name = "batch", .argument = "N", .type = CLI_INTEGER, .min = 1,                  \
     .max = INT32_MAX, CLI_LAB_OPTION_(args_type, batch),                              \
     .help = "rows of a step (32)"},                                                   \
    {.name = "steps", .argument = "N", .type = CLI_INTEGER, .min = 1,                  \
     .max = INT32_MAX, CLI_LAB_OPTION_(args_type, steps),                              \
     .help = "training steps: A has 1200, B 600"},                                     \
    {.name = "warmup", .argument = "N", .type = CLI_INTEGER, .min = 0,                 \
     .max = INT32_MAX, CLI_LAB_OPTION_(args_type, warmup),                             \
     .help = "steps until the learning rate is at its peak (100, or a quarter of "     \
             "--steps where that is less)"},                                           \
    {.name = "rate", .argument = "X", .type = CLI_NUMBER,                              \
     CLI_LAB_OPTION_(args_type, rate),                                                 \
     .help = "the peak of the learning rate: A has 0.002, B 0.003"}

/* The method of one run, and its seed. */
#define CLI_LAB_METHOD_OPTIONS(args_type)                                              \
    {.name = "method", .argument = "NAME", .type = CLI_TEXT,                           \
     CLI_LAB_OPTION_(args_type, method),                                               \
     .help = "none, sin, learned, rope, alibi, t5 or kerple"},                         \
    {.name = "layers", .argument = "N|LIST", .type = CLI_TEXT,                         \
     CLI_LAB_OPTION_(args_type, layers),                                               \
     .help = "how many (A has 3, B 2), or the method of each: rope,none,rope"},        \
    {.name = "learn-slopes", .type = CLI_FLAG,                                         \
     CLI_LAB_OPTION_(args_type, learn_slopes),                                         \
     .help = "ALiBi's slopes are learned, from the published ones on"},                \
    {.name = "seed", .argument = "N", .type = CLI_INTEGER, .min = 0,                   \
     .max = INT64_MAX, CLI_LAB_OPTION_(args_type, seed),                               \
     .help = "of the first weights and the order of the text (0)"}

#define CLI_LAB_TEXT_OPTIONS(args_type)                                                \
    {.name = "text", .argument = "FILE", .type = CLI_TEXT,                             \
     CLI_LAB_OPTION_(args_type, text),                                                 \
     .help = "any bytes; the default is the King James text of Debian's bible-kjv"},   \
    {.name = "copy", .argument = "K", .type = CLI_INTEGER, .min = 1, .max = 1000000,   \
     CLI_LAB_OPTION_(args_type, copy),                                                 \
     .help = "no text but a made-up one: 16 symbols, each the one K before it with "   \
             "probability 0.9"}

#define CLI_LAB_THREADS_OPTION(args_type)                                              \
    {.name = "threads", .argument = "N", .type = CLI_INTEGER, .min = 1,                \
     .max = CLI_LAB_MAX_THREADS, CLI_LAB_OPTION_(args_type, threads),                  \
     .help = "the default is one for each CPU; no result depends on it"}

#define CLI_LAB_OUTPUT_OPTION(args_type)                                               \
    {.name = "output", .letter = 'o', .argument = "FOLDER", .type = CLI_TEXT,          \
     CLI_LAB_OPTION_(args_type, output),                                               \
     .help = "where each run gets a folder of its own, METHOD-seedN (lab)"}
/* clang-format on */

/* These say what is wrong and return an exit code. */

/* Of a configuration, what the options for sizes change, not checked. */
void cli_lab_replace(const cli_lab_arg *args, lab_config *config);
/* The sizes only: the method is none. */
int cli_lab_sizes(const cli_lab_arg *args, lab_config *out);
/* All of a run: a method or a list of layers must be given. */
int cli_lab_config(const cli_lab_arg *args, lab_config *out);
int cli_lab_corpus(const cli_lab_arg *args, lab_corpus *out);
/* *threads: how many the pool has. */
int cli_lab_threads(const cli_lab_arg *args, pe_pool **pool, pe_env *env,
                    int32_t *threads);

#endif /* POSENC_CLI_LAB_ARG_H */
