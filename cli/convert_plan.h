/* SPDX-License-Identifier: MIT
 *
 * convert_plan.h - which rows of which tensors change places
 *
 * A tensor's name says whether its rows are heads of q or k; the model says how wide
 * they are and which part turns.  Rows are never told from other rows by their values. */
#ifndef POSENC_CLI_CONVERT_PLAN_H
#define POSENC_CLI_CONVERT_PLAN_H

#include "cli.h"

#include "posenc/model.h"

typedef int32_t cli_qkv;
enum {
    CLI_QKV_AUTO = 0,   /* by the tensor's name and the model_type */
    CLI_QKV_CONCAT = 1, /* all of q, all of k, all of v */
    CLI_QKV_GROUPED = 2 /* for each key head: its query heads, k, v */
};

typedef struct cli_convert_rule {
    const pe_model *model; /* NULL: dims, from and counts are stated */
    pe_pairing from, to;
    int32_t head_dim, rotary_dim, rotary_start; /* stated; 0: the model's */
    int32_t num_heads, num_kv_heads;            /* stated or the model's; 0: unknown */
    cli_qkv qkv;
} cli_convert_rule;

typedef enum cli_rows {
    CLI_ROWS_KEPT,    /* copied */
    CLI_ROWS_SKIPPED, /* rows of q or k that no rotation touches: copied */
    CLI_ROWS_HEADS,   /* heads from the first row on */
    CLI_ROWS_CONCAT,
    CLI_ROWS_GROUPED,
    CLI_ROWS_TAIL /* the last rows are one head's part that turns: latent attention */
} cli_rows;

typedef struct cli_convert_tensor {
    const pe_weight *weight;
    cli_rows kind;
    const char *role;   /* "q", "k", "qkv", "q norm"; NULL: kept */
    const char *reason; /* of SKIPPED */
    pe_pairs pairs;     /* from -> to */
    int32_t head_dim;
    int64_t num_heads, num_kv_heads;
    int64_t num_rows, row_size, block_rows; /* rows stay within blocks */
    int64_t offset;                         /* of the data in the file */
} cli_convert_tensor;

/* Fills out.  Says what does not fit and returns an exit code. */
int cli_convert_plan(cli_convert_tensor *out, const cli_convert_rule *rule,
                     const char *file, const pe_weight *weight);
/* rows[num_rows]: result row r is source row rows[r]; is_inverse: the way back. */
int cli_convert_rows(const cli_convert_tensor *tensor, int is_inverse, int64_t *rows);

#endif /* POSENC_CLI_CONVERT_PLAN_H */
