/* SPDX-License-Identifier: MIT
 *
 * main.c - posenc-vectors [--hf-f32] FILE.json...: runs golden cases through the API
 *
 * Prints a line per failing case and a count.  Exit 0: none failed; 1: some failed;
 * 2: a file could not be read or is not in the format.  --hf-f32 takes rope_freqs and
 * rope_cache files, in this order, and compares with what Hugging Face's float code
 * printed. */
#include "case.h"
#include "hf_f32.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct family_kinds {
    const char *family;
    const vec_kind *kinds;
} family_kinds;

static const family_kinds exact_families[] = {
    {"rope_freqs", vec_rope_freqs_kinds},
    {"rope_cache", vec_rope_cache_kinds},
    {"rope_apply", vec_rope_apply_kinds},
    {"mrope", vec_mrope_kinds},
    {"attn_scale", vec_attn_scale_kinds},
    {"alibi", vec_alibi_kinds},
    {"lesson", vec_lesson_kinds},
    {"sinusoidal", vec_sinusoidal_kinds},
    {"learned", vec_learned_kinds},
    {"attention", vec_attention_kinds},
    {NULL, NULL},
};

static const family_kinds hf_families[] = {
    {"rope_freqs", vec_hf_freqs_kinds},
    {"rope_cache", vec_hf_cache_kinds},
    {NULL, NULL},
};

static const family_kinds *families = exact_families;

struct counts {
    int passed, failed;
};

static vec_check find_check(const char *family, const char *kind)
{
    for (const family_kinds *f = families; f->family != NULL; f++)
        if (strcmp(f->family, family) == 0)
            for (const vec_kind *k = f->kinds; k->check != NULL; k++)
                if (strcmp(k->kind, kind) == 0)
                    return k->check;
    return NULL;
}

static const char *string_member(json_object *parent, const char *name)
{
    json_object *value = NULL;

    if (!json_object_object_get_ex(parent, name, &value) ||
        !json_object_is_type(value, json_type_string))
        return NULL;
    return json_object_get_string(value);
}

static json_object *object_member(json_object *parent, const char *name)
{
    json_object *value = NULL;

    json_object_object_get_ex(parent, name, &value);
    return json_object_is_type(value, json_type_object) ? value : NULL;
}

static void run_case(const char *family, json_object *record, struct counts *counts)
{
    vec_case c = {
        .id = string_member(record, "id"),
        .kind = string_member(record, "kind"),
        .spec = object_member(record, "spec"),
        .inputs = object_member(record, "inputs"),
        .expect = object_member(record, "expect"),
        .tolerance = object_member(record, "tolerance"),
    };
    vec_check check = find_check(family, c.kind);

    if (check != NULL) {
        if (vec_run(&c, check) == 0)
            counts->passed++;
        else
            counts->failed++;
    } else {
        printf("FAIL %s: expected a known kind, got %s of family %s\n", c.id, c.kind,
               family);
        counts->failed++;
    }
}

/* Whether record has the shape that run_case relies on. */
static int is_case(json_object *record)
{
    return json_object_is_type(record, json_type_object) &&
           string_member(record, "id") != NULL && string_member(record, "kind") != NULL;
}

static int malformed(const char *path, const char *what)
{
    fprintf(stderr, "posenc-vectors: %s: %s\n", path, what);
    return -1;
}

static int run_object(const char *path, json_object *file, struct counts *counts)
{
    const char *family = string_member(file, "family");
    json_object *cases = NULL, *count = NULL;

    if (family == NULL)
        return malformed(path, "not a vector file: family is missing or not a string");
    if (!json_object_object_get_ex(file, "cases", &cases) ||
        !json_object_is_type(cases, json_type_array))
        return malformed(path, "not a vector file: cases is missing or not a list");
    size_t num_cases = json_object_array_length(cases);
    if (json_object_object_get_ex(file, "count", &count) &&
        json_object_get_int64(count) != (int64_t)num_cases)
        fprintf(stderr, "posenc-vectors: %s: count is %lld, but there are %zu cases\n",
                path, (long long)json_object_get_int64(count), num_cases);
    for (size_t i = 0; i < num_cases; i++)
        if (!is_case(json_object_array_get_idx(cases, i)))
            return malformed(path, "not a vector file: a case lacks its id or kind");
    for (size_t i = 0; i < num_cases; i++)
        run_case(family, json_object_array_get_idx(cases, i), counts);
    return 0;
}

static char *read_file(const char *path, size_t *size)
{
    enum { LIMIT = 1 << 28 };
    FILE *stream = fopen(path, "rb");
    char *text = NULL;
    long length;

    if (stream == NULL)
        return NULL;
    if (fseek(stream, 0, SEEK_END) == 0 && (length = ftell(stream)) >= 0 &&
        length <= LIMIT && fseek(stream, 0, SEEK_SET) == 0 &&
        (text = malloc((size_t)length + 1)) != NULL) {
        *size = fread(text, 1, (size_t)length, stream);
        text[*size] = '\0';
    }
    fclose(stream);
    return text;
}

static int run_file(const char *path, struct counts *counts)
{
    enum { DEPTH = 32 };
    size_t size = 0;
    char *text = read_file(path, &size);
    char message[160];
    int status;

    if (text == NULL)
        return malformed(path, "cannot be read");
    json_tokener *tokener = json_tokener_new_ex(DEPTH);
    if (tokener == NULL || size > INT32_MAX) {
        free(text);
        return malformed(path, "out of memory");
    }
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    /* With its final zero, so that a file that is cut off is an error. */
    json_object *file = json_tokener_parse_ex(tokener, text, (int)size + 1);
    enum json_tokener_error error = json_tokener_get_error(tokener);
    if (error != json_tokener_success || file == NULL) {
        snprintf(message, sizeof message, "malformed JSON at byte %zu: %s",
                 json_tokener_get_parse_end(tokener), json_tokener_error_desc(error));
        status = malformed(path, message);
    } else {
        status = run_object(path, file, counts);
    }
    json_object_put(file);
    json_tokener_free(tokener);
    free(text);
    return status;
}

int main(int argc, char **argv)
{
    struct counts counts = {0};
    int unread = 0, first = 1;

    if (argc > 1 && strcmp(argv[1], "--hf-f32") == 0) {
        families = hf_families;
        first = 2;
    }
    if (argc == first || argv[first][0] == '-') {
        fprintf(stderr, "usage: posenc-vectors [--hf-f32] FILE.json...\n");
        return 2;
    }
    for (int i = first; i < argc; i++)
        if (run_file(argv[i], &counts) != 0)
            unread = 1;
    if (families == hf_families)
        counts.failed += vec_hf_summary();
    /* Every kind is known; the third number stands for readers of the line. */
    printf("%d passed, %d failed, 0 skipped\n", counts.passed, counts.failed);
    return unread ? 2 : counts.failed > 0;
}
