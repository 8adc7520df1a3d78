/* SPDX-License-Identifier: MIT
 *
 * docs_man.c - manual pages in mdoc(7)
 */
#include "docs.h"

#include <ctype.h>
#include <string.h>

enum { WIDTH = 76 };

const char docs_manual_date[] = "November 29, 2026";

/* A backslash starts an escape, and a dot or quote at the start of a line a request. */
static void put_word(FILE *out, const char *word, size_t length, int is_first)
{
    if (is_first && (*word == '.' || *word == '\''))
        (void)fputs("\\&", out);
    for (size_t i = 0; i < length; i++)
        if (word[i] == '\\')
            (void)fputs("\\e", out);
        else if (word[i] == '-')
            (void)fputs("\\-", out);
        else if (word[i] == LESSON_TIE)
            (void)fputs("\\ ", out);
        else
            (void)fputc(word[i], out);
}

/* Bytes of a word as mandoc counts them, which reads a character beyond ASCII as its
 * escape, \[uXXXX]. */
static size_t source_width(const char *word, size_t length)
{
    size_t width = 0;
    for (size_t i = 0; i < length; i++)
        if (strchr("\\-", word[i]) != NULL || word[i] == LESSON_TIE)
            width += 2;
        else if ((unsigned char)word[i] < 0x80)
            width++;
        else
            width += (unsigned char)word[i] >= 0xc0 ? 8 : 0;
    return width;
}

void docs_put_text(FILE *out, const char *text, size_t size)
{
    size_t column = 0;
    for (size_t at = 0; at < size;) {
        size_t length = 0;
        while (at + length < size && text[at + length] != ' ' &&
               text[at + length] != '\n')
            length++;
        if (length > 0) {
            const size_t width = source_width(text + at, length);
            if (column > 0 && column + 1 + width > WIDTH) {
                (void)fputc('\n', out);
                column = 0;
            } else if (column > 0) {
                (void)fputc(' ', out);
            }
            put_word(out, text + at, length, column == 0);
            column += width + 1;
        }
        at += length;
        const int is_end = length > 0 && (text[at - 1] == '.' || text[at - 1] == '?');
        size_t next = at;
        while (next < size && (text[next] == ' ' || text[next] == '\n'))
            next++;
        if (is_end && next < size && isupper((unsigned char)text[next]) && column > 0) {
            (void)fputc('\n', out);
            column = 0;
        }
        at = next;
    }
    if (column > 0)
        (void)fputc('\n', out);
}

void docs_put_literal(FILE *out, const char *line, size_t length)
{
    put_word(out, line, length, 1);
    (void)fputc('\n', out);
}

/* Paragraphs are filled, lists are not. */
static void put_about(FILE *out, const char *text)
{
    while (*text != '\0') {
        if (*text == '\n') {
            text++;
            if (text[strspn(text, "\n")] != '\0' && *text != ' ')
                (void)fputs(".Pp\n", out);
            continue;
        }
        const char *end = text;
        const int is_list = *text == ' ';
        while (*end != '\0' && *end != '\n' && (*end == ' ') == is_list) {
            end += strcspn(end, "\n");
            end += *end == '\n';
        }
        if (!is_list) {
            docs_put_text(out, text, (size_t)(end - text));
            text = end;
            continue;
        }
        (void)fputs(".Bd -literal\n", out);
        while (text < end) {
            const size_t length = strcspn(text, "\n");
            docs_put_literal(out, text, length);
            text += length + (text[length] == '\n');
        }
        (void)fputs(".Ed\n", out);
        if (*text != '\0' && *text != '\n')
            (void)fputs(".Pp\n", out);
    }
}

static void put_option(FILE *out, const cli_option *option)
{
    (void)fputs(".It", out);
    if (option->letter)
        (void)fprintf(out, " Fl %c ,", option->letter);
    (void)fprintf(out, " Fl \\-%s", option->name);
    if (option->argument != NULL)
        (void)fprintf(out, " Ar %s", option->argument);
    (void)fputc('\n', out);
    char help[1024];
    const size_t length = strlen(option->help);
    const int is_open = length > 0 && option->help[length - 1] != '.';
    (void)snprintf(help, sizeof help, "%s%s", option->help, is_open ? "." : "");
    docs_put_text(out, help, strlen(help));
    if (option->type != CLI_CHOICE)
        return;
    (void)fputs("One of", out);
    for (const cli_choice *c = option->choices; c->name != NULL; c++)
        (void)fprintf(out, "\n.Cm %s%s", c->name, c[1].name != NULL ? " ," : " .");
    (void)fputc('\n', out);
}

static void put_exit_status(FILE *out)
{
    (void)fputs(".Sh EXIT STATUS\n"
                ".Bl -tag -width Ds\n"
                ".It 0\nDone.\n"
                ".It 1\nThe answer is no, or the work failed.\n"
                ".It 2\nThe command line is wrong.\n"
                ".El\n",
                out);
}

static void put_examples(FILE *out, const char *lines)
{
    (void)fputs(".Sh EXAMPLES\n.Bd -literal\n", out);
    while (*lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        docs_put_literal(out, lines, length);
        lines += length + (lines[length] == '\n');
    }
    (void)fputs(".Ed\n", out);
}

