/* SPDX-License-Identifier: MIT
 *
 * checkpoint_write.c - from a lab_state to a safetensors file
 *
 * Tensors follow one another without gaps, w, m and v of a parameter side by side. */
#include "checkpoint.h"

#include "mode.h"

#include <json-c/json.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PREFIX = 8, KINDS = 3, NAME_SIZE = 32 };

/* ----------------------------------------------------------------------- header --- */

static void put_text(json_object *metadata, const char *key, const char *text)
{
    (void)json_object_object_add(metadata, key, json_object_new_string(text));
}

static void put_integer(json_object *metadata, const char *key, int64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    put_text(metadata, key, text);
}

static void put_number(json_object *metadata, const char *key, double value)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%.17g", value);
    put_text(metadata, key, text);
}

static void put_layers(json_object *metadata, const lab_config *config)
{
    char list[LAB_MAX_LAYERS * 8 + 1] = "";
    size_t used = 0;
    for (int i = 0; i < config->layers; i++) {
        const char *name = lab_method_name(config->layer[i]);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 i > 0 ? "," : "", name != NULL ? name : "?");
    }
    put_text(metadata, "layers", list);
}

static json_object *make_metadata(const lab_state *state, const char *corpus_sha256)
{
    const lab_config *c = &state->config;
    const char *input = lab_method_name(c->input);
    char seed[24], extension[40] = "";
    json_object *metadata = json_object_new_object();
    put_text(metadata, "format", LAB_CHECKPOINT_FORMAT);
    put_text(metadata, "input", input != NULL ? input : "?");
    put_layers(metadata, c);
    put_integer(metadata, "width", c->width);
    put_integer(metadata, "heads", c->heads);
    put_integer(metadata, "length", c->length);
    put_integer(metadata, "batch", c->batch);
    put_integer(metadata, "steps", c->steps);
    put_integer(metadata, "warmup", c->warmup);
    put_integer(metadata, "learn_slopes", c->learn_slopes);
    put_number(metadata, "peak_rate", c->peak_rate);
    put_number(metadata, "weight_decay", c->weight_decay);
    put_number(metadata, "clip", c->clip);
    (void)snprintf(seed, sizeof seed, "%" PRIu64, c->seed);
    put_text(metadata, "seed", seed);
    lab_mode_name(&c->extension, extension, sizeof extension);
    put_text(metadata, "extension", extension);
    put_integer(metadata, "first_length", c->first_length);
    put_integer(metadata, "step", state->step);
    put_number(metadata, "loss_average", state->loss_average);
    put_text(metadata, "corpus_sha256", corpus_sha256);
    return metadata;
}

static int64_t put_tensor(json_object *header, const lab_parameter *item, char kind,
                          int64_t begin)
{
    const int64_t end = begin + lab_parameter_size(item) * (int64_t)sizeof(float);
    char name[NAME_SIZE];
    json_object *tensor = json_object_new_object();
    json_object *shape = json_object_new_array(), *offsets = json_object_new_array();
    (void)snprintf(name, sizeof name, "%c.%s", kind, item->name);
    (void)json_object_array_add(shape, json_object_new_int64(item->rows));
    if (item->cols > 0)
        (void)json_object_array_add(shape, json_object_new_int64(item->cols));
    (void)json_object_array_add(offsets, json_object_new_int64(begin));
    (void)json_object_array_add(offsets, json_object_new_int64(end));
    put_text(tensor, "dtype", "F32");
    (void)json_object_object_add(tensor, "shape", shape);
    (void)json_object_object_add(tensor, "data_offsets", offsets);
    (void)json_object_object_add(header, name, tensor);
    return end;
}

static json_object *make_header(const lab_state *state, const char *corpus_sha256)
{
    json_object *header = json_object_new_object();
    int64_t at = 0;
    (void)json_object_object_add(header, "__metadata__",
                                 make_metadata(state, corpus_sha256));
    for (int32_t i = 0; i < state->layout.count; i++)
        for (int kind = 0; kind < KINDS; kind++)
            at = put_tensor(header, &state->layout.items[i], "wmv"[kind], at);
    return header;
}

/* ------------------------------------------------------------------------- file --- */

