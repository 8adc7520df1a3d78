/* SPDX-License-Identifier: MIT
 *
 * json_reader.c - json-c parses; a walk beside the text adds what it cannot tell
 *
 * json-c 0.16 keeps the last of two equal keys, takes NaN, Infinity and "1." even when
 * strict, saturates integers, and forgets offsets and spelling.  So its tree is walked
 * together with the source text, whose order of values is the same. */
#include "model/json_reader.h"

#include "base/error.h"
#include "model/json_text.h"

#include <json-c/json.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct walk {
    pe_settings *settings;
    pe_json_text scan;
    char path[PE_SETTING_PATH_MAX + 1];
    size_t path_size;
    pe_error *error;
} walk;

static pe_status walk_value(walk *w, json_object *node);

static pe_status no_memory(walk *w)
{
    return pe_fail_at(w->error, PE_E_NO_MEMORY, (int64_t)w->scan.pos,
                      "out of memory for %.120s", w->path);
}

static pe_status push_path(walk *w, const char *separator, const char *name,
                           size_t size, const char *closing)
{
    const size_t extra = strlen(separator) + size + strlen(closing);
    if (extra > PE_SETTING_PATH_MAX - w->path_size)
        return pe_fail_at(w->error, PE_E_LIMIT, (int64_t)w->scan.pos,
                          "path of %.60s... is longer than %d bytes", w->path,
                          PE_SETTING_PATH_MAX);
    char *at = w->path + w->path_size;
    memcpy(at, separator, strlen(separator));
    memcpy(at + strlen(separator), name, size);
    memcpy(at + strlen(separator) + size, closing, strlen(closing) + 1);
    w->path_size += extra;
    return PE_OK;
}

static void pop_path(walk *w, size_t size)
{
    w->path_size = size;
    w->path[size] = '\0';
}

/* The integer itself when int64 holds it, else the nearest double as a NUMBER. */
static double number_value(const char *text, json_object *node, int is_integer,
                           int64_t *integer, int *fits)
{
    *fits = 0;
    if (!is_integer)
        return json_object_get_double(node);
    errno = 0;
    const long long value = strtoll(text, NULL, 10);
    if (errno == 0) {
        *integer = value;
        *fits = 1;
        return (double)value;
    }
    return strtod(text, NULL); /* digits only: no locale has a say */
}

static pe_status walk_number(walk *w, json_object *node, pe_entry *entry,
                             double *element)
{
    const size_t start = w->scan.pos;
    int is_integer = 0, fits = 0;
    int64_t integer = 0;
    pe_status status = pe_json_skip_number(&w->scan, w->path, &is_integer, w->error);
    if (status != PE_OK)
        return status;
    const double value =
        number_value(w->scan.text + start, node, is_integer, &integer, &fits);
    if (element != NULL)
        *element = value;
    if (entry != NULL) {
        entry->setting.type = fits ? PE_SETTING_INTEGER : PE_SETTING_NUMBER;
        entry->setting.integer = integer;
        entry->setting.number = value;
    }
    return PE_OK;
}

static pe_status walk_scalar(walk *w, json_object *node)
{
    const size_t start = w->scan.pos;
    pe_entry *entry = NULL;
    pe_status status = PE_OK;
    if (json_object_is_type(node, json_type_string)) {
        const char *string = json_object_get_string(node);
        const size_t size = (size_t)json_object_get_string_len(node);
        if (memchr(string, '\0', size) != NULL)
            return pe_fail_at(w->error, PE_E_FORMAT, (int64_t)start,
                              "%.120s has a NUL in its string", w->path);
        pe_json_skip_string(&w->scan);
        entry = pe_settings_add(w->settings, w->path, string, size, (int64_t)start);
        if (entry != NULL)
            entry->setting.type = PE_SETTING_STRING;
    } else if (pe_json_is_char(&w->scan, "tfn")) {
        const int truth = w->scan.text[start] == 't';
        const int null = w->scan.text[start] == 'n';
        w->scan.pos += w->scan.text[start] == 'f' ? 5 : 4;
        entry = pe_settings_add(w->settings, w->path, w->scan.text + start,
                                w->scan.pos - start, (int64_t)start);
        if (entry != NULL) {
            entry->setting.type = null ? PE_SETTING_NULL : PE_SETTING_BOOL;
            entry->setting.integer = truth;
            entry->setting.number = truth;
        }
    } else {
        pe_entry value = {.offset = 0};
        status = walk_number(w, node, &value, NULL);
        if (status != PE_OK)
            return status;
        entry = pe_settings_add(w->settings, w->path, w->scan.text + start,
                                w->scan.pos - start, (int64_t)start);
        if (entry != NULL) {
            entry->setting.type = value.setting.type;
            entry->setting.integer = value.setting.integer;
            entry->setting.number = value.setting.number;
        }
    }
    return entry == NULL ? no_memory(w) : PE_OK;
}

