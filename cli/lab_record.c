/* SPDX-License-Identifier: MIT
 *
 * lab_record.c - train.json: what a run learned from, how it went and how fast
 */
#include "lab_record.h"

#include "lab_store.h"
#include "names.h"

#include "lab/matmul.h"

#include <json-c/json_util.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_lab_record_release(cli_lab_record *record)
{
    free(record->entries);
    *record = (cli_lab_record){.count = 0};
}

int cli_lab_record_add(cli_lab_record *record, int64_t step, double loss)
{
    if (record->count == record->room) {
        const int64_t room = record->room > 0 ? 2 * record->room : 64;
        cli_lab_entry *larger =
            realloc(record->entries, (size_t)room * sizeof *record->entries);
        if (larger == NULL)
            return 0;
        record->entries = larger;
        record->room = room;
    }
    record->entries[record->count++] = (cli_lab_entry){step, loss};
    return 1;
}

static double number_in(json_object *object, const char *key)
{
    json_object *value;
    if (!json_object_object_get_ex(object, key, &value) ||
        !(json_object_is_type(value, json_type_double) ||
          json_object_is_type(value, json_type_int)))
        return NAN;
    return json_object_get_double(value);
}

/* NULL: not there, or no text. */
static const char *text_in(json_object *object, const char *key)
{
    json_object *value;
    if (!json_object_object_get_ex(object, key, &value) ||
        !json_object_is_type(value, json_type_string))
        return NULL;
    return json_object_get_string(value);
}

static void read_from(cli_lab_record *record, json_object *file)
{
    json_object *value;
    const char *hash = text_in(file, "from_sha256");
    record->knows_from =
        json_object_object_get_ex(file, "from_sha256", &value) &&
        (value == NULL ||
         (hash != NULL && strlen(hash) + 1 == sizeof record->from_sha256));
    (void)snprintf(record->from_sha256, sizeof record->from_sha256, "%s",
                   record->knows_from && hash != NULL ? hash : "");
}

static double at_least_0(double value)
{
    return value > 0 && value < 1e18 ? value : 0;
}

void cli_lab_record_read(cli_lab_record *record, const char *path, int64_t step)
{
    json_object *file = json_object_from_file(path), *log;
    const char *schema = text_in(file, "schema");
    if (schema != NULL && strcmp(schema, CLI_LAB_TRAIN_SCHEMA) == 0 &&
        json_object_object_get_ex(file, "log", &log) &&
        json_object_is_type(log, json_type_array)) {
        read_from(record, file);
        record->seconds = at_least_0(number_in(file, "seconds"));
        record->threads = (int64_t)at_least_0(number_in(file, "threads"));
        record->memory = (int64_t)at_least_0(number_in(file, "memory"));
        record->peak_memory = (int64_t)at_least_0(number_in(file, "peak_memory"));
        for (size_t i = 0; i < json_object_array_length(log); i++) {
            json_object *entry = json_object_array_get_idx(log, i);
            const double at = number_in(entry, "step"), loss = number_in(entry, "loss");
            if (at >= 1 && at <= (double)step && isfinite(loss))
                (void)cli_lab_record_add(record, (int64_t)at, loss);
        }
    }
    (void)json_object_put(file);
}

double cli_lab_record_speed(const cli_lab_record *record, const lab_state *state)
{
    const double tokens =
        (double)state->step * state->config.batch * state->config.length;
    return record->seconds > 0 ? tokens / record->seconds : 0;
}

static json_object *versions(void)
{
    json_object *object = json_object_new_object();
    pe_isa isa = PE_ISA_SCALAR;
    const int number = pe_version_number();
    char text[32];
    (void)snprintf(text, sizeof text, "%d.%d.%d", number / 10000, number / 100 % 100,
                   number % 100);
    (void)cli_isa_choose(PE_ISA_AUTO, &isa);
    cli_json_set_text(object, "posenc", text);
    cli_json_set_text(object, "blas", lab_matmul_name());
    cli_json_set_text(object, "isa", pe_isa_name(isa));
    return object;
}

json_object *cli_lab_record_json(const cli_lab_record *record, const lab_state *state,
                                 const lab_corpus *corpus)
{
    json_object *object = cli_json_start(CLI_LAB_TRAIN_SCHEMA);
    json_object *text = json_object_new_object(), *log = json_object_new_array();
    cli_lab_json_config(object, &state->config);
    cli_json_set_text(text, "name", corpus->name);
    cli_json_set_text(text, "sha256", corpus->sha256);
    cli_json_set_integer(text, "train_bytes", corpus->train_size);
    cli_json_set_integer(text, "validation_bytes", corpus->validation_size);
    (void)json_object_object_add(object, "text", text);
    if (record->knows_from)
        (void)json_object_object_add(object, "from_sha256",
                                     record->from_sha256[0] == '\0'
                                         ? NULL
                                         : json_object_new_string(record->from_sha256));
    (void)json_object_object_add(object, "versions", versions());
    cli_json_set_integer(object, "num_weights", state->layout.num_weights);
    cli_json_set_integer(object, "step", state->step);
    (void)json_object_object_add(
        object, "finished",
        json_object_new_boolean(state->step == state->config.steps));
    if (state->step > 0)
        cli_json_set_number(object, "loss", state->loss_average);
    for (int64_t i = 0; i < record->count; i++) {
        json_object *entry = json_object_new_object();
        cli_json_set_integer(entry, "step", record->entries[i].step);
        cli_json_set_number(entry, "loss", record->entries[i].loss);
        (void)json_object_array_add(log, entry);
    }
    (void)json_object_object_add(object, "log", log);
    cli_json_set_number(object, "seconds", record->seconds);
    cli_json_set_number(object, "tokens_per_second",
                        cli_lab_record_speed(record, state));
    cli_json_set_integer(object, "threads", record->threads);
    cli_json_set_integer(object, "memory", record->memory);
    cli_json_set_integer(object, "peak_memory", record->peak_memory);
    return object;
}
