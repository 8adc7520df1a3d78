/* SPDX-License-Identifier: MIT
 *
 * inspect_json.c - the posenc.inspect/1 report
 *
 * Keys that do not apply are absent.  Numbers of a rope are the spec's where the model
 * sets them, and the plan's where it decides: attention_factor, inv_freq. */
#include "inspect_json.h"

#include "names.h"
#include "report.h"
#include "sites.h"
#include "turns.h"

static void add(json_object *object, const char *key, json_object *value)
{
    (void)json_object_object_add(object, key, value);
}

static void add_axes(json_object *rope, const pe_axes *axes, const pe_rope_info *info)
{
    if (info->num_axes <= 1)
        return;
    json_object *object = json_object_new_object();
    json_object *sections = json_object_new_array();
    json_object *pairs = json_object_new_array();
    cli_json_set_text(object, "map", cli_choice_name(cli_axis_names, axes->map));
    for (int32_t a = 0; a < info->num_axes; a++)
        (void)json_object_array_add(sections, json_object_new_int(axes->section[a]));
    for (int32_t i = 0; i < info->num_pairs; i++)
        (void)json_object_array_add(pairs, json_object_new_int(info->pair_axis[i]));
    add(object, "section", sections);
    add(object, "pair_axis", pairs);
    add(rope, "axes", object);
}

static void add_freqs(json_object *rope, const pe_freqs *freqs, int32_t num_pairs)
{
    cli_json_number(rope, "rope_theta", freqs->rope_theta);
    cli_json_set_text(rope, "rope_type",
                      cli_choice_name(cli_rope_type_names, freqs->rope_type));
    cli_json_number(rope, "factor", freqs->factor);
    cli_json_integer(rope, "max_position_embeddings", freqs->max_position_embeddings);
    cli_json_integer(rope, "original_max_position_embeddings",
                     freqs->original_max_position_embeddings);
    cli_json_integer(rope, "seq_len", freqs->seq_len);
    cli_json_number(rope, "beta_fast", freqs->beta_fast);
    cli_json_number(rope, "beta_slow", freqs->beta_slow);
    cli_json_number(rope, "mscale", freqs->mscale);
    cli_json_number(rope, "mscale_all_dim", freqs->mscale_all_dim);
    if (freqs->mscale != 0 || freqs->mscale_all_dim != 0)
        cli_json_set_text(rope, "mscale_rule",
                          cli_choice_name(cli_mscale_names, freqs->mscale_rule));
    cli_json_number(rope, "low_freq_factor", freqs->low_freq_factor);
    cli_json_number(rope, "high_freq_factor", freqs->high_freq_factor);
    cli_json_number(rope, "partial_rotary_factor", freqs->partial_rotary_factor);
    if (freqs->no_truncate)
        add(rope, "truncate", json_object_new_boolean(0));
    cli_json_numbers(rope, "short_factor", freqs->short_factor, num_pairs);
    cli_json_numbers(rope, "long_factor", freqs->long_factor, num_pairs);
    cli_json_numbers(rope, "freq_factors", freqs->freq_factors, num_pairs);
}

/* Which pairs the rule keeps, blends and divides, and which never complete a turn within
 * the trained length. */
static void add_turns(json_object *rope, const pe_rope_spec *spec,
                      const pe_rope_info *info, int64_t trained_len)
{
    cli_turns turns;
    if (cli_turns_read(&turns, spec, info, trained_len) != CLI_DONE)
        return;
    json_object *object = json_object_new_object();
    cli_json_set_integer(object, "kept", turns.kept);
    cli_json_set_integer(object, "blended", turns.blended);
    cli_json_set_integer(object, "divided", turns.divided);
    cli_json_set_integer(object, "still", turns.still);
    if (turns.blended > 0) {
        cli_json_set_integer(object, "first_blended", turns.first_blended);
        cli_json_set_integer(object, "last_blended", turns.last_blended);
    }
    cli_json_set_number(object, "divisor", turns.most);
    if (info->ramp_high > 0) {
        const double range[2] = {info->ramp_low, info->ramp_high};
        cli_json_numbers(object, "correction_range", range, 2);
    }
    add(rope, "pairs", object);
    if (trained_len == 0)
        return;
    object = json_object_new_object();
    cli_json_set_integer(object, "count", turns.unfinished);
    if (turns.unfinished > 0) {
        cli_json_set_integer(object, "first", turns.first_unfinished);
        cli_json_set_integer(object, "last", turns.last_unfinished);
    }
    add(rope, "incomplete_turns", object);
}

