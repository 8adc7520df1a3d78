/* SPDX-License-Identifier: MIT
 *
 * lesson_numbers.h - the numbers of a topic, by name
 *
 * A topic computes and names them; its text, in either language, only mentions the
 * names.  Nothing is allocated: one store holds the largest topic. */
#ifndef POSENC_CLI_LESSON_NUMBERS_H
#define POSENC_CLI_LESSON_NUMBERS_H

#include "cli.h"

#include <json-c/json_object.h>

/* A space at which no line is broken; short rows come out with it. */
#define LESSON_TIE '~'

enum { LESSON_MAX_ENTRIES = 48, LESSON_MAX_VALUES = 1024 };

typedef struct lesson_entry {
    const char *name; /* a string literal */
    int32_t is_float, is_integer, is_text;
    int32_t num_axes; /* 0: one value; 1: a row of cols; 2: rows of cols */
    int64_t rows, cols;
    int64_t first; /* of values */
} lesson_entry;

typedef struct lesson_numbers {
    lesson_entry entries[LESSON_MAX_ENTRIES];
    double values[LESSON_MAX_VALUES];
    char text[256]; /* the one text that a topic may have: a message */
    int64_t num_entries, num_values;
} lesson_numbers;

void lesson_clear(lesson_numbers *numbers);

void lesson_set(lesson_numbers *numbers, const char *name, double value);
void lesson_set_float(lesson_numbers *numbers, const char *name, float value);
void lesson_set_integer(lesson_numbers *numbers, const char *name, int64_t value);
void lesson_set_text(lesson_numbers *numbers, const char *name, const char *text);
void lesson_set_row(lesson_numbers *numbers, const char *name, const double *values,
                    int64_t cols);
void lesson_set_rows(lesson_numbers *numbers, const char *name, const double *values,
                     int64_t rows, int64_t cols);
/* rows 0: a row of cols. */
void lesson_set_floats(lesson_numbers *numbers, const char *name, const float *values,
                       int64_t rows, int64_t cols);

/* Writes what {mention} stands for, and returns its length; -1 if there is no such
 * number.  A mention is NAME, NAME.COLUMN, NAME.ROW, or NAME.ROW.COLUMN, then perhaps a
 * format: ":DIGITS" after the point (3 if not given), "WIDTH.DIGITS", or "g", the
 * fewest digits that read back equal.  A row comes out as (a, b, c). */
int lesson_format(const lesson_numbers *numbers, const char *mention, size_t length,
                  char *out, size_t size);

/* {"name": value or array, ...} in the order in which they were set. */
json_object *lesson_numbers_json(const lesson_numbers *numbers);

#endif /* POSENC_CLI_LESSON_NUMBERS_H */
