/* SPDX-License-Identifier: MIT
 *
 * absolute_arg.h - what a model adds to its input: sinusoids, or a table of rows
 */
#ifndef POSENC_CLI_ABSOLUTE_ARG_H
#define POSENC_CLI_ABSOLUTE_ARG_H

#include "model_arg.h"
#include "options.h"
#include "positions_arg.h"
#include "rope_arg.h"

/* For the options of a verb whose arguments have a const char *table. */
#define CLI_TABLE_OPTION(args_type)                                                \
  {                                                                                \
    .name = "table", .argument = "FILE.npy|NAME", .type = CLI_TEXT,                \
    .offset = offsetof(args_type, table),                                          \
    .help = "the learned table (rows, model_dim), where the model's files do not " \
            "hold it; or the name of a tensor that they do hold"                   \
  }

typedef struct cli_absolute {
    pe_absolute *plan;
    const char *method; /* "sinusoidal", "learned" */
    int64_t model_dim;
    int32_t num_axes;
    int64_t start;        /* of a text: past the padding position, where there is one */
    int64_t rows, offset; /* learned, else 0 */
    void *table;          /* what --table held */
} cli_absolute;

/* 1: the model adds something to its input and rotates nothing, or --table says so. */
int cli_absolute_is_meant(const cli_model *model, const char *table);

/* table NULL: not said.  table_len positions from 0 are tabulated.  Says what went wrong
 * and returns an exit code, as the next does. */
int cli_absolute_open(cli_absolute *out, const cli_model *model,
                      const cli_rope_args *args, const char *table, int64_t table_len);
/* Names the first of batch * seq_len positions that has no row. */
int cli_absolute_check(const cli_absolute *absolute, const pe_positions *at,
                       int64_t batch, int64_t seq_len);
void cli_absolute_close(cli_absolute *absolute);

#endif /* POSENC_CLI_ABSOLUTE_ARG_H */
