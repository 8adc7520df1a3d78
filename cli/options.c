/* SPDX-License-Identifier: MIT
 *
 * options.c - reading a command line by a verb's option table
 */
#include "options.h"

#include "suggest.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 32, FIRST_LONG = 256, HELP = 'h' };

const char *cli_choice_name(const cli_choice *choices, int32_t value)
{
    for (; choices->name != NULL; choices++)
        if (choices->value == value)
            return choices->name;
    return "?";
}

int cli_read_integer(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*text == '\0' || *text == ' ' || *end != '\0' || errno != 0)
        return 0;
    *out = value;
    return 1;
}

static int read_number(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return *text != '\0' && *text != ' ' && *end == '\0' && isfinite(*out) && *out > 0;
}

static int read_range(const char *text, cli_range *out)
{
    const char *colon = strchr(text, ':');
    char first[32];
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    if (length >= sizeof first)
        return 0;
    memcpy(first, text, length);
    first[length] = '\0';
    if (!cli_read_integer(first, &out->begin) || out->begin == INT64_MAX)
        return 0;
    out->end = out->begin + 1;
    return colon == NULL ||
           (cli_read_integer(colon + 1, &out->end) && out->end > out->begin);
}

static int read_choice(const cli_option *option, const char *text, int32_t *out)
{
    char list[256] = "";
    size_t used = 0;
    for (const cli_choice *c = option->choices; c->name != NULL; c++) {
        if (strcmp(c->name, text) == 0) {
            *out = c->value;
            return CLI_CONTINUE;
        }
        int n = snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                         c->name);
        used += n > 0 && (size_t)n < sizeof list - used ? (size_t)n : 0;
    }
    return cli_fail(CLI_USAGE, "--%s is '%s', must be one of %s", option->name, text,
                    list);
}

static int fail_range(const cli_option *option, const char *text)
{
    if (strchr(text, ':') == NULL && strspn(text, "-0123456789") == strlen(text))
        return cli_fail(
            CLI_USAGE, "--%s is '%s', must be A:B or a whole number from %lld to %lld",
            option->name, text, (long long)INT64_MIN, (long long)INT64_MAX - 1);
    return cli_fail(CLI_USAGE,
                    "--%s is '%s', must be A:B, whole numbers with A below B",
                    option->name, text);
}

static int store(const cli_option *option, const char *text, void *arguments)
{
    void *value = (char *)arguments + option->offset;
    switch (option->type) {
    case CLI_FLAG:
        *(int32_t *)value = 1;
        return CLI_CONTINUE;
    case CLI_TEXT:
        if (*text == '\0')
            return cli_fail(CLI_USAGE, "--%s is empty, must be %s", option->name,
                            option->argument);
        *(const char **)value = text;
        return CLI_CONTINUE;
    case CLI_CHOICE:
        return read_choice(option, text, value);
    case CLI_RANGE:
        return read_range(text, value) ? CLI_CONTINUE : fail_range(option, text);
    case CLI_NUMBER:
        if (!read_number(text, value))
            return cli_fail(CLI_USAGE, "--%s is '%s', must be a number above 0",
                            option->name, text);
        return CLI_CONTINUE;
    default:
        if (!cli_read_integer(text, value) || *(int64_t *)value < option->min ||
            *(int64_t *)value > option->max)
            return cli_fail(
                CLI_USAGE, "--%s is '%s', must be a whole number from %lld to %lld",
                option->name, text, (long long)option->min, (long long)option->max);
        return CLI_CONTINUE;
    }
}

static const char *option_name(void *context, size_t index)
{
    const cli_verb *verb = context;
    return index < verb->num_options    ? verb->options[index].name
           : index == verb->num_options ? "help"
                                        : NULL;
}

static const cli_option *find_option(const cli_verb *verb, int code)
{
    for (size_t i = 0; i < verb->num_options; i++)
        if (code != 0 &&
            (code == verb->options[i].letter || code == FIRST_LONG + (int)i))
            return &verb->options[i];
    return NULL;
}

/* After getopt's '?': optopt is 0 for an unknown or ambiguous long option, the code of
 * a flag that was given a value, or an unknown letter. */
static int fail_unknown(const cli_verb *verb, const char *argument)
{
    const cli_option *flag = find_option(verb, optopt);
    if (optopt == HELP || flag != NULL)
        return cli_fail(CLI_USAGE, "--%s takes no value", flag ? flag->name : "help");
    if (optopt != 0)
        return cli_fail(CLI_USAGE, "unknown option -%c; see posenc %s --help", optopt,
                        verb->name);
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(argument + 2, "="),
                   argument + 2);
    const char *near = cli_suggest(name, option_name, (void *)(uintptr_t)verb);
    if (near != NULL)
        return cli_fail(CLI_USAGE, "unknown option --%s; did you mean --%s?", name,
                        near);
    return cli_fail(CLI_USAGE, "unknown option --%s; see posenc %s --help", name,
                    verb->name);
}

/* The table as getopt wants it.  Long-only options get numbers past any letter. */
static void make_getopt_tables(const cli_verb *verb, struct option *longs, char *shorts)
{
    *shorts++ = ':';
    *shorts++ = HELP;
    for (size_t i = 0; i < verb->num_options; i++) {
        const cli_option *o = &verb->options[i];
        longs[i] = (struct option){
            o->name, o->type == CLI_FLAG ? no_argument : required_argument, NULL,
            o->letter ? o->letter : FIRST_LONG + (int)i};
        if (o->letter)
            *shorts++ = o->letter;
        if (o->letter && o->type != CLI_FLAG)
            *shorts++ = ':';
    }
    *shorts = '\0';
    longs[verb->num_options] = (struct option){"help", no_argument, NULL, HELP};
    longs[verb->num_options + 1] = (struct option){NULL, 0, NULL, 0};
}

int cli_parse(const cli_verb *verb, int argc, char **argv, void *arguments,
              const char **operands)
{
    struct option longs[MAX_OPTIONS + 2];
    char shorts[2 * MAX_OPTIONS + 3];
    uint32_t seen = 0; /* a bit for each option of the table */
    int code;

    make_getopt_tables(verb, longs, shorts);
    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (code == HELP) {
            cli_print_help(verb);
            return CLI_DONE;
        }
        if (code == '?')
            return fail_unknown(verb, argv[optind - 1]);
        const cli_option *option = find_option(verb, code == ':' ? optopt : code);
        if (code == ':')
            return cli_fail(CLI_USAGE, "--%s needs a value: %s", option->name,
                            option->argument);
        const uint32_t bit = UINT32_C(1) << (option - verb->options);
        if (seen & bit)
            return cli_fail(CLI_USAGE, "--%s is given twice", option->name);
        seen |= bit;
        int status = store(option, optarg, arguments);
        if (status != CLI_CONTINUE)
            return status;
    }
    if (argc - optind < verb->num_operands)
        return cli_fail(CLI_USAGE, "%s is missing; see posenc %s --help",
                        verb->operands, verb->name);
    const int most = verb->num_operands + verb->num_optional;
    if (argc - optind > most)
        return cli_fail(CLI_USAGE, "too many arguments from '%s' on",
                        argv[optind + most]);
    for (int i = 0; i < most; i++)
        operands[i] = i < argc - optind ? argv[optind + i] : NULL;
    return CLI_CONTINUE;
}
