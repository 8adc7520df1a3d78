/* SPDX-License-Identifier: MIT
 *
 * docs_bash.c - completion for bash, without the bash-completion package
 */
#include "docs.h"

#include <string.h>

static const char preamble[] =
    "# Completion of posenc for bash; written by posenc_docs from the option tables.\n"
    "\n"
    "_posenc_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$2\"); }\n"
    "\n"
    "# Files that end in one of the given ways, and folders.\n"
    "_posenc_files() {\n"
    "    local cur=$1 ending\n"
    "    shift\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(\n"
    "        compgen -d -- \"$cur\"\n"
    "        for ending; do compgen -f -X \"!*$ending\" -- \"$cur\"; done | sort -u)\n"
    "}\n"
    "\n"
    "_posenc_folders() {\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -d -- \"$1\")\n"
    "}\n"
    "\n"
    "_posenc_models() {\n"
    "    _posenc_files \"$1\" .json .gguf\n"
    "    local files=(\"${COMPREPLY[@]}\")\n"
    "    _posenc_words \"$_posenc_presets\" \"$1\"\n"
    "    COMPREPLY+=(\"${files[@]}\")\n"
    "}\n"
    "\n";

static const char body[] =
    "_posenc() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local verb=${COMP_WORDS[1]} members values options operand=0 i first=2\n"
    "    COMPREPLY=()\n"
    "    # bash splits --name=value at the sign.\n"
    "    if [[ $cur == = ]]; then\n"
    "        cur=\n"
    "    elif [[ $prev == = ]] && ((COMP_CWORD > 1)); then\n"
    "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        _posenc_words \"$_posenc_verbs help --help --version\" \"$cur\"\n"
    "        return\n"
    "    fi\n"
    "    if _posenc_members \"$verb\"; then\n"
    "        if ((COMP_CWORD == 2)); then\n"
    "            _posenc_words \"$members help --help\" \"$cur\"\n"
    "            return\n"
    "        fi\n"
    "        verb+=\" ${COMP_WORDS[2]}\" first=3\n"
    "    fi\n"
    "    _posenc_options \"$verb\"\n"
    "    for ((i = first; i < COMP_CWORD; i++)); do\n"
    "        if [[ \" $values \" == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
    "            i=$((i + 1))\n"
    "            [[ ${COMP_WORDS[i]-} == = ]] && i=$((i + 1))\n"
    "        elif [[ ${COMP_WORDS[i]} != -?* ]]; then\n"
    "            operand=$((operand + 1))\n"
    "        fi\n"
    "    done\n"
    "    if [[ \" $values \" == *\" $prev \"* ]]; then\n"
    "        _posenc_value \"$verb\" \"$prev\" \"$cur\"\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        _posenc_words \"$options --help\" \"$cur\"\n"
    "    else\n"
    "        _posenc_operand \"$verb\" \"$operand\" \"$cur\"\n"
    "    fi\n"
    "}\n"
    "\n"
    "complete -F _posenc posenc\n";

static void put_call(FILE *out, docs_value value, const char *extension,
                     const char *cur)
{
    if (value == DOCS_MODEL)
        (void)fprintf(out, "_posenc_models %s", cur);
    else if (value == DOCS_FOLDER)
        (void)fprintf(out, "_posenc_folders %s", cur);
    else if (value == DOCS_FILE && *extension != '\0')
        (void)fprintf(out, "_posenc_files %s .%s", cur, extension);
    else
        (void)fprintf(out, "_posenc_files %s ''", cur);
}

/* As a pattern of case. */
static void put_name(FILE *out, const cli_verb *verb)
{
    for (const char *c = verb->name; *c != '\0'; c++)
        (void)fprintf(out, "%s%c", *c == ' ' ? "\\" : "", *c);
}

/* The verbs of a group. */
static void put_members(FILE *out)
{
    (void)fputs("_posenc_members() {\n    case $1 in\n", out);
    for (size_t v = 0; v < cli_num_verbs; v++) {
        const cli_verb *group = cli_verbs[v];
        if (group->members == NULL)
            continue;
        (void)fprintf(out, "    %s) members='", group->name);
        for (size_t i = 0; i < group->num_members; i++)
            (void)fprintf(out, "%s%s", i > 0 ? " " : "",
                          cli_verb_word(group->members[i]));
        (void)fputs("' ;;\n", out);
    }
    (void)fputs("    *) return 1 ;;\n    esac\n}\n\n", out);
}

