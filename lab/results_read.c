/* SPDX-License-Identifier: MIT
 *
 * results_read.c - results.json files and folders of them
 *
 * What a file says is checked before it is kept: a results.json may have been made
 * anywhere, and a merged table must not rest on half of one. */
#include "mode.h"
#include "results.h"

#include <dirent.h>
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 16, MAX_BYTES = 1 << 28, MAX_BLOCKS = 1 << 20 };

typedef struct source { /* where messages say that something was read */
    const char *path;
    pe_error *error;
} source;

static pe_status fail_field(const source *from, const char *what, const char *must)
{
    return lab_fail(from->error, PE_E_FORMAT, "%.120s: %s must be %s", from->path, what,
                    must);
}

/* The value as it stands in the file, so that the message shows what to look for. */
static pe_status fail_value(const source *from, const char *what, json_object *value,
                            const char *must)
{
    return lab_fail(
        from->error, PE_E_FORMAT, "%.120s: %s is %.60s, must be %s", from->path, what,
        value != NULL ? json_object_to_json_string(value) : "missing", must);
}

static pe_status get_text(const source *from, json_object *object, const char *key,
                          char *out, size_t size)
{
    json_object *value = NULL;
    if (!json_object_object_get_ex(object, key, &value) ||
        !json_object_is_type(value, json_type_string) ||
        (size_t)json_object_get_string_len(value) >= size ||
        strlen(json_object_get_string(value)) !=
            (size_t)json_object_get_string_len(value))
        return fail_field(from, key, "a short text");
    for (const char *c = json_object_get_string(value); *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return fail_value(from, key, value, "without control characters");
    (void)snprintf(out, size, "%s", json_object_get_string(value));
    return PE_OK;
}

/* As lab_config_name writes it. */
static pe_status get_method(const source *from, json_object *object, char *out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789+,-.@_";
    const pe_status status = get_text(from, object, "method", out, LAB_NAME_SIZE);
    if (status != PE_OK || (out[0] != '\0' && out[strspn(out, letters)] == '\0'))
        return status;
    return fail_value(from, "method", json_object_object_get(object, "method"),
                      "lower-case letters, digits and + , - . @ _");
}

static pe_status get_mode(const source *from, json_object *object, char *out,
                          size_t size)
{
    lab_mode mode;
    pe_error error;
    const pe_status status = get_text(from, object, "mode", out, size);
    if (status != PE_OK || lab_mode_parse(&mode, out, &error) == PE_OK)
        return status;
    return fail_value(from, "mode", json_object_object_get(object, "mode"),
                      "one that lab eval knows");
}

static pe_status get_number(const source *from, json_object *object, const char *key,
                            double *out)
{
    json_object *value = NULL;
    if (!json_object_object_get_ex(object, key, &value) ||
        !(json_object_is_type(value, json_type_double) ||
          json_object_is_type(value, json_type_int)) ||
        !isfinite(json_object_get_double(value)))
        return fail_field(from, key, "a number");
    *out = json_object_get_double(value);
    return PE_OK;
}

/* From 0 to last. */
static pe_status get_integer(const source *from, json_object *object, const char *key,
                             int64_t last, int64_t *out)
{
    char must[64];
    json_object *value = NULL;
    (void)snprintf(must, sizeof must, "a whole number from 0 to %lld", (long long)last);
    if (!json_object_object_get_ex(object, key, &value) ||
        !json_object_is_type(value, json_type_int) ||
        json_object_get_int64(value) < 0 ||
        json_object_get_uint64(value) > (uint64_t)last)
        return fail_value(from, key, value, must);
    *out = json_object_get_int64(value);
    return PE_OK;
}

static pe_status get_seed(const source *from, json_object *object, uint64_t *out)
{
    json_object *value = NULL;
    if (!json_object_object_get_ex(object, "seed", &value) ||
        !json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
        return fail_value(from, "seed", value,
                          "a whole number from 0 to 18446744073709551615");
    *out = json_object_get_uint64(value);
    return PE_OK;
}

/* A number for JSON, whole for what is read: 2 and 2.0 are the same. */
static pe_status get_multiple(const source *from, json_object *object, double *out)
{
    const pe_status status = get_number(from, object, "multiple", out);
    if (status != PE_OK || (*out >= 1 && *out <= MAX_BLOCKS && *out == floor(*out)))
        return status;
    char must[64];
    (void)snprintf(must, sizeof must, "a whole number from 1 to %d", MAX_BLOCKS);
    return fail_value(from, "multiple", json_object_object_get(object, "multiple"),
                      must);
}

static pe_status read_settings(const source *from, json_object *object,
                               lab_settings *out)
{
    pe_status status = PE_OK;
    *out = (lab_settings){.layers = 0};
    for (size_t i = 0; i < lab_num_fields && status == PE_OK; i++) {
        const lab_field *field = &lab_fields[i];
        char *at = (char *)out + field->offset;
        int64_t integer = 0;
        double number = 0;
        if (field->type == LAB_FIELD_TEXT) {
            status = get_text(from, object, field->name, at, field->size);
        } else if (field->type == LAB_FIELD_INTEGER) {
            status = get_integer(from, object, field->name, INT32_MAX, &integer);
            memcpy(at, &integer, sizeof integer);
        } else {
            status = get_number(from, object, field->name, &number);
            memcpy(at, &number, sizeof number);
        }
    }
    return status;
}

static pe_status read_positions(const source *from, json_object *object,
                                lab_result *out)
{
    json_object *list = NULL;
    if (!json_object_object_get_ex(object, "by_position", &list))
        return PE_OK;
    if (!json_object_is_type(list, json_type_array) ||
        json_object_array_length(list) < 1 ||
        json_object_array_length(list) > MAX_BLOCKS)
        return fail_field(from, "by_position", "a list of numbers");
    out->num_blocks = (int32_t)json_object_array_length(list);
    out->by_position = malloc((size_t)out->num_blocks * sizeof *out->by_position);
    if (out->by_position == NULL)
        return lab_fail(from->error, PE_E_NO_MEMORY, "out of memory: %.120s",
                        from->path);
    for (int32_t i = 0; i < out->num_blocks; i++) {
        json_object *value = json_object_array_get_idx(list, (size_t)i);
        out->by_position[i] = json_object_get_double(value);
        if (!(json_object_is_type(value, json_type_double) ||
              json_object_is_type(value, json_type_int)) ||
            !isfinite(out->by_position[i]))
            return fail_field(from, "by_position", "a list of numbers");
    }
    return PE_OK;
}

static pe_status read_result(const source *from, json_object *object,
                             lab_results *results)
{
    lab_result r = {.slide = 0};
    char windows[16] = "";
    pe_status status = get_method(from, object, r.method);
    if (status == PE_OK)
        status = get_seed(from, object, &r.seed);
    if (status == PE_OK)
        status = get_mode(from, object, r.mode, sizeof r.mode);
    if (status == PE_OK)
        status = get_multiple(from, object, &r.multiple);
    if (status == PE_OK)
        status = get_text(from, object, "windows", windows, sizeof windows);
    if (status == PE_OK && strcmp(windows, "slide") != 0 &&
        strcmp(windows, "nonoverlap") != 0)
        status = fail_field(from, "windows", "nonoverlap or slide");
    if (status == PE_OK)
        status = get_number(from, object, "nll", &r.nll);
    if (status == PE_OK)
        status = read_positions(from, object, &r);
    r.slide = strcmp(windows, "slide") == 0;
    if (status == PE_OK)
        status = lab_results_add(results, &r, from->path, from->error);
    free(r.by_position);
    return status;
}

static pe_status read_timing(const source *from, json_object *object,
                             lab_results *results)
{
    lab_timing t = {.seed = 0};
    pe_status status = get_method(from, object, t.method);
    if (status == PE_OK)
        status = get_seed(from, object, &t.seed);
    if (status == PE_OK)
        status = get_text(from, object, "what", t.what, sizeof t.what);
    if (status == PE_OK)
        status = get_multiple(from, object, &t.multiple);
    if (status == PE_OK)
        status = get_integer(from, object, "tokens", INT64_MAX, &t.tokens);
    if (status == PE_OK)
        status = get_number(from, object, "seconds", &t.seconds);
    if (status == PE_OK)
        status = get_integer(from, object, "memory", INT64_MAX, &t.memory);
    if (status == PE_OK)
        status = get_integer(from, object, "threads", INT64_MAX, &t.threads);
    if (status == PE_OK)
        status = get_text(from, object, "isa", t.isa, sizeof t.isa);
    if (status == PE_OK)
        status = get_text(from, object, "blas", t.blas, sizeof t.blas);
    return status == PE_OK ? lab_results_add_timing(results, &t, from->error) : status;
}

static pe_status read_list(const source *from, json_object *root, const char *key,
                           pe_status (*read)(const source *, json_object *,
                                             lab_results *),
                           lab_results *results)
{
    json_object *list = NULL;
    pe_status status = PE_OK;
    if (!json_object_object_get_ex(root, key, &list) ||
        !json_object_is_type(list, json_type_array))
        return fail_field(from, key, "a list");
    for (size_t i = 0; i < json_object_array_length(list) && status == PE_OK; i++) {
        json_object *item = json_object_array_get_idx(list, i);
        status = json_object_is_type(item, json_type_object)
                     ? read(from, item, results)
                     : fail_field(from, key, "a list of objects");
    }
    return status;
}

static pe_status read_root(const source *from, json_object *root, lab_results *results)
{
    char schema[32] = "";
    json_object *object = NULL;
    lab_settings settings;
    if (!json_object_is_type(root, json_type_object))
        return fail_field(from, "JSON", "an object");
    pe_status status = get_text(from, root, "schema", schema, sizeof schema);
    if (status == PE_OK && strcmp(schema, LAB_SCHEMA) != 0)
        status = fail_field(from, "schema", LAB_SCHEMA);
    if (status != PE_OK)
        return status;
    if (!json_object_object_get_ex(root, "settings", &object) ||
        !json_object_is_type(object, json_type_object))
        return fail_field(from, "settings", "an object");
    status = read_settings(from, object, &settings);
    if (status == PE_OK && results->source[0] != '\0')
        status = lab_settings_match(&results->settings, results->source, &settings,
                                    from->path, from->error);
    if (status == PE_OK && results->source[0] == '\0') {
        results->settings = settings;
        (void)snprintf(results->source, sizeof results->source, "%s", from->path);
    }
    if (status == PE_OK)
        status = read_list(from, root, "results", read_result, results);
    return status == PE_OK ? read_list(from, root, "timing", read_timing, results)
                           : status;
}

static pe_status parse(const source *from, const char *text, size_t size,
                       lab_results *results)
{
    json_tokener *tokener = json_tokener_new_ex(MAX_DEPTH);
    if (tokener == NULL)
        return lab_fail(from->error, PE_E_NO_MEMORY, "out of memory: %.120s",
                        from->path);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    json_object *root = json_tokener_parse_ex(tokener, text, (int)size);
    const int is_whole = json_tokener_get_error(tokener) == json_tokener_success;
    const long long end = (long long)json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    const pe_status status =
        is_whole ? read_root(from, root, results)
                 : lab_fail(from->error, PE_E_FORMAT,
                            "%.120s: JSON is malformed or cut off at byte %lld",
                            from->path, end);
    (void)json_object_put(root);
    return status;
}

static pe_status fail_system(const source *from)
{
    return lab_fail(from->error, PE_E_IO, "%.160s: %s", from->path, strerror(errno));
}

static pe_status read_file(lab_results *results, const char *path, pe_error *error)
{
    const source from = {path, error};
    struct stat about;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &about) != 0) {
        const pe_status status = fail_system(&from);
        if (file != NULL)
            (void)fclose(file);
        return status;
    }
    if (results->opened != NULL)
        results->opened(path);
    const int is_fine = S_ISREG(about.st_mode) && about.st_size <= MAX_BYTES;
    const size_t size = is_fine ? (size_t)about.st_size : 0;
    char *text = malloc(size + 1);
    const size_t got = text != NULL ? fread(text, 1, size, file) : 0;
    pe_status status;
    if (!is_fine)
        status = fail_field(&from, "results", "a file of at most 256 MiB");
    else if (text == NULL || got != size)
        status = lab_fail(error, PE_E_IO, "%.160s: cannot be read whole", path);
    else
        status = parse(&from, text, size, results);
    free(text);
    (void)fclose(file);
    return status;
}

