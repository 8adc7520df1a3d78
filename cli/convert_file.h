/* SPDX-License-Identifier: MIT
 *
 * convert_file.h - one safetensors file into another whose q and k rows have moved
 *
 * Every byte that is no row of q or k is copied where it was, so header, metadata and
 * the order of tensors stay.  Memory is bounded whatever the file's size. */
#ifndef POSENC_CLI_CONVERT_FILE_H
#define POSENC_CLI_CONVERT_FILE_H

#include "convert_plan.h"

typedef struct cli_convert_file {
    const char *name; /* for messages */
    pe_checkpoint *checkpoint;
    cli_convert_tensor *tensors; /* by place in the file */
    int64_t num_tensors, num_changed;
    int64_t size, changed_size; /* bytes */
    int fd;
} cli_convert_file;

/* Opens and plans.  Says what went wrong and returns an exit code. */
int cli_convert_open(cli_convert_file *out, const char *path,
                     const cli_convert_rule *rule);
/* Into an empty file open for reading and writing, called out_name in messages. */
int cli_convert_write(const cli_convert_file *file, int fd, const char *out_name);
/* Whether moving the rows of fd back gives the source, byte for byte; fd -1: whether
 * the permutations undo each other. */
int cli_convert_check(const cli_convert_file *file, int fd);
void cli_convert_close(cli_convert_file *file);

#endif /* POSENC_CLI_CONVERT_FILE_H */
