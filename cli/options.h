/* SPDX-License-Identifier: MIT
 *
 * options.h - verbs and their options as data
 *
 * One table per verb drives parsing (getopt_long) and --help; nothing else in the
 * command knows what options exist. */
#ifndef POSENC_CLI_OPTIONS_H
#define POSENC_CLI_OPTIONS_H

#include "cli.h"

typedef struct cli_choice {
    const char *name; /* NULL ends a list */
    int32_t value;
} cli_choice;

typedef struct cli_range {
    int64_t begin, end; /* [begin, end) */
} cli_range;

typedef int32_t cli_option_type;
enum {
    CLI_FLAG = 1,    /* int32_t, set to 1 */
    CLI_TEXT = 2,    /* const char * */
    CLI_INTEGER = 3, /* int64_t in [min, max] */
    CLI_CHOICE = 4,  /* int32_t, a value of choices */
    CLI_RANGE = 5,   /* cli_range, written A:B, or A for [A, A + 1) */
    CLI_NUMBER = 6   /* double, finite and above 0 */
};

typedef struct cli_option {
    const char *name;     /* long form, without the dashes */
    const char *argument; /* as --help shows it: "N"; NULL for a flag */
    const char *help;
    const cli_choice *choices;
    int64_t min, max;
    size_t offset; /* of the value in the verb's arguments */
    cli_option_type type;
    char letter; /* short form; 0: none */
} cli_option;

typedef struct cli_verb {
    const char *name;
    const char *summary;  /* one line for posenc --help */
    const char *operands; /* "MODEL", or "" */
    const char *about;    /* paragraphs, lines broken by hand */
    const char *examples; /* command lines, one each */
    /* What the first operand may be, in order and ended by NULL; NULL: no such list. */
    const char *(*kind_at)(void *context, size_t index);
    const cli_option *options;
    size_t num_options;
    int num_operands;                  /* that must be there */
    int num_optional;                  /* that may follow */
    int (*run)(int argc, char **argv); /* argv[0] is the verb */
    /* Of a group, whose run, options and operands are unset: verbs whose names begin
     * with its own and a space, "lab train". */
    const struct cli_verb *const *members;
    size_t num_members;
} cli_verb;

enum { CLI_CONTINUE = -1 };

/* Fills arguments, which hold the defaults, and operands[num_operands + num_optional]
 * (NULL where an optional one is absent).
 * Returns CLI_CONTINUE, or an exit code: --help was printed, or the line was wrong.  An
 * option given twice is an error, whatever its values: none wins silently. */
int cli_parse(const cli_verb *verb, int argc, char **argv, void *arguments,
              const char **operands);

/* The name of a value, or "?" if choices has none. */
const char *cli_choice_name(const cli_choice *choices, int32_t value);

/* A decimal integer and nothing else: 1 and *out, or 0. */
int cli_read_integer(const char *text, int64_t *out);

/* The last word of its name: "train". */
const char *cli_verb_word(const cli_verb *verb);

/* To stdout. */
void cli_print_help(const cli_verb *verb);

#endif /* POSENC_CLI_OPTIONS_H */
