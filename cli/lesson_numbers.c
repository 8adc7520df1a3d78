/* SPDX-License-Identifier: MIT
 *
 * lesson_numbers.c - the numbers of a topic, by name
 *
 * Names, counts and texts are fixed by the source, so that running out of room or
 * naming twice is a bug: an assert, not an error. */
#include "lesson_numbers.h"

#include "report.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_DIGITS = 3, SHORTEST = -1, SHORT_ROW = 4 };

typedef struct format {
    int width, digits;
} format;

void lesson_clear(lesson_numbers *numbers)
{
    numbers->num_entries = numbers->num_values = 0;
}

static const lesson_entry *find(const lesson_numbers *numbers, const char *name,
                                size_t length)
{
    for (int64_t i = 0; i < numbers->num_entries; i++) {
        const lesson_entry *entry = &numbers->entries[i];
        if (strncmp(entry->name, name, length) == 0 && entry->name[length] == '\0')
            return entry;
    }
    return NULL;
}

/* A new entry, with room for its values. */
static lesson_entry *add(lesson_numbers *numbers, const char *name, int32_t num_axes,
                         int64_t rows, int64_t cols)
{
    assert(numbers->num_entries < LESSON_MAX_ENTRIES);
    assert(numbers->num_values + rows * cols <= LESSON_MAX_VALUES);
    assert(find(numbers, name, strlen(name)) == NULL);
    lesson_entry *entry = &numbers->entries[numbers->num_entries++];
    *entry = (lesson_entry){.name = name,
                            .num_axes = num_axes,
                            .rows = rows,
                            .cols = cols,
                            .first = numbers->num_values};
    numbers->num_values += rows * cols;
    return entry;
}

void lesson_set(lesson_numbers *numbers, const char *name, double value)
{
    numbers->values[add(numbers, name, 0, 1, 1)->first] = value;
}

void lesson_set_float(lesson_numbers *numbers, const char *name, float value)
{
    lesson_entry *entry = add(numbers, name, 0, 1, 1);
    entry->is_float = 1;
    numbers->values[entry->first] = (double)value;
}

void lesson_set_integer(lesson_numbers *numbers, const char *name, int64_t value)
{
    lesson_entry *entry = add(numbers, name, 0, 1, 1);
    entry->is_integer = 1;
    numbers->values[entry->first] = (double)value;
}

void lesson_set_text(lesson_numbers *numbers, const char *name, const char *text)
{
    add(numbers, name, 0, 1, 0)->is_text = 1;
    (void)snprintf(numbers->text, sizeof numbers->text, "%s", text);
}

void lesson_set_row(lesson_numbers *numbers, const char *name, const double *values,
                    int64_t cols)
{
    memcpy(numbers->values + add(numbers, name, 1, 1, cols)->first, values,
           (size_t)cols * sizeof *values);
}

void lesson_set_rows(lesson_numbers *numbers, const char *name, const double *values,
                     int64_t rows, int64_t cols)
{
    memcpy(numbers->values + add(numbers, name, 2, rows, cols)->first, values,
           (size_t)(rows * cols) * sizeof *values);
}

void lesson_set_floats(lesson_numbers *numbers, const char *name, const float *values,
                       int64_t rows, int64_t cols)
{
    const int64_t count = (rows ? rows : 1) * cols;
    lesson_entry *entry = add(numbers, name, rows ? 2 : 1, rows ? rows : 1, cols);
    entry->is_float = 1;
    for (int64_t i = 0; i < count; i++)
        numbers->values[entry->first + i] = (double)values[i];
}

static int format_value(const lesson_entry *entry, double value, format how, char *out,
                        size_t size)
{
    cli_number number;
    if (entry->is_integer)
        return snprintf(out, size, "%*lld", how.width, (long long)value);
    if (how.digits == SHORTEST)
        return snprintf(out, size, "%s",
                        entry->is_float ? cli_float(&number, (float)value)
                                        : cli_double(&number, value));
    int length = snprintf(out, size, "%*.*f", how.width, how.digits, value);
    if (strtod(out, NULL) == 0) /* no "-0.000" */
        length = snprintf(out, size, "%*.*f", how.width, how.digits, 0.0);
    return length;
}