static json_object *rope_json(const pe_rope_spec *spec, const pe_rope_info *info,
                              int64_t trained_len)
{
    const pe_pairs *pairs = &spec->pairs;
    json_object *rope = json_object_new_object();
    cli_json_set_text(rope, "pairing",
                      cli_choice_name(cli_pairing_names, pairs->pairing));
    if (pairs->out_pairing != 0 && pairs->out_pairing != pairs->pairing)
        cli_json_set_text(rope, "out_pairing",
                          cli_choice_name(cli_pairing_names, pairs->out_pairing));
    cli_json_set_integer(rope, "head_dim", info->head_dim);
    cli_json_set_integer(rope, "rotary_dim", info->rotary_dim);
    cli_json_integer(rope, "rotary_start", pairs->rotary_start);
    cli_json_flag(rope, "reversed", pairs->reversed);
    add_axes(rope, &spec->axes, info);
    add_freqs(rope, &spec->freqs, info->num_pairs);
    cli_json_set_number(rope, "attention_factor", info->attention_factor);
    cli_json_set_number(rope, "softmax_factor", info->softmax_factor);
    cli_json_integer(rope, "seq_len_min", info->seq_len_min);
    if (info->seq_len_max < INT64_MAX)
        cli_json_integer(rope, "seq_len_max", info->seq_len_max);
    add_turns(rope, spec, info, trained_len);
    cli_json_numbers(rope, "inv_freq", info->inv_freq, info->num_pairs);
    return rope;
}

static json_object *bias_json(const pe_bias_spec *spec)
{
    json_object *bias = json_object_new_object();
    cli_json_set_text(bias, "type", cli_choice_name(cli_bias_names, spec->type));
    cli_json_set_text(bias, "form", cli_choice_name(cli_form_names, spec->form));
    cli_json_set_integer(bias, "num_heads", spec->num_heads);
    if (spec->type == PE_BIAS_ALIBI && spec->slopes == NULL)
        cli_json_set_text(bias, "slope_recipe",
                          cli_choice_name(cli_recipe_names, spec->slope_recipe));
    cli_json_number(bias, "max_bias", spec->max_bias);
    cli_json_number(bias, "scale", spec->scale);
    if (spec->round_to != 0)
        cli_json_set_text(bias, "round_to",
                          cli_choice_name(cli_dtype_names, spec->round_to));
    cli_json_integer(bias, "num_buckets", spec->num_buckets);
    cli_json_integer(bias, "max_distance", spec->max_distance);
    return bias;
}

static int add_bias(json_object *object, const char *key, const cli_model *model,
                    int32_t index)
{
    pe_bias_spec spec = {.struct_size = sizeof spec};
    pe_error error;
    if (pe_model_bias_spec(model->model, index, &spec, &error) != PE_OK)
        return cli_fail_with(model->name, &error);
    if (key == NULL && spec.type != PE_BIAS_ALIBI)
        return CLI_DONE;
    json_object *bias = bias_json(&spec);
    add(object, key ? key : "alibi", bias);
    if (spec.type != PE_BIAS_ALIBI)
        return CLI_DONE; /* T5 and KERPLE rest on weights, which settings do not hold */
    pe_bias *plan;
    if (pe_bias_create(&plan, &spec, NULL, &error) != PE_OK)
        return cli_fail_with(model->name, &error);
    add(bias, "slopes", cli_json_floats(pe_bias_slopes(plan), spec.num_heads));
    json_object *horizons = json_object_new_array();
    for (int32_t h = 0; h < spec.num_heads; h++)
        (void)json_object_array_add(
            horizons,
            json_object_new_int64(cli_horizon((double)pe_bias_slopes(plan)[h], &spec)));
    add(bias, "horizons", horizons);
    pe_bias_destroy(plan);
    return CLI_DONE;
}

static int add_site(json_object *sites, const cli_model *model,
                    const cli_site_group *group)
{
    json_object *site = json_object_new_object();
    (void)json_object_array_add(sites, site);
    cli_json_set_text(site, "layers", group->layers);
    cli_json_set_text(site, "role", cli_choice_name(cli_role_names, group->role));
    if (group->bias >= 0) {
        int status = add_bias(site, "bias", model, group->bias);
        if (status != CLI_DONE)
            return status;
    }
    if (group->rope < 0)
        return CLI_DONE;
    pe_rope_spec spec = {.struct_size = sizeof spec};
    pe_rope *plan;
    pe_error error;
    if (pe_model_rope_spec(model->model, group->rope, &spec, &error) != PE_OK ||
        pe_rope_create(&plan, &spec, NULL, &error) != PE_OK)
        return cli_fail_with(model->name, &error);
    add(site, "rope",
        rope_json(&spec, pe_rope_get_info(plan),
                  pe_model_get_info(model->model)->trained_len));
    pe_rope_destroy(plan);
    return CLI_DONE;
}

static int add_sites(json_object *root, const cli_model *model)
{
    cli_site_groups groups;
    int status = cli_sites_group(&groups, model->model);
    json_object *sites = json_object_new_array();
    add(root, "sites", sites);
    for (size_t i = 0; i < groups.count && status == CLI_DONE; i++)
        status = add_site(sites, model, &groups.items[i]);
    cli_sites_release(&groups);
    return status;
}

