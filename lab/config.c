/* SPDX-License-Identifier: MIT
 *
 * config.c - the two built-in runs, names of methods, and the check of every field
 */
#include "config.h"

#include "mode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_WIDTH = 8192,
    MAX_LENGTH = 1 << 20,
    MAX_BATCH = 1 << 16,
    MAX_STEPS = 100000000
};

static const char *const method_names[LAB_NUM_METHODS] = {
    "none", "sin", "learned", "rope", "alibi", "t5", "kerple"};

const lab_config lab_config_a = {.layers = 3,
                                 .width = 96,
                                 .heads = 4,
                                 .length = 64,
                                 .batch = 32,
                                 .steps = 1200,
                                 .warmup = 100,
                                 .peak_rate = 2e-3,
                                 .weight_decay = 0.1,
                                 .clip = 1};

const lab_config lab_config_b = {.layers = 2,
                                 .width = 64,
                                 .heads = 4,
                                 .length = 64,
                                 .batch = 32,
                                 .steps = 600,
                                 .warmup = 100,
                                 .peak_rate = 3e-3,
                                 .weight_decay = 0.1,
                                 .clip = 1};

const char *lab_method_name(lab_method method)
{
    return method >= 0 && method < LAB_NUM_METHODS ? method_names[method] : NULL;
}

static int find_method(const char *name, size_t length, lab_method *out)
{
    for (lab_method i = 0; i < LAB_NUM_METHODS; i++)
        if (strlen(method_names[i]) == length &&
            memcmp(method_names[i], name, length) == 0) {
            *out = i;
            return 1;
        }
    return 0;
}

int lab_method_find(const char *name, lab_method *out)
{
    return find_method(name, strlen(name), out);
}

static int is_input(lab_method method)
{
    return method == LAB_SIN || method == LAB_LEARNED;
}

void lab_config_set_method(lab_config *config, lab_method method)
{
    config->input = is_input(method) ? method : LAB_NONE;
    for (int i = 0; i < LAB_MAX_LAYERS; i++)
        config->layer[i] = is_input(method) ? LAB_NONE : method;
}

pe_status lab_config_set_layers(lab_config *config, const char *list, pe_error *error)
{
    lab_method layer[LAB_MAX_LAYERS] = {0};
    int32_t count = 0;
    for (const char *name = list;; count++) {
        const size_t length = strcspn(name, ",");
        if (count == LAB_MAX_LAYERS)
            return lab_fail(error, PE_E_ARGUMENT,
                            "layers lists more than %d methods, the most there can be",
                            LAB_MAX_LAYERS);
        if (!find_method(name, length, &layer[count]) || is_input(layer[count]))
            return lab_fail(error, PE_E_ARGUMENT,
                            "layer %d is '%.*s', must be one of none, rope, alibi, t5, "
                            "kerple",
                            (int)count, (int)(length < 40 ? length : 40), name);
        if (name[length] == '\0')
            break;
        name += length + 1;
    }
    config->layers = count + 1;
    memcpy(config->layer, layer, sizeof layer);
    return PE_OK;
}

int lab_config_has(const lab_config *config, lab_method method)
{
    for (int32_t i = 0; i < config->layers; i++)
        if (config->layer[i] == method)
            return 1;
    return 0;
}

static int is_uniform(const lab_config *config)
{
    for (int i = 1; i < config->layers; i++)
        if (config->layer[i] != config->layer[0])
            return 0;
    return 1;
}

static void append(char *out, size_t size, const char *text)
{
    const size_t used = strlen(out);
    (void)snprintf(out + used, size - used, "%s", text != NULL ? text : "?");
}

void lab_config_name(const lab_config *config, char *out, size_t size)
{
    const int uniform = is_uniform(config), has_input = config->input != LAB_NONE;
    const int has_layers = !uniform || config->layer[0] != LAB_NONE || !has_input;
    out[0] = '\0';
    if (has_input)
        append(out, size, lab_method_name(config->input));
    if (has_input && has_layers)
        append(out, size, "+");
    for (int i = 0; has_layers && i < (uniform ? 1 : config->layers); i++) {
        append(out, size, i > 0 ? "," : "");
        append(out, size, lab_method_name(config->layer[i]));
    }
    if (config->learn_slopes)
        append(out, size, "-slopes");
    if (config->extension.type != LAB_MODE_BASE) {
        char mode[40] = "";
        lab_mode_name(&config->extension, mode, sizeof mode);
        append(out, size, "-");
        append(out, size, mode);
    }
}

static pe_status check_between(const char *field, int64_t value, int64_t low,
                               int64_t high, pe_error *error)
{
    if (value >= low && value <= high)
        return PE_OK;
    return lab_fail(error, PE_E_ARGUMENT, "%s is %lld, must be from %lld to %lld",
                    field, (long long)value, (long long)low, (long long)high);
}

static pe_status check_number(const char *field, double value, double low, double high,
                              pe_error *error)
{
    if (value >= low && value <= high)
        return PE_OK;
    return lab_fail(error, PE_E_ARGUMENT, "%s is %g, must be from %g to %g", field,
                    value, low, high);
}