/* 0, or -1 with errno. */
static int write_all(int fd, const void *data, size_t size)
{
    const char *bytes = data;
    while (size > 0) {
        const ssize_t done = write(fd, bytes, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        bytes += done;
        size -= (size_t)done;
    }
    return 0;
}

static int write_header(int fd, const lab_state *state, const char *corpus_sha256)
{
    json_object *header = make_header(state, corpus_sha256);
    const char *text = json_object_to_json_string_ext(
        header, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    const size_t length = strlen(text), padding = (PREFIX - length % PREFIX) % PREFIX;
    unsigned char prefix[PREFIX];
    for (int i = 0; i < PREFIX; i++)
        prefix[i] = (unsigned char)((uint64_t)(length + padding) >> 8 * i & 255);
    int failed = write_all(fd, prefix, sizeof prefix) != 0 ||
                 write_all(fd, text, length) != 0 ||
                 write_all(fd, "        ", padding) != 0;
    const int reason = errno;
    (void)json_object_put(header);
    errno = reason;
    return failed ? -1 : 0;
}

static int write_tensors(int fd, const lab_state *state)
{
    const float *const kinds[KINDS] = {state->weights, state->moment1, state->moment2};
    for (int32_t i = 0; i < state->layout.count; i++) {
        const lab_parameter *item = &state->layout.items[i];
        const size_t size = (size_t)lab_parameter_size(item) * sizeof(float);
        for (int kind = 0; kind < KINDS; kind++)
            if (write_all(fd, kinds[kind] + item->offset, size) != 0)
                return -1;
    }
    return 0;
}

/* The new name is on the disk once its folder is. */
static int sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL   ? strdup(".")
                   : slash == path ? strdup("/")
                                   : strndup(path, (size_t)(slash - path));
    const int fd =
        folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    /* Some file systems cannot sync a folder, and say EINVAL. */
    const int failed = fd < 0 || (fsync(fd) != 0 && errno != EINVAL);
    if (fd >= 0)
        (void)close(fd);
    free(folder);
    return failed ? -1 : 0;
}

/* 0, or -1 with errno, and then nothing is left under the name. */
static int write_file(const lab_state *state, const char *corpus_sha256,
                      const char *temporary, const char *path)
{
    const int fd =
        open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    int failed = write_header(fd, state, corpus_sha256) != 0 ||
                 write_tensors(fd, state) != 0 || fsync(fd) != 0;
    int reason = errno;
    if (close(fd) != 0 && !failed) {
        failed = 1;
        reason = errno;
    }
    if (!failed && rename(temporary, path) != 0) {
        failed = 1;
        reason = errno;
    }
    if (failed)
        (void)unlink(temporary);
    errno = reason;
    return failed ? -1 : 0;
}

/* What lab_checkpoint_load would refuse must not take the place of a good file. */
static pe_status check_values(const lab_state *state, const char *path, pe_error *error)
{
    const float *const kinds[KINDS] = {state->weights, state->moment1, state->moment2};
    for (int32_t i = 0; i < state->layout.count; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            const lab_parameter *item = &state->layout.items[i];
            const float *x = kinds[kind] + item->offset;
            for (int64_t j = 0; j < lab_parameter_size(item); j++)
                if (!isfinite(x[j]))
                    return lab_fail(error, PE_E_ARGUMENT,
                                    "%s is left as it was: element %" PRId64
                                    " of %c.%s is %g at step %" PRId64,
                                    path, j, "wmv"[kind], item -> name, (double)x[j],
                                    state -> step);
        }
    return PE_OK;
}

pe_status lab_checkpoint_save(const lab_state *state, const char *corpus_sha256,
                              const char *path, pe_error *error)
{
    const pe_status status = check_values(state, path, error);
    if (status != PE_OK)
        return status;
    const size_t size = strlen(path) + 32;
    char *temporary = malloc(size);
    if (temporary == NULL)
        return lab_fail(error, PE_E_NO_MEMORY, "%s: no memory for its name", path);
    (void)snprintf(temporary, size, "%s.part-%ld", path, (long)getpid());
    int failed = write_file(state, corpus_sha256, temporary, path) != 0;
    if (!failed)
        failed = sync_folder(path) != 0;
    const int reason = errno;
    free(temporary);
    if (failed)
        return lab_fail(error, PE_E_IO, "%s: %s", path, strerror(reason));
    return PE_OK;
}
