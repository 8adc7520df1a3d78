/* SPDX-License-Identifier: MIT
 *
 * report.h - numbers and JSON on stdout
 *
 * Every number reads back to the same bits: the fewest digits that do. */
#ifndef POSENC_CLI_REPORT_H
#define POSENC_CLI_REPORT_H

#include "cli.h"

#include <json-c/json_object.h>

typedef struct cli_number {
    char text[32];
} cli_number;

/* "%.15g" to "%.17g", and "%.6g" to "%.9g": the shortest that reads back equal. */
const char *cli_double(cli_number *out, double value);
const char *cli_float(cli_number *out, float value);

/* Members; the ones that may be unset are left out when zero or NULL. */
void cli_json_text(json_object *object, const char *key, const char *value);
void cli_json_integer(json_object *object, const char *key, int64_t value);
void cli_json_number(json_object *object, const char *key, double value);
void cli_json_flag(json_object *object, const char *key, int value);
void cli_json_set_text(json_object *object, const char *key, const char *value);
void cli_json_set_integer(json_object *object, const char *key, int64_t value);
void cli_json_set_number(json_object *object, const char *key, double value);
void cli_json_numbers(json_object *object, const char *key, const double *values,
                      int64_t count);
json_object *cli_json_floats(const float *values, int64_t count);

/* {"schema": schema} to add to. */
json_object *cli_json_start(const char *schema);

/* Prints the object on stdout and releases it.  Returns CLI_DONE; whether it could be
 * written is cli_finish_output's to say. */
int cli_json_print(json_object *object);

/* Closes stdout.  Returns code, or CLI_FAILED in place of CLI_DONE when something could
 * not be written; says so, except to a reader that has gone away. */
int cli_finish_output(int code);

#endif /* POSENC_CLI_REPORT_H */
