/* SPDX-License-Identifier: MIT
 *
 * pending.h - files that do not have their name yet, removed when a signal comes
 *
 * A file is written under a temporary name beside its own and gets its own when it is
 * whole, so that nothing half-written ever stands under it.  A symbolic link is replaced,
 * not followed.  A folder that was made for files that never came goes as well. */
#ifndef POSENC_CLI_PENDING_H
#define POSENC_CLI_PENDING_H

#include "cli.h"

/* 1: what is there must not be replaced by a file: a device or a pipe, /dev/null or
 * /dev/stdout.  It is to be written as it is. */
int cli_pending_is_special(const char *path);
/* "PATH.part-PID" in new memory, known to the signal handler from now on; NULL when
 * memory is out or too many are pending. */
char *cli_pending_add(const char *path);
/* Gives the file its name.  0, or -1 with errno. */
int cli_pending_rename(const char *temporary, const char *path);
/* Removes the file if it is there, and forgets and frees the name; NULL is fine. */
void cli_pending_drop(char *temporary);

/* Makes a folder for outputs; one that is there is fine.  0, or -1 with errno.  path is
 * not copied: it is one of the command line. */
int cli_pending_folder(const char *path);
/* Removes that folder if it was made here and nothing is in it. */
void cli_pending_end_folder(void);

#endif /* POSENC_CLI_PENDING_H */
