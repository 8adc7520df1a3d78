/* SPDX-License-Identifier: MIT
 *
 * inspect.c - posenc inspect: what a model does with positions, and how we know
 */
#include "inspect_json.h"
#include "inspect_text.h"
#include "model_arg.h"
#include "names.h"
#include "print.h"
#include "report.h"
#include "sites.h"
#include "turns.h"
#include "verbs.h"

#include <stdio.h>
#include <string.h>

typedef struct inspect_args {
    int64_t seq_len;
    int32_t json, layers;
} inspect_args;

enum { LABEL_WIDTH = 18 };

static void print_label(const char *label)
{
    cli_print("  %-*s", LABEL_WIDTH, label);
}

/* "llama-3.1-8b: rope, 32 layers, 32 heads, 8 for keys" */
static void print_summary(const cli_model *model)
{
    const pe_model_info *info = pe_model_get_info(model->model);
    cli_print("%s: %s", model->name, info->method);
    if (info->num_layers > 0)
        cli_print(", %d layers", (int)info->num_layers);
    if (info->num_heads > 0)
        cli_print(", %d heads", (int)info->num_heads);
    if (info->num_kv_heads > 0 && info->num_kv_heads != info->num_heads)
        cli_print(" (%d for keys)", (int)info->num_kv_heads);
    cli_print("\n");
    if (info->trained_len > 0)
        cli_print("trained on %lld tokens", (long long)info->trained_len);
    if (info->trained_len > 0 && info->extended_len > info->trained_len)
        cli_print(", extended to %lld", (long long)info->extended_len);
    if (info->trained_len > 0)
        cli_print("\n");
}

static void print_number(const char *name, double value)
{
    cli_number number;
    if (value != 0)
        cli_print(", %s %s", name, cli_double(&number, value));
}

static void print_scaling(const pe_freqs *freqs)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"factor", freqs->factor},
                   {"low_freq_factor", freqs->low_freq_factor},
                   {"high_freq_factor", freqs->high_freq_factor},
                   {"beta_fast", freqs->beta_fast},
                   {"beta_slow", freqs->beta_slow},
                   {"mscale", freqs->mscale},
                   {"mscale_all_dim", freqs->mscale_all_dim},
                   {"partial_rotary_factor", freqs->partial_rotary_factor},
                   {"original_max_position_embeddings",
                    (double)freqs->original_max_position_embeddings}};
    print_label("rope_type");
    cli_print("%s", cli_choice_name(cli_rope_type_names, freqs->rope_type));
    for (size_t i = 0; i < CLI_COUNT(numbers); i++)
        print_number(numbers[i].name, numbers[i].value);
    if (freqs->no_truncate)
        cli_print(", not truncated");
    cli_print("\n");
}

/* What the rule made of the pairs, and which of them training never saw whole. */
static int print_turns(const pe_rope_spec *spec, const pe_rope_info *info,
                       int64_t trained_len)
{
    cli_turns turns;
    char text[160];
    int status = cli_turns_read(&turns, spec, info, trained_len);
    if (status != CLI_DONE)
        return status;
    cli_turns_describe(text, sizeof text, &turns);
    if (*text != '\0') {
        print_label("pairs");
        cli_print("%s\n", text);
    }
    if (info->ramp_high > 0) {
        print_label("correction range");
        cli_print("pairs %.6g to %.6g\n", info->ramp_low, info->ramp_high);
    }
    if (turns.unfinished > 0) {
        print_label("incomplete turns");
        cli_print("%d of %d pairs (%d-%d) turn less than once in training\n",
                  (int)turns.unfinished, (int)info->num_pairs,
                  (int)turns.first_unfinished, (int)turns.last_unfinished);
    }
    return CLI_DONE;
}

static int print_rope(const pe_rope_spec *spec, const pe_rope_info *info,
                      int64_t trained_len)
{
    cli_number number;
    print_label("pairing");
    cli_print("%s", cli_choice_name(cli_pairing_names, spec->pairs.pairing));
    if (spec->pairs.out_pairing != 0 && spec->pairs.out_pairing != spec->pairs.pairing)
        cli_print(", %s in the output",
                  cli_choice_name(cli_pairing_names, spec->pairs.out_pairing));
    if (spec->pairs.reversed)
        cli_print(", reversed");
    cli_print("\n");
    print_label("dims");
    cli_print("%d of %d turn", (int)info->rotary_dim, (int)info->head_dim);
    if (spec->pairs.rotary_start != 0)
        cli_print(", from %d on", (int)spec->pairs.rotary_start);
    cli_print("\n");
    if (info->num_axes > 1) {
        print_label("axes");
        cli_print("%d, %s:", (int)info->num_axes,
                  cli_choice_name(cli_axis_names, spec->axes.map));
        for (int32_t a = 0; a < info->num_axes; a++)
            cli_print(" %d", (int)spec->axes.section[a]);
        cli_print("\n");
    }
    if (spec->freqs.rope_theta != 0) {
        print_label("rope_theta");
        cli_print("%s\n", cli_double(&number, spec->freqs.rope_theta));
    }
    print_scaling(&spec->freqs);
    print_label("attention_factor");
    cli_print("%s\n", cli_double(&number, info->attention_factor));
    if (info->softmax_factor != 1) {
        print_label("softmax_factor");
        cli_print("%s\n", cli_double(&number, info->softmax_factor));
    }
    print_label("inv_freq");
    cli_print("%s", cli_double(&number, info->inv_freq[0]));
    cli_print(" ... %s (%d pairs)\n",
              cli_double(&number, info->inv_freq[info->num_pairs - 1]),
              (int)info->num_pairs);
    if (info->seq_len_max < INT64_MAX) {
        print_label("right for lengths");
        cli_print("%lld to %lld\n", (long long)info->seq_len_min,
                  (long long)info->seq_len_max);
    }
    return print_turns(spec, info, trained_len);
}

