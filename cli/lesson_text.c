/* SPDX-License-Identifier: MIT
 *
 * lesson_text.c - the words of the lesson, in the languages that there are
 *
 * Numbers are filled in first and lines broken after that, by columns and not by bytes:
 * a Hangul syllable takes two. */
#include "lesson_text.h"

#include "terminal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PARAGRAPH = 8192, PAUSE = '%' };

typedef struct block {
    char text[MAX_PARAGRAPH];
    size_t size;
} block;

static size_t line_size(const char *line, const char *end)
{
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    return (size_t)((newline ? newline : end) - line);
}

static const char *next_line(const char *line, const char *end)
{
    const size_t size = line_size(line, end);
    return line + size + (line + size < end);
}

/* "= NAME | TITLE" begins a section. */
static int is_heading(const char *line, const char *end)
{
    return end - line > 2 && line[0] == '=' && line[1] == ' ';
}

int lesson_find(lesson_section *out, lesson_language language, const char *topic)
{
    const int is_ko = language == LESSON_KO;
    const char *at = (const char *)(is_ko ? cli_lesson_ko_data : cli_lesson_en_data);
    const char *end = at + (is_ko ? cli_lesson_ko_size : cli_lesson_en_size);
    const size_t size = strlen(topic);
    while (at < end &&
           !(is_heading(at, end) && line_size(at, end) > size + 5 &&
             memcmp(at + 2, topic, size) == 0 && memcmp(at + 2 + size, " | ", 3) == 0))
        at = next_line(at, end);
    if (at == end)
        return 0;
    out->title = at + size + 5;
    out->title_size = (int)(line_size(at, end) - size - 5);
    out->body = next_line(at, end);
    for (at = out->body; at < end && !is_heading(at, end);)
        at = next_line(at, end);
    out->end = at;
    return 1;
}

static void append(block *b, const char *text, size_t size)
{
    assert(b->size + size < sizeof b->text);
    memcpy(b->text + b->size, text, size);
    b->size += size;
    b->text[b->size] = '\0';
}

/* Appends a line with its numbers; 0 after saying what is missing. */
static int append_filled(block *b, const char *line, size_t size,
                         const lesson_numbers *numbers)
{
    const char *end = line + size;
    while (line < end) {
        const char *open = memchr(line, '{', (size_t)(end - line));
        const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
        char value[512];
        if (close == NULL) {
            append(b, line, (size_t)(end - line));
            return 1;
        }
        append(b, line, (size_t)(open - line));
        const int length = lesson_format(numbers, open + 1, (size_t)(close - open - 1),
                                         value, sizeof value);
        if (length < 0 || (size_t)length >= sizeof value) {
            (void)cli_fail(CLI_FAILED, "the text mentions %.*s, which is no number",
                           (int)(close - open + 1), open);
            return 0;
        }
        append(b, value, (size_t)length);
        line = close + 1;
    }
    return 1;
}

int lesson_fill(char *out, size_t size, const char *line, size_t length,
                const lesson_numbers *numbers)
{
    block b = {.size = 0};
    if (!append_filled(&b, line, length, numbers))
        return 0;
    return snprintf(out, size, "%s", b.text) < (int)size;
}

typedef struct replacement {
    const char *from, *to;
} replacement;

/* What data/lesson.en.txt uses. */
static const replacement ascii[] = {
    {"θ", "theta"}, {"π", "pi"}, {"Δ", "D"}, {"·", "*"}, {"×", "x"}, {"√", "sqrt"},
    {"−", "-"},     {"─", "-"},  {"│", "|"}, {"┌", "+"}, {"┐", "+"}, {"└", "+"},
    {"┘", "+"},     {"├", "+"},  {"▶", ">"}, {"▼", "v"}};

static const replacement *replacement_at(const char *text)
{
    for (size_t i = 0; i < CLI_COUNT(ascii); i++)
        if (strncmp(text, ascii[i].from, strlen(ascii[i].from)) == 0)
            return &ascii[i];
    return NULL;
}

static void make_ascii(block *b)
{
    block out = {.size = 0};
    for (const char *c = b->text; *c != '\0';) {
        const replacement *r = replacement_at(c);
        append(&out, r ? r->to : c, r ? strlen(r->to) : 1);
        c += r ? strlen(r->from) : 1;
    }
    *b = out;
}

static void print_tied(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        (void)putchar(text[i] == LESSON_TIE ? ' ' : text[i]);
}

/* Columns of "- " or "1. " at the start of a list item, under which its other lines
 * are indented. */
static int hanging_indent(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    if (strncmp(text, "- ", 2) == 0)
        return 2;
    return digits > 0 && strncmp(text + digits, ". ", 2) == 0 ? (int)digits + 2 : 0;
}

static int is_item(const char *text, const char *end)
{
    char start[8] = "";
    const size_t size = (size_t)(end - text);
    memcpy(start, text, size < sizeof start - 1 ? size : sizeof start - 1);
    return hanging_indent(start) > 0;
}

static void print_paragraph(block *b, const lesson_page *page)
{
    const int indent = hanging_indent(b->text);
    int column = 0;
    for (const char *word = b->text; *word != '\0';) {
        const size_t size = strcspn(word, " ");
        const int width = cli_width(word, size);
        if (column > indent && column + 1 + width > page->columns) {
            (void)printf("\n%*s", indent, "");
            column = indent;
        } else if (column > 0 && column != indent) {
            (void)putchar(' ');
            column++;
        }
        print_tied(word, size);
        column += width;
        word += size;
        word += strspn(word, " ");
    }
    if (b->size > 0)
        (void)putchar('\n');
    b->size = 0;
    b->text[0] = '\0';
}

void lesson_print_title(const lesson_section *section, const lesson_page *page)
{
    block b = {.size = 0};
    append(&b, section->title, (size_t)section->title_size);
    if (page->is_ascii)
        make_ascii(&b);
    (void)printf("%s\n", b.text);
    for (int i = cli_width(b.text, b.size); i > 0; i--)
        (void)fputs(page->is_ascii ? "-" : "─", stdout);
    (void)putchar('\n');
}

/* A line that begins with two spaces is printed as it stands. */
static int print_verbatim(const char *line, size_t size, const lesson_numbers *numbers,
                          const lesson_page *page)
{
    block b = {.size = 0};
    if (!append_filled(&b, line, size, numbers))
        return 0;
    if (page->is_ascii)
        make_ascii(&b);
    print_tied(b.text, b.size);
    (void)putchar('\n');
    return 1;
}

static void end_paragraph(block *b, const lesson_page *page)
{
    if (page->is_ascii)
        make_ascii(b);
    print_paragraph(b, page);
}

const char *lesson_print(const lesson_section *section, const char *body,
                         const lesson_numbers *numbers, const lesson_page *page)
{
    const char *end = section->end;
    block b = {.size = 0};
    for (; body < end; body = next_line(body, end)) {
        const size_t size = line_size(body, end);
        const int is_verbatim = size > 2 && memcmp(body, "  ", 2) == 0;
        if (size == 0 || is_verbatim || *body == PAUSE || is_item(body, body + size))
            end_paragraph(&b, page);
        if (*body == PAUSE)
            return next_line(body, end);
        if (size == 0)
            (void)putchar('\n');
        else if (is_verbatim) {
            if (!print_verbatim(body, size, numbers, page))
                return NULL;
            continue;
        } else {
            if (b.size > 0)
                append(&b, " ", 1);
            if (!append_filled(&b, body, size, numbers))
                return NULL;
        }
    }
    end_paragraph(&b, page);
    return end;
}
