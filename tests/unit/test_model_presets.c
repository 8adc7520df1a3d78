/* SPDX-License-Identifier: MIT
 *
 * test_model_presets.c - every compiled-in preset loads and yields its specs
 */
#include "posenc/model.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void index_is_sorted_and_agrees_with_the_file(void **state)
{
    (void)state;
    json_object *root = json_object_from_file("data/presets.json");
    assert_non_null(root);
    json_object *presets = json_object_object_get(root, "presets");
    assert_int_equal(pe_model_num_presets(), json_object_array_length(presets));
    assert_in_range(pe_model_num_presets(), 66, 255);
    for (int32_t i = 0; i < pe_model_num_presets(); i++) {
        const pe_preset *preset = pe_model_preset(i);
        json_object *item = json_object_array_get_idx(presets, (size_t)i);
        assert_string_equal(
            preset->name, json_object_get_string(json_object_object_get(item, "name")));
        assert_string_equal(preset->title, json_object_get_string(
                                               json_object_object_get(item, "title")));
        assert_string_equal(
            preset->source,
            json_object_get_string(json_object_object_get(item, "source")));
        assert_int_equal(
            preset->remembered,
            json_object_get_boolean(json_object_object_get(item, "remembered")));
        assert_int_equal(preset->remembered,
                         strstr(preset->source, "remembered: ") != NULL);
        assert_int_equal(strspn(preset->name, "abcdefghijklmnopqrstuvwxyz0123456789-."),
                         strlen(preset->name));
        if (i > 0)
            assert_true(strcmp(pe_model_preset(i - 1)->name, preset->name) < 0);
    }
    assert_null(pe_model_preset(-1));
    assert_null(pe_model_preset(pe_model_num_presets()));
    json_object_put(root);
}

static void check_ropes(const pe_model *model, const char *name)
{
    for (int32_t i = 0; i < pe_model_get_info(model)->num_ropes; i++) {
        pe_rope_spec spec = {.struct_size = sizeof spec};
        pe_rope *rope = NULL;
        pe_error error;
        assert_int_equal(pe_model_rope_spec(model, i, &spec, &error), PE_OK);
        if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK)
            fail_msg("%s: rope %d makes no plan: %s", name, i, error.message);
        assert_true(pe_rope_get_info(rope)->attention_factor > 0);
        pe_rope_destroy(rope);
    }
    pe_rope_spec spec = {.struct_size = sizeof spec};
    assert_int_equal(
        pe_model_rope_spec(model, pe_model_get_info(model)->num_ropes, &spec, NULL),
        PE_E_NOT_FOUND);
}

static void check_sites(const pe_model *model, const char *name)
{
    const pe_model_info *info = pe_model_get_info(model);
    if (info->num_sites < 1)
        fail_msg("%s has no sites", name);
    for (int32_t i = 0; i < info->num_sites; i++) {
        const pe_site *site = pe_model_site(model, i);
        assert_int_equal(site->index, i);
        assert_in_range(site->rope + 1, 0, info->num_ropes);
        assert_in_range(site->bias + 1, 0, info->num_biases);
        if (info->num_layers > 0 && site->layer >= info->num_layers)
            fail_msg("%s: layer %d of %d", name, site->layer, info->num_layers);
        if (pe_model_find_site(model, site->layer, site->role) != site)
            fail_msg("%s: layer %d has two sites of role %d", name, site->layer,
                     site->role);
    }
    assert_null(pe_model_site(model, -1));
    assert_null(pe_model_site(model, info->num_sites));
}

/* The method says which specs there are. */
static void check_method(const pe_model *model, const char *name)
{
    const pe_model_info *info = pe_model_get_info(model);
    pe_sinusoidal_spec sinusoidal = {.struct_size = sizeof sinusoidal};
    pe_learned_spec learned = {.struct_size = sizeof learned};
    pe_bias_spec bias = {.struct_size = sizeof bias};
    const char *method = info->method;
    int ok = 0;
    if (strcmp(method, "rope") == 0)
        ok = info->num_ropes > 0;
    else if (strcmp(method, "alibi") == 0 || strcmp(method, "t5") == 0)
        ok = pe_model_bias_spec(model, 0, &bias, NULL) == PE_OK && bias.form != 0 &&
             bias.num_heads == info->num_heads;
    else if (strcmp(method, "sinusoidal") == 0)
        ok = pe_model_sinusoidal_spec(model, &sinusoidal, NULL) == PE_OK &&
             sinusoidal.order != 0 && sinusoidal.model_dim > 0;
    else if (strcmp(method, "learned") == 0)
        ok = pe_model_learned_spec(model, &learned, NULL) == PE_OK &&
             learned.weight == NULL &&
             pe_model_find_field(model, "learned.rows") != NULL &&
             pe_model_find_field(model, "learned.model_dim") != NULL;
    if (!ok)
        fail_msg("%s: method %s, but not its specs", name, method);
}