/* Another role of the layers may turn as one before it does. */
static const cli_site_group *find_before(const cli_site_groups *groups, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (groups->items[i].rope == groups->items[index].rope)
            return &groups->items[i];
    return NULL;
}

static int print_site(const cli_model *model, const cli_site_groups *groups,
                      size_t index)
{
    const cli_site_group *group = &groups->items[index];
    const cli_site_group *before = find_before(groups, index);
    const char *role = cli_choice_name(cli_role_names, group->role);
    cli_print("\nlayer%s %s, %s attention\n",
              strpbrk(group->layers, ",-") != NULL ? "s" : "", group->layers, role);
    if (group->rope < 0) {
        if (pe_model_get_info(model->model)->num_ropes > 0)
            cli_print("  no rotation (NoPE)\n");
        return CLI_DONE;
    }
    if (before != NULL) {
        cli_print("  as %s attention above\n",
                  cli_choice_name(cli_role_names, before->role));
        return CLI_DONE;
    }
    pe_rope_spec spec = {.struct_size = sizeof spec};
    pe_rope *plan;
    pe_error error;
    if (pe_model_rope_spec(model->model, group->rope, &spec, &error) != PE_OK ||
        pe_rope_create(&plan, &spec, NULL, &error) != PE_OK)
        return cli_fail_with(model->name, &error);
    int status = print_rope(&spec, pe_rope_get_info(plan),
                            pe_model_get_info(model->model)->trained_len);
    pe_rope_destroy(plan);
    return status;
}

/* The first and the last heads; --json has them all. */
static void print_slopes(const pe_bias_spec *spec)
{
    enum { SHOWN = 4 };
    cli_number number;
    pe_bias *plan;
    if (pe_bias_create(&plan, spec, NULL, NULL) != PE_OK)
        return;
    for (int is_horizon = 0; is_horizon < 2; is_horizon++) {
        print_label(is_horizon ? "horizon" : "");
        for (int32_t h = 0; h < spec->num_heads; h++) {
            if (h == SHOWN && spec->num_heads > SHOWN + 2) {
                cli_print(", ...");
                h = spec->num_heads - 1;
            }
            const float slope = pe_bias_slopes(plan)[h];
            cli_print("%s", h > 0 ? ", " : "");
            if (is_horizon)
                cli_print("%lld", (long long)cli_horizon((double)slope, spec));
            else
                cli_print("%s", cli_float(&number, slope));
        }
        cli_print("%s\n", is_horizon ? " tokens (weight < 2^-24)" : "");
    }
    pe_bias_destroy(plan);
}

static void print_alibi(const pe_bias_spec *spec)
{
    print_label("slopes");
    cli_print("%s recipe", cli_choice_name(cli_recipe_names, spec->slope_recipe));
    print_number("max_bias", spec->max_bias);
    print_number("scale", spec->scale);
    if (spec->round_to != 0)
        cli_print(", computed in %s", cli_choice_name(cli_dtype_names, spec->round_to));
    cli_print("\n");
    print_slopes(spec);
}

static void print_bias(const pe_model *model)
{
    pe_bias_spec spec;
    for (int32_t i = 0; i < pe_model_get_info(model)->num_biases; i++) {
        spec = (pe_bias_spec){.struct_size = sizeof spec};
        if (pe_model_bias_spec(model, i, &spec, NULL) != PE_OK)
            continue;
        cli_print("\n%s, %s, %d heads\n", cli_choice_name(cli_bias_names, spec.type),
                  cli_choice_name(cli_form_names, spec.form), (int)spec.num_heads);
        if (spec.type == PE_BIAS_ALIBI)
            print_alibi(&spec);
        if (spec.type == PE_BIAS_T5) {
            print_label("buckets");
            cli_print("%d, max_distance %lld\n", (int)spec.num_buckets,
                      (long long)spec.max_distance);
        }
    }
}

