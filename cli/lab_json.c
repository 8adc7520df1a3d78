/* SPDX-License-Identifier: MIT
 *
 * lab_json.c - results of the lab as JSON, schema posenc.lab/1
 */
#include "lab_json.h"

#include "file_out.h"

#include <string.h>

static json_object *settings_json(const lab_settings *settings)
{
    json_object *object = json_object_new_object();
    for (size_t i = 0; i < lab_num_fields; i++) {
        const lab_field *field = &lab_fields[i];
        const char *at = (const char *)settings + field->offset;
        int64_t integer;
        double number;
        if (field->type == LAB_FIELD_TEXT) {
            cli_json_set_text(object, field->name, at);
        } else if (field->type == LAB_FIELD_INTEGER) {
            memcpy(&integer, at, sizeof integer);
            cli_json_set_integer(object, field->name, integer);
        } else {
            memcpy(&number, at, sizeof number);
            cli_json_set_number(object, field->name, number);
        }
    }
    return object;
}

static json_object *result_json(const lab_result *r, int with_positions)
{
    json_object *object = json_object_new_object();
    cli_json_set_text(object, "method", r->method);
    (void)json_object_object_add(object, "seed", json_object_new_uint64(r->seed));
    cli_json_set_text(object, "mode", r->mode);
    cli_json_set_number(object, "multiple", r->multiple);
    cli_json_set_text(object, "windows", r->slide ? "slide" : "nonoverlap");
    cli_json_set_number(object, "nll", r->nll);
    if (with_positions)
        cli_json_numbers(object, "by_position", r->by_position, r->num_blocks);
    return object;
}

static json_object *timing_json(const lab_timing *t)
{
    json_object *object = json_object_new_object();
    cli_json_set_text(object, "method", t->method);
    (void)json_object_object_add(object, "seed", json_object_new_uint64(t->seed));
    cli_json_set_text(object, "what", t->what);
    cli_json_set_number(object, "multiple", t->multiple);
    cli_json_set_integer(object, "tokens", t->tokens);
    cli_json_set_number(object, "seconds", t->seconds);
    cli_json_set_integer(object, "memory", t->memory);
    cli_json_set_integer(object, "threads", t->threads);
    cli_json_set_text(object, "isa", t->isa);
    cli_json_set_text(object, "blas", t->blas);
    return object;
}

json_object *cli_lab_json(const lab_results *results, int with_positions)
{
    json_object *root = cli_json_start(LAB_SCHEMA);
    json_object *rows = json_object_new_array(), *timing = json_object_new_array();
    (void)json_object_object_add(root, "settings", settings_json(&results->settings));
    (void)json_object_object_add(root, "results", rows);
    (void)json_object_object_add(root, "timing", timing);
    for (int64_t i = 0; i < results->count; i++)
        (void)json_object_array_add(rows,
                                    result_json(&results->items[i], with_positions));
    for (int64_t i = 0; i < results->num_timings; i++)
        (void)json_object_array_add(timing, timing_json(&results->timings[i]));
    return root;
}

int cli_lab_save_json(json_object *object, const char *path)
{
    const char *text = json_object_to_json_string_ext(
        object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                    JSON_C_TO_STRING_NOSLASHESCAPE);
    cli_file_out out;
    int status = text == NULL ? cli_fail(CLI_FAILED, "out of memory")
                              : cli_file_create(&out, path, 0);
    if (status == CLI_DONE) {
        status = cli_file_write(&out, text, strlen(text));
        if (status == CLI_DONE)
            status = cli_file_write(&out, "\n", 1);
        if (status == CLI_DONE)
            status = cli_file_commit(&out);
        cli_file_discard(&out);
    }
    (void)json_object_put(object);
    return status;
}
