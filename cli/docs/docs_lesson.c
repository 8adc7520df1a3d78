/* SPDX-License-Identifier: MIT
 *
 * docs_lesson.c - posenc-lesson(7): the lesson as a manual page, in each language
 *
 * Words and numbers are those of posenc lesson.  The pages are UTF-8 and say so in their
 * first line, which man and mandoc read. */
#include "docs.h"

#include "lesson_topics.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 8192, PAUSE = '%' };

typedef enum list_kind { NO_LIST, BULLETS, NUMBERS, LITERAL } list_kind;

typedef struct page {
    FILE *out;
    list_kind open;
    int needs_gap; /* a blank line of the text has no paragraph after it yet */
    char paragraph[MAX_LINE];
} page;

/* What the text does not have. */
static const struct {
    const char *what, *about;
} heads[] = {
    [LESSON_EN] =
        {"sinusoidal, learned, RoPE and ALiBi positions explained",
         "What posenc lesson prints, topic by topic. Each number was computed "
         "by the library when this page was built; posenc lesson TOPIC "
         "computes it anew, and with --json shows all of its digits."},
    [LESSON_KO] = {
        "사인파, 학습형, RoPE, ALiBi 위치 인코딩 해설",
        "posenc lesson이 출력하는 내용을 주제별로 옮긴 것입니다. 숫자는 모두 "
        "이 문서를 만들 때 라이브러리가 계산했습니다. posenc lesson TOPIC은 그 "
        "자리에서 다시 계산하고, --json을 붙이면 모든 자릿수를 보여 줍니다."}};

static void close_list(page *p)
{
    if (p->open == LITERAL)
        (void)fputs(".Ed\n", p->out);
    else if (p->open != NO_LIST)
        (void)fputs(".El\n", p->out);
    p->open = NO_LIST;
}

static void open_list(page *p, list_kind kind)
{
    static const char *const begins[] = {[BULLETS] = ".Bl -bullet -compact\n",
                                         [NUMBERS] = ".Bl -enum -compact\n",
                                         [LITERAL] = ".Bd -literal\n"};
    if (p->open == kind)
        return;
    close_list(p);
    (void)fputs(begins[kind], p->out);
    p->open = kind;
}

/* Bytes of "- " or "1. " at the start of a list item, and which of the two. */
static size_t item_mark(const char *text, list_kind *kind)
{
    const size_t digits = strspn(text, "0123456789");
    *kind = *text == '-' ? BULLETS : NUMBERS;
    if (strncmp(text, "- ", 2) == 0)
        return 2;
    return digits > 0 && strncmp(text + digits, ". ", 2) == 0 ? digits + 2 : 0;
}

static void end_paragraph(page *p)
{
    list_kind kind;
    const size_t mark = item_mark(p->paragraph, &kind);
    if (*p->paragraph == '\0')
        return;
    if (mark > 0) {
        open_list(p, kind);
        (void)fputs(".It\n", p->out);
    } else {
        close_list(p);
        if (p->needs_gap)
            (void)fputs(".Pp\n", p->out);
    }
    docs_put_text(p->out, p->paragraph + mark, strlen(p->paragraph + mark));
    p->paragraph[0] = '\0';
    p->needs_gap = 0;
}

static void add_to_paragraph(page *p, const char *line)
{
    const size_t used = strlen(p->paragraph);
    const int length = snprintf(p->paragraph + used, sizeof p->paragraph - used, "%s%s",
                                used > 0 ? " " : "", line);
    if (length < 0 || (size_t)length >= sizeof p->paragraph - used) {
        (void)fputs("posenc_docs: a paragraph of the lesson is too long\n", stderr);
        exit(EXIT_FAILURE);
    }
}

static void put_verbatim(page *p, char *line)
{
    if (p->open == LITERAL && p->needs_gap)
        (void)fputc('\n', p->out);
    open_list(p, LITERAL);
    for (char *tie = line; (tie = strchr(tie, LESSON_TIE)) != NULL;)
        *tie = ' ';
    docs_put_literal(p->out, line, strlen(line));
    p->needs_gap = 0;
}

static void put_line(page *p, char *line)
{
    list_kind kind;
    const int is_verbatim = strncmp(line, "  ", 2) == 0;
    if (*line == '\0' || *line == PAUSE || is_verbatim || item_mark(line, &kind) > 0)
        end_paragraph(p);
    if (*line == '\0' || *line == PAUSE)
        p->needs_gap = 1;
    else if (is_verbatim)
        put_verbatim(p, line);
    else
        add_to_paragraph(p, line);
}

static void put_section(page *p, const lesson_section *section, const char *name,
                        const lesson_numbers *numbers)
{
    static char filled[MAX_LINE];
    (void)fprintf(p->out, ".Sh %s \\(em %.*s\n", name, section->title_size,
                  section->title);
    p->needs_gap = 0;
    for (const char *line = section->body; line < section->end;) {
        const char *newline = memchr(line, '\n', (size_t)(section->end - line));
        const size_t size = (size_t)((newline ? newline : section->end) - line);
        if (!lesson_fill(filled, sizeof filled, line, size, numbers))
            exit(EXIT_FAILURE);
        /* The blank line below a heading is no gap. */
        if (size > 0 || line != section->body)
            put_line(p, filled);
        line += size + (newline != NULL);
    }
    end_paragraph(p);
    close_list(p);
}

void docs_lesson(FILE *out, lesson_language language)
{
    static page p;
    static lesson_numbers numbers;
    const lesson_topic *topic;
    p = (page){.out = out};
    (void)fprintf(out,
                  ".\\\" -*- coding: utf-8 -*-\n"
                  ".\\\" Written by posenc_docs from the words and numbers of posenc "
                  "lesson.\n"
                  ".Dd %s\n.Dt POSENC-LESSON 7\n.Os\n.Sh NAME\n.Nm posenc-lesson\n"
                  ".Nd %s\n.Sh DESCRIPTION\n",
                  docs_manual_date, heads[language].what);
    docs_put_text(out, heads[language].about, strlen(heads[language].about));
    for (size_t i = 0; (topic = lesson_topic_at(i)) != NULL; i++) {
        lesson_section section;
        lesson_clear(&numbers);
        if (topic->compute(&numbers) != CLI_DONE ||
            !lesson_find(&section, language, topic->name)) {
            (void)fprintf(stderr, "posenc_docs: no lesson about %s\n", topic->name);
            exit(EXIT_FAILURE);
        }
        put_section(&p, &section, topic->name, &numbers);
    }
    (void)fputs(".Sh SEE ALSO\n.Xr posenc 1 ,\n.Xr posenc-lesson 1\n", out);
}
