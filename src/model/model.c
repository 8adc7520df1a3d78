/* SPDX-License-Identifier: MIT
 *
 * model.c - create, destroy, and read a model
 */
#include "model/build.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/spec.h"
#include "model/presets.h"

#include <string.h>

static pe_status create(pe_model **out, int64_t seq_len, const pe_env *env,
                        pe_error *error)
{
    pe_env full;
    if (seq_len < 0)
        return pe_fail(error, PE_E_ARGUMENT, "seq_len is %lld, must be at least 0",
                       (long long)seq_len);
    pe_status status = pe_env_resolve(&full, env, error);
    if (status != PE_OK)
        return status;
    pe_model *model = pe_alloc(&full, sizeof *model);
    if (model == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for a model");
    model->env = full;
    model->env.struct_size = sizeof model->env; /* it is handed on to the preset */
    model->arena.env = &model->env;
    *out = model;
    return PE_OK;
}

static pe_status finish(pe_model **out, pe_model *model, pe_status status,
                        pe_error *error)
{
    if (model->arena.out_of_memory)
        status = pe_fail(error, PE_E_NO_MEMORY, "out of memory for a model");
    if (status == PE_OK)
        *out = model;
    else
        pe_model_destroy(model);
    return status;
}

pe_status pe_model_create(pe_model **out, const pe_checkpoint *checkpoint,
                          int64_t seq_len, const pe_env *env, pe_error *error)
{
    pe_model *model = NULL;
    if (out == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "out is NULL");
    *out = NULL;
    if (checkpoint == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "checkpoint is NULL");
    const int is_gguf = checkpoint->format == PE_FORMAT_GGUF;
    if (checkpoint->format != PE_FORMAT_JSON && !is_gguf)
        return pe_fail(error, PE_E_UNSUPPORTED,
                       "the file has no settings, a model needs a config.json or "
                       "a GGUF file");
    pe_status status = create(&model, seq_len, env, error);
    if (status != PE_OK)
        return status;
    status = is_gguf ? pe_read_gguf(model, checkpoint, seq_len, error)
                     : pe_read_hf(model, checkpoint, seq_len, error);
    return finish(out, model, status, error);
}

pe_status pe_model_create_preset(pe_model **out, const char *name, int64_t seq_len,
                                 const pe_env *env, pe_error *error)
{
    pe_model *model = NULL;
    const char *text = NULL;
    size_t size = 0;
    if (out == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "out is NULL");
    *out = NULL;
    if (name == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "name is NULL");
    if (!pe_preset_find(name, &text, &size))
        return pe_fail(error, PE_E_NOT_FOUND, "no preset is named %.100s", name);
    pe_status status = create(&model, seq_len, env, error);
    if (status != PE_OK)
        return status;
    status = pe_checkpoint_parse(&model->preset, PE_FORMAT_JSON, text, size,
                                 &model->env, error);
    if (status == PE_OK)
        status = pe_read_preset(model, model->preset, seq_len, error);
    return finish(out, model, status, error);
}

void pe_model_destroy(pe_model *model)
{
    if (model == NULL)
        return;
    pe_checkpoint_destroy(model->preset);
    pe_arena_release(&model->arena);
    const pe_env env = model->env;
    pe_release(&env, model, sizeof *model);
}

const pe_model_info *pe_model_get_info(const pe_model *model)
{
    return &model->info;
}

const pe_site *pe_model_site(const pe_model *model, int32_t index)
{
    return index < 0 || index >= model->info.num_sites ? NULL : &model->sites[index];
}

const pe_site *pe_model_find_site(const pe_model *model, int32_t layer,
                                  pe_site_role role)
{
    for (int32_t i = 0; i < model->info.num_sites; i++) {
        if (model->sites[i].layer == layer && model->sites[i].role == role)
            return &model->sites[i];
    }
    return NULL;
}

const pe_field *pe_model_field(const pe_model *model, int32_t index)
{
    return index < 0 || index >= model->info.num_fields ? NULL : &model->fields[index];
}

const pe_field *pe_model_find_field(const pe_model *model, const char *name)
{
    for (int32_t i = 0; i < model->info.num_fields; i++) {
        if (strcmp(model->fields[i].name, name) == 0)
            return &model->fields[i];
    }
    return NULL;
}

const pe_note *pe_model_note(const pe_model *model, int32_t index)
{
    return index < 0 || index >= model->info.num_notes ? NULL : &model->notes[index];
}

pe_status pe_model_rope_spec(const pe_model *model, int32_t index, pe_rope_spec *spec,
                             pe_error *error)
{
    if (index < 0 || index >= model->info.num_ropes)
        return pe_fail(error, PE_E_NOT_FOUND, "rope %d is not there, the model has %d",
                       index, model->info.num_ropes);
    return pe_spec_write(spec, &model->ropes[index], sizeof *spec, PE_ROPE_SPEC_SIZE_V1,
                         "pe_rope_spec", error);
}

pe_status pe_model_bias_spec(const pe_model *model, int32_t index, pe_bias_spec *spec,
                             pe_error *error)
{
    if (index < 0 || index >= model->info.num_biases)
        return pe_fail(error, PE_E_NOT_FOUND, "bias %d is not there, the model has %d",
                       index, model->info.num_biases);
    return pe_spec_write(spec, &model->biases[index], sizeof *spec,
                         PE_BIAS_SPEC_SIZE_V1, "pe_bias_spec", error);
}

pe_status pe_model_sinusoidal_spec(const pe_model *model, pe_sinusoidal_spec *spec,
                                   pe_error *error)
{
    if (model->sinusoidal.struct_size == 0)
        return pe_fail(error, PE_E_NOT_FOUND, "the model has no sinusoidal positions");
    return pe_spec_write(spec, &model->sinusoidal, sizeof *spec,
                         PE_SINUSOIDAL_SPEC_SIZE_V1, "pe_sinusoidal_spec", error);
}

pe_status pe_model_learned_spec(const pe_model *model, pe_learned_spec *spec,
                                pe_error *error)
{
    if (model->learned.struct_size == 0)
        return pe_fail(error, PE_E_NOT_FOUND, "the model has no learned positions");
    return pe_spec_write(spec, &model->learned, sizeof *spec, PE_LEARNED_SPEC_SIZE_V1,
                         "pe_learned_spec", error);
}
