/* SPDX-License-Identifier: MIT
 *
 * help.c - posenc VERB --help, from the option table
 */
#include "options.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 28, WIDTH = 80 };

/* Breaks a help text between words, under its first line. */
static void print_wrapped(const char *text)
{
    int column = HELP_COLUMN;
    while (*text != '\0') {
        int gap = (int)strspn(text, " "), length = (int)strcspn(text + gap, " ");
        int is_full = column > HELP_COLUMN && column + gap + length > WIDTH;
        if (is_full) {
            (void)printf("\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        column += printf("%*s%.*s", is_full ? 0 : gap, "", length, text + gap);
        text += gap + length;
    }
    (void)putchar('\n');
}

/* Indents every line of a text. */
static void print_indented(const char *text)
{
    while (*text != '\0') {
        int length = (int)strcspn(text, "\n");
        (void)printf("  %.*s\n", length, text);
        text += length + (text[length] == '\n');
    }
}

static void print_option(const cli_option *option)
{
    char left[96];
    char letter[8] = "    ";
    if (option->letter)
        (void)snprintf(letter, sizeof letter, "-%c, ", option->letter);
    int width =
        snprintf(left, sizeof left, "  %s--%s%s%s", letter, option->name,
                 option->argument ? " " : "", option->argument ? option->argument : "");
    if (width + 2 > HELP_COLUMN)
        (void)printf("%s\n%*s", left, HELP_COLUMN, "");
    else
        (void)printf("%-*s", HELP_COLUMN, left);
    print_wrapped(option->help);
}

const char *cli_verb_word(const cli_verb *verb)
{
    const char *space = strrchr(verb->name, ' ');
    return space != NULL ? space + 1 : verb->name;
}

static void print_group(const cli_verb *group)
{
    (void)printf("posenc %s - %s\n\nUsage: posenc %s VERB ...\n\n%s\n\nVerbs:\n",
                 group->name, group->summary, group->name, group->about);
    for (size_t i = 0; i < group->num_members; i++)
        (void)printf("  %-10s %s\n", cli_verb_word(group->members[i]),
                     group->members[i]->summary);
    (void)printf("\nposenc %s VERB --help (or posenc help %s VERB) explains a verb.\n"
                 "\nExamples:\n",
                 group->name, group->name);
    print_indented(group->examples);
}

void cli_print_help(const cli_verb *verb)
{
    if (verb->members != NULL) {
        print_group(verb);
        return;
    }
    static const cli_option help = {.name = "help", .letter = 'h', .help = "this text"};
    (void)printf("posenc %s - %s\n\nUsage: posenc %s%s%s [options]\n\n%s\n\nOptions:\n",
                 verb->name, verb->summary, verb->name, *verb->operands ? " " : "",
                 verb->operands, verb->about);
    for (size_t i = 0; i < verb->num_options; i++)
        print_option(&verb->options[i]);
    print_option(&help);
    (void)puts("\nExamples:");
    print_indented(verb->examples);
}