static int format_row(const lesson_entry *entry, const double *values, format how,
                      char *out, size_t size)
{
    const char space = entry->cols <= SHORT_ROW ? LESSON_TIE : ' ';
    size_t used = (size_t)snprintf(out, size, "(");
    for (int64_t i = 0; i < entry->cols && used < size; i++) {
        if (i > 0)
            used += (size_t)snprintf(out + used, size - used, ",%c", space);
        if (used < size)
            used +=
                (size_t)format_value(entry, values[i], how, out + used, size - used);
    }
    if (used < size)
        used += (size_t)snprintf(out + used, size - used, ")");
    return (int)used;
}

static int read_format(const char *text, format *out)
{
    char *end;
    *out = (format){0, DEFAULT_DIGITS};
    if (*text == '\0')
        return 1;
    if (strcmp(text, "g") == 0) {
        out->digits = SHORTEST;
        return 1;
    }
    const char *point = strchr(text, '.');
    if (point != NULL)
        out->width = (int)strtol(text, &end, 10);
    out->digits = (int)strtol(point ? point + 1 : text, &end, 10);
    return *end == '\0' && out->width < 64 && out->digits >= 0 && out->digits < 20;
}

/* Reads ".INDEX" and moves on; -1: there is none, -2: it is not below count. */
static int64_t read_index(const char **text, int64_t count)
{
    char *end;
    if (**text != '.')
        return -1;
    const int64_t index = strtoll(*text + 1, &end, 10);
    const int is_index = end != *text + 1 && index >= 0 && index < count;
    *text = end;
    return is_index ? index : -2;
}

int lesson_format(const lesson_numbers *numbers, const char *mention, size_t length,
                  char *out, size_t size)
{
    char copy[64];
    format how;
    if (length >= sizeof copy)
        return -1;
    memcpy(copy, mention, length);
    copy[length] = '\0';
    char *colon = strchr(copy, ':');
    if (colon != NULL)
        *colon = '\0';
    if (!read_format(colon ? colon + 1 : "", &how))
        return -1;
    const lesson_entry *entry = find(numbers, copy, strcspn(copy, "."));
    if (entry == NULL)
        return -1;
    if (entry->is_text)
        return snprintf(out, size, "%s", numbers->text);

    const char *rest = copy + strcspn(copy, ".");
    const double *values = numbers->values + entry->first;
    int64_t row = entry->num_axes == 2 ? read_index(&rest, entry->rows) : 0;
    int64_t column = entry->num_axes >= 1 ? read_index(&rest, entry->cols) : 0;
    if (row < 0 || column == -2 || *rest != '\0')
        return -1;
    values += row * entry->cols;
    return column < 0 ? format_row(entry, values, how, out, size)
                      : format_value(entry, values[column], how, out, size);
}

static json_object *value_json(const lesson_entry *entry, double value)
{
    cli_number number;
    if (entry->is_integer)
        return json_object_new_int64((int64_t)value);
    return json_object_new_double_s(value, entry->is_float
                                               ? cli_float(&number, (float)value)
                                               : cli_double(&number, value));
}

static json_object *row_json(const lesson_entry *entry, const double *values)
{
    json_object *row = json_object_new_array();
    for (int64_t i = 0; i < entry->cols; i++)
        (void)json_object_array_add(row, value_json(entry, values[i]));
    return row;
}

json_object *lesson_numbers_json(const lesson_numbers *numbers)
{
    json_object *object = json_object_new_object();
    for (int64_t i = 0; i < numbers->num_entries; i++) {
        const lesson_entry *entry = &numbers->entries[i];
        const double *values = numbers->values + entry->first;
        json_object *value = NULL;
        if (entry->is_text)
            value = json_object_new_string(numbers->text);
        else if (entry->num_axes == 0)
            value = value_json(entry, values[0]);
        else if (entry->num_axes == 1)
            value = row_json(entry, values);
        else {
            value = json_object_new_array();
            for (int64_t t = 0; t < entry->rows; t++)
                (void)json_object_array_add(value,
                                            row_json(entry, values + t * entry->cols));
        }
        (void)json_object_object_add(object, entry->name, value);
    }
    return object;
}
