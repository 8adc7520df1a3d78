/* SPDX-License-Identifier: MIT
 *
 * print.h - lines of text that fit the page and cannot act on a terminal
 *
 * A newline counts where the format begins or ends with it; one inside, as any control
 * or direction character that a name from a file may bring, comes out escaped. */
#ifndef POSENC_CLI_PRINT_H
#define POSENC_CLI_PRINT_H

#include "cli.h"

/* A piece of a line, or lines, on standard output.  A line that is wider than the page
 * is broken at spaces: the last column of a table under itself if it begins on the left
 * half, else on a line of its own. */
void cli_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same on standard error, for what is neither an error nor a note. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From here on standard output waits, so that a report which fails half-way leaves
 * nothing there, until cli_print_release writes it or, with keep 0, drops it. */
void cli_print_hold(void);
void cli_print_release(int keep);

#endif /* POSENC_CLI_PRINT_H */