static int all_of(json_object *array, size_t length, json_type a, json_type b)
{
    for (size_t i = 0; i < length; i++) {
        json_object *node = json_object_array_get_idx(array, i);
        if (!json_object_is_type(node, a) && !json_object_is_type(node, b))
            return 0;
    }
    return 1;
}

/* The elements of an array of numbers or of strings; pos is past the bracket. */
static pe_status walk_elements(walk *w, json_object *array, size_t length,
                               double *numbers, const char **strings)
{
    for (size_t i = 0; i < length; i++) {
        json_object *node = json_object_array_get_idx(array, i);
        pe_json_skip_space(&w->scan);
        if (numbers != NULL) {
            pe_status status = walk_number(w, node, NULL, &numbers[i]);
            if (status != PE_OK)
                return status;
        } else {
            strings[i] =
                pe_settings_text(w->settings->arena, json_object_get_string(node),
                                 (size_t)json_object_get_string_len(node));
            pe_json_skip_string(&w->scan);
        }
        pe_json_skip_space(&w->scan);
        w->scan.pos++; /* the comma or the bracket */
    }
    if (length == 0) {
        pe_json_skip_space(&w->scan);
        w->scan.pos++;
    }
    return PE_OK;
}

static pe_status walk_flat_array(walk *w, json_object *array, size_t length,
                                 int numeric)
{
    const size_t start = w->scan.pos++;
    double *numbers = NULL;
    const char **strings = NULL;
    if (numeric)
        numbers = pe_arena_alloc(w->settings->arena, length * sizeof *numbers);
    else
        strings = pe_arena_alloc(w->settings->arena, length * sizeof *strings);
    if (numbers == NULL && strings == NULL)
        return no_memory(w);
    pe_status status = walk_elements(w, array, length, numbers, strings);
    if (status != PE_OK)
        return status;
    pe_entry *entry = pe_settings_add(w->settings, w->path, w->scan.text + start,
                                      w->scan.pos - start, (int64_t)start);
    if (entry == NULL || w->settings->arena->out_of_memory)
        return no_memory(w);
    entry->setting.type = PE_SETTING_ARRAY;
    entry->setting.numbers = numbers;
    entry->setting.num_numbers = numeric ? (int64_t)length : 0;
    entry->strings = strings;
    entry->num_strings = numeric ? 0 : (int64_t)length;
    return PE_OK;
}

static pe_status walk_array(walk *w, json_object *array)
{
    const size_t length = json_object_array_length(array);
    if (all_of(array, length, json_type_int, json_type_double))
        return walk_flat_array(w, array, length, 1);
    if (all_of(array, length, json_type_string, json_type_string))
        return walk_flat_array(w, array, length, 0);
    const size_t path_size = w->path_size;
    w->scan.pos++;
    for (size_t i = 0; i < length; i++) {
        char digits[24];
        size_t size = 0;
        for (size_t rest = i; size == 0 || rest > 0; rest /= 10)
            digits[sizeof digits - ++size] = (char)('0' + rest % 10);
        pe_status status = push_path(w, "[", digits + sizeof digits - size, size, "]");
        if (status == PE_OK)
            status = walk_value(w, json_object_array_get_idx(array, i));
        if (status != PE_OK)
            return status;
        pop_path(w, path_size);
        pe_json_skip_space(&w->scan);
        w->scan.pos++;
    }
    return PE_OK;
}

/* The decoded key at pos, which is NULL when memory is out.  *owner is to be put. */
static const char *key_at(walk *w, size_t *size, json_object **owner)
{
    const size_t start = w->scan.pos;
    pe_json_skip_string(&w->scan);
    *size = w->scan.pos - start - 2;
    if (memchr(w->scan.text + start, '\\', w->scan.pos - start) == NULL)
        return w->scan.text + start + 1;
    json_tokener *tokener = json_tokener_new();
    if (tokener == NULL)
        return NULL;
    *owner = json_tokener_parse_ex(tokener, w->scan.text + start,
                                   (int)(w->scan.pos - start));
    json_tokener_free(tokener);
    *size = (size_t)json_object_get_string_len(*owner);
    return json_object_get_string(*owner);
}

/* json-c keeps the keys in the order of their first occurrence: the next key of the
 * text is the next one of the tree, or it is a duplicate. */
