/* SPDX-License-Identifier: MIT
 *
 * convert_job.h - what one run of convert has to do, and its reports
 */
#ifndef POSENC_CLI_CONVERT_JOB_H
#define POSENC_CLI_CONVERT_JOB_H

#include "convert_file.h"
#include "model_arg.h"

#include <json-c/json_object.h>

typedef struct cli_convert_args {
    const char *output, *config;
    int32_t to, from, qkv, dry_run, check, list, json;
    int64_t head_dim, rotary_dim, heads, kv_heads;
} cli_convert_args;

/* A file to write: converted, or copied as it is. */
typedef struct cli_convert_item {
    char *input, *output, *temporary;
    int32_t is_copied;
    int64_t num_tensors, num_changed, size, changed_size;
} cli_convert_item;

typedef struct cli_convert_job {
    const cli_convert_args *args;
    cli_model model; /* model NULL: dims are stated */
    cli_convert_rule rule;
    cli_convert_item *items;
    size_t num_items;
    json_object *files; /* of --json */
} cli_convert_job;

/* After the file was read, and written if it was to be. */
void cli_convert_report_file(cli_convert_job *job, cli_convert_item *item,
                             const cli_convert_file *file);
/* The order of the rows of the first tensor of each role. */
int cli_convert_list_rows(const cli_convert_file *file);
/* All files together; returns an exit code. */
int cli_convert_report(cli_convert_job *job);

#endif /* POSENC_CLI_CONVERT_JOB_H */