/* Which options a verb has, and which of them are followed by a value. */
static void put_options(FILE *out)
{
    (void)fputs("_posenc_options() {\n    case $1 in\n", out);
    for (size_t v = 0; cli_verb_at(v) != NULL; v++) {
        const cli_verb *verb = cli_verb_at(v);
        if (verb->members != NULL)
            continue;
        (void)fputs("    ", out);
        put_name(out, verb);
        (void)fputs(")\n        options='", out);
        for (size_t i = 0; i < verb->num_options; i++)
            (void)fprintf(out, "%s--%s", i > 0 ? " " : "", verb->options[i].name);
        (void)fputs("'\n        values='", out);
        for (size_t i = 0; i < verb->num_options; i++) {
            const cli_option *option = &verb->options[i];
            if (option->type == CLI_FLAG)
                continue;
            (void)fprintf(out, " --%s", option->name);
            if (option->letter)
                (void)fprintf(out, " -%c", option->letter);
        }
        (void)fputs("'\n        ;;\n", out);
    }
    (void)fputs("    *) options= values= ;;\n    esac\n}\n\n", out);
}

static void put_values(FILE *out)
{
    const char *extension;
    (void)fputs("_posenc_value() {\n    case $1:$2 in\n", out);
    for (size_t v = 0; cli_verb_at(v) != NULL; v++) {
        const cli_verb *verb = cli_verb_at(v);
        for (size_t i = 0; i < verb->num_options; i++) {
            const cli_option *option = &verb->options[i];
            const docs_value value = docs_option_value(option, &extension);
            if (value == DOCS_NOTHING)
                continue;
            (void)fputs("    ", out);
            put_name(out, verb);
            (void)fprintf(out, ":--%s", option->name);
            if (option->letter) {
                (void)fputs(" | ", out);
                put_name(out, verb);
                (void)fprintf(out, ":-%c", option->letter);
            }
            (void)fputs(") ", out);
            if (value == DOCS_WORDS) {
                (void)fputs("_posenc_words '", out);
                docs_put_choices(out, option->choices);
                (void)fputs("' \"$3\"", out);
            } else {
                put_call(out, value, extension, "\"$3\"");
            }
            (void)fputs(" ;;\n", out);
        }
    }
    (void)fputs("    esac\n}\n\n", out);
}

static void put_operands(FILE *out)
{
    (void)fputs("_posenc_operand() {\n    case $1:$2 in\n"
                "    help:0) _posenc_words \"$_posenc_verbs\" \"$3\" ;;\n"
                "    help:1)\n"
                "        _posenc_members \"${COMP_WORDS[2]}\" &&\n"
                "            _posenc_words \"$members\" \"$3\"\n"
                "        ;;\n",
                out);
    for (size_t v = 0; cli_verb_at(v) != NULL; v++) {
        const cli_verb *verb = cli_verb_at(v);
        docs_operand operands[DOCS_MAX_OPERANDS];
        const int count = docs_operands(verb, operands);
        for (int i = 0; i < count; i++) {
            if (operands[i].value == DOCS_NOTHING)
                continue;
            (void)fputs("    ", out);
            put_name(out, verb);
            (void)fprintf(out, ":%d) ", i);
            if (operands[i].value == DOCS_WORDS) {
                (void)fputs("_posenc_words '", out);
                docs_put_kinds(out, verb);
                (void)fputs("' \"$3\"", out);
            } else {
                put_call(out, operands[i].value, operands[i].extension, "\"$3\"");
            }
            (void)fputs(" ;;\n", out);
        }
    }
    (void)fputs("    esac\n}\n\n", out);
}

void docs_bash(FILE *out)
{
    (void)fputs(preamble, out);
    (void)fputs("_posenc_verbs='", out);
    for (size_t i = 0; i < cli_num_verbs; i++)
        (void)fprintf(out, "%s%s", i > 0 ? " " : "", cli_verbs[i]->name);
    (void)fputs("'\n_posenc_presets='", out);
    docs_put_presets(out);
    (void)fputs("'\n\n", out);
    put_members(out);
    put_options(out);
    put_values(out);
    put_operands(out);
    (void)fputs(body, out);
}
