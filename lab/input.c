/* SPDX-License-Identifier: MIT
 *
 * input.c - a gather, and the library's absolute encodings
 */
#include "input.h"

#include <math.h>
#include <string.h>

struct lab_input {
    lab_pass_spec spec;
    lab_memory *memory;
    pe_env env;
    int64_t width, length; /* length: rows of a learned table */
    pe_absolute *sinusoidal;
    int64_t *ids; /* [tokens]: rows of the table to read; NULL: one after the other */
    float *stretched; /* [tokens][width], or NULL */
};

/* ------------------------------------------------------------------------- create --- */

static pe_status create_sinusoidal(lab_input *in, pe_error *error)
{
    const double stretch =
        lab_mode_sin_stretch(&in->spec.mode, in->spec.config, in->spec.tokens);
    const pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                                     .order = PE_SIN_COS_INTERLEAVED,
                                     .model_dim = (int32_t)in->width,
                                     .position_scale = 1 / stretch,
                                     .table_len = in->spec.tokens};
    return pe_sinusoidal_create(&in->sinusoidal, &spec, &in->env, error);
}

static pe_status create_learned(lab_input *in, pe_error *error)
{
    const lab_mode_type mode = in->spec.mode.type;
    const int64_t tokens = in->spec.tokens;
    if (mode == LAB_MODE_INTERP) {
        in->stretched =
            lab_memory_take(in->memory, tokens * in->width, sizeof *in->stretched);
        return in->stretched != NULL
                   ? PE_OK
                   : lab_fail(error, PE_E_NO_MEMORY, "no memory for positions");
    }
    if (tokens <= in->length)
        return PE_OK;
    if (mode != LAB_MODE_CLAMP && mode != LAB_MODE_WRAP)
        return lab_fail(error, PE_E_ARGUMENT,
                        "tokens is %lld, the learned table ends at %lld: clamp, wrap "
                        "and interp read past that",
                        (long long)tokens, (long long)in->length);
    in->ids = lab_memory_take(in->memory, tokens, sizeof *in->ids);
    if (in->ids == NULL)
        return lab_fail(error, PE_E_NO_MEMORY, "no memory for positions");
    for (int64_t t = 0; t < tokens; t++)
        in->ids[t] = t < in->length          ? t
                     : mode == LAB_MODE_WRAP ? t % in->length
                                             : in->length - 1;
    return PE_OK;
}

pe_status lab_input_create(lab_input **out, const lab_pass_spec *spec,
                           lab_memory *memory, pe_error *error)
{
    *out = lab_memory_take(memory, 1, sizeof **out);
    if (*out == NULL)
        return lab_fail(error, PE_E_NO_MEMORY, "no memory for the input");
    **out = (lab_input){.spec = *spec,
                        .memory = memory,
                        .env = lab_memory_env(memory, spec->isa),
                        .width = spec->config->width,
                        .length = spec->config->length};
    pe_status status = PE_OK;
    if (spec->config->input == LAB_SIN)
        status = create_sinusoidal(*out, error);
    if (spec->config->input == LAB_LEARNED)
        status = create_learned(*out, error);
    if (status != PE_OK) {
        lab_input_destroy(*out);
        *out = NULL;
    }
    return status;
}

void lab_input_destroy(lab_input *in)
{
    if (in == NULL)
        return;
    pe_absolute_destroy(in->sinusoidal);
    lab_memory_return(in->memory, in->ids, in->spec.tokens, sizeof *in->ids);
    lab_memory_return(in->memory, in->stretched, in->spec.tokens * in->width,
                      sizeof *in->stretched);
    lab_memory_return(in->memory, in, 1, sizeof *in);
}

/* -------------------------------------------------------------------------- calls --- */

static pe_tensor hidden(const lab_input *in, float *x)
{
    pe_tensor out;
    pe_tensor_bshd(&out, PE_F32, x, in->spec.rows, in->spec.tokens, 1, in->width);
    return out;
}

static pe_tensor table(const float *data, int64_t rows, int64_t width)
{
    pe_tensor out;
    pe_tensor_bshd(&out, PE_F32, data, 1, rows, 1, width);
    return out;
}

/* A plan for the table where it lies now, or where it is stretched to. */
static pe_status make_learned(const lab_input *in, const float *weights,
                              pe_absolute **out, pe_error *error)
{
    pe_tensor p = table(weights + in->spec.layout->p, in->length, in->width);
    if (in->stretched != NULL) {
        const pe_tensor longer = table(in->stretched, in->spec.tokens, in->width);
        const pe_resize how = {.mode = PE_RESIZE_LINEAR,
                               .align_corners = 1,
                               .from_h = 1,
                               .from_w = in->length,
                               .to_h = 1,
                               .to_w = in->spec.tokens};
        const pe_status status = pe_learned_resize(&how, &p, &longer, &in->env, error);
        if (status != PE_OK)
            return status;
        p = longer;
    }
    const pe_learned_spec spec = {.struct_size = sizeof spec, .weight = &p};
    return pe_learned_create(out, &spec, &in->env, error);
}

pe_status lab_input_forward(lab_input *in, const float *weights, const uint8_t *bytes,
                            float *x, pe_error *error)
{
    const int64_t count = in->spec.rows * in->spec.tokens, width = in->width;
    const float *e = weights + in->spec.layout->e;
    const float scale = (float)sqrt((double)width);
    for (int64_t t = 0; t < count; t++)
        for (int64_t i = 0; i < width; i++)
            x[t * width + i] = scale * e[bytes[t] * width + i];
    const pe_positions at = {.ids = in->ids};
    const pe_tensor all = hidden(in, x);
    if (in->sinusoidal != NULL)
        return pe_absolute_add(in->sinusoidal, &at, &all, &all, error);
    if (in->spec.config->input != LAB_LEARNED)
        return PE_OK;
    pe_absolute *learned;
    pe_status status = make_learned(in, weights, &learned, error);
    if (status != PE_OK)
        return status;
    status = pe_absolute_add(learned, &at, &all, &all, error);
    pe_absolute_destroy(learned);
    return status;
}

pe_status lab_input_backward(const lab_input *in, const float *weights,
                             const uint8_t *bytes, float *dx, float *grads,
                             pe_error *error)
{
    const int64_t count = in->spec.rows * in->spec.tokens, width = in->width;
    const float scale = (float)sqrt((double)width);
    float *de = grads + in->spec.layout->e;
    for (int64_t t = 0; t < count; t++)
        for (int64_t i = 0; i < width; i++)
            de[bytes[t] * width + i] += scale * dx[t * width + i];
    if (in->spec.config->input != LAB_LEARNED)
        return PE_OK;
    const pe_positions at = {0};
    const pe_tensor all = hidden(in, dx);
    const pe_tensor dp = table(grads + in->spec.layout->p, in->length, width);
    pe_absolute *learned;
    pe_status status = make_learned(in, weights, &learned, error);
    if (status != PE_OK)
        return status;
    status = pe_absolute_backward(learned, &at, &all, &dp, error);
    pe_absolute_destroy(learned);
    return status;
}
