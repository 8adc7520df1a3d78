/* SPDX-License-Identifier: MIT
 *
 * docs_fish.c - completion for fish
 */
#include "docs.h"

#include <string.h>

static const char preamble[] =
    "# Completion of posenc for fish; written by posenc_docs from the option tables.\n"
    "\n"
    "function __posenc_no_verb\n"
    "    test (count (commandline -opc)) -eq 1\n"
    "end\n"
    "\n"
    "function __posenc_verb\n"
    "    set -l words (commandline -opc)\n"
    "    set -l last (math 1 + (count $argv))\n"
    "    test (count $words) -ge $last; and test \"$words[2..$last]\" = \"$argv\"\n"
    "end\n"
    "\n"
    "# The next word is a verb of that group.\n"
    "function __posenc_group\n"
    "    set -l words (commandline -opc)\n"
    "    test (count $words) -eq (math 1 + (count $argv)); and __posenc_verb $argv\n"
    "end\n"
    "\n"
    "complete -c posenc -f\n";

/* Inside '...'. */
static void put_quoted(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            (void)fputc('\\', out);
        (void)fputc(*text, out);
    }
}

static void put_suggestions(FILE *out, docs_value value, const char *extension)
{
    if (value == DOCS_MODEL)
        (void)fputs(" -a '(__posenc_models)'", out);
    else if (value == DOCS_FOLDER)
        (void)fputs(" -a '(__fish_complete_directories)'", out);
    else if (value == DOCS_FILE && *extension != '\0')
        (void)fprintf(out, " -a '(__fish_complete_suffix .%s)'", extension);
    else if (value == DOCS_FILE)
        (void)fputs(" -F", out);
}

static void put_option(FILE *out, const cli_verb *verb, const cli_option *option)
{
    const char *extension;
    const docs_value value = docs_option_value(option, &extension);
    char help[200];
    docs_short(help, sizeof help, option->help);
    (void)fprintf(out, "complete -c posenc -n '__posenc_verb %s' -l %s", verb->name,
                  option->name);
    if (option->letter)
        (void)fprintf(out, " -s %c", option->letter);
    if (option->type != CLI_FLAG && !(value == DOCS_FILE && *extension == '\0'))
        (void)fputs(" -x", out);
    else if (option->type != CLI_FLAG)
        (void)fputs(" -r", out);
    if (value == DOCS_WORDS) {
        (void)fputs(" -a '", out);
        docs_put_choices(out, option->choices);
        (void)fputc('\'', out);
    } else {
        put_suggestions(out, value, extension);
    }
    (void)fputs(" -d '", out);
    put_quoted(out, help);
    (void)fputs("'\n", out);
}

static void put_verb(FILE *out, const cli_verb *verb)
{
    docs_operand operands[DOCS_MAX_OPERANDS];
    const int count = docs_operands(verb, operands);
    const char *word = cli_verb_word(verb);
    if (word == verb->name)
        (void)fputs("\ncomplete -c posenc -n __posenc_no_verb", out);
    else
        (void)fprintf(out, "\ncomplete -c posenc -n '__posenc_group %.*s'",
                      (int)(word - verb->name - 1), verb->name);
    (void)fprintf(out, " -a %s -d '", word);
    put_quoted(out, verb->summary);
    (void)fputs("'\n", out);
    for (size_t i = 0; i < verb->num_options; i++)
        put_option(out, verb, &verb->options[i]);
    for (int i = 0; i < count; i++) {
        if (operands[i].value == DOCS_NOTHING)
            continue;
        (void)fprintf(out, "complete -c posenc -n '__posenc_verb %s'", verb->name);
        if (operands[i].value == DOCS_WORDS) {
            (void)fputs(" -a '", out);
            docs_put_kinds(out, verb);
            (void)fputc('\'', out);
        } else {
            put_suggestions(out, operands[i].value, operands[i].extension);
        }
        (void)fputc('\n', out);
    }
}

static void put_help_of_group(FILE *out, const cli_verb *group)
{
    if (group->members == NULL)
        return;
    (void)fprintf(out,
                  "complete -c posenc -n '__posenc_group %s' -a help -d 'explain a "
                  "verb'\ncomplete -c posenc -n '__posenc_group help %s' -a '",
                  group->name, group->name);
    for (size_t i = 0; i < group->num_members; i++)
        (void)fprintf(out, "%s%s", i > 0 ? " " : "", cli_verb_word(group->members[i]));
    (void)fputs("'\n", out);
}

void docs_fish(FILE *out)
{
    (void)fputs(preamble, out);
    (void)fputs("\nfunction __posenc_models\n    string split ' ' '", out);
    docs_put_presets(out);
    (void)fputs(
        "'\n    __fish_complete_suffix .json\n"
        "    __fish_complete_suffix .gguf\nend\n"
        "\ncomplete -c posenc -n __posenc_no_verb -s h -l help -d 'list the "
        "verbs'\n"
        "complete -c posenc -n __posenc_no_verb -s V -l version -d 'version and "
        "how it was built'\n"
        "complete -c posenc -n __posenc_no_verb -a help -d 'explain a verb'\n"
        "complete -c posenc -n 'not __posenc_no_verb' -s h -l help -d 'summary "
        "of the verb'\n"
        "complete -c posenc -n '__posenc_group help' -a '",
        out);
    for (size_t i = 0; i < cli_num_verbs; i++)
        (void)fprintf(out, "%s%s", i > 0 ? " " : "", cli_verbs[i]->name);
    (void)fputs("'\n", out);
    for (size_t i = 0; cli_verb_at(i) != NULL; i++)
        put_verb(out, cli_verb_at(i));
    for (size_t i = 0; i < cli_num_verbs; i++)
        put_help_of_group(out, cli_verbs[i]);
}
