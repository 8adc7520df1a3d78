/* SPDX-License-Identifier: MIT
 *
 * print.c - lines of text that fit the page and cannot act on a terminal
 *
 * Pieces are collected until their line ends.  Where memory is out they are written as
 * they come. */
#include "print.h"

#include "terminal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct page {
    char *line;
    size_t size, room;
    int is_talk; /* standard error */
} page;

static page report = {.is_talk = 0}, talk = {.is_talk = 1};
static FILE *held;
static char *held_text;
static size_t held_size;

static FILE *file_of(const page *p)
{
    return p->is_talk ? stderr : held != NULL ? held : stdout;
}

/* Where the columns of a line begin: gaps of two spaces or more part them. */
typedef struct columns {
    int indent;
    int second;  /* screen column of the text after the first gap; 0: no gap */
    int last;    /* and after the last */
    size_t left; /* bytes before the last gap */
    size_t rest; /* where the text after it begins */
} columns;

static columns find_columns(const char *line, size_t size)
{
    columns found = {.indent = (int)strspn(line, " ")};
    for (size_t at = (size_t)found.indent; at < size;) {
        const size_t gap = at + strcspn(line + at, " ");
        const size_t next = gap + strspn(line + gap, " ");
        if (next - gap >= 2 && next < size) {
            found.left = gap;
            found.rest = next;
            found.last = cli_width(line, next);
            if (found.second == 0)
                found.second = found.last;
        }
        at = next;
    }
    return found;
}

/* As many words as fit on each line, the lines after the first under hang. */
static void put_words(FILE *out, const char *text, size_t size, int width, int hang)
{
    const char *end = text + size;
    int room = width;
    while (text < end) {
        const char *cut = end;
        if (cli_width(text, size) > room) {
            const char *space = text + strspn(text, " ");
            cut = NULL;
            while ((space = memchr(space, ' ', (size_t)(end - space))) != NULL) {
                if (cut != NULL && cli_width(text, (size_t)(space - text)) > room)
                    break;
                cut = space;
                space += strspn(space, " ");
            }
            cut = cut != NULL ? cut : end;
        }
        (void)fprintf(out, "%.*s\n", (int)(cut - text), text);
        text = cut + strspn(cut, " ");
        size = (size_t)(end - text);
        room = width - hang;
        if (text < end)
            (void)fprintf(out, "%*s", hang, "");
    }
}

/* A line that is too wide. */
static void put_broken(FILE *out, const char *line, size_t size, int width)
{
    const int half = width / 2, far = (int)strspn(line, " ") - 4;
    if (far + 4 > half) { /* under a column that is broken itself */
        line += far;
        size -= (size_t)far;
    }
    const columns at = find_columns(line, size);
    const int rest = at.rest > 0 ? cli_width(line + at.rest, size - at.rest) : 0;
    int hang = 0;
    if (at.rest > 0 && at.last > half && cli_width(line, at.left) <= width) {
        if (at.second <= half && rest <= width - at.second)
            hang = at.second;
        else if (rest <= width - at.indent - 4)
            hang = at.indent + 4;
    }
    if (hang > 0)
        (void)fprintf(out, "%.*s\n%*s%s\n", (int)at.left, line, hang, "",
                      line + at.rest);
    else
        put_words(out, line, size, width,
                  at.rest == 0        ? at.indent + 2
                  : at.last <= half   ? at.last
                  : at.second <= half ? at.second
                                      : at.indent + 4);
}

static void end_line(page *p)
{
    FILE *out = file_of(p);
    const int width = cli_columns();
    while (p->size > 0 && p->line[p->size - 1] == ' ')
        p->line[--p->size] = '\0';
    if (p->size > 0 && cli_width(p->line, p->size) > width)
        put_broken(out, p->line, p->size, width);
    else
        (void)fprintf(out, "%s\n", p->size > 0 ? p->line : "");
    p->size = 0;
}

/* Four bytes are enough for each byte of text, as cli_escape writes them. */
static void add(page *p, const char *text, size_t size)
{
    const size_t need = p->size + 4 * size + 1;
    if (need > p->room) {
        char *wider = realloc(p->line, 2 * need);
        if (wider == NULL) {
            (void)fwrite(p->line, 1, p->size, file_of(p));
            p->size = 0;
            return;
        }
        p->line = wider;
        p->room = 2 * need;
    }
    p->size += cli_escape(p->line + p->size, p->room - p->size, text, size);
}

static void print(page *p, const char *format, va_list arguments)
{
    char few[512], *text = few;
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(few, sizeof few, format, arguments);
    if (length >= (int)sizeof few && (text = malloc((size_t)length + 1)) != NULL)
        (void)vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    if (length < 0 || text == NULL)
        return;
    const size_t size = strlen(format), lead = strspn(format, "\n");
    size_t tail = 0;
    while (lead + tail < size && format[size - 1 - tail] == '\n')
        tail++;
    for (size_t i = 0; i < lead; i++)
        end_line(p);
    if ((size_t)length > lead + tail)
        add(p, text + lead, (size_t)length - lead - tail);
    for (size_t i = 0; i < tail; i++)
        end_line(p);
    if (text != few)
        free(text);
}

void cli_print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print(&report, format, arguments);
    va_end(arguments);
}

void cli_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print(&talk, format, arguments);
    va_end(arguments);
}

void cli_print_hold(void)
{
    held = open_memstream(&held_text, &held_size);
}

void cli_print_release(int keep)
{
    if (held == NULL)
        return;
    (void)fclose(held);
    held = NULL;
    if (keep)
        (void)fwrite(held_text, 1, held_size, stdout);
    free(held_text);
    held_text = NULL;
    report.size = 0;
}
