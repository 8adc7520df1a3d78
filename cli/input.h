/* SPDX-License-Identifier: MIT
 *
 * input.h - a file, a folder or standard input as a checkpoint
 */
#ifndef POSENC_CLI_INPUT_H
#define POSENC_CLI_INPUT_H

#include "cli.h"

#include "posenc/model.h"

/* path "-": standard input; *name is what messages call it.  Says what went wrong and
 * returns an exit code. */
int cli_input_open(pe_checkpoint **out, const char **name, const char *path);
/* A file that was opened in another way: cli_file_create will not replace it either. */
void cli_input_add(const char *path);
/* 1: path leads to a file that this run has opened, by either. */
int cli_input_is(const char *path);

#endif /* POSENC_CLI_INPUT_H */
