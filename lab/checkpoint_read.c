/* SPDX-License-Identifier: MIT
 *
 * checkpoint_read.c - from a safetensors file to a lab_state, trusting nothing in it
 *
 * Nothing is allocated by a number in the file before the tensors that it stands for
 * have been found there. */
#include "checkpoint.h"

#include "mode.h"

#include "posenc/model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 3, NAME_SIZE = 32 };

typedef struct reader {
    const pe_checkpoint *file;
    const char *path;
    pe_error *error;
    pe_status status; /* of the first field that was not as it must be */
} reader;

/* --------------------------------------------------------------------- metadata --- */

static const char *text_of(reader *r, const char *key)
{
    char path[64];
    (void)snprintf(path, sizeof path, "__metadata__.%s", key);
    const pe_setting *setting = pe_checkpoint_find_setting(r->file, path);
    if (setting != NULL)
        return setting->text;
    if (r->status == PE_OK)
        r->status = lab_fail(r->error, PE_E_FORMAT, "%s: %s is missing", r->path, key);
    return "";
}

static void refuse(reader *r, const char *key, const char *text, const char *wanted)
{
    if (r->status == PE_OK)
        r->status = lab_fail(r->error, PE_E_FORMAT, "%s: %s is '%.60s', must be %s",
                             r->path, key, text, wanted);
}

static int is_decimal(const char *text, const char *characters)
{
    return *text != '\0' && text[strspn(text, characters)] == '\0';
}

static int64_t integer_of(reader *r, const char *key, int64_t max)
{
    const char *text = text_of(r, key);
    errno = 0;
    const long long value = strtoll(text, NULL, 10);
    if (is_decimal(text, "0123456789") && errno == 0 && value <= max)
        return value;
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "a whole number up to %lld", (long long)max);
    refuse(r, key, text, wanted);
    return 0;
}

static double number_of(reader *r, const char *key)
{
    const char *text = text_of(r, key);
    char *end;
    const double value = strtod(text, &end);
    if (is_decimal(text, "0123456789+-.e") && *end == '\0' && isfinite(value))
        return value;
    refuse(r, key, text, "a finite number");
    return 0;
}

static uint64_t seed_of(reader *r)
{
    const char *text = text_of(r, "seed");
    errno = 0;
    const unsigned long long value = strtoull(text, NULL, 10);
    if (is_decimal(text, "0123456789") && errno == 0)
        return value;
    refuse(r, "seed", text, "a whole number below 2^64");
    return 0;
}

/* A failure of something that knows no path. */
static void refuse_with(reader *r, const pe_error *error)
{
    if (r->status == PE_OK)
        r->status = lab_fail(r->error, PE_E_FORMAT, "%s: %s", r->path, error->message);
}

static void read_methods(reader *r, lab_config *config)
{
    const char *input = text_of(r, "input"), *layers = text_of(r, "layers");
    const char *extension = text_of(r, "extension");
    pe_error error;
    if (!lab_method_find(input, &config->input))
        refuse(r, "input", input, "none, sin or learned");
    if (lab_config_set_layers(config, layers, &error) != PE_OK)
        refuse_with(r, &error);
    if (lab_mode_parse(&config->extension, extension, &error) != PE_OK)
        refuse_with(r, &error);
    if (config->extension.type == LAB_MODE_BASE)
        config->extension = (lab_mode){0};
}

static void read_config(reader *r, lab_config *config)
{
    pe_error error;
    *config = (lab_config){0};
    read_methods(r, config);
    config->width = (int32_t)integer_of(r, "width", INT32_MAX);
    config->heads = (int32_t)integer_of(r, "heads", INT32_MAX);
    config->length = (int32_t)integer_of(r, "length", INT32_MAX);
    config->batch = (int32_t)integer_of(r, "batch", INT32_MAX);
    config->steps = (int32_t)integer_of(r, "steps", INT32_MAX);
    config->warmup = (int32_t)integer_of(r, "warmup", INT32_MAX);
    config->learn_slopes = (int32_t)integer_of(r, "learn_slopes", 1);
    config->first_length = (int32_t)integer_of(r, "first_length", INT32_MAX);
    config->peak_rate = number_of(r, "peak_rate");
    config->weight_decay = number_of(r, "weight_decay");
    config->clip = number_of(r, "clip");
    config->seed = seed_of(r);
    if (r->status == PE_OK && lab_config_check(config, &error) != PE_OK)
        refuse_with(r, &error);
}

static void read_hash(reader *r, char corpus_sha256[65])
{
    const char *text = text_of(r, "corpus_sha256");
    if (is_decimal(text, "0123456789abcdef") && strlen(text) == 64)
        memcpy(corpus_sha256, text, 65);
    else
        refuse(r, "corpus_sha256", text, "64 hexadecimal digits");
}

/* ---------------------------------------------------------------------- tensors --- */

static const pe_weight *find(const pe_checkpoint *file, const lab_parameter *item,
                             int kind, char name[NAME_SIZE])
{
    (void)snprintf(name, NAME_SIZE, "%c.%s", "wmv"[kind], item -> name);
    return pe_checkpoint_find_weight(file, name);
}

static int has_shape(const pe_weight *weight, const lab_parameter *item)
{
    return weight->dtype == PE_F32 && weight->rank == (item->cols > 0 ? 2 : 1) &&
           weight->shape[0] == item->rows &&
           (item->cols == 0 || weight->shape[1] == item->cols);
}

