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
    "    local verb=${COMP_WORDS[1]} values options operand=0 i\n"
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
    "    _posenc_options \"$verb\"\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
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

/* Which options a verb has, and which of them are followed by a value. */
static void put_options(FILE *out)
{
    (void)fputs("_posenc_options() {\n    case $1 in\n", out);
    for (size_t v = 0; v < cli_num_verbs; v++) {
        const cli_verb *verb = cli_verbs[v];
        (void)fprintf(out, "    %s)\n        options='", verb->name);
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
    for (size_t v = 0; v < cli_num_verbs; v++) {
        const cli_verb *verb = cli_verbs[v];
        for (size_t i = 0; i < verb->num_options; i++) {
            const cli_option *option = &verb->options[i];
            const docs_value value = docs_option_value(option, &extension);
            if (value == DOCS_NOTHING)
                continue;
            (void)fprintf(out, "    %s:--%s", verb->name, option->name);
            if (option->letter)
                (void)fprintf(out, " | %s:-%c", verb->name, option->letter);
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
                "    help:0) _posenc_words \"$_posenc_verbs\" \"$3\" ;;\n",
                out);
    for (size_t v = 0; v < cli_num_verbs; v++) {
        docs_operand operands[DOCS_MAX_OPERANDS];
        const int count = docs_operands(cli_verbs[v], operands);
        for (int i = 0; i < count; i++) {
            if (operands[i].value == DOCS_NOTHING)
                continue;
            (void)fprintf(out, "    %s:%d) ", cli_verbs[v]->name, i);
            if (operands[i].value == DOCS_WORDS) {
                (void)fputs("_posenc_words '", out);
                docs_put_kinds(out, cli_verbs[v]);
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
    put_options(out);
    put_values(out);
    put_operands(out);
    (void)fputs(body, out);
}
