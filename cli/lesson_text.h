/* SPDX-License-Identifier: MIT
 *
 * lesson_text.h - the words of the lesson, in the languages that there are
 *
 * data/lesson.LANG.txt, whose head says how it is written, is embedded at build time. */
#ifndef POSENC_CLI_LESSON_TEXT_H
#define POSENC_CLI_LESSON_TEXT_H

#include "lesson_numbers.h"

typedef int32_t lesson_language;
enum { LESSON_EN = 1, LESSON_KO = 2 };

extern const unsigned char cli_lesson_en_data[], cli_lesson_ko_data[];
extern const size_t cli_lesson_en_size, cli_lesson_ko_size;

/* A topic's title and what follows it, both inside the embedded text. */
typedef struct lesson_section {
    const char *title, *body, *end;
    int title_size;
} lesson_section;

/* 0 if the text has no such section. */
int lesson_find(lesson_section *out, lesson_language language, const char *topic);

typedef struct lesson_page {
    int columns;  /* paragraphs are broken to fit */
    int is_ascii; /* Greek letters, operators and lines in ASCII, Hangul as it is */
} lesson_page;

void lesson_print_title(const lesson_section *section, const lesson_page *page);

/* Writes a line of the text with its numbers, in room of size bytes.  0: there is not
 * enough, or a mention that no number answers, which it says. */
int lesson_fill(char *out, size_t size, const char *line, size_t length,
                const lesson_numbers *numbers);

/* Prints from body on, up to the next place to pause.  Returns where to go on, end when
 * there is no more, or NULL after saying which mention no number answers. */
const char *lesson_print(const lesson_section *section, const char *body,
                         const lesson_numbers *numbers, const lesson_page *page);

#endif /* POSENC_CLI_LESSON_TEXT_H */
