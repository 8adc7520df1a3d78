/* SPDX-License-Identifier: MIT
 *
 * diff.h - two models' positions side by side, as data
 */
#ifndef POSENC_CLI_DIFF_H
#define POSENC_CLI_DIFF_H

#include "model_arg.h"

enum { CLI_DIFF_LENGTHS = 3, CLI_DIFF_TEXT = 64 };

extern const int64_t cli_diff_lengths[CLI_DIFF_LENGTHS];

/* One thing that the two say differently. */
typedef struct cli_diff_line {
    const char *name;
    char a[CLI_DIFF_TEXT], b[CLI_DIFF_TEXT];
    const char *excuse; /* why it does not count; NULL: it does */
} cli_diff_line;

typedef struct cli_diff_lines {
    cli_diff_line items[24];
    size_t count;
} cli_diff_lines;

typedef struct cli_diff_gap {
    double radians; /* before it is taken modulo a turn */
    int32_t pair;
} cli_diff_gap;

/* Attention sites for which the two models' specs pair up in the same way. */
typedef struct cli_diff_site {
    char *layers; /* "0-4,6-10" */
    pe_site_role role;
    int32_t a_rope, b_rope, a_bias, b_bias; /* as in pe_site; ABSENT: no such site */
    int32_t rotates;                        /* both have a rotation: the rest holds */
    int64_t first_position;                 /* where angles part; -1: nowhere */
    int32_t first_pair;
    cli_diff_gap gaps[CLI_DIFF_LENGTHS];
    double attention_factor[2], softmax_factor[2];
    cli_diff_lines lines;
} cli_diff_site;

enum { CLI_DIFF_ABSENT = -2 };

typedef struct cli_diff {
    double tolerance;
    int64_t limit; /* positions from 0 to this were compared */
    cli_diff_lines lines;
    cli_diff_site *sites;
    size_t num_sites;
    int32_t differs;
} cli_diff;

/* Compares, and says what went wrong.  seq_len as pe_model_create takes it. */
int cli_diff_models(cli_diff *out, cli_model *a, cli_model *b, double tolerance,
                    int64_t seq_len);
void cli_diff_release(cli_diff *diff);

/* Adds a line when the texts differ. */
void cli_diff_text(cli_diff_lines *lines, const char *name, const char *a,
                   const char *b, const char *excuse);
void cli_diff_integer(cli_diff_lines *lines, const char *name, int64_t a, int64_t b,
                      const char *excuse);
/* Differ by more than a millionth: GGUF keeps single precision. */
void cli_diff_number(cli_diff_lines *lines, const char *name, double a, double b,
                     const char *excuse);
int cli_diff_counts(const cli_diff_lines *lines);

/* diff_specs.c: the numbers of specs that are no angles. */
void cli_diff_ropes(cli_diff_lines *lines, const pe_rope_spec *a, const pe_rope_spec *b,
                    const char *pairing_excuse);
int cli_diff_biases(cli_diff_lines *lines, const cli_model *a, int32_t a_bias,
                    const cli_model *b, int32_t b_bias);
void cli_diff_absolute(cli_diff_lines *lines, const pe_model *a, const pe_model *b);

/* diff_report.c */
void cli_diff_print(const cli_diff *diff, const cli_model *a, const cli_model *b);
int cli_diff_print_json(const cli_diff *diff, const cli_model *a, const cli_model *b);

#endif /* POSENC_CLI_DIFF_H */
