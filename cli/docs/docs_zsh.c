/* SPDX-License-Identifier: MIT
 *
 * docs_zsh.c - completion for zsh, as specs of _arguments
 */
#include "docs.h"

#include <string.h>

/* Inside '...', in the [explanation] of a spec or in a word:explanation. */
static void put_explanation(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", out);
        else if (strchr("[]:\\", *text) != NULL)
            (void)fprintf(out, "\\%c", *text);
        else
            (void)fputc(*text, out);
    }
}

static void put_action(FILE *out, docs_value value, const char *extension)
{
    if (value == DOCS_MODEL)
        (void)fputs("_posenc_models", out);
    else if (value == DOCS_FOLDER)
        (void)fputs("_files -/", out);
    else if (value == DOCS_FILE && *extension != '\0')
        (void)fprintf(out, "_files -g \"*.%s\"", extension);
    else if (value == DOCS_FILE)
        (void)fputs("_files", out);
}

static void put_option(FILE *out, const cli_option *option)
{
    const char *extension, *name = option->name, *sign = "";
    const docs_value value = docs_option_value(option, &extension);
    char help[200];
    docs_short(help, sizeof help, option->help);
    if (option->type != CLI_FLAG)
        sign = "=";
    if (option->letter)
        (void)fprintf(out, "            '(-%c --%s)'{-%c%s,--%s%s}'[", option->letter,
                      name, option->letter, *sign ? "+" : "", name, sign);
    else
        (void)fprintf(out, "            '--%s%s[", name, sign);
    put_explanation(out, help);
    (void)fputc(']', out);
    if (option->type != CLI_FLAG) {
        (void)fputc(':', out);
        put_explanation(out, option->argument);
        (void)fputc(':', out);
        if (value == DOCS_WORDS) {
            (void)fputc('(', out);
            docs_put_choices(out, option->choices);
            (void)fputc(')', out);
        } else {
            put_action(out, value, extension);
        }
    }
    (void)fputs("' \\\n", out);
}

/* The words of some verbs, each with what it does. */
static void put_list(FILE *out, const cli_verb *const *verbs, size_t count)
{
    (void)fputs("() {\n    local -a verbs\n    verbs=(\n", out);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(out, "        '%s:", cli_verb_word(verbs[i]));
        put_explanation(out, verbs[i]->summary);
        (void)fputs("'\n", out);
    }
    (void)fputs("    )\n    _describe -t verbs verb verbs\n}\n\n", out);
}

static void put_verb(FILE *out, const cli_verb *verb)
{
    docs_operand operands[DOCS_MAX_OPERANDS];
    const int count = docs_operands(verb, operands);
    (void)fprintf(out, "    %s)\n        _arguments -s -S \\\n", cli_verb_word(verb));
    for (size_t i = 0; i < verb->num_options; i++)
        put_option(out, &verb->options[i]);
    for (int i = 0; i < count; i++) {
        (void)fprintf(out, "            '%d:%s", i + 1,
                      operands[i].is_optional ? ":" : "");
        put_explanation(out, operands[i].name);
        (void)fputc(':', out);
        if (operands[i].value == DOCS_WORDS) {
            (void)fputc('(', out);
            docs_put_kinds(out, verb);
            (void)fputc(')', out);
        } else {
            put_action(out, operands[i].value, operands[i].extension);
        }
        (void)fputs("' \\\n", out);
    }
    (void)fputs("            '(- *)'{-h,--help}'[summary of the verb]'\n        ;;\n",
                out);
}

/* A function that completes the verbs of a group: called with its word first. */
static void put_group(FILE *out, const cli_verb *group)
{
    (void)fprintf(out, "_posenc_%s_verbs", group->name);
    put_list(out, group->members, group->num_members);
    (void)fprintf(
        out,
        "_posenc_%s() {\n    local curcontext=$curcontext state line\n"
        "    _arguments -C \\\n"
        "        '(- *)'{-h,--help}'[list the verbs]' \\\n"
        "        '1:verb:->verb' \\\n        '*::argument:->rest' && return\n"
        "    if [[ $state == verb ]]; then\n        _posenc_%s_verbs\n"
        "        return\n    fi\n"
        "    case $words[1] in\n    help) _arguments '1:verb:_posenc_%s_verbs' ;;\n",
        group->name, group->name, group->name);
    for (size_t i = 0; i < group->num_members; i++)
        put_verb(out, group->members[i]);
    (void)fputs("    esac\n}\n\n", out);
}

static void put_help(FILE *out)
{
    (void)fputs("    help)\n        case $words[2] in\n", out);
    for (size_t i = 0; i < cli_num_verbs; i++)
        if (cli_verbs[i]->members != NULL)
            (void)fprintf(out,
                          "        %s) _arguments '1:verb:_posenc_verbs' "
                          "'2:verb:_posenc_%s_verbs' ;;\n",
                          cli_verbs[i]->name, cli_verbs[i]->name);
    (void)fputs("        *) _arguments '1:verb:_posenc_verbs' ;;\n        esac\n"
                "        ;;\n",
                out);
}

void docs_zsh(FILE *out)
{
    (void)fputs(
        "#compdef posenc\n"
        "# Completion of posenc for zsh; written by posenc_docs from the option "
        "tables.\n\n"
        "_posenc_models() {\n    local -a presets\n    presets=(",
        out);
    docs_put_presets(out);
    (void)fputs(
        ")\n    _alternative \\\n        'presets:preset:compadd -a presets' \\\n"
        "        'files:file:_files -g \"*.(json|gguf)\"'\n}\n\n"
        "_posenc_verbs",
        out);
    put_list(out, cli_verbs, cli_num_verbs);
    for (size_t i = 0; i < cli_num_verbs; i++)
        if (cli_verbs[i]->members != NULL)
            put_group(out, cli_verbs[i]);
    (void)fputs("_posenc() {\n    local curcontext=$curcontext state line\n"
                "    _arguments -C \\\n"
                "        '(- *)'{-h,--help}'[list the verbs]' \\\n"
                "        '(- *)'{-V,--version}'[version and how it was built]' \\\n"
                "        '1:verb:->verb' \\\n        '*::argument:->rest' && return\n"
                "    if [[ $state == verb ]]; then\n        _posenc_verbs\n"
                "        return\n    fi\n"
                "    case $words[1] in\n",
                out);
    put_help(out);
    for (size_t i = 0; i < cli_num_verbs; i++)
        if (cli_verbs[i]->members != NULL)
            (void)fprintf(out, "    %s) _posenc_%s ;;\n", cli_verbs[i]->name,
                          cli_verbs[i]->name);
        else
            put_verb(out, cli_verbs[i]);
    (void)fputs("    esac\n}\n\n_posenc \"$@\"\n", out);
}
