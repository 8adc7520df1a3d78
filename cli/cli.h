/* SPDX-License-Identifier: MIT
 *
 * cli.h - what every file of the command includes first
 *
 * The command uses the public headers only.  Data goes to stdout, talk to stderr; an
 * error is one line, "posenc: VERB: message". */
#ifndef POSENC_CLI_H
#define POSENC_CLI_H

#define _GNU_SOURCE /* getopt_long, fileno, isatty */

#include "posenc/posenc.h"

#include <stddef.h>
#include <stdint.h>

enum {
    CLI_DONE = 0,
    CLI_FAILED = 1, /* the answer is no, or the work could not be done */
    CLI_USAGE = 2   /* the command line is wrong */
};

#define CLI_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Names the verb in messages from here on; NULL: none. */
void cli_set_verb(const char *verb);

/* Prints the line and returns code.  What file contents and names may bring comes out as
 * cli_escape writes it, so that it stays one line. */
int cli_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for what is worth knowing but stops nothing. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The exit code for a library call that failed, with what it was reading. */
int cli_fail_with(const char *subject, const pe_error *error);

#endif /* POSENC_CLI_H */
