/* SPDX-License-Identifier: MIT
 *
 * settings.c - the flat store and its index by path
 */
#include "model/settings.h"

#include "base/error.h"

#include <string.h>

char *pe_settings_text(pe_arena *arena, const char *text, size_t size)
{
    if (size > PE_SETTING_TEXT_MAX) {
        size = PE_SETTING_TEXT_MAX;
        while (size > 0 && ((unsigned char)text[size] & 0xC0) == 0x80)
            size--;
    }
    return pe_arena_copy(arena, text, size);
}

pe_entry *pe_settings_add(pe_settings *settings, const char *path, const char *text,
                          size_t text_size, int64_t offset)
{
    if (settings->num == settings->capacity) {
        pe_entry *moved =
            pe_arena_grow(settings->arena, settings->entries, settings->num,
                          &settings->capacity, sizeof *settings->entries);
        if (moved == NULL)
            return NULL;
        settings->entries = moved;
    }
    pe_entry *entry = &settings->entries[settings->num];
    entry->setting.path = pe_arena_copy(settings->arena, path, strlen(path));
    entry->setting.text = pe_settings_text(settings->arena, text, text_size);
    entry->offset = offset;
    if (entry->setting.path == NULL || entry->setting.text == NULL)
        return NULL;
    settings->num++;
    return entry;
}

static const char *path_of(const pe_settings *settings, int32_t index)
{
    return settings->entries[index].setting.path;
}

/* Heap sort: no allocation, and no input makes it slow. */
static void sift(const pe_settings *settings, int64_t root, int64_t end)
{
    int32_t *order = settings->by_path;
    for (;;) {
        int64_t child = 2 * root + 1;
        if (child >= end)
            return;
        if (child + 1 < end && strcmp(path_of(settings, order[child]),
                                      path_of(settings, order[child + 1])) < 0)
            child++;
        if (strcmp(path_of(settings, order[root]), path_of(settings, order[child])) >=
            0)
            return;
        const int32_t swap = order[root];
        order[root] = order[child];
        order[child] = swap;
        root = child;
    }
}

pe_status pe_settings_finish(pe_settings *settings, pe_error *error)
{
    const int64_t num = settings->num;
    settings->by_path =
        pe_arena_alloc(settings->arena, (size_t)num * sizeof *settings->by_path);
    if (settings->by_path == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for %lld settings",
                       (long long)num);
    for (int64_t i = 0; i < num; i++)
        settings->by_path[i] = (int32_t)i;
    for (int64_t root = num / 2; root-- > 0;)
        sift(settings, root, num);
    for (int64_t end = num; end-- > 1;) {
        const int32_t largest = settings->by_path[0];
        settings->by_path[0] = settings->by_path[end];
        settings->by_path[end] = largest;
        sift(settings, 0, end);
    }
    for (int64_t i = 1; i < num; i++) {
        const pe_entry *a = &settings->entries[settings->by_path[i - 1]];
        const pe_entry *b = &settings->entries[settings->by_path[i]];
        if (strcmp(a->setting.path, b->setting.path) == 0)
            return pe_fail_at(error, PE_E_FORMAT,
                              a->offset > b->offset ? a->offset : b->offset,
                              "%.120s is set twice", a->setting.path);
    }
    return PE_OK;
}

/* The first place in by_path whose path is not below path. */
static int64_t lower_bound(const pe_settings *settings, const char *path)
{
    int64_t low = 0, high = settings->num;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strcmp(path_of(settings, settings->by_path[middle]), path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const pe_entry *pe_settings_find(const pe_settings *settings, const char *path)
{
    const int64_t at = lower_bound(settings, path);
    if (at == settings->num ||
        strcmp(path_of(settings, settings->by_path[at]), path) != 0)
        return NULL;
    return &settings->entries[settings->by_path[at]];
}

const pe_entry *pe_settings_find_under(const pe_settings *settings, const char *prefix)
{
    const size_t length = strlen(prefix);
    for (int64_t at = lower_bound(settings, prefix); at < settings->num; at++) {
        const char *path = path_of(settings, settings->by_path[at]);
        if (strncmp(path, prefix, length) != 0)
            return NULL;
        if (path[length] == '\0' || path[length] == '.' || path[length] == '[')
            return &settings->entries[settings->by_path[at]];
    }
    return NULL;
}