/* Files without weights still say how large the table is.  Returns its rows. */
static int64_t add_learned_shape(json_object *object, const pe_model *model,
                                 const pe_learned_spec *spec)
{
    static const char *const names[] = {"learned.rows", "learned.model_dim"};
    static const char *const keys[] = {"rows", "model_dim"};
    const int64_t known[] = {spec->weight ? spec->weight->seq_len : 0,
                             spec->weight ? spec->weight->dim : 0};
    int64_t rows = 0;
    for (size_t i = 0; i < CLI_COUNT(names); i++) {
        const pe_field *field = pe_model_find_field(model, names[i]);
        int64_t value = known[i];
        if (value == 0 && field != NULL && !cli_read_integer(field->value, &value))
            value = 0;
        cli_json_integer(object, keys[i], value);
        rows = i == 0 ? value : rows;
    }
    return rows;
}

static void add_absolute(json_object *root, const pe_model *model)
{
    pe_sinusoidal_spec sinusoidal = {.struct_size = sizeof sinusoidal};
    pe_learned_spec learned = {.struct_size = sizeof learned};
    if (pe_model_sinusoidal_spec(model, &sinusoidal, NULL) == PE_OK) {
        json_object *object = json_object_new_object();
        cli_json_set_text(object, "order",
                          cli_choice_name(cli_order_names, sinusoidal.order));
        cli_json_set_integer(object, "model_dim", sinusoidal.model_dim);
        cli_json_integer(object, "num_axes", sinusoidal.num_axes);
        cli_json_number(object, "base", sinusoidal.base);
        cli_json_number(object, "downscale_freq_shift",
                        sinusoidal.downscale_freq_shift);
        cli_json_number(object, "embed_scale", sinusoidal.embed_scale);
        if (sinusoidal.has_padding)
            cli_json_set_integer(object, "padding_position",
                                 sinusoidal.padding_position);
        add(root, "sinusoidal", object);
    }
    if (pe_model_learned_spec(model, &learned, NULL) == PE_OK) {
        json_object *object = json_object_new_object();
        cli_json_set_integer(object, "position_offset", learned.position_offset);
        const int64_t rows = add_learned_shape(object, model, &learned);
        if (rows > 0)
            cli_json_set_integer(object, "capacity", rows - learned.position_offset);
        cli_json_number(object, "embed_scale", learned.embed_scale);
        add(root, "learned", object);
    }
}

static void add_provenance(json_object *root, const pe_model *model)
{
    const pe_field *field;
    json_object *fields = json_object_new_array();
    for (int32_t i = 0; (field = pe_model_field(model, i)) != NULL; i++) {
        json_object *object = json_object_new_object();
        cli_json_set_text(object, "name", field->name);
        cli_json_set_text(object, "value", field->value);
        cli_json_set_text(object, "source",
                          cli_choice_name(cli_source_names, field->source));
        cli_json_text(object, "path", field->path);
        cli_json_text(object, "text", field->text);
        cli_json_text(object, "reason", field->reason);
        (void)json_object_array_add(fields, object);
    }
    add(root, "fields", fields);
}

static void add_notes(json_object *root, const pe_model *model)
{
    const pe_note *note;
    json_object *notes = json_object_new_array();
    for (int32_t i = 0; (note = pe_model_note(model, i)) != NULL; i++) {
        json_object *object = json_object_new_object();
        cli_json_set_text(object, "level",
                          cli_choice_name(cli_level_names, note->level));
        cli_json_text(object, "path", note->path);
        cli_json_set_text(object, "text", note->text);
        (void)json_object_array_add(notes, object);
    }
    add(root, "notes", notes);
}

int cli_inspect_json(const cli_model *model)
{
    const pe_model_info *info = pe_model_get_info(model->model);
    json_object *root = cli_json_start("posenc.inspect/1");
    cli_json_text(root, "model_type", info->model_type);
    cli_json_set_text(root, "method", info->method);
    cli_json_integer(root, "num_layers", info->num_layers);
    cli_json_integer(root, "num_heads", info->num_heads);
    cli_json_integer(root, "num_kv_heads", info->num_kv_heads);
    cli_json_integer(root, "trained_len", info->trained_len);
    cli_json_integer(root, "extended_len", info->extended_len);
    int status = add_sites(root, model);
    if (status == CLI_DONE && info->num_biases > 0)
        status = add_bias(root, NULL, model, 0);
    if (status != CLI_DONE) {
        (void)json_object_put(root);
        return status;
    }
    add_absolute(root, model->model);
    add_provenance(root, model->model);
    add_notes(root, model->model);
    return cli_json_print(root);
}
