/* SPDX-License-Identifier: MIT
 *
 * extend.c - a trained model made ready to go on training at a longer length
 */
#include "extend.h"

#include "mode.h"

#include <string.h>

static int can_train_in(const lab_mode *mode)
{
    return mode->fixed == 0 &&
           (mode->type == LAB_MODE_BASE || mode->type == LAB_MODE_PI ||
            mode->type == LAB_MODE_NTK || mode->type == LAB_MODE_YARN ||
            mode->type == LAB_MODE_INTERP);
}

static pe_status choose(const lab_config *config, const char *name, lab_mode *mode,
                        pe_error *error)
{
    char had[40] = "";
    const int is_learned = config->input == LAB_LEARNED;
    if (name == NULL &&
        (is_learned || config->input == LAB_SIN || lab_config_has(config, LAB_ROPE)))
        return lab_fail(error, PE_E_ARGUMENT,
                        "the extension is missing: %s must say how positions past %d "
                        "are read",
                        is_learned                 ? "interp"
                        : config->input == LAB_SIN ? "base or pi"
                                                   : "base, pi, ntk, yarn or parts-bN",
                        (int)config->length);
    pe_status status = lab_mode_parse(mode, name != NULL ? name : "base", error);
    if (status != PE_OK)
        return status;
    if (!can_train_in(mode))
        return lab_fail(error, PE_E_ARGUMENT,
                        "extension is %s, must be one of base, pi, ntk, ntkxM, yarn, "
                        "yarn-bN, parts-bN, interp",
                        name);
    if (is_learned && mode->type == LAB_MODE_BASE)
        return lab_fail(error, PE_E_ARGUMENT,
                        "extension is base, must be interp for a learned table");
    if (config->extension.type == LAB_MODE_BASE)
        return lab_mode_check(mode, config, error);
    lab_mode_name(&config->extension, had, sizeof had);
    if (memcmp(&config->extension, mode, sizeof *mode) != 0)
        return lab_fail(error, PE_E_ARGUMENT,
                        "extension is %s, must be %s, which the model was extended by",
                        name, had);
    return PE_OK;
}

pe_status lab_extend_config(lab_config *config, int64_t length, const char *mode,
                            pe_error *error)
{
    lab_config longer = *config;
    lab_mode extension;
    if (length <= config->length || length > INT32_MAX)
        return lab_fail(
            error, PE_E_ARGUMENT,
            "length is %lld, must be above the %d that the model was trained "
            "on",
            (long long)length, (int)config->length);
    pe_status status = choose(config, mode, &extension, error);
    if (status != PE_OK)
        return status;
    longer.length = (int32_t)length;
    if (extension.type != LAB_MODE_BASE) {
        longer.extension = extension;
        longer.first_length =
            config->first_length > 0 ? config->first_length : config->length;
    }
    status = lab_config_check(&longer, error);
    if (status == PE_OK)
        *config = longer;
    return status;
}

static pe_status stretch(lab_state *out, const lab_state *from, pe_error *error)
{
    const int64_t width = from->config.width;
    const int64_t rows = from->config.length, longer = out->config.length;
    const pe_resize how = {.mode = PE_RESIZE_LINEAR,
                           .align_corners = 1,
                           .from_h = 1,
                           .from_w = rows,
                           .to_h = 1,
                           .to_w = longer};
    pe_tensor table, stretched;
    pe_tensor_bshd(&table, PE_F32, from->weights + from->layout.p, 1, rows, 1, width);
    pe_tensor_bshd(&stretched, PE_F32, out->weights + out->layout.p, 1, longer, 1,
                   width);
    return pe_learned_resize(&how, &table, &stretched, NULL, error);
}

pe_status lab_extend_state(lab_state *out, const lab_state *from,
                           const lab_config *config, pe_error *error)
{
    lab_state state;
    pe_status status = lab_state_allocate(&state, config, error);
    if (status != PE_OK)
        return status;
    for (int32_t i = 0; i < state.layout.count && status == PE_OK; i++) {
        const lab_parameter *to = &state.layout.items[i];
        const lab_parameter *item = lab_layout_find(&from->layout, to->name);
        const int64_t count = lab_parameter_size(to);
        if (to->offset == state.layout.p)
            status = stretch(&state, from, error);
        else if (item == NULL || lab_parameter_size(item) != count)
            status = lab_fail(error, PE_E_SHAPE, "the trained model has no %s of %lld",
                              to->name, (long long)count);
        else
            memcpy(state.weights + to->offset, from->weights + item->offset,
                   (size_t)count * sizeof(float));
    }
    if (status == PE_OK)
        *out = state;
    else
        lab_state_release(&state);
    return status;
}
