/* SPDX-License-Identifier: MIT
 *
 * slopes.c - posenc slopes: ALiBi's slope of each head
 */
#include "bias_arg.h"
#include "npy_out.h"
#include "print.h"
#include "report.h"
#include "verbs.h"

#include <stdio.h>

typedef struct slopes_args {
    cli_bias_args bias;
    cli_range heads;
    const char *output;
    int32_t json, csv;
} slopes_args;

static double max_bias(const cli_bias *bias)
{
    return bias->spec.max_bias != 0 ? bias->spec.max_bias : 8;
}

static int print_json(const cli_bias *bias, cli_range heads, const float *slopes)
{
    json_object *root = cli_json_start("posenc.slopes/1");
    cli_json_text(root, "model", bias->name);
    cli_json_set_integer(root, "num_heads", bias->spec.num_heads);
    cli_json_set_text(root, "slope_recipe",
                      cli_choice_name(cli_recipe_names, bias->spec.slope_recipe));
    cli_json_set_number(root, "max_bias", max_bias(bias));
    if (bias->spec.round_to != 0)
        cli_json_set_text(root, "round_to",
                          cli_choice_name(cli_float_names, bias->spec.round_to));
    cli_json_set_integer(root, "head_start", heads.begin);
    (void)json_object_object_add(
        root, "slopes", cli_json_floats(slopes + heads.begin, heads.end - heads.begin));
    return cli_json_print(root);
}

static void print_csv(cli_range heads, const float *slopes)
{
    cli_number number;
    cli_print("head,slope\n");
    for (int64_t h = heads.begin; h < heads.end; h++)
        cli_print("%lld,%s\n", (long long)h, cli_float(&number, slopes[h]));
}

static void print_text(const cli_bias *bias, cli_range heads, const float *slopes)
{
    cli_number number;
    if (bias->name != NULL)
        cli_print("%s: ", bias->name);
    cli_print("%d heads, %s recipe, max_bias %s", (int)bias->spec.num_heads,
              cli_choice_name(cli_recipe_names, bias->spec.slope_recipe),
              cli_double(&number, max_bias(bias)));
    if (bias->spec.round_to != 0)
        cli_print(", rounded to %s",
                  cli_choice_name(cli_float_names, bias->spec.round_to));
    cli_print("\n\n%5s  %-13s  %s\n", "head", "slope", "tokens per unit of score");
    for (int64_t h = heads.begin; h < heads.end; h++)
        cli_print("%5lld  %-13s  %.6g\n", (long long)h, cli_float(&number, slopes[h]),
                  1 / (double)slopes[h]);
}

static int write_npy(const char *path, cli_range heads, const float *slopes)
{
    cli_file_out out;
    const int64_t shape[1] = {heads.end - heads.begin};
    int status = cli_npy_create(&out, path, "<f4", 1, shape);
    if (status == CLI_DONE)
        status = cli_file_write(&out, slopes + heads.begin,
                                (size_t)shape[0] * sizeof *slopes);
    if (status == CLI_DONE)
        status = cli_file_commit(&out);
    cli_file_discard(&out);
    return status;
}

static int report(const slopes_args *args, const cli_bias *bias)
{
    const float *slopes = pe_bias_slopes(bias->plan);
    cli_range heads = args->heads;
    if (slopes == NULL)
        return cli_fail(CLI_FAILED, "%s has no slopes; its bias is %s", bias->name,
                        cli_choice_name(cli_bias_names, bias->spec.type));
    if (heads.begin == heads.end)
        heads = (cli_range){0, bias->spec.num_heads};
    if (heads.begin < 0 || heads.end > bias->spec.num_heads)
        return cli_fail(CLI_USAGE, "--heads is %lld:%lld, must lie in 0:%d",
                        (long long)heads.begin, (long long)heads.end,
                        (int)bias->spec.num_heads);
    if (args->output != NULL)
        return write_npy(args->output, heads, slopes);
    if (args->json)
        return print_json(bias, heads, slopes);
    if (args->csv)
        print_csv(heads, slopes);
    else
        print_text(bias, heads, slopes);
    return CLI_DONE;
}

static int run(int argc, char **argv)
{
    slopes_args args = {.bias = CLI_BIAS_DEFAULTS};
    const char *operand;
    int status = cli_parse(&cli_verb_slopes, argc, argv, &args, &operand);
    if (status != CLI_CONTINUE)
        return status;
    if (args.json + args.csv + (args.output != NULL) > 1)
        return cli_fail(CLI_USAGE, "--json, --csv and --output exclude each other");
    cli_bias bias;
    status = cli_bias_open(&bias, operand, &args.bias);
    if (status == CLI_DONE) {
        status = report(&args, &bias);
        cli_bias_close(&bias);
    }
    return status;
}

static const cli_option options[] = {
    CLI_BIAS_OPTIONS(slopes_args),
    {.name = "heads",
     .argument = "A:B",
     .type = CLI_RANGE,
     .offset = offsetof(slopes_args, heads),
     .help = "heads A to B - 1 only: a tensor-parallel rank's"},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(slopes_args, json),
     .help = "schema posenc.slopes/1"},
    {.name = "csv",
     .type = CLI_FLAG,
     .offset = offsetof(slopes_args, csv),
     .help = "head,slope"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE.npy",
     .type = CLI_TEXT,
     .offset = offsetof(slopes_args, output),
     .help = "write float32 (heads) there instead; - is standard output"}};

const cli_verb cli_verb_slopes = {
    .name = "slopes",
    .summary = "ALiBi's slope of each head",
    .operands = "HEADS|MODEL",
    .about =
        "A key at a distance loses slope times the distance from its score.  Head\n"
        "counts that are no power of two get the series of the next smaller one,\n"
        "then every second slope of the series of twice as many.\n"
        "\n" CLI_BIAS_HELP,
    .examples = "posenc slopes 12\n"
                "posenc slopes mpt-30b --heads 32:64 --csv",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};