static pe_status check_sizes(const lab_config *c, pe_error *error)
{
    pe_status status = check_between("layers", c->layers, 1, LAB_MAX_LAYERS, error);
    if (status == PE_OK)
        status = check_between("heads", c->heads, 1, LAB_MAX_HEADS, error);
    if (status == PE_OK)
        status = check_between("width", c->width, 2, MAX_WIDTH, error);
    if (status == PE_OK && c->width % (2 * c->heads) != 0)
        return lab_fail(error, PE_E_ARGUMENT,
                        "width is %d, must be a multiple of twice the heads (%d)",
                        (int)c->width, (int)(2 * c->heads));
    if (status == PE_OK)
        status = check_between("length", c->length, 2, MAX_LENGTH, error);
    if (status == PE_OK)
        status = check_between("batch", c->batch, 1, MAX_BATCH, error);
    if (status == PE_OK)
        status = check_between("steps", c->steps, 1, MAX_STEPS, error);
    if (status == PE_OK)
        status = check_between("warmup", c->warmup, 0, MAX_STEPS, error);
    return status;
}

static pe_status check_methods(const lab_config *c, pe_error *error)
{
    if (c->input != LAB_NONE && !is_input(c->input))
        return lab_fail(error, PE_E_ARGUMENT,
                        "input is %d, must be none (0), sin (1) or learned (2)",
                        (int)c->input);
    for (int i = 0; i < c->layers; i++) {
        const lab_method method = c->layer[i];
        if (lab_method_name(method) == NULL || is_input(method))
            return lab_fail(error, PE_E_ARGUMENT,
                            "method of layer %d is %d, must be 0 or from %d to %d", i,
                            (int)method, LAB_ROPE, LAB_NUM_METHODS - 1);
    }
    if (c->learn_slopes != 0 && c->learn_slopes != 1)
        return lab_fail(error, PE_E_ARGUMENT, "learn_slopes is %d, must be 0 or 1",
                        (int)c->learn_slopes);
    if (c->learn_slopes && !lab_config_has(c, LAB_ALIBI))
        return lab_fail(error, PE_E_ARGUMENT,
                        "learn_slopes is 1, but no layer's method is alibi");
    return PE_OK;
}

static pe_status check_extension(const lab_config *c, pe_error *error)
{
    const lab_mode *mode = &c->extension;
    if (mode->type == LAB_MODE_BASE) {
        if (c->first_length != 0)
            return lab_fail(error, PE_E_ARGUMENT,
                            "first_length is %d, must be 0 without an extension",
                            (int)c->first_length);
        return PE_OK;
    }
    const int has_rope = lab_config_has(c, LAB_ROPE);
    const int fits = mode->type == LAB_MODE_PI ? has_rope || c->input == LAB_SIN
                     : mode->type == LAB_MODE_NTK || mode->type == LAB_MODE_YARN
                         ? has_rope
                         : mode->type == LAB_MODE_INTERP && c->input == LAB_LEARNED;
    if (!fits)
        return lab_fail(error, PE_E_ARGUMENT,
                        "extension is of type %d, which does nothing for this model",
                        (int)mode->type);
    if (mode->fixed != 0)
        return lab_fail(error, PE_E_ARGUMENT, "extension's s is %g, must be 0",
                        mode->fixed);
    if (mode->no_temperature != 0 && mode->no_temperature != 1)
        return lab_fail(error, PE_E_ARGUMENT,
                        "extension's no_temperature is %d, must be 0 or 1",
                        (int)mode->no_temperature);
    pe_status status = check_number("extension's multiple of s", mode->times,
                                    mode->type == LAB_MODE_NTK ? 0.001 : 1,
                                    mode->type == LAB_MODE_NTK ? 1000 : 1, error);
    if (status == PE_OK && mode->type == LAB_MODE_YARN)
        status = check_number("extension's beta", mode->beta, 1.001, 1e6, error);
    if (status == PE_OK)
        status = check_between("first_length", c->first_length, 2, c->length, error);
    return status;
}

pe_status lab_config_check(const lab_config *config, pe_error *error)
{
    pe_status status = check_sizes(config, error);
    if (status == PE_OK)
        status = check_methods(config, error);
    if (status == PE_OK)
        status = check_number("peak_rate", config->peak_rate, 1e-12, 10, error);
    if (status == PE_OK)
        status = check_number("weight_decay", config->weight_decay, 0, 1, error);
    if (status == PE_OK)
        status = check_number("clip", config->clip, 1e-12, 1e12, error);
    if (status == PE_OK)
        status = check_extension(config, error);
    return status;
}

double lab_config_rate(const lab_config *config, int64_t step)
{
    static const double pi = 3.141592653589793238462643383279503;
    if (step < config->warmup)
        return config->peak_rate * (double)(step + 1) / config->warmup;
    const int32_t falling = config->steps - config->warmup;
    const double x = (double)(step - config->warmup) / (falling > 1 ? falling : 1);
    return config->peak_rate * (0.1 + 0.45 * (1 + cos(pi * x)));
}
