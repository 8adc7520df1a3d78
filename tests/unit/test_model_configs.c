/* SPDX-License-Identifier: MIT
 *
 * test_model_configs.c - tests/models: what configurations resolve to
 *
 * NAME.json is a config.json, NAME.expect what it means, or the error that it gets.
 * Specs are compared as they are, and through the plan that they make; every key of an
 * expectation must be known here, so that a misspelt one cannot pass. */
#define _DEFAULT_SOURCE /* scandir */

#include "posenc/model.h"

#include <dirent.h>
#include <json-c/json.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *case_name;
static int num_failed; /* all cases are tried */

#define FAIL(...)                   \
  do {                              \
    print_error("%s: ", case_name); \
    print_error(__VA_ARGS__);       \
    print_error("\n");              \
    num_failed++;                   \
    return;                         \
  } while (0)

static void same_text(const char *what, const char *got, const char *want)
{
    if (got == NULL || strcmp(got, want) != 0)
        FAIL("%s is \"%s\", want \"%s\"", what, got == NULL ? "(null)" : got, want);
}

static void same_number(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-13 * fabs(want)))
        FAIL("%s is %.17g, want %.17g", what, got, want);
}

static const char *name_of(int32_t value, const char *const *names, size_t num)
{
    return value >= 0 && (size_t)value < num ? names[value] : "?";
}

#define NAME(value, names) name_of(value, names, sizeof(names) / sizeof((names)[0]))

static const char *const pairings[] = {"", "half-split", "interleaved"};
static const char *const rope_types[] = {"default", "linear",       "ntk",
                                         "dynamic", "yarn",         "longrope",
                                         "llama3",  "proportional", "custom"};
static const char *const axis_maps[] = {"single", "chunked", "interleaved",
                                        "imrope", "ernie",   "split"};
static const char *const forms[] = {"", "causal", "bidirectional", "key-only"};
static const char *const bias_types[] = {"", "alibi", "t5"};
static const char *const dtypes[] = {"", "f32", "f16", "bf16"};
static const char *const orders[] = {"", "sin-cos-interleaved", "sin-cos-halves"};
static const char *const sources[] = {"", "stated", "derived", "defaulted",
                                      "conflicting"};

static void check_inv_freq(const pe_rope_info *info, json_object *want)
{
    json_object_object_foreach(want, index, value)
    {
        int pair = atoi(index);
        if (pair >= info->num_pairs)
            FAIL("pair %d is not there", pair);
        same_number("inv_freq", info->inv_freq[pair], json_object_get_double(value));
    }
}

/* 1: the key was one of the plan's. */
static int check_plan(const pe_rope_info *info, const char *key, json_object *want)
{
    const double number = json_object_get_double(want);
    if (strcmp(key, "attention_factor") == 0) {
        same_number(key, info->attention_factor, number);
    } else if (strcmp(key, "softmax_factor") == 0) {
        same_number(key, info->softmax_factor, number);
    } else if (strcmp(key, "ramp") == 0) {
        same_number("ramp_low", info->ramp_low,
                    json_object_get_double(json_object_array_get_idx(want, 0)));
        same_number("ramp_high", info->ramp_high,
                    json_object_get_double(json_object_array_get_idx(want, 1)));
    } else if (strcmp(key, "inv_freq") == 0) {
        check_inv_freq(info, want);
    } else {
        return 0;
    }
    return 1;
}

static void check_rope_key(const pe_rope_spec *spec, const char *key, json_object *want)
{
    const double number = json_object_get_double(want);
    const char *text = json_object_get_string(want);
    if (strcmp(key, "pairing") == 0)
        same_text(key, NAME(spec->pairs.pairing, pairings), text);
    else if (strcmp(key, "out_pairing") == 0)
        same_text(key, NAME(spec->pairs.out_pairing, pairings), text);
    else if (strcmp(key, "rope_type") == 0)
        same_text(key, NAME(spec->freqs.rope_type, rope_types), text);
    else if (strcmp(key, "axis_map") == 0)
        same_text(key, NAME(spec->axes.map, axis_maps), text);
    else if (strcmp(key, "head_dim") == 0)
        same_number(key, spec->head_dim, number);
    else if (strcmp(key, "rotary_dim") == 0)
        same_number(key, spec->pairs.rotary_dim, number);
    else if (strcmp(key, "rotary_start") == 0)
        same_number(key, spec->pairs.rotary_start, number);
    else if (strcmp(key, "rope_theta") == 0)
        same_number(key, spec->freqs.rope_theta, number);
    else if (strcmp(key, "factor") == 0)
        same_number(key, spec->freqs.factor, number);
    else if (strcmp(key, "original_max_position_embeddings") == 0)
        same_number(key, (double)spec->freqs.original_max_position_embeddings, number);
    else if (strcmp(key, "mrope_section") == 0)
        for (size_t i = 0; i < json_object_array_length(want); i++)
            same_number(key, spec->axes.section[i],
                        json_object_get_double(json_object_array_get_idx(want, i)));
    else
        FAIL("expectation rope.%s is not known", key);
}

