/* SPDX-License-Identifier: MIT
 *
 * lab_store.c - where a run is kept, and how it is described
 */
#include "lab_store.h"

#include "lab/mode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *joined(const char *folder, const char *name, const char *tail)
{
    const size_t size = strlen(folder) + strlen(name) + strlen(tail) + 2;
    char *path = malloc(size);
    if (path == NULL)
        (void)cli_fail(CLI_FAILED, "out of memory");
    else
        (void)snprintf(path, size, "%s/%s%s", folder, name, tail);
    return path;
}

char *cli_lab_folder(const char *output, const lab_config *config)
{
    char name[LAB_NAME_SIZE], tail[40];
    lab_config_name(config, name, sizeof name);
    (void)snprintf(tail, sizeof tail, "-seed%" PRIu64, config->seed);
    return joined(output, name, tail);
}

char *cli_lab_path(const char *folder, const char *name)
{
    return joined(folder, name, "");
}

static int is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* A folder that is called as a checkpoint is in the place of one, not a run's. */
char *cli_lab_file(const char *path)
{
    const char *last = strrchr(path, '/');
    const int is_name = strcmp(last != NULL ? last + 1 : path, CLI_LAB_CHECKPOINT) == 0;
    if (!is_name && is_folder(path))
        return cli_lab_path(path, CLI_LAB_CHECKPOINT);
    char *copy = strdup(path);
    if (copy == NULL)
        (void)cli_fail(CLI_FAILED, "out of memory");
    return copy;
}

int cli_lab_load(const char *path, lab_state *out, char corpus_sha256[65])
{
    pe_error error;
    char *file = cli_lab_file(path);
    int code = file == NULL ? CLI_FAILED : CLI_DONE;
    if (code == CLI_DONE && is_folder(file))
        code = cli_fail(CLI_FAILED, "%s is a folder, must be a file", file);
    if (code == CLI_DONE &&
        lab_checkpoint_load(out, corpus_sha256, file, &error) != PE_OK)
        code = cli_fail(CLI_FAILED, "%s", error.message);
    free(file);
    return code;
}

void cli_lab_json_config(json_object *object, const lab_config *config)
{
    char name[LAB_NAME_SIZE], extension[40] = "";
    json_object *settings = json_object_new_object();
    json_object *methods = json_object_new_array();
    lab_config_name(config, name, sizeof name);
    cli_json_set_text(object, "method", name);
    (void)json_object_object_add(object, "seed", json_object_new_uint64(config->seed));
    cli_json_set_integer(settings, "layers", config->layers);
    cli_json_set_integer(settings, "width", config->width);
    cli_json_set_integer(settings, "heads", config->heads);
    cli_json_set_integer(settings, "length", config->length);
    cli_json_set_integer(settings, "first_length", config->first_length);
    cli_json_set_integer(settings, "batch", config->batch);
    cli_json_set_integer(settings, "steps", config->steps);
    cli_json_set_integer(settings, "warmup", config->warmup);
    cli_json_set_number(settings, "peak_rate", config->peak_rate);
    cli_json_set_number(settings, "weight_decay", config->weight_decay);
    cli_json_set_number(settings, "clip", config->clip);
    cli_json_set_text(settings, "input", lab_method_name(config->input));
    for (int32_t i = 0; i < config->layers; i++)
        (void)json_object_array_add(
            methods, json_object_new_string(lab_method_name(config->layer[i])));
    (void)json_object_object_add(settings, "layer_methods", methods);
    cli_json_flag(settings, "learn_slopes", config->learn_slopes);
    if (config->extension.type != LAB_MODE_BASE) {
        lab_mode_name(&config->extension, extension, sizeof extension);
        cli_json_set_text(settings, "extension", extension);
    }
    (void)json_object_object_add(object, "settings", settings);
}