static void every_preset_yields_its_specs(void **state)
{
    (void)state;
    for (int32_t i = 0; i < pe_model_num_presets(); i++) {
        const char *name = pe_model_preset(i)->name;
        pe_model *model = NULL;
        pe_error error;
        if (pe_model_create_preset(&model, name, 0, NULL, &error) != PE_OK)
            fail_msg("%s: %s", name, error.message);
        check_sites(model, name);
        check_ropes(model, name);
        check_method(model, name);
        for (int32_t f = 0; f < pe_model_get_info(model)->num_fields; f++) {
            const pe_field *field = pe_model_field(model, f);
            assert_non_null(field->value);
            assert_non_null(field->path);
            assert_int_equal(field->source, PE_STATED);
            assert_ptr_equal(pe_model_find_field(model, field->name), field);
        }
        pe_model_destroy(model);
    }
}

static void known_numbers_come_back(void **state)
{
    pe_model *model = NULL;
    pe_rope_spec spec = {.struct_size = sizeof spec};
    (void)state;
    assert_int_equal(pe_model_create_preset(&model, "llama-3.1-8b", 0, NULL, NULL),
                     PE_OK);
    assert_int_equal(pe_model_get_info(model)->num_kv_heads, 8);
    assert_int_equal(pe_model_get_info(model)->extended_len, 131072);
    assert_int_equal(pe_model_rope_spec(model, 0, &spec, NULL), PE_OK);
    assert_int_equal(spec.pairs.pairing, PE_HALF_SPLIT);
    assert_true(spec.freqs.rope_theta == 500000 && spec.freqs.factor == 8);
    pe_model_destroy(model);

    assert_int_equal(
        pe_model_create_preset(&model, "phi-3-mini-128k", 8192, NULL, NULL), PE_OK);
    assert_int_equal(pe_model_rope_spec(model, 0, &spec, NULL), PE_OK);
    assert_int_equal(spec.freqs.seq_len, 8192);
    assert_true(spec.freqs.long_factor[0] == (double)1.03F);
    pe_model_destroy(model);

    assert_int_equal(pe_model_create_preset(&model, "gpt-1", 0, NULL, NULL), PE_OK);
    assert_string_equal(pe_model_find_field(model, "learned.rows")->value, "512");
    assert_string_equal(pe_model_find_field(model, "learned.model_dim")->value, "768");
    assert_int_equal(pe_model_rope_spec(model, 0, &spec, NULL), PE_E_NOT_FOUND);
    pe_model_destroy(model);
}

/* The same models as their configurations state them: both ways must give plans of one
 * fingerprint at every site. */
static const struct {
    const char *preset, *config;
} twins[] = {
    {"llama-3.1-8b",
     "{\"model_type\": \"llama\", \"num_hidden_layers\": 32, \"hidden_size\": 4096,"
     "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"rope_theta\": "
     "500000.0,"
     "\"max_position_embeddings\": 131072, \"rope_scaling\": {\"rope_type\": "
     "\"llama3\","
     "\"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0,"
     "\"original_max_position_embeddings\": 8192}}"},
    {"gpt-oss-120b",
     "{\"model_type\": \"gpt_oss\", \"num_hidden_layers\": 36, \"hidden_size\": 2880,"
     "\"num_attention_heads\": 64, \"num_key_value_heads\": 8, \"head_dim\": 64,"
     "\"max_position_embeddings\": 131072, \"rope_theta\": 150000, \"rope_scaling\":"
     "{\"rope_type\": \"yarn\", \"factor\": 32.0, \"beta_fast\": 32.0, \"beta_slow\":"
     "1.0, \"truncate\": false, \"original_max_position_embeddings\": 4096}}"},
    {"deepseek-v3",
     "{\"model_type\": \"deepseek_v3\", \"num_hidden_layers\": 61, \"hidden_size\": "
     "7168,"
     "\"num_attention_heads\": 128, \"num_key_value_heads\": 128, \"qk_nope_head_dim\":"
     "128, \"qk_rope_head_dim\": 64, \"max_position_embeddings\": 163840,"
     "\"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40,"
     "\"beta_fast\": 32, \"beta_slow\": 1, \"mscale\": 1.0, \"mscale_all_dim\": 1.0,"
     "\"original_max_position_embeddings\": 4096}}"},
    {"gemma-3-4b",
     "{\"model_type\": \"gemma3\", \"text_config\": {\"model_type\": \"gemma3_text\","
     "\"num_hidden_layers\": 34, \"num_attention_heads\": 8, \"num_key_value_heads\": "
     "4,"
     "\"head_dim\": 256, \"hidden_size\": 2560, \"max_position_embeddings\": 131072,"
     "\"rope_theta\": 1000000.0, \"rope_local_base_freq\": 10000.0, \"rope_scaling\":"
     "{\"rope_type\": \"linear\", \"factor\": 8.0}, \"sliding_window_pattern\": 6}}"},
    {"smollm3-3b",
     "{\"model_type\": \"smollm3\", \"num_hidden_layers\": 36, \"hidden_size\": 2048,"
     "\"num_attention_heads\": 16, \"num_key_value_heads\": 4, \"rope_theta\": "
     "5000000.0,"
     "\"max_position_embeddings\": 65536, \"no_rope_layer_interval\": 4}"},
    {"qwen3-next",
     "{\"model_type\": \"qwen3_next\", \"num_hidden_layers\": 48, \"hidden_size\": "
     "2048,"
     "\"num_attention_heads\": 16, \"num_key_value_heads\": 2, \"head_dim\": 256,"
     "\"partial_rotary_factor\": 0.25, \"rope_theta\": 10000000,"
     "\"max_position_embeddings\": 262144, \"full_attention_interval\": 4}"},
    {"qwen2-vl-7b",
     "{\"model_type\": \"qwen2_vl\", \"num_hidden_layers\": 28, \"hidden_size\": 3584,"
     "\"num_attention_heads\": 28, \"num_key_value_heads\": 4, \"rope_theta\": "
     "1000000.0,"
     "\"max_position_embeddings\": 32768, \"rope_scaling\": {\"type\": \"mrope\","
     "\"mrope_section\": [16, 24, 24]}}"},
    {"modernbert-base",
     "{\"model_type\": \"modernbert\", \"num_hidden_layers\": 22, \"hidden_size\": 768,"
     "\"num_attention_heads\": 12, \"max_position_embeddings\": 8192,"
     "\"global_rope_theta\": 160000.0, \"local_rope_theta\": 10000.0}"},
    {"gpt-j-6b",
     "{\"model_type\": \"gptj\", \"n_layer\": 28, \"n_embd\": 4096, \"n_head\": 16,"
     "\"n_positions\": 2048, \"rotary_dim\": 64}"},
};