static int needs_plan(json_object *want)
{
    static const char *const keys[] = {"attention_factor", "softmax_factor", "ramp",
                                       "inv_freq"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (json_object_object_get_ex(want, keys[i], NULL))
            return 1;
    }
    return 0;
}

static void check_rope(const pe_model *model, int32_t index, json_object *want)
{
    pe_rope_spec spec = {.struct_size = sizeof spec};
    pe_rope *rope = NULL;
    pe_error error;
    if (pe_model_rope_spec(model, index, &spec, &error) != PE_OK)
        FAIL("rope %d: %s", index, error.message);
    if (needs_plan(want) && pe_rope_create(&rope, &spec, NULL, &error) != PE_OK)
        FAIL("rope %d makes no plan: %s", index, error.message);
    json_object_object_foreach(want, key, value)
    {
        if (rope == NULL || !check_plan(pe_rope_get_info(rope), key, value))
            check_rope_key(&spec, key, value);
    }
    pe_rope_destroy(rope);
}

static void check_bias(const pe_model *model, int32_t index, json_object *want)
{
    pe_bias_spec spec = {.struct_size = sizeof spec};
    pe_error error;
    if (pe_model_bias_spec(model, index, &spec, &error) != PE_OK)
        FAIL("bias %d: %s", index, error.message);
    json_object_object_foreach(want, key, value)
    {
        const double number = json_object_get_double(value);
        const char *text = json_object_get_string(value);
        if (strcmp(key, "type") == 0)
            same_text(key, NAME(spec.type, bias_types), text);
        else if (strcmp(key, "form") == 0)
            same_text(key, NAME(spec.form, forms), text);
        else if (strcmp(key, "round_to") == 0)
            same_text(key, NAME(spec.round_to, dtypes), text);
        else if (strcmp(key, "num_heads") == 0)
            same_number(key, spec.num_heads, number);
        else if (strcmp(key, "max_bias") == 0)
            same_number(key, spec.max_bias, number);
        else if (strcmp(key, "scale") == 0)
            same_number(key, spec.scale, number);
        else if (strcmp(key, "num_buckets") == 0)
            same_number(key, spec.num_buckets, number);
        else if (strcmp(key, "max_distance") == 0)
            same_number(key, (double)spec.max_distance, number);
        else
            FAIL("expectation bias.%s is not known", key);
    }
}

static void check_sinusoidal(const pe_model *model, json_object *want)
{
    pe_sinusoidal_spec spec = {.struct_size = sizeof spec};
    pe_error error;
    if (pe_model_sinusoidal_spec(model, &spec, &error) != PE_OK)
        FAIL("%s", error.message);
    json_object_object_foreach(want, key, value)
    {
        const double number = json_object_get_double(value);
        if (strcmp(key, "order") == 0)
            same_text(key, NAME(spec.order, orders), json_object_get_string(value));
        else if (strcmp(key, "model_dim") == 0)
            same_number(key, spec.model_dim, number);
        else if (strcmp(key, "downscale_freq_shift") == 0)
            same_number(key, spec.downscale_freq_shift, number);
        else if (strcmp(key, "embed_scale") == 0)
            same_number(key, spec.embed_scale, number);
        else if (strcmp(key, "has_padding") == 0)
            same_number(key, spec.has_padding, number);
        else if (strcmp(key, "padding_position") == 0)
            same_number(key, (double)spec.padding_position, number);
        else
            FAIL("expectation sinusoidal.%s is not known", key);
    }
}

static void check_list(const pe_model *model, const char *what, int32_t have,
                       json_object *want,
                       void (*check)(const pe_model *, int32_t, json_object *))
{
    if ((size_t)have != json_object_array_length(want))
        FAIL("%d specs of %s, want %zu", have, what, json_object_array_length(want));
    for (int32_t i = 0; i < have; i++)
        check(model, i, json_object_array_get_idx(want, (size_t)i));
}

static void check_notes(const pe_model *model, json_object *want)
{
    for (size_t i = 0; i < json_object_array_length(want); i++) {
        const char *text = json_object_get_string(json_object_array_get_idx(want, i));
        int found = 0;
        for (int32_t n = 0; n < pe_model_get_info(model)->num_notes; n++)
            found |= strstr(pe_model_note(model, n)->text, text) != NULL;
        if (!found)
            FAIL("no note says \"%s\"", text);
    }
}

