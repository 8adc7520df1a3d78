/* SPDX-License-Identifier: MIT
 *
 * extend_write.c - a config.json with the settings of one way of extending
 *
 * The result is read back before it is written: it must be whole, and resolve to the
 * frequencies that were computed. */
#include "extend.h"

#include "file_out.h"
#include "json_edit.h"
#include "report.h"

#include <errno.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CONFIG_MAX = 4 << 20, PATH_SIZE = 512 };

typedef struct places {
    char block[PATH_SIZE]; /* "text_config.rope_scaling" */
    char theta[PATH_SIZE];
    char max_positions[PATH_SIZE];
} places;

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = file != NULL ? malloc(CONFIG_MAX + 1) : NULL;
    if (text != NULL) {
        const size_t size = fread(text, 1, CONFIG_MAX, file);
        text[size] = '\0';
    }
    if (file != NULL)
        (void)fclose(file);
    return text;
}

/* "a.b" of "a.b.c" with its dot, or nothing of "c". */
static void parent_of(char *out, const char *path)
{
    const char *dot = strrchr(path, '.');
    const int length = dot != NULL ? (int)(dot - path) + 1 : 0;
    (void)snprintf(out, PATH_SIZE, "%.*s", length, path);
}

static const char *path_of(const cli_model *model, int32_t rope, const char *name)
{
    char whole[64];
    (void)snprintf(whole, sizeof whole, "rope[%d].%s", (int)rope, name);
    const pe_field *field = pe_model_find_field(model->model, rope >= 0 ? whole : name);
    return field != NULL ? field->path : NULL;
}

/* Beside what the model was read from: the block that states a rule, or the one that
 * states theta, or rope_scaling next to the context. */
static void find_places(places *out, const cli_model *model, int32_t rope)
{
    char prefix[PATH_SIZE] = "", parent[PATH_SIZE];
    const char *type = path_of(model, rope, "rope_type");
    const char *theta = path_of(model, rope, "rope_theta");
    const char *context = path_of(model, -1, "max_position_embeddings");
    const char *layers = path_of(model, -1, "num_layers");
    if (context != NULL || layers != NULL)
        parent_of(prefix, context != NULL ? context : layers);
    (void)snprintf(out->max_positions, PATH_SIZE, "%s",
                   context != NULL ? context : "max_position_embeddings");
    if (type == NULL && theta != NULL && strstr(theta, "rope_parameters") != NULL)
        type = theta;
    if (type != NULL) {
        parent_of(parent, type);
        (void)snprintf(out->block, PATH_SIZE, "%.*s",
                       parent[0] != '\0' ? (int)strlen(parent) - 1 : 0, parent);
    } else {
        (void)snprintf(out->block, PATH_SIZE, "%.400srope_scaling", prefix);
    }
    if (theta != NULL)
        (void)snprintf(out->theta, PATH_SIZE, "%s", theta);
    else if (strstr(out->block, "rope_parameters") != NULL)
        (void)snprintf(out->theta, PATH_SIZE, "%.400s.rope_theta", out->block);
    else
        (void)snprintf(out->theta, PATH_SIZE, "%.400srope_theta", prefix);
}

/* Keys of a block that belong to the rule that goes. */
static int is_of_a_rule(const char *text, cli_span key)
{
    static const char *const names[] = {
        "rope_type",        "type",
        "factor",           "alpha",
        "attention_factor", "beta_fast",
        "beta_slow",        "mscale",
        "mscale_all_dim",   "low_freq_factor",
        "high_freq_factor", "original_max_position_embeddings",
        "short_factor",     "long_factor",
        "truncate",         "apply_yarn_scaling",
        "apply_scale",      "short_mscale",
        "long_mscale"};
    for (size_t i = 0; i < CLI_COUNT(names); i++)
        if (strlen(names[i]) == key.end - key.begin &&
            memcmp(names[i], text + key.begin, key.end - key.begin) == 0)
            return 1;
    return 0;
}

/* On one line nothing stands before the first. */
static void write_members(FILE *file, json_object *block, const char *space)
{
    const int is_broken = strchr(space, '\n') != NULL;
    int count = 0;
    json_object_object_foreach(block, name, value)
    {
        const char *text =
            json_object_to_json_string_ext(value, JSON_C_TO_STRING_SPACED);
        (void)fprintf(file, "%s%s\"%s\": %s", count > 0 ? "," : "",
                      count > 0 || is_broken ? space : "", name, text);
        count++;
    }
}

/* The block anew: the rule first, then what the old block had besides one. */
static char *block_text(const char *text, const char *path, json_object *block)
{
    cli_json_member outer, member;
    char *out = NULL, space[64] = "";
    size_t size, object, at = 0;
    FILE *file = open_memstream(&out, &size);
    if (file == NULL)
        return NULL;
    const int found = cli_json_find(text, path, &outer, &object);
    const int has_members =
        found && cli_json_next(text, outer.value.begin, &at, &member);
    size_t first = 0;
    if (has_members)
        (void)snprintf(space, sizeof space, "%.*s",
                       (int)(member.space.end - member.space.begin),
                       text + member.space.begin);
    else if (found || cli_json_next(text, object, &first, &outer))
        (void)snprintf(space, sizeof space, "%.*s%s",
                       (int)(outer.space.end - outer.space.begin),
                       text + outer.space.begin,
                       memchr(text + outer.space.begin, '\n',
                              outer.space.end - outer.space.begin) != NULL
                           ? "  "
                           : "");
    const int is_broken = strchr(space, '\n') != NULL;
    (void)fputc('{', file);
    if (!is_broken)
        space[0] = '\0';
    write_members(file, block, is_broken ? space : " ");
    at = 0;
    while (has_members && cli_json_next(text, outer.value.begin, &at, &member))
        if (!is_of_a_rule(text, member.key))
            (void)fprintf(file, ",%s\"%.*s\": %.*s", is_broken ? space : " ",
                          (int)(member.key.end - member.key.begin),
                          text + member.key.begin,
                          (int)(member.value.end - member.value.begin),
                          text + member.value.begin);
    const size_t indent = strlen(space);
    (void)fprintf(file, "%.*s}",
                  (int)(indent < 2 ? indent : indent - (is_broken ? 2 : 0)), space);
    return fclose(file) == 0 ? out : NULL;
}

