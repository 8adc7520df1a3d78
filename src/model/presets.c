/* SPDX-License-Identifier: MIT
 *
 * presets.c - the index of data/presets.json
 *
 * Made once per process, in static memory, by a scan that relies on the file being
 * ours: objects one level deep in "presets", strings without escapes (a test checks). */
#define _POSIX_C_SOURCE 200809L

#include "base/base.h"

#include "model/presets.h"

#include "model/presets_data.h"

#include <pthread.h>
#include <string.h>

enum { PRESETS_MAX = 256, POOL_SIZE = 65536 };

static struct {
    pe_preset presets[PRESETS_MAX];
    const char *text[PRESETS_MAX];
    size_t size[PRESETS_MAX];
    char pool[POOL_SIZE];
    size_t pool_used;
    int32_t num;
} presets;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *after_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        continue;
    return at < end ? at + 1 : end;
}

/* The byte after the object that begins at at. */
static const char *after_object(const char *at, const char *end)
{
    int depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = after_string(at, end);
            continue;
        }
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at++;
        if (depth == 0)
            break;
    }
    return at;
}

static const char *find(const char *text, const char *end, const char *what)
{
    const size_t size = strlen(what);
    for (; (size_t)(end - text) >= size; text++) {
        if (memcmp(text, what, size) == 0)
            return text + size;
    }
    return NULL;
}

/* The string that follows key, copied into the pool. */
static const char *member(const char *text, const char *end, const char *key)
{
    const char *at = find(text, end, key);
    if (at == NULL || *at != '"')
        return "";
    const char *stop = after_string(at, end);
    const size_t size = (size_t)(stop - at) - 2;
    if (size >= POOL_SIZE - presets.pool_used)
        return "";
    char *copy = presets.pool + presets.pool_used;
    memcpy(copy, at + 1, size);
    copy[size] = '\0';
    presets.pool_used += size + 1;
    return copy;
}

static void make_index(void)
{
    const char *at = (const char *)pe_presets_data;
    const char *end = at + pe_presets_size;
    at = find(at, end, "\"presets\": [");
    while (at != NULL && presets.num < PRESETS_MAX) {
        while (at < end && *at != '{' && *at != ']')
            at++;
        if (at == end || *at == ']')
            return;
        const char *stop = after_object(at, end);
        pe_preset *preset = &presets.presets[presets.num];
        preset->name = member(at, stop, "\"name\": ");
        preset->title = member(at, stop, "\"title\": ");
        preset->source = member(at, stop, "\"source\": ");
        preset->remembered = find(at, stop, "\"remembered\": true") != NULL;
        presets.text[presets.num] = at;
        presets.size[presets.num] = (size_t)(stop - at);
        presets.num++;
        at = stop;
    }
}

int32_t pe_model_num_presets(void)
{
    pthread_once(&once, make_index);
    return presets.num;
}

const pe_preset *pe_model_preset(int32_t index)
{
    pthread_once(&once, make_index);
    return index < 0 || index >= presets.num ? NULL : &presets.presets[index];
}

int pe_preset_find(const char *name, const char **text, size_t *size)
{
    pthread_once(&once, make_index);
    for (int32_t i = 0; i < presets.num; i++) {
        if (strcmp(presets.presets[i].name, name) == 0) {
            *text = presets.text[i];
            *size = presets.size[i];
            return 1;
        }
    }
    return 0;
}