static void check_fields(const pe_model *model, json_object *want, int by_source)
{
    json_object_object_foreach(want, name, value)
    {
        const pe_field *field = pe_model_find_field(model, name);
        if (field == NULL)
            FAIL("no field %s", name);
        same_text(name, by_source ? NAME(field->source, sources) : field->value,
                  json_object_get_string(value));
    }
}

static double count_turning(const pe_model *model)
{
    double count = 0;
    for (int32_t i = 0; i < pe_model_get_info(model)->num_sites; i++)
        count += pe_model_site(model, i)->rope >= 0;
    return count;
}

static double count_warnings(const pe_model *model)
{
    double count = 0;
    for (int32_t i = 0; i < pe_model_get_info(model)->num_notes; i++)
        count += pe_model_note(model, i)->level == PE_WARNING;
    return count;
}

static void check_model(const pe_model *model, json_object *expect)
{
    const pe_model_info *info = pe_model_get_info(model);
    json_object_object_foreach(expect, key, value)
    {
        const double number = json_object_get_double(value);
        if (strcmp(key, "method") == 0)
            same_text(key, info->method, json_object_get_string(value));
        else if (strcmp(key, "rope") == 0)
            check_list(model, key, info->num_ropes, value, check_rope);
        else if (strcmp(key, "bias") == 0)
            check_list(model, key, info->num_biases, value, check_bias);
        else if (strcmp(key, "sinusoidal") == 0)
            check_sinusoidal(model, value);
        else if (strcmp(key, "notes") == 0)
            check_notes(model, value);
        else if (strcmp(key, "fields") == 0 || strcmp(key, "sources") == 0)
            check_fields(model, value, key[0] == 's');
        else if (strcmp(key, "trained_len") == 0)
            same_number(key, (double)info->trained_len, number);
        else if (strcmp(key, "extended_len") == 0)
            same_number(key, (double)info->extended_len, number);
        else if (strcmp(key, "num_layers") == 0)
            same_number(key, info->num_layers, number);
        else if (strcmp(key, "num_sites") == 0)
            same_number(key, info->num_sites, number);
        else if (strcmp(key, "num_turning") == 0)
            same_number(key, count_turning(model), number);
        else if (strcmp(key, "num_warnings") == 0)
            same_number(key, count_warnings(model), number);
        else if (strcmp(key, "seq_len") != 0)
            FAIL("expectation %s is not known", key);
    }
}

static void check_error(const pe_error *error, json_object *expect)
{
    json_object *value = NULL;
    if (!json_object_object_get_ex(expect, "error", &value))
        FAIL("refused: %s", error->message);
    same_text("error", error->message, json_object_get_string(value));
    if (!json_object_object_get_ex(expect, "status", &value))
        FAIL("an error needs a status");
    same_text("status", pe_status_name(error->status), json_object_get_string(value));
}

static void check_case(const char *path, json_object *expect)
{
    json_object *seq_len = json_object_object_get(expect, "seq_len");
    pe_checkpoint *checkpoint = NULL;
    pe_model *model = NULL;
    pe_error error;
    if (pe_checkpoint_load(&checkpoint, path, NULL, &error) != PE_OK)
        FAIL("does not parse: %s", error.message);
    if (pe_model_create(&model, checkpoint,
                        seq_len == NULL ? 0 : json_object_get_int64(seq_len), NULL,
                        &error) != PE_OK) {
        assert_null(model);
        check_error(&error, expect);
    } else {
        if (json_object_object_get_ex(expect, "error", NULL))
            FAIL("is accepted");
        check_model(model, expect);
    }
    pe_model_destroy(model);
    pe_checkpoint_destroy(checkpoint);
}

static int is_config(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && strcmp(dot, ".json") == 0;
}

static void configs_resolve_as_expected(void **state)
{
    (void)state;
    struct dirent **names = NULL;
    const int count = scandir("tests/models", &names, is_config, alphasort);
    assert_in_range(count, 120, 100000);
    for (int i = 0; i < count; i++) {
        char path[512], want[512];
        const int length = (int)strlen(names[i]->d_name) - 5;
        snprintf(path, sizeof path, "tests/models/%s", names[i]->d_name);
        snprintf(want, sizeof want, "tests/models/%.*s.expect", length,
                 names[i]->d_name);
        case_name = names[i]->d_name;
        json_object *expect = json_object_from_file(want);
        assert_non_null(expect);
        assert_true(json_object_object_length(expect) > 0);
        check_case(path, expect);
        json_object_put(expect);
        free(names[i]);
    }
    free(names);
    assert_int_equal(num_failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(configs_resolve_as_expected)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
