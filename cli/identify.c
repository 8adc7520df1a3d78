/* SPDX-License-Identifier: MIT
 *
 * identify.c - posenc identify: names the convention behind numbers
 *
 * "unknown" is an answer, with exit code 1: a wrong name would cost more than none. */
#include "identify.h"

#include "print.h"
#include "report.h"
#include "tensor_arg.h"
#include "verbs.h"

#include <json-c/json_object_iterator.h>

#include <stdio.h>

typedef int work(cli_answers *, const cli_identify_args *, const char *const *);

static const cli_choice layouts[] = {{"bshd", CLI_BSHD}, {"bhsd", CLI_BHSD}, {NULL, 0}};

static int print_json(cli_answers *answers)
{
    json_object *root = cli_json_start("posenc.identify/1");
    json_object *list = json_object_new_array();
    json_object *evidence = json_object_new_array();
    for (size_t i = 0; i < answers->count; i++) {
        cli_answer *answer = &answers->items[i];
        json_object *item = json_object_new_object();
        cli_json_text(item, "name", answer->name);
        cli_json_set_number(item, "residual", answer->residual);
        if (answer->details != NULL) {
            struct json_object_iterator at = json_object_iter_begin(answer->details);
            struct json_object_iterator end = json_object_iter_end(answer->details);
            for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at))
                json_object_object_add(
                    item, json_object_iter_peek_name(&at),
                    json_object_get(json_object_iter_peek_value(&at)));
        }
        json_object_array_add(list, item);
    }
    for (size_t i = 0; i < answers->num_evidence; i++)
        json_object_array_add(evidence, json_object_new_string(answers->evidence[i]));
    cli_json_text(root, "answer",
                  answers->count == 0   ? "unknown"
                  : answers->count == 1 ? "identified"
                                        : "several");
    json_object_object_add(root, "candidates", list);
    json_object_object_add(root, "evidence", evidence);
    return cli_json_print(root);
}

static void print_text(const cli_answers *answers)
{
    if (answers->count == 0)
        cli_print("unknown\n");
    for (size_t i = 0; i < answers->count; i++) {
        /* Sums of squares hold no more than this. */
        const double residual = answers->items[i].residual;
        cli_print("%s\n", answers->items[i].name);
        cli_print(residual < 1e-7 ? "  residual under %.2g\n" : "  residual %.2g\n",
                  residual < 1e-7 ? 1e-7 : residual);
    }
    if (answers->num_evidence > 0)
        cli_print("\n");
    for (size_t i = 0; i < answers->num_evidence; i++)
        cli_print("%s\n", answers->evidence[i]);
}

static int run(int argc, char **argv)
{
    cli_identify_args args = {0};
    const char *operands[2] = {NULL, NULL};
    int status = cli_parse(&cli_verb_identify, argc, argv, &args, operands);
    if (status != CLI_CONTINUE)
        return status;
    if (args.table + args.freqs + args.sinusoidal + args.slopes + args.weights > 1)
        return cli_fail(CLI_USAGE, "--table, --freqs, --sinusoidal, --slopes and "
                                   "--weights exclude each other");
    const int wants_one = args.freqs || args.sinusoidal || args.slopes;
    if (wants_one && operands[1] != NULL)
        return cli_fail(CLI_USAGE, "too many arguments from '%s' on", operands[1]);
    if (!wants_one && !args.table && operands[1] == NULL)
        return cli_fail(CLI_USAGE, args.weights
                                       ? "--weights needs two safetensors files"
                                       : "a second file is missing: before and after");
    work *const what = args.table        ? cli_identify_table
                       : args.freqs      ? cli_identify_freqs
                       : args.sinusoidal ? cli_identify_sinusoidal
                       : args.slopes     ? cli_identify_slopes
                       : args.weights    ? cli_identify_weights
                                         : cli_identify_rotation;
    static cli_answers answers;
    status = what(&answers, &args, operands);
    if (status == CLI_DONE) {
        if (args.json)
            status = print_json(&answers);
        else
            print_text(&answers);
        if (status == CLI_DONE && answers.count == 0)
            status = CLI_FAILED;
    }
    for (size_t i = 0; i < answers.count; i++)
        json_object_put(answers.items[i].details);
    return status;
}

static const cli_option options[] = {
    {.name = "table",
     .type = CLI_FLAG,
     .offset = offsetof(cli_identify_args, table),
     .help =
         "BEFORE is a table of cos and sin, (2, rows, pairs), or cos, and AFTER sin"},
    {.name = "freqs",
     .type = CLI_FLAG,
     .offset = offsetof(cli_identify_args, freqs),
     .help = "BEFORE is a list of inverse frequencies"},
    {.name = "sinusoidal",
     .type = CLI_FLAG,
     .offset = offsetof(cli_identify_args, sinusoidal),
     .help = "BEFORE is a table of positions, (rows, model_dim)"},
    {.name = "slopes",
     .type = CLI_FLAG,
     .offset = offsetof(cli_identify_args, slopes),
     .help = "BEFORE is a list of ALiBi slopes"},
    {.name = "weights",
     .type = CLI_FLAG,
     .offset = offsetof(cli_identify_args, weights),
     .help = "BEFORE and AFTER are safetensors of one model in two pairings"},
    {.name = "positions",
     .letter = 'p',
     .argument = "START|IDS.npy",
     .type = CLI_TEXT,
     .offset = offsetof(cli_identify_args, positions),
     .help = "where the tokens stand; default: one after the other, from anywhere"},
    {.name = "layout",
     .argument = "ORDER",
     .type = CLI_CHOICE,
     .choices = layouts,
     .offset = offsetof(cli_identify_args, layout),
     .help = "axes of the files: bshd (default) or bhsd"},
    {.name = "head-dim",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 4,
     .max = 4096,
     .offset = offsetof(cli_identify_args, head_dim),
     .help = "with --weights: width of a head, if it is known"},
    {.name = "bf16",
     .type = CLI_FLAG,
     .offset = offsetof(cli_identify_args, bf16),
     .help = "the files are uint16 that hold bfloat16"},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(cli_identify_args, json),
     .help = "schema posenc.identify/1"}};

const cli_verb cli_verb_identify = {
    .name = "identify",
    .summary = "which convention made these numbers",
    .operands = "BEFORE [AFTER]",
    .about =
        "Takes q or k before and after their rotation (.npy, a few tokens and heads "
        "are\n"
        "enough) and names pairing, window, theta, scaling, first position, direction\n"
        "and factor, from the rules of all presets and common plain ones.  Rules that\n"
        "the data do not tell apart are all named, with what would tell.  Exit code "
        "1:\n"
        "unknown.",
    .examples = "posenc apply llama-3.1-8b --q examples/data/q.npy --positions 1000 -o "
                "out\n"
                "posenc identify examples/data/q.npy out/q.npy",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .num_optional = 1,
    .run = run};
