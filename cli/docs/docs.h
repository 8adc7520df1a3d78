/* SPDX-License-Identifier: MIT
 *
 * docs.h - manual pages and completions, all from the option tables
 *
 * A program of the build: it runs once, and what it writes is installed. */
#ifndef POSENC_CLI_DOCS_H
#define POSENC_CLI_DOCS_H

#include "lesson_text.h"
#include "verbs.h"

#include <stdio.h>

void docs_man_overview(FILE *out);
void docs_man_verb(FILE *out, const cli_verb *verb);
/* "posenc-lab-train" */
void docs_man_name(char *out, size_t size, const cli_verb *verb);
/* posenc-lesson(7) */
void docs_lesson(FILE *out, lesson_language language);
void docs_bash(FILE *out);
void docs_zsh(FILE *out);
void docs_fish(FILE *out);

/* Of every page. */
extern const char docs_manual_date[];

/* Filled lines; mdoc wants every sentence to begin one.  A ~ is a space that is not
 * broken. */
void docs_put_text(FILE *out, const char *text, size_t size);
/* A line as it stands. */
void docs_put_literal(FILE *out, const char *line, size_t length);

/* What may stand for an argument or operand. */
typedef int32_t docs_value;
enum {
    DOCS_NOTHING = 0, /* a number, a text: nothing to suggest */
    DOCS_WORDS = 1,   /* choices, or the kinds of the verb */
    DOCS_MODEL = 2,   /* a preset, a .json or .gguf file, a folder */
    DOCS_FILE = 3,    /* files of an extension, or "": any */
    DOCS_FOLDER = 4
};

docs_value docs_option_value(const cli_option *option, const char **extension);

/* The words of verb->operands: "MODEL", "Q.npy"; brackets are left out. */
typedef struct docs_operand {
    char name[32];
    docs_value value;
    const char *extension;
    int is_optional;
} docs_operand;

enum { DOCS_MAX_OPERANDS = 8 };
int docs_operands(const cli_verb *verb, docs_operand out[DOCS_MAX_OPERANDS]);

/* The names of the kinds or choices, with a space before each but the first. */
void docs_put_kinds(FILE *out, const cli_verb *verb);
void docs_put_choices(FILE *out, const cli_choice *choices);
void docs_put_presets(FILE *out);

/* Of a help text, the first sentence or clause, for one line. */
void docs_short(char *out, size_t size, const char *help);

#endif /* POSENC_CLI_DOCS_H */
