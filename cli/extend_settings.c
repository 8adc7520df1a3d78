/* SPDX-License-Identifier: MIT
 *
 * extend_settings.c - a way of extending, as Hugging Face, llama.cpp and vLLM spell it
 */
#include "extend.h"

#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hugging Face asks for floats, and takes 4 for an integer. */
static json_object *real(double value)
{
    char text[40];
    cli_number number;
    (void)snprintf(text, sizeof text, "%s", cli_double(&number, value));
    if (strpbrk(text, ".en") == NULL)
        strcat(text, ".0");
    return json_object_new_double_s(value, text);
}

static json_object *reals(const double *values, int32_t count)
{
    json_object *array = json_object_new_array();
    for (int32_t i = 0; i < count; i++)
        (void)json_object_array_add(array, real(values[i]));
    return array;
}

json_object *cli_extend_block(const cli_extended *way, const cli_extend_base *base)
{
    if (way->method == CLI_EXTEND_NTK)
        return NULL;
    json_object *block = json_object_new_object();
    cli_json_set_text(block, "rope_type",
                      cli_choice_name(cli_extend_names, way->method));
    (void)json_object_object_add(block, "factor", real(base->factor));
    if (way->method == CLI_EXTEND_LLAMA3) {
        (void)json_object_object_add(block, "low_freq_factor",
                                     real(way->freqs.low_freq_factor));
        (void)json_object_object_add(block, "high_freq_factor",
                                     real(way->freqs.high_freq_factor));
    }
    if (way->freqs.original_max_position_embeddings != 0)
        cli_json_set_integer(block, "original_max_position_embeddings",
                             base->trained_len);
    if (way->method == CLI_EXTEND_LONGROPE) {
        (void)json_object_object_add(block, "short_factor",
                                     reals(way->short_factor, base->num_pairs));
        (void)json_object_object_add(block, "long_factor",
                                     reals(way->long_factor, base->num_pairs));
    }
    return block;
}

/* The dynamic rule takes max_position_embeddings for the trained length. */
int64_t cli_extend_max_positions(const cli_extended *way, const cli_extend_base *base)
{
    return way->method == CLI_EXTEND_DYNAMIC ? base->trained_len : base->length;
}

static json_object *settings_of(const cli_extended *way, const cli_extend_base *base)
{
    json_object *settings = json_object_new_object();
    json_object *block = cli_extend_block(way, base);
    if (block != NULL)
        (void)json_object_object_add(settings, "rope_scaling", block);
    else
        (void)json_object_object_add(settings, "rope_theta", real(way->rope_theta));
    cli_json_set_integer(settings, "max_position_embeddings",
                         cli_extend_max_positions(way, base));
    return settings;
}

static char *line_of(json_object *object)
{
    const char *text = json_object_to_json_string_ext(
        object, JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
    char *copy = text != NULL ? strdup(text) : NULL;
    (void)json_object_put(object);
    return copy;
}

char *cli_extend_hugging_face(const cli_extended *way, const cli_extend_base *base)
{
    return line_of(settings_of(way, base));
}

static char *format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));

static char *format(const char *pattern, ...)
{
    va_list list;
    char *text = NULL;
    va_start(list, pattern);
    if (vasprintf(&text, pattern, list) < 0)
        text = NULL;
    va_end(list);
    return text;
}

char *cli_extend_llama_cpp(const cli_extended *way, const cli_extend_base *base)
{
    const long long length = (long long)base->length;
    cli_number number;
    switch (way->method) {
    case CLI_EXTEND_LINEAR:
        return format("-c %lld --rope-scaling linear --rope-scale %s", length,
                      cli_double(&number, base->factor));
    case CLI_EXTEND_NTK:
        return format("-c %lld --rope-freq-base %s", length,
                      cli_double(&number, way->rope_theta));
    case CLI_EXTEND_DYNAMIC:
        return format("-c %lld --rope-freq-base %s  (fixed at this length: it has no "
                      "dynamic rule)",
                      length, cli_double(&number, way->rope_theta));
    case CLI_EXTEND_YARN:
        return format("-c %lld --rope-scaling yarn --rope-scale %s --yarn-orig-ctx "
                      "%lld",
                      length, cli_double(&number, base->factor),
                      (long long)base->trained_len);
    case CLI_EXTEND_LLAMA3:
        return format("no flag: convert the model again, so that the GGUF file gets "
                      "rope_freqs.weight");
    default:
        return format("no flag: convert the model again, so that the GGUF file gets "
                      "rope_factors_long and rope_factors_short");
    }
}

char *cli_extend_vllm(const cli_extended *way, const cli_extend_base *base)
{
    json_object *override = json_object_new_object();
    json_object *block = cli_extend_block(way, base);
    if (block == NULL) {
        block = json_object_new_object();
        cli_json_set_text(block, "rope_type", "default");
    }
    (void)json_object_object_add(
        block, "rope_theta",
        real(way->method == CLI_EXTEND_NTK ? way->rope_theta : base->rope_theta));
    (void)json_object_object_add(override, "rope_parameters", block);
    if (way->method != CLI_EXTEND_DYNAMIC)
        cli_json_set_integer(override, "max_position_embeddings", base->length);
    char *text = line_of(override);
    char *flags = text == NULL ? NULL
                               : format("--max-model-len %lld --hf-overrides '%s'%s",
                                        (long long)base->length, text,
                                        way->method == CLI_EXTEND_DYNAMIC
                                            ? "  (one table for factor * trained "
                                              "length, also below it)"
                                            : "");
    free(text);
    return flags;
}
