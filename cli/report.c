/* SPDX-License-Identifier: MIT
 *
 * report.c - numbers and JSON on stdout
 *
 * JSON has no NaN and no infinity: such a value becomes null. */
#include "report.h"

#include "terminal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cli_double(cli_number *out, double value)
{
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(out->text, sizeof out->text, "%.*g", digits, value);
        if (strtod(out->text, NULL) == value)
            break;
    }
    return out->text;
}

const char *cli_float(cli_number *out, float value)
{
    for (int digits = 6; digits <= 9; digits++) {
        (void)snprintf(out->text, sizeof out->text, "%.*g", digits, (double)value);
        if (strtof(out->text, NULL) == value)
            break;
    }
    return out->text;
}

static json_object *json_number(double value)
{
    cli_number number;
    return isfinite(value) ? json_object_new_double_s(value, cli_double(&number, value))
                           : NULL;
}

static void set(json_object *object, const char *key, json_object *value)
{
    (void)json_object_object_add(object, key, value);
}

void cli_json_set_text(json_object *object, const char *key, const char *value)
{
    set(object, key, value ? json_object_new_string(value) : NULL);
}

void cli_json_set_integer(json_object *object, const char *key, int64_t value)
{
    set(object, key, json_object_new_int64(value));
}

void cli_json_set_number(json_object *object, const char *key, double value)
{
    set(object, key, json_number(value));
}

void cli_json_text(json_object *object, const char *key, const char *value)
{
    if (value != NULL)
        cli_json_set_text(object, key, value);
}

void cli_json_integer(json_object *object, const char *key, int64_t value)
{
    if (value != 0)
        cli_json_set_integer(object, key, value);
}

void cli_json_number(json_object *object, const char *key, double value)
{
    if (value != 0)
        cli_json_set_number(object, key, value);
}

void cli_json_flag(json_object *object, const char *key, int value)
{
    if (value)
        set(object, key, json_object_new_boolean(1));
}

void cli_json_numbers(json_object *object, const char *key, const double *values,
                      int64_t count)
{
    if (values == NULL)
        return;
    json_object *array = json_object_new_array();
    for (int64_t i = 0; i < count; i++)
        (void)json_object_array_add(array, json_number(values[i]));
    set(object, key, array);
}

json_object *cli_json_floats(const float *values, int64_t count)
{
    json_object *array = json_object_new_array();
    for (int64_t i = 0; i < count; i++)
        (void)json_object_array_add(array, json_number((double)values[i]));
    return array;
}

json_object *cli_json_start(const char *schema)
{
    json_object *object = json_object_new_object();
    cli_json_set_text(object, "schema", schema);
    return object;
}

/* Of a failed puts, whose text may leave nothing in the buffer for fclose to fail on. */
static int print_errno;

/* JSON leaves control characters beyond ASCII, and those that turn the direction of
 * writing, as they are: here they come as \uNNNN, and a stray byte as the character that
 * stands for what is none.  A line break is one of the layout. */
static int put_json(const char *text)
{
    const char *end = text + strlen(text);
    size_t bytes;
    int failed = 0;
    for (const char *from = text; text < end && !failed; text += bytes) {
        uint32_t code;
        if (*text == '\n' ||
            !cli_is_unsafe(text, (size_t)(end - text), &code, &bytes)) {
            bytes = *text == '\n' ? 1 : bytes;
            if (text + bytes < end)
                continue;
            failed = fwrite(from, 1, (size_t)(end - from), stdout) == 0;
            continue;
        }
        (void)fwrite(from, 1, (size_t)(text - from), stdout);
        from = text + bytes;
        if (bytes == 1 && code >= 0x80)
            code = 0xfffd;
        if (code < 0x10000)
            failed = printf("\\u%04x", (unsigned)code) < 0;
        else
            failed = printf("\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)),
                            (unsigned)(0xdc00 + (code & 0x3ff))) < 0;
    }
    return failed || putchar('\n') == EOF ? EOF : 0;
}

int cli_json_print(json_object *object)
{
    const char *text = json_object_to_json_string_ext(
        object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                    JSON_C_TO_STRING_NOSLASHESCAPE);
    errno = 0;
    if (text != NULL && put_json(text) == EOF)
        print_errno = errno;
    (void)json_object_put(object);
    return text != NULL ? CLI_DONE : cli_fail(CLI_FAILED, "out of memory");
}

int cli_finish_output(int code)
{
    errno = 0;
    int failed = ferror(stdout);
    if (fclose(stdout) == 0 && !failed)
        return code;
    const int reason = errno ? errno : print_errno;
    if (reason == EPIPE || code != CLI_DONE)
        return code != CLI_DONE ? code : CLI_FAILED;
    return cli_fail(CLI_FAILED, "standard output could not be written: %s",
                    reason ? strerror(reason) : "write error");
}
