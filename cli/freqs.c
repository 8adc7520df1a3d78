/* SPDX-License-Identifier: MIT
 *
 * freqs.c - posenc freqs: the inverse frequencies of a model's rotation
 */
#include "npy_out.h"
#include "print.h"
#include "report.h"
#include "rope_arg.h"
#include "verbs.h"

#include <stdio.h>

typedef struct freqs_args {
    cli_rope_args rope;
    const char *output;
    int32_t json, csv;
} freqs_args;

static const double two_pi = 6.283185307179586;

static void print_json(const cli_model *model, const cli_rope *rope)
{
    const pe_rope_info *info = rope->info;
    json_object *root = cli_json_start("posenc.freqs/1");
    cli_json_set_text(root, "model", model->name);
    cli_json_set_text(root, "layers", rope->layers);
    cli_json_set_text(root, "rope_type",
                      cli_choice_name(cli_rope_type_names, rope->spec.freqs.rope_type));
    cli_json_set_text(root, "angles",
                      cli_choice_name(cli_angles_names, rope->spec.angles));
    cli_json_set_integer(root, "head_dim", info->head_dim);
    cli_json_set_integer(root, "rotary_dim", info->rotary_dim);
    cli_json_set_number(root, "attention_factor", info->attention_factor);
    cli_json_set_number(root, "softmax_factor", info->softmax_factor);
    cli_json_set_integer(root, "seq_len_min", info->seq_len_min);
    if (info->seq_len_max < INT64_MAX)
        cli_json_set_integer(root, "seq_len_max", info->seq_len_max);
    cli_json_numbers(root, "inv_freq", info->inv_freq, info->num_pairs);
    if (info->num_axes > 1) {
        json_object *axes = json_object_new_array();
        for (int32_t i = 0; i < info->num_pairs; i++)
            (void)json_object_array_add(axes, json_object_new_int(info->pair_axis[i]));
        (void)json_object_object_add(root, "pair_axis", axes);
    }
    (void)cli_json_print(root);
}

static void print_csv(const pe_rope_info *info)
{
    cli_number number;
    cli_print("pair,axis,inv_freq\n");
    for (int32_t i = 0; i < info->num_pairs; i++)
        cli_print("%d,%d,%s\n", (int)i, (int)info->pair_axis[i],
                  cli_double(&number, info->inv_freq[i]));
}

static void print_text(const cli_model *model, const cli_rope *rope)
{
    const pe_rope_info *info = rope->info;
    cli_number number;
    cli_print("%s, layers %s: %s, %d pairs, attention_factor %s\n\n", model->name,
              rope->layers,
              cli_choice_name(cli_rope_type_names, rope->spec.freqs.rope_type),
              (int)info->num_pairs, cli_double(&number, info->attention_factor));
    cli_print("%5s%s  %-22s  %s\n", "pair", info->num_axes > 1 ? "  axis" : "",
              "inv_freq", "tokens per turn");
    for (int32_t i = 0; i < info->num_pairs; i++) {
        double inv_freq = info->inv_freq[i];
        cli_print("%5d", (int)i);
        if (info->num_axes > 1)
            cli_print("  %4d", (int)info->pair_axis[i]);
        cli_print("  %-22s  ", cli_double(&number, inv_freq));
        if (inv_freq == 0)
            cli_print("still\n");
        else
            cli_print("%.6g\n", two_pi / (inv_freq < 0 ? -inv_freq : inv_freq));
    }
}

static int write_npy(const char *path, const pe_rope_info *info)
{
    cli_file_out out;
    int64_t shape[1] = {info->num_pairs};
    int status = cli_npy_create(&out, path, "<f8", 1, shape);
    if (status == CLI_DONE)
        status = cli_file_write(&out, info->inv_freq,
                                (size_t)info->num_pairs * sizeof *info->inv_freq);
    if (status == CLI_DONE)
        status = cli_file_commit(&out);
    cli_file_discard(&out);
    return status;
}

static int run(int argc, char **argv)
{
    freqs_args args = {.rope = CLI_ROPE_DEFAULTS};
    const char *argument;
    int status = cli_parse(&cli_verb_freqs, argc, argv, &args, &argument);
    if (status != CLI_CONTINUE)
        return status;
    if (args.json + args.csv + (args.output != NULL) > 1)
        return cli_fail(CLI_USAGE, "--json, --csv and --output exclude each other");
    cli_model model;
    cli_rope rope;
    status = cli_model_open(&model, argument, args.rope.seq_len);
    if (status != CLI_DONE)
        return status;
    status = cli_rope_open(&rope, &model, &args.rope, -1, 0);
    if (status == CLI_DONE) {
        if (args.output != NULL)
            status = write_npy(args.output, rope.info);
        else if (args.json)
            print_json(&model, &rope);
        else if (args.csv)
            print_csv(rope.info);
        else
            print_text(&model, &rope);
        cli_rope_close(&rope);
    }
    cli_model_close(&model);
    return status;
}

static const cli_option options[] = {
    CLI_ROPE_OPTIONS(freqs_args),
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(freqs_args, json),
     .help = "schema posenc.freqs/1"},
    {.name = "csv",
     .type = CLI_FLAG,
     .offset = offsetof(freqs_args, csv),
     .help = "pair,axis,inv_freq"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE.npy",
     .type = CLI_TEXT,
     .offset = offsetof(freqs_args, output),
     .help = "write float64 (pairs) there instead; - is standard output"}};

const cli_verb cli_verb_freqs = {
    .name = "freqs",
    .summary = "the rotation's frequency for each pair of elements",
    .operands = "MODEL",
    .about =
        "Radians per position of each pair, with the model's scaling rule applied.\n"
        "\n" CLI_MODEL_HELP,
    .examples = "posenc freqs llama-3.1-8b\n"
                "posenc freqs gemma-3-4b --layer 5 --csv",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};
