/* SPDX-License-Identifier: MIT
 *
 * terminal.h - what the reader's screen and locale can show
 *
 * The locale is read from the environment and never set: numbers keep their decimal
 * point. */
#ifndef POSENC_CLI_TERMINAL_H
#define POSENC_CLI_TERMINAL_H

#include "cli.h"

/* Columns of the terminal on stdout, else of the variable COLUMNS, else 80; at least
 * 20 and at most 1000. */
int cli_columns(void);

/* Whether the locale's characters are UTF-8, by the first of LC_ALL, LC_CTYPE and LANG
 * that is set. */
int cli_is_utf8(void);

/* Whether messages are wanted in the language, "ko", by LC_ALL, LC_MESSAGES and LANG. */
int cli_speaks(const char *language);

/* Columns that UTF-8 text takes up: 2 for East Asian wide characters, 0 for combining
 * ones.  A byte that is no UTF-8 takes one. */
int cli_width(const char *text, size_t size);

/* Writes text so that it cannot act on a terminal or pass for another: control
 * characters and stray bytes as \xNN, characters that turn the direction of writing or
 * are not seen as \uNNNN.  At most size - 1 bytes and a zero; four for each byte of
 * text are enough.  Returns how many. */
size_t cli_escape(char *out, size_t size, const char *text, size_t length);

/* Whether such a character stands at text, of so many bytes; a stray byte is one. */
int cli_is_unsafe(const char *text, size_t size, uint32_t *code, size_t *bytes);

#endif /* POSENC_CLI_TERMINAL_H */