static void put_head(FILE *out, const char *title, const char *name, const char *what)
{
    (void)fprintf(out,
                  ".\\\" Written by posenc_docs from the option tables.\n"
                  ".Dd %s\n.Dt %s 1\n.Os\n.Sh NAME\n.Nm %s\n.Nd ",
                  docs_manual_date, title, name);
    docs_put_text(out, what, strlen(what));
}

void docs_man_name(char *out, size_t size, const cli_verb *verb)
{
    (void)snprintf(out, size, "posenc-%s", verb->name);
    for (char *c = out; *c != '\0'; c++)
        *c = *c == ' ' ? '-' : *c;
}

static void put_verb_head(FILE *out, const cli_verb *verb)
{
    char name[64], title[64];
    docs_man_name(name, sizeof name, verb);
    for (size_t i = 0; i < sizeof title; i++)
        title[i] = (char)toupper((unsigned char)name[i]);
    put_head(out, title, name, verb->summary);
}

/* The pages of some verbs, as a list. */
static void put_pages(FILE *out, const cli_verb *const *verbs, size_t count)
{
    (void)fputs(".Bl -tag -width Ds\n", out);
    for (size_t i = 0; i < count; i++) {
        char name[64];
        docs_man_name(name, sizeof name, verbs[i]);
        (void)fprintf(out, ".It Xr %s 1\n", name);
        docs_put_text(out, verbs[i]->summary, strlen(verbs[i]->summary));
    }
    (void)fputs(".El\n", out);
}

static void put_group(FILE *out, const cli_verb *group)
{
    put_verb_head(out, group);
    (void)fprintf(out,
                  ".Sh SYNOPSIS\n.Nm posenc %s\n.Ar verb\n.Op Ar operands\n"
                  ".Op Ar options\n.Sh DESCRIPTION\n",
                  group->name);
    put_about(out, group->about);
    (void)fputs(".Pp\nThe verbs are as follows, each with a page of its own:\n", out);
    put_pages(out, group->members, group->num_members);
    put_exit_status(out);
    put_examples(out, group->examples);
    (void)fputs(".Sh SEE ALSO\n.Xr posenc 1 ,\n.Xr posenc-lesson 7\n", out);
}

void docs_man_verb(FILE *out, const cli_verb *verb)
{
    static const cli_option help = {
        .name = "help", .letter = 'h', .help = "a summary of this page"};
    docs_operand operands[DOCS_MAX_OPERANDS];
    const int count = docs_operands(verb, operands);
    if (verb->members != NULL) {
        put_group(out, verb);
        return;
    }
    put_verb_head(out, verb);
    (void)fprintf(out, ".Sh SYNOPSIS\n.Nm posenc %s\n", verb->name);
    for (int i = 0; i < count; i++)
        (void)fprintf(out, "%s%s\n", operands[i].is_optional ? ".Op Ar " : ".Ar ",
                      operands[i].name);
    (void)fputs(".Op Ar options\n.Sh DESCRIPTION\n", out);
    put_about(out, verb->about);
    (void)fputs(".Pp\nThe options are as follows:\n.Bl -tag -width Ds\n", out);
    for (size_t i = 0; i < verb->num_options; i++)
        put_option(out, &verb->options[i]);
    put_option(out, &help);
    (void)fputs(".El\n", out);
    put_exit_status(out);
    put_examples(out, verb->examples);
    (void)fputs(".Sh SEE ALSO\n.Xr posenc 1 ,\n.Xr posenc-lesson 7\n", out);
}

void docs_man_overview(FILE *out)
{
    static const char about[] =
        "The command works out what a model does with positions, from its "
        "configuration, and does it: it prints frequencies and tables, rotates "
        "tensors, compares conventions, draws and explains.\n\n"
        "Data goes to standard output, everything else to standard error. A file "
        "appears under its name only when it is whole.\n";
    put_head(out, "POSENC", "posenc", "positional encodings of transformers");
    (void)fputs(".Sh SYNOPSIS\n.Nm\n.Ar verb\n.Op Ar operands\n.Op Ar options\n"
                ".Nm\n.Cm help\n.Op Ar verb\n.Nm\n.Fl \\-version\n.Sh DESCRIPTION\n",
                out);
    put_about(out, about);
    (void)fputs(".Pp\nThe verbs are as follows, each with a page of its own:\n", out);
    put_pages(out, cli_verbs, cli_num_verbs);
    (void)fputs(
        ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n"
        ".It Ev NO_COLOR , CLICOLOR_FORCE\nWhether pictures have colours, "
        "where\n.Fl \\-color\ndoes not say.\n"
        ".It Ev COLORTERM , TERM\nHow many colours the terminal has.\n"
        ".It Ev COLUMNS\nThe width of text where standard output is no "
        "terminal.\n"
        ".It Ev LC_ALL , LC_CTYPE , LC_MESSAGES , LANG\nWhether half blocks can "
        "be shown, and the language of the lesson.\n.El\n",
        out);
    put_exit_status(out);
    put_examples(out, "posenc inspect llama-3.1-8b");
    (void)fputs(".Sh SEE ALSO\n.Xr posenc-lesson 7\n", out);
}