static void print_sinusoidal(const pe_sinusoidal_spec *spec)
{
    const double base = spec->base != 0 ? spec->base : 10000;
    cli_number number, shift;
    cli_print("\nsinusoidal, %s, width %d, added to the input\n",
              cli_choice_name(cli_order_names, spec->order), (int)spec->model_dim);
    print_label("frequency i");
    if (spec->downscale_freq_shift != 0)
        cli_print("%s^(-i / (half - %s))", cli_double(&number, base),
                  cli_double(&shift, spec->downscale_freq_shift));
    else
        cli_print("%s^(-i / half)", cli_double(&number, base));
    print_number("position_scale", spec->position_scale);
    print_number("value_scale", spec->value_scale);
    cli_print("\n");
    if (spec->num_axes > 1) {
        print_label("axes");
        cli_print("%d groups of %d columns\n", (int)spec->num_axes,
                  (int)(spec->model_dim / spec->num_axes));
    }
    if (spec->embed_scale != 0) {
        print_label("embed_scale");
        cli_print("%s\n", cli_double(&number, spec->embed_scale));
    }
    if (spec->has_padding) {
        print_label("padding");
        cli_print("position %lld is zero, text starts at %lld\n",
                  (long long)spec->padding_position,
                  (long long)spec->padding_position + 1);
    }
}

static void print_learned(const pe_model *model, const pe_learned_spec *spec)
{
    cli_number number;
    int64_t rows = spec->weight != NULL ? spec->weight->seq_len : 0;
    const pe_field *field = pe_model_find_field(model, "learned.rows");
    cli_print("\nlearned table, row = position");
    if (spec->position_offset != 0)
        cli_print(" + %d", (int)spec->position_offset);
    cli_print(", added to the input\n");
    if (rows == 0 && field != NULL && !cli_read_integer(field->value, &rows))
        rows = 0;
    if (rows > 0) {
        print_label("capacity");
        cli_print("%lld tokens (%lld rows, for positions 0 to %lld)\n",
                  (long long)rows - spec->position_offset, (long long)rows,
                  (long long)rows - spec->position_offset - 1);
    }
    if (spec->embed_scale != 0) {
        print_label("embed_scale");
        cli_print("%s\n", cli_double(&number, spec->embed_scale));
    }
}

static void print_absolute(const pe_model *model)
{
    pe_sinusoidal_spec sinusoidal = {.struct_size = sizeof sinusoidal};
    pe_learned_spec learned = {.struct_size = sizeof learned};
    if (pe_model_sinusoidal_spec(model, &sinusoidal, NULL) == PE_OK)
        print_sinusoidal(&sinusoidal);
    if (pe_model_learned_spec(model, &learned, NULL) == PE_OK)
        print_learned(model, &learned);
}

static void print_notes(const pe_model *model)
{
    const pe_note *note;
    for (int32_t i = 0; (note = pe_model_note(model, i)) != NULL; i++) {
        if (i == 0)
            cli_print("\n");
        cli_print("%s: %s%s%s%s\n", cli_choice_name(cli_level_names, note->level),
                  note->text, note->path ? " (" : "", note->path ? note->path : "",
                  note->path ? ")" : "");
    }
}

static int print_text(const cli_model *model, int32_t layers)
{
    cli_site_groups groups;
    int status = cli_sites_group(&groups, model->model);
    if (status != CLI_DONE)
        return status;
    print_summary(model);
    print_notes(model->model);
    for (size_t i = 0; i < groups.count && status == CLI_DONE; i++)
        status = print_site(model, &groups, i);
    cli_sites_release(&groups);
    if (status != CLI_DONE)
        return status;
    print_bias(model->model);
    print_absolute(model->model);
    if (layers)
        status = cli_inspect_layers(model->model);
    cli_inspect_fields(model->model);
    return status;
}

static int run(int argc, char **argv)
{
    inspect_args args = {0};
    const char *argument;
    int status = cli_parse(&cli_verb_inspect, argc, argv, &args, &argument);
    if (status != CLI_CONTINUE)
        return status;
    cli_model model;
    status = cli_model_open(&model, argument, args.seq_len);
    if (status != CLI_DONE)
        return status;
    if (!args.json)
        cli_print_hold();
    status = args.json ? cli_inspect_json(&model) : print_text(&model, args.layers);
    cli_print_release(status == CLI_DONE);
    cli_model_close(&model);
    return status;
}

static const cli_option options[] = {
    {.name = "seq-len",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = INT64_MAX,
     .offset = offsetof(inspect_args, seq_len),
     .help =
         "total length served, for what depends on it; default: the trained length"},
    {.name = "layers",
     .type = CLI_FLAG,
     .offset = offsetof(inspect_args, layers),
     .help = "and layer by layer, runs of equal ones together"},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(inspect_args, json),
     .help = "schema posenc.inspect/1"}};

const cli_verb cli_verb_inspect = {
    .name = "inspect",
    .summary = "what a model does with positions, and how we know",
    .operands = "MODEL",
    .about =
        "Method, pairing, dims, frequencies and scaling of each group of layers, and\n"
        "where every value comes from: stated in the file, derived from it, "
        "defaulted,\n"
        "or conflicting (the file says several things; which won, and why).\n"
        "\n" CLI_MODEL_HELP,
    .examples = "posenc inspect llama-3.1-8b\n"
                "posenc inspect gemma-3-4b --layers\n"
                "posenc inspect gemma-3-4b --json",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};
