/* SPDX-License-Identifier: MIT
 *
 * message.c - the one line on stderr
 */
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>

static const char *current_verb;

void cli_set_verb(const char *verb)
{
    current_verb = verb;
}

static void print_line(const char *kind, const char *format, va_list arguments)
{
    char line[1024];
    (void)vsnprintf(line, sizeof line, format, arguments);
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
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
