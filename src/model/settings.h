/* SPDX-License-Identifier: MIT
 *
 * settings.h - what a file says, by flat path: the store every format fills
 *
 * Readers of formats write it, dialects read it; neither knows the other.
 */
#ifndef PE_SETTINGS_H
#define PE_SETTINGS_H

#include "model/arena.h"
#include "posenc/model.h"

enum { PE_SETTING_TEXT_MAX = 240, PE_SETTING_PATH_MAX = 511 };

typedef struct pe_entry {
    pe_setting setting;         /* the public part */
    const char *const *strings; /* of an array of strings; else NULL */
    int64_t num_strings;
    int64_t offset; /* of the value in the file */
} pe_entry;

typedef struct pe_settings {
    pe_arena *arena;
    pe_entry *entries; /* in file order */
    int64_t num, capacity;
    int32_t *by_path; /* after pe_settings_finish: indexes, sorted by path */
} pe_settings;

/* The new entry, with path and text copied (text cut at a character boundary), for the
 * caller to fill the value in; NULL when memory is out. */
pe_entry *pe_settings_add(pe_settings *settings, const char *path, const char *text,
                          size_t text_size, int64_t offset);
/* Copies text as pe_setting.text is: cut at PE_SETTING_TEXT_MAX bytes. */
char *pe_settings_text(pe_arena *arena, const char *text, size_t size);
/* Sorts; a path that occurs twice is PE_E_FORMAT. */
pe_status pe_settings_finish(pe_settings *settings, pe_error *error);
/* NULL: no such path. */
const pe_entry *pe_settings_find(const pe_settings *settings, const char *path);
/* The first entry whose path is prefix, or begins with prefix and a '.' or '['. */
const pe_entry *pe_settings_find_under(const pe_settings *settings, const char *prefix);

#endif /* PE_SETTINGS_H */
