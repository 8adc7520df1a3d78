/* SPDX-License-Identifier: MIT
 *
 * message.c - the one line on stderr
 */
#include "terminal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *current_verb;

void cli_set_verb(const char *verb)
{
    current_verb = verb;
}

static void print_line(const char *kind, const char *format, va_list arguments)
{
    char text[1024], line[4 * sizeof text];
    (void)vsnprintf(text, sizeof text, format, arguments);
    (void)cli_escape(line, sizeof line, text, strlen(text));
    (void)fprintf(stderr, "posenc: %s%s%s%s\n", current_verb ? current_verb : "",
                  current_verb ? ": " : "", kind, line);
}

int cli_fail(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments);
    va_end(arguments);
    return code;
}

void cli_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("note: ", format, arguments);
    va_end(arguments);
}

int cli_fail_with(const char *subject, const pe_error *error)
{
    return cli_fail(CLI_FAILED, "%s: %s", subject, error->message);
}