static char *set_block(char *text, const places *where, json_object *block)
{
    char *value = block_text(text, where->block, block);
    if (value == NULL) {
        free(text);
        return NULL;
    }
    text = cli_json_set(text, where->block, value);
    free(value);
    return text;
}

/* NTK has no rule of its own: theta changes, and a rule that is there goes. */
static char *set_theta(char *text, const places *where, const cli_extended *way)
{
    cli_json_member member;
    cli_number number;
    size_t object;
    if (cli_json_find(text, where->block, &member, &object) &&
        text[member.value.begin] == '{') {
        json_object *plain = json_object_new_object();
        cli_json_set_text(plain, "rope_type", "default");
        text = set_block(text, where, plain);
        (void)json_object_put(plain);
    }
    return text == NULL
               ? NULL
               : cli_json_set(text, where->theta, cli_double(&number, way->rope_theta));
}

static char *edit(char *text, const places *where, const cli_extended *way,
                  const cli_extend_base *base)
{
    char number[32];
    json_object *block = cli_extend_block(way, base);
    text = block == NULL ? set_theta(text, where, way) : set_block(text, where, block);
    (void)json_object_put(block);
    (void)snprintf(number, sizeof number, "%lld",
                   (long long)cli_extend_max_positions(way, base));
    return text == NULL ? NULL : cli_json_set(text, where->max_positions, number);
}

/* The text as a model again: the same frequencies, to rounding. */
static int check(const char *text, const cli_model *model, int32_t rope,
                 const cli_extended *way, const cli_extend_base *base)
{
    pe_checkpoint *checkpoint = NULL;
    pe_model *again = NULL;
    pe_rope *plan = NULL;
    pe_error error;
    pe_rope_spec spec = {.struct_size = sizeof spec};
    int matches = 0;
    if (pe_checkpoint_parse(&checkpoint, PE_FORMAT_JSON, text, strlen(text), NULL,
                            &error) == PE_OK &&
        pe_model_create(&again, checkpoint, base->length, NULL, &error) == PE_OK &&
        pe_model_rope_spec(again, rope, &spec, &error) == PE_OK &&
        pe_rope_create(&plan, &spec, NULL, &error) == PE_OK) {
        const pe_rope_info *info = pe_rope_get_info(plan);
        matches = info->num_pairs == base->num_pairs;
        for (int32_t i = 0; i < base->num_pairs && matches; i++)
            matches = fabs(info->inv_freq[i] - way->inv_freq[i]) <=
                      1e-9 * fabs(way->inv_freq[i]);
        if (!matches)
            (void)snprintf(error.message, sizeof error.message,
                           "other keys of the file change the frequencies");
    }
    pe_rope_destroy(plan);
    pe_model_destroy(again);
    pe_checkpoint_destroy(checkpoint);
    return matches ? CLI_DONE
                   : cli_fail(CLI_FAILED, "%s cannot be given %s: %s", model->name,
                              cli_choice_name(cli_extend_names, way->method),
                              error.message);
}

static int write_text(const char *path, const char *text)
{
    cli_file_out out;
    int status = cli_file_create(&out, path, 0);
    if (status != CLI_DONE)
        return status;
    status = cli_file_write(&out, text, strlen(text));
    if (status == CLI_DONE)
        return cli_file_commit(&out);
    cli_file_discard(&out);
    return status;
}

static int find_source(char *out, const char *argument, const cli_model *model)
{
    struct stat info;
    if (model->checkpoint == NULL || strcmp(argument, "-") == 0 ||
        stat(argument, &info) != 0)
        return cli_fail(CLI_USAGE,
                        "-o needs a MODEL that is a config.json, or a folder "
                        "that holds one");
    const int length = snprintf(out, PATH_SIZE, "%s%s", argument,
                                S_ISDIR(info.st_mode) ? "/config.json" : "");
    return length < PATH_SIZE
               ? CLI_DONE
               : cli_fail(CLI_FAILED, "%s: the path is too long", argument);
}

int cli_extend_write(const char *path, const char *argument, const cli_model *model,
                     int32_t rope, const cli_extended *way, const cli_extend_base *base)
{
    char source[PATH_SIZE];
    struct stat from, to;
    places where;
    int status = find_source(source, argument, model);
    if (status != CLI_DONE)
        return status;
    if (stat(source, &from) == 0 && stat(path, &to) == 0 && from.st_dev == to.st_dev &&
        from.st_ino == to.st_ino)
        return cli_fail(CLI_USAGE, "--output is the MODEL itself: write a copy");
    char *text = read_file(source);
    if (text == NULL)
        return cli_fail(CLI_FAILED, "%s: %s", source, strerror(errno));
    if (text[strspn(text, " \t\r\n")] != '{') {
        free(text);
        return cli_fail(CLI_USAGE,
                        "-o needs a MODEL that is a config.json, or a folder "
                        "that holds one");
    }
    find_places(&where, model, rope);
    text = edit(text, &where, way, base);
    if (text == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    status = check(text, model, rope, way, base);
    if (status == CLI_DONE)
        status = write_text(path, text);
    free(text);
    return status;
}