static uint64_t fingerprint(const pe_model *model, int32_t layer)
{
    const pe_site *site = pe_model_find_site(model, layer, PE_SITE_SELF);
    pe_rope_spec spec = {.struct_size = sizeof spec};
    pe_rope *rope = NULL;
    if (site == NULL)
        return 1;
    if (site->rope < 0)
        return 2;
    assert_int_equal(pe_model_rope_spec(model, site->rope, &spec, NULL), PE_OK);
    assert_int_equal(pe_rope_create(&rope, &spec, NULL, NULL), PE_OK);
    const uint64_t print = pe_rope_get_info(rope)->fingerprint;
    pe_rope_destroy(rope);
    return print;
}

static void presets_agree_with_configurations(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof twins / sizeof *twins; i++) {
        pe_checkpoint *checkpoint = NULL;
        pe_model *preset = NULL, *model = NULL;
        pe_error error;
        if (pe_model_create_preset(&preset, twins[i].preset, 0, NULL, &error) !=
                PE_OK ||
            pe_checkpoint_parse(&checkpoint, PE_FORMAT_JSON, twins[i].config,
                                strlen(twins[i].config), NULL, &error) != PE_OK ||
            pe_model_create(&model, checkpoint, 0, NULL, &error) != PE_OK)
            fail_msg("%s: %s", twins[i].preset, error.message);
        const pe_model_info *a = pe_model_get_info(preset),
                            *b = pe_model_get_info(model);
        assert_int_equal(a->num_layers, b->num_layers);
        assert_int_equal(a->num_sites, b->num_sites);
        assert_int_equal(a->num_ropes, b->num_ropes);
        assert_int_equal(a->num_heads, b->num_heads);
        assert_int_equal(a->num_kv_heads, b->num_kv_heads);
        assert_int_equal(a->extended_len, b->extended_len);
        for (int32_t layer = 0; layer < a->num_layers; layer++) {
            if (fingerprint(preset, layer) != fingerprint(model, layer))
                fail_msg("%s: layer %d differs", twins[i].preset, layer);
        }
        pe_model_destroy(model);
        pe_model_destroy(preset);
        pe_checkpoint_destroy(checkpoint);
    }
}

static void wrong_names_are_refused(void **state)
{
    pe_model *model = (pe_model *)&model;
    pe_error error;
    (void)state;
    assert_int_equal(pe_model_create_preset(&model, "llama", 0, NULL, &error),
                     PE_E_NOT_FOUND);
    assert_string_equal(error.message, "no preset is named llama");
    assert_null(model);
    assert_int_equal(pe_model_create_preset(&model, NULL, 0, NULL, NULL),
                     PE_E_ARGUMENT);
    assert_int_equal(pe_model_create_preset(NULL, "gpt-2", 0, NULL, NULL),
                     PE_E_ARGUMENT);
    assert_int_equal(pe_model_create_preset(&model, "gpt-2", -1, NULL, &error),
                     PE_E_ARGUMENT);
    assert_string_equal(error.message, "seq_len is -1, must be at least 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_is_sorted_and_agrees_with_the_file),
        cmocka_unit_test(every_preset_yields_its_specs),
        cmocka_unit_test(known_numbers_come_back),
        cmocka_unit_test(presets_agree_with_configurations),
        cmocka_unit_test(wrong_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