static void shape_text(const lab_parameter *item, char *out, size_t size)
{
    if (item->cols > 0)
        (void)snprintf(out, size, "F32 [%lld, %lld]", (long long)item->rows,
                       (long long)item->cols);
    else
        (void)snprintf(out, size, "F32 [%lld]", (long long)item->rows);
}

static pe_status check_tensors(const reader *r, const lab_layout *layout)
{
    for (int32_t i = 0; i < layout->count; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            char name[NAME_SIZE], shape[64];
            const pe_weight *weight = find(r->file, &layout->items[i], kind, name);
            shape_text(&layout->items[i], shape, sizeof shape);
            if (weight == NULL)
                return lab_fail(r->error, PE_E_FORMAT, "%s: tensor %s is missing",
                                r->path, name);
            if (!has_shape(weight, &layout->items[i]))
                return lab_fail(r->error, PE_E_FORMAT, "%s: tensor %s must be %s",
                                r->path, name, shape);
        }
    const int64_t surplus =
        pe_checkpoint_num_weights(r->file) - (int64_t)KINDS * layout->count;
    if (surplus != 0)
        return lab_fail(r->error, PE_E_FORMAT,
                        "%s: %lld tensors belong to no parameter of this model",
                        r->path, (long long)surplus);
    return PE_OK;
}

/* Every value finite, and second moments, which are means of squares, not negative. */
static pe_status copy_tensor(const reader *r, const pe_weight *weight, int kind,
                             float *out)
{
    const size_t count = (size_t)weight->size / sizeof *out;
    memcpy(out, weight->data, count * sizeof *out);
    for (size_t i = 0; i < count; i++)
        if (!isfinite(out[i]) || (kind == 2 && out[i] < 0))
            return lab_fail(r->error, PE_E_FORMAT,
                            "%s: element %zu of %s is %g, must be %s", r->path, i,
                            weight->name, (double)out[i],
                            kind == 2 ? "finite and not negative" : "finite");
    return PE_OK;
}

static pe_status copy_tensors(const reader *r, lab_state *state)
{
    float *const kinds[KINDS] = {state->weights, state->moment1, state->moment2};
    for (int32_t i = 0; i < state->layout.count; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            const lab_parameter *item = &state->layout.items[i];
            char name[NAME_SIZE];
            const pe_status status = copy_tensor(r, find(r->file, item, kind, name),
                                                 kind, kinds[kind] + item->offset);
            if (status != PE_OK)
                return status;
        }
    return PE_OK;
}

/* ------------------------------------------------------------------------- file --- */

static pe_status read_state(reader *r, lab_state *out, char corpus_sha256[65])
{
    char hash[65];
    lab_config config;
    lab_layout layout;
    const pe_setting *format =
        pe_checkpoint_find_setting(r->file, "__metadata__.format");
    if (format == NULL || strcmp(format->text, LAB_CHECKPOINT_FORMAT) != 0)
        return lab_fail(r->error, PE_E_FORMAT,
                        "%s: no checkpoint of the lab (its format must be "
                        "'" LAB_CHECKPOINT_FORMAT "')",
                        r->path);
    read_config(r, &config);
    const int64_t step = integer_of(r, "step", config.steps);
    const double loss_average = number_of(r, "loss_average");
    read_hash(r, hash);
    if (r->status != PE_OK)
        return r->status;
    lab_layout_make(&layout, &config);
    lab_state state;
    pe_status status = check_tensors(r, &layout);
    if (status != PE_OK)
        return status;
    pe_error error;
    status = lab_state_allocate(&state, &config, &error);
    if (status != PE_OK)
        return lab_fail(r->error, status, "%s: %s", r->path, error.message);
    state.step = step;
    state.loss_average = loss_average;
    status = copy_tensors(r, &state);
    if (status != PE_OK) {
        lab_state_release(&state);
        return status;
    }
    *out = state;
    if (corpus_sha256 != NULL)
        memcpy(corpus_sha256, hash, sizeof hash);
    return PE_OK;
}

/* The reader of the container names the file only where it could not be read. */
static pe_status name_file(const pe_error *inner, const char *path, pe_error *error)
{
    const int is_named =
        inner->status == PE_E_IO || strncmp(inner->message, path, strlen(path)) == 0;
    return is_named
               ? lab_fail(error, inner->status, "%s", inner->message)
               : lab_fail(error, inner->status, "%.120s: %s", path, inner->message);
}

pe_status lab_checkpoint_load(lab_state *out, char corpus_sha256[65], const char *path,
                              pe_error *error)
{
    pe_checkpoint *file;
    pe_error inner;
    pe_status status = pe_checkpoint_load(&file, path, NULL, &inner);
    if (status != PE_OK)
        return name_file(&inner, path, error);
    reader r = {.file = file, .path = path, .error = error};
    status = read_state(&r, out, corpus_sha256);
    pe_checkpoint_destroy(file);
    return status;
}

pe_status lab_checkpoint_parse(lab_state *out, char corpus_sha256[65], const void *data,
                               size_t size, pe_error *error)
{
    pe_checkpoint *file;
    pe_status status =
        pe_checkpoint_parse(&file, PE_FORMAT_SAFETENSORS, data, size, NULL, error);
    if (status != PE_OK)
        return status;
    reader r = {.file = file, .path = "checkpoint", .error = error};
    status = read_state(&r, out, corpus_sha256);
    pe_checkpoint_destroy(file);
    return status;
}
