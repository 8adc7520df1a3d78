/* SPDX-License-Identifier: MIT
 *
 * checkpoint.c - load, parse, and look up what the files say
 */
#include "model/checkpoint.h"

#include "base/error.h"
#include "base/memory.h"
#include "model/gguf.h"
#include "model/json_reader.h"
#include "model/npy.h"
#include "model/safetensors.h"

#include <string.h>

static pe_format sniff(const void *data, size_t size)
{
    if (pe_npy_is(data, size))
        return PE_FORMAT_NPY;
    if (pe_gguf_is(data, size))
        return PE_FORMAT_GGUF;
    if (pe_safetensors_is(data, size))
        return PE_FORMAT_SAFETENSORS;
    return PE_FORMAT_JSON;
}

static pe_status read_npy(pe_checkpoint *checkpoint, const void *data, size_t size,
                          pe_error *error)
{
    pe_weight_entry *entry = NULL;
    pe_status status = pe_weights_add(&checkpoint->weights, "", 0, 0, &entry, error);
    return status == PE_OK ? pe_npy_read(&entry->weight, data, size, error) : status;
}

static pe_status read_bytes(pe_checkpoint *checkpoint, pe_format format,
                            const void *data, size_t size, pe_error *error)
{
    if (format == PE_FORMAT_AUTO)
        format = sniff(data, size);
    checkpoint->format = format;
    pe_status status = PE_OK;
    switch (format) {
    case PE_FORMAT_JSON:
        status = pe_json_read(&checkpoint->settings, data, size, error);
        break;
    case PE_FORMAT_NPY:
        status = read_npy(checkpoint, data, size, error);
        break;
    case PE_FORMAT_GGUF:
        status = pe_gguf_read(checkpoint, data, size, error);
        break;
    default:
        status = pe_safetensors_read(checkpoint, data, size, 0, 1, error);
    }
    return status;
}

static pe_status sort(pe_checkpoint *checkpoint, pe_error *error)
{
    pe_status status = pe_settings_finish(&checkpoint->settings, error);
    if (status == PE_OK)
        status = pe_weights_finish(&checkpoint->weights, error);
    return status == PE_OK ? pe_safetensors_check_index(checkpoint, error) : status;
}

static pe_status create(pe_checkpoint **out, const pe_env *env, pe_error *error)
{
    pe_env full;
    pe_status status = pe_env_resolve(&full, env, error);
    if (status != PE_OK)
        return status;
    pe_checkpoint *checkpoint = pe_alloc(&full, sizeof *checkpoint);
    if (checkpoint == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for a checkpoint");
    checkpoint->env = full;
    checkpoint->arena.env = &checkpoint->env;
    checkpoint->settings.arena = &checkpoint->arena;
    checkpoint->weights.arena = &checkpoint->arena;
    *out = checkpoint;
    return PE_OK;
}

static pe_status finish(pe_checkpoint **out, pe_checkpoint *checkpoint,
                        pe_status status)
{
    if (status == PE_OK)
        *out = checkpoint;
    else
        pe_checkpoint_destroy(checkpoint);
    return status;
}

pe_status pe_checkpoint_load(pe_checkpoint **out, const char *path, const pe_env *env,
                             pe_error *error)
{
    pe_checkpoint *checkpoint = NULL;
    if (out == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "out is NULL");
    *out = NULL;
    if (path == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "path is NULL");
    pe_status status = create(&checkpoint, env, error);
    if (status != PE_OK)
        return status;
    status =
        pe_file_open(&checkpoint->file, path, "config.json", &checkpoint->env, error);
    if (status == PE_OK)
        status = read_bytes(checkpoint, PE_FORMAT_AUTO, checkpoint->file.data,
                            checkpoint->file.size, error);
    if (status == PE_OK && checkpoint->format == PE_FORMAT_JSON &&
        pe_file_is_folder(path))
        status = pe_safetensors_read_folder(checkpoint, path, error);
    if (status == PE_OK)
        status = sort(checkpoint, error);
    return finish(out, checkpoint, status);
}

pe_status pe_checkpoint_parse(pe_checkpoint **out, pe_format format, const void *data,
                              size_t size, const pe_env *env, pe_error *error)
{
    pe_checkpoint *checkpoint = NULL;
    if (out == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "out is NULL");
    *out = NULL;
    if (data == NULL && size > 0)
        return pe_fail(error, PE_E_ARGUMENT, "data is NULL, but size is %llu",
                       (unsigned long long)size);
    if (format < PE_FORMAT_AUTO || format > PE_FORMAT_NPY)
        return pe_fail(error, PE_E_ARGUMENT, "format is %d, must be in 0..%d", format,
                       PE_FORMAT_NPY);
    pe_status status = create(&checkpoint, env, error);
    if (status != PE_OK)
        return status;
    status = read_bytes(checkpoint, format, data, size, error);
    if (status == PE_OK)
        status = sort(checkpoint, error);
    return finish(out, checkpoint, status);
}

void pe_checkpoint_destroy(pe_checkpoint *checkpoint)
{
    if (checkpoint == NULL)
        return;
    pe_file_close(&checkpoint->file, &checkpoint->env);
    pe_file_close(&checkpoint->index, &checkpoint->env);
    for (int32_t i = 0; checkpoint->files != NULL && i < checkpoint->num_files; i++)
        pe_file_close(&checkpoint->files[i], &checkpoint->env);
    pe_arena_release(&checkpoint->arena);
    const pe_env env = checkpoint->env;
    pe_release(&env, checkpoint, sizeof *checkpoint);
}

int64_t pe_checkpoint_num_settings(const pe_checkpoint *checkpoint)
{
    return checkpoint->settings.num;
}

int64_t pe_checkpoint_num_weights(const pe_checkpoint *checkpoint)
{
    return checkpoint->weights.num;
}

const pe_setting *pe_checkpoint_setting(const pe_checkpoint *checkpoint, int64_t index)
{
    if (index < 0 || index >= checkpoint->settings.num)
        return NULL;
    return &checkpoint->settings.entries[index].setting;
}

const pe_weight *pe_checkpoint_weight(const pe_checkpoint *checkpoint, int64_t index)
{
    if (index < 0 || index >= checkpoint->weights.num)
        return NULL;
    return &checkpoint->weights.entries[index].weight;
}

const pe_setting *pe_checkpoint_find_setting(const pe_checkpoint *checkpoint,
                                             const char *path)
{
    const pe_entry *entry = pe_settings_find(&checkpoint->settings, path);
    return entry == NULL ? NULL : &entry->setting;
}

const pe_weight *pe_checkpoint_find_weight(const pe_checkpoint *checkpoint,
                                           const char *name)
{
    const pe_weight_entry *entry = pe_weights_find(&checkpoint->weights, name);
    return entry == NULL ? NULL : &entry->weight;
}
