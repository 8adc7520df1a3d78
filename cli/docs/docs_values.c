/* SPDX-License-Identifier: MIT
 *
 * docs_values.c - what may stand for an argument, by its name in the option table
 */
#include "docs.h"

#include "posenc/model.h"

#include <string.h>

enum { MAX_SHORT = 60 };

static docs_value value_of(const char *name, const char **extension)
{
    static const char *const extensions[] = {"npy", "json", "svg"};
    static const char *const models[] = {"MODEL", "HEADS|MODEL", "A", "B"};
    *extension = "";
    for (size_t i = 0; i < CLI_COUNT(extensions); i++) {
        const char *dot = strchr(name, '.');
        if (dot != NULL &&
            strncmp(dot + 1, extensions[i], strlen(extensions[i])) == 0) {
            *extension = extensions[i];
            return DOCS_FILE;
        }
    }
    for (size_t i = 0; i < CLI_COUNT(models); i++)
        if (strcmp(name, models[i]) == 0)
            return DOCS_MODEL;
    if (strcmp(name, "FILE") == 0)
        return DOCS_FILE;
    if (strcmp(name, "FOLDER") == 0 || strcmp(name, "OUT") == 0)
        return DOCS_FOLDER;
    if (strcmp(name, "WEIGHTS") == 0 || strcmp(name, "CKPT") == 0) {
        *extension = "safetensors";
        return DOCS_FILE;
    }
    if (strcmp(name, "BEFORE") == 0 || strcmp(name, "AFTER") == 0) {
        *extension = "npy";
        return DOCS_FILE;
    }
    return DOCS_NOTHING;
}

docs_value docs_option_value(const cli_option *option, const char **extension)
{
    *extension = "";
    if (option->type == CLI_CHOICE)
        return DOCS_WORDS;
    return option->argument ? value_of(option->argument, extension) : DOCS_NOTHING;
}

int docs_operands(const cli_verb *verb, docs_operand out[DOCS_MAX_OPERANDS])
{
    int count = 0;
    for (const char *word = verb->operands; *word != '\0' && count < DOCS_MAX_OPERANDS;
         count++) {
        docs_operand *operand = &out[count];
        operand->is_optional = *word == '[';
        word += operand->is_optional;
        const size_t length = strcspn(word, " ]");
        (void)snprintf(operand->name, sizeof operand->name, "%.*s", (int)length, word);
        operand->value = value_of(operand->name, &operand->extension);
        if (count == 0 && verb->kind_at != NULL)
            operand->value = DOCS_WORDS;
        word += length;
        word += strspn(word, "] ");
    }
    return count;
}

void docs_put_kinds(FILE *out, const cli_verb *verb)
{
    const char *name;
    for (size_t i = 0; (name = verb->kind_at(NULL, i)) != NULL; i++)
        (void)fprintf(out, "%s%s", i > 0 ? " " : "", name);
}

void docs_put_choices(FILE *out, const cli_choice *choices)
{
    for (size_t i = 0; choices[i].name != NULL; i++)
        (void)fprintf(out, "%s%s", i > 0 ? " " : "", choices[i].name);
}

void docs_put_presets(FILE *out)
{
    for (int32_t i = 0; i < pe_model_num_presets(); i++)
        (void)fprintf(out, "%s%s", i > 0 ? " " : "", pe_model_preset(i)->name);
}

void docs_short(char *out, size_t size, const char *help)
{
    static const char *const stops[] = {";", ".  ", ": ", " ("};
    size_t length = strlen(help);
    for (size_t i = 0; i < CLI_COUNT(stops); i++) {
        const char *stop = strstr(help, stops[i]);
        if (stop != NULL && (i < 2 || length > MAX_SHORT) &&
            (size_t)(stop - help) < length)
            length = (size_t)(stop - help);
    }
    (void)snprintf(out, size, "%.*s", (int)length, help);
}
