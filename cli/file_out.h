/* SPDX-License-Identifier: MIT
 *
 * file_out.h - writing a file piece by piece
 *
 * A file appears under its name only when it is whole: until cli_file_commit it has a
 * temporary name beside it.  What is there and is no file, as /dev/null, is written to. */
#ifndef POSENC_CLI_FILE_OUT_H
#define POSENC_CLI_FILE_OUT_H

#include "cli.h"

#include <stdio.h>

typedef struct cli_file_out {
    FILE *file;
    char *path, *temporary; /* temporary NULL: standard output, or no file */
} cli_file_out;

/* path "-": standard output, where binary data is kept off a terminal.  Says what went
 * wrong and returns an exit code, as the others do. */
int cli_file_create(cli_file_out *out, const char *path, int is_binary);
int cli_file_write(cli_file_out *out, const void *data, size_t size);
/* Closes and gives it its name. */
int cli_file_commit(cli_file_out *out);
/* Removes what was not committed; fine on a zeroed or committed one. */
void cli_file_discard(cli_file_out *out);

/* 1: what is written to one path arrives where the other leads, as "-" and /dev/stdout
 * or two names of a file do, whether it is there yet or not. */
int cli_file_is_same(const char *a, const char *b);

#endif /* POSENC_CLI_FILE_OUT_H */