static pe_status walk_member(walk *w, struct lh_entry **next)
{
    json_object *owner = NULL;
    size_t size = 0;
    pe_json_skip_space(&w->scan);
    const size_t start = w->scan.pos;
    const char *key = key_at(w, &size, &owner);
    pe_status status = PE_OK;
    if (key == NULL)
        status = no_memory(w);
    else if (memchr(key, '\0', size) != NULL)
        status =
            pe_fail_at(w->error, PE_E_FORMAT, (int64_t)start, "a key has a NUL in it");
    else if (*next == NULL || strlen(lh_entry_k(*next)) != size ||
             memcmp(lh_entry_k(*next), key, size) != 0)
        status = pe_fail_at(w->error, PE_E_FORMAT, (int64_t)start,
                            "key \"%.*s\" occurs twice in %s",
                            (int)(size > 100 ? 100 : size), key,
                            w->path_size == 0 ? "the file" : w->path);
    else
        status = push_path(w, w->path_size == 0 ? "" : ".", key, size, "");
    json_object_put(owner);
    if (status != PE_OK)
        return status;
    pe_json_skip_space(&w->scan);
    w->scan.pos++; /* the colon */
    json_object *value = lh_entry_v(*next);
    *next = (*next)->next;
    return walk_value(w, value);
}

static pe_status walk_object(walk *w, json_object *object)
{
    const size_t path_size = w->path_size;
    struct lh_entry *next = json_object_get_object(object)->head;
    w->scan.pos++;
    pe_json_skip_space(&w->scan);
    if (pe_json_is_char(&w->scan, "}")) {
        w->scan.pos++;
        return PE_OK;
    }
    for (;;) {
        pe_status status = walk_member(w, &next);
        if (status != PE_OK)
            return status;
        pop_path(w, path_size);
        pe_json_skip_space(&w->scan);
        if (w->scan.pos >= w->scan.size || w->scan.text[w->scan.pos++] == '}')
            return PE_OK;
    }
}

/* At most PE_JSON_DEPTH_MAX deep: json-c has refused the rest. */
static pe_status walk_value(walk *w, json_object *node)
{
    pe_json_skip_space(&w->scan);
    switch (json_object_get_type(node)) {
    case json_type_object:
        return walk_object(w, node);
    case json_type_array:
        return walk_array(w, node);
    default:
        return walk_scalar(w, node);
    }
}

static pe_status parse(json_object **root, const char *text, size_t size,
                       pe_error *error)
{
    json_tokener *tokener = json_tokener_new_ex(PE_JSON_DEPTH_MAX);
    if (tokener == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for the JSON parser");
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    *root = json_tokener_parse_ex(tokener, text, (int)size);
    const enum json_tokener_error problem = json_tokener_get_error(tokener);
    const int64_t at = (int64_t)json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    if (problem == json_tokener_success)
        return PE_OK;
    if (problem == json_tokener_continue)
        return pe_fail_at(error, PE_E_FORMAT, (int64_t)size,
                          "JSON ends inside a value, after %lld bytes",
                          (long long)size);
    if (problem == json_tokener_error_depth)
        return pe_fail_at(error, PE_E_LIMIT, at, "JSON is nested deeper than %d levels",
                          PE_JSON_DEPTH_MAX);
    return pe_fail_at(error, PE_E_FORMAT, at, "JSON is malformed at byte %lld: %s",
                      (long long)at, json_tokener_error_desc(problem));
}

/* Commas and brackets bound the values from above, whether in strings or not. */
static pe_status check_values(const char *text, size_t size, pe_error *error)
{
    int64_t count = 0;
    for (size_t i = 0; i < size; i++) {
        count += text[i] == ',' || text[i] == '[' || text[i] == '{';
        if (count > PE_JSON_VALUES_MAX)
            return pe_fail_at(error, PE_E_LIMIT, (int64_t)i,
                              "JSON has more than %d values", PE_JSON_VALUES_MAX);
    }
    return PE_OK;
}

pe_status pe_json_read(pe_settings *settings, const char *text, size_t size,
                       pe_error *error)
{
    size_t start = 0;
    while (start < size && text[start] != '\0' &&
           strchr(" \t\r\n", text[start]) != NULL)
        start++;
    if (start == size)
        return pe_fail_at(error, PE_E_FORMAT, (int64_t)size,
                          "JSON is empty, must be an object");
    if (text[start] != '{')
        return pe_fail_at(error, PE_E_FORMAT, (int64_t)start,
                          "JSON begins with byte 0x%02x, must be an object",
                          (unsigned)(unsigned char)text[start]);
    if (size > PE_JSON_SIZE_MAX)
        return pe_fail_at(error, PE_E_LIMIT, PE_JSON_SIZE_MAX,
                          "JSON has %llu bytes, at most %d are read",
                          (unsigned long long)size, PE_JSON_SIZE_MAX);
    const char *nul = memchr(text, '\0', size);
    if (nul != NULL)
        return pe_fail_at(error, PE_E_FORMAT, nul - text, "JSON has a NUL byte");
    json_object *root = NULL;
    pe_status status = check_values(text, size, error);
    if (status == PE_OK)
        status = parse(&root, text, size, error);
    if (status != PE_OK)
        return status;
    walk w = {
        .settings = settings, .scan = {.text = text, .size = size}, .error = error};
    status = walk_value(&w, root);
    json_object_put(root);
    return status;
}