/* folder/name/results.json, or folder/results.json; 1 if it is there. */
static int results_path(char *out, size_t size, const char *folder, const char *name)
{
    struct stat about;
    const int n = name == NULL
                      ? snprintf(out, size, "%s/" LAB_RESULTS_FILE, folder)
                      : snprintf(out, size, "%s/%s/" LAB_RESULTS_FILE, folder, name);
    return n > 0 && (size_t)n < size && stat(out, &about) == 0;
}

static int compare_entries(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

pe_status lab_results_read(lab_results *results, const char *path, pe_error *error)
{
    const source from = {path, error};
    struct stat about;
    char file[1024];
    if (stat(path, &about) != 0)
        return fail_system(&from);
    if (!S_ISDIR(about.st_mode))
        return read_file(results, path, error);
    if (results_path(file, sizeof file, path, NULL))
        return read_file(results, file, error);
    struct dirent **entries = NULL;
    const int count = scandir(path, &entries, NULL, compare_entries);
    if (count < 0)
        return fail_system(&from);
    pe_status status = PE_OK;
    int found = 0;
    for (int i = 0; i < count; i++) {
        const int is_run = entries[i]->d_name[0] != '.' &&
                           results_path(file, sizeof file, path, entries[i]->d_name);
        if (is_run && status == PE_OK)
            status = read_file(results, file, error);
        found += is_run;
        free(entries[i]);
    }
    free(entries);
    if (status == PE_OK && found == 0)
        return lab_fail(error, PE_E_NOT_FOUND,
                        "%.160s: no " LAB_RESULTS_FILE " there or in a folder of it",
                        path);
    return status;
}
