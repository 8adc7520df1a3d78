/* SPDX-License-Identifier: MIT
 *
 * identify.h - naming a convention from numbers: shared by the files identify_*.c
 *
 * A pair that turned is a complex number times c = factor * e^(i angle).  For each way
 * of pairing, three sums over heads hold all that the data say about c; every rule in
 * question is then compared with those sums alone. */
#ifndef POSENC_CLI_IDENTIFY_H
#define POSENC_CLI_IDENTIFY_H

#include "cli.h"

#include "posenc/model.h"

#include <json-c/json_object.h>

typedef struct cli_array {
    const char *name;
    double *data;
    int32_t rank;
    int64_t shape[4], count;
} cli_array;

/* Floats of any of our dtypes, or float64; is_bf16: uint16 holds bfloat16. */
int cli_array_read(cli_array *out, const char *path, int is_bf16);
void cli_array_free(cli_array *array);

/* A rule for the angles of a head, and the presets that have it. */
typedef struct cli_rule {
    int32_t head_dim, rotary_dim, rotary_start, num_pairs;
    double *inv_freq;
    double attention_factor;
    double rope_theta;
    char text[120]; /* "theta 500000, llama3 factor 8" */
    char *presets;  /* "llama-3.1-8b, llama-3.1-70b"; NULL: none */
} cli_rule;

typedef struct cli_rules {
    cli_rule *items;
    size_t count;
    int32_t by_pairs; /* the place of the pairs in a head does not count */
} cli_rules;

/* Rules of every preset, and plain ones of common thetas, for heads of that width, or
 * (head_dim 0) of any width but with that many pairs. */
int cli_rules_make(cli_rules *out, int32_t head_dim, int32_t num_pairs);
void cli_rules_free(cli_rules *rules);

/* Sums over heads for each pair i and token n: a = |z|^2, b = |w|^2, c = w conj(z). */
typedef struct cli_sums {
    int32_t rotary_dim, rotary_start;
    pe_pairing pairing, out_pairing;
    int64_t num_pairs, num_tokens;
    double *a, *b, *re, *im; /* [num_pairs][num_tokens] */
    double rest;             /* what changed outside the window */
    double power;            /* of the whole output */
    double least;            /* what is left whatever the angles are */
    int64_t count;           /* elements of the output */
} cli_sums;

/* x, y: [tokens][heads][dim], token by token. */
int cli_sums_make(cli_sums *out, const double *x, const double *y, int64_t tokens,
                  int64_t heads, int64_t dim, const cli_sums *window);
void cli_sums_free(cli_sums *sums);

typedef struct cli_fit {
    const cli_rule *rule;
    const cli_sums *sums;
    int32_t times;      /* 1 as the rule says, -1 reversed, 2 twice, 0 not at all */
    int32_t rounding;   /* cli_rounding */
    int32_t own_factor; /* 0: the rule's, 1: another one */
    int64_t start;      /* position of token 0, or what is added to the positions */
    double factor;      /* of cos and sin, as found */
    double error;       /* sum of squares that is left */
    double slack;       /* of it, what angles in single precision may cause */
    double residual;    /* its root, over that of the output */
} cli_fit;

enum { CLI_ROUND_NONE = 0, CLI_ROUND_POSITIONS = 1, CLI_ROUND_FREQS = 2 };

/* positions: [num_tokens], from 0 when the start is not known. */
void cli_fit_run(cli_fit *fit, const int64_t *positions, int is_start_known);

/* How much more error fit has than best, over the angles that differ by more than
 * hidden: smaller differences round back, which is no noise that averages out. */
double cli_fit_excess(const cli_fit *fit, const cli_fit *best, const int64_t *positions,
                      double hidden);
/* Largest angle that two fits of one pairing give apart, per position; 0: the same. */
double cli_fit_gap(const cli_fit *a, const cli_fit *b);

typedef struct cli_answer {
    char name[400];
    double residual; /* relative; smaller is better */
    json_object *details;
} cli_answer;

typedef struct cli_answers {
    cli_answer items[24];
    size_t count;
    char evidence[6][240];
    size_t num_evidence;
} cli_answers;

/* Adds while there is room; details may be NULL and are owned from here on. */
void cli_answers_add(cli_answers *answers, double residual, json_object *details,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));
void cli_answers_say(cli_answers *answers, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

typedef struct cli_identify_args {
    const char *positions;
    int32_t table, freqs, sinusoidal, slopes, weights, bf16, layout, json;
    int64_t head_dim;
} cli_identify_args;

/* Each fills answers from its operands (second NULL if absent) and returns an exit
 * code; no answer is "unknown". */
int cli_identify_rotation(cli_answers *out, const cli_identify_args *args,
                          const char *const *operands);
int cli_identify_table(cli_answers *out, const cli_identify_args *args,
                       const char *const *operands);
int cli_identify_freqs(cli_answers *out, const cli_identify_args *args,
                       const char *const *operands);
int cli_identify_sinusoidal(cli_answers *out, const cli_identify_args *args,
                            const char *const *operands);
int cli_identify_slopes(cli_answers *out, const cli_identify_args *args,
                        const char *const *operands);
int cli_identify_weights(cli_answers *out, const cli_identify_args *args,
                         const char *const *operands);

/* Runs every rule over every pairing of its window and adds those that the noise does
 * not tell apart.  x and y as cli_sums_make takes them. */
int cli_identify_fits(cli_answers *out, const double *x, const double *y,
                      int64_t tokens, int64_t heads, int64_t dim,
                      const int64_t *positions, int is_start_known, int is_table);

#endif /* POSENC_CLI_IDENTIFY_H */
