/* SPDX-License-Identifier: MIT
 *
 * diff.c - posenc diff: whether two models turn alike, and where they part
 */
#include "diff.h"

#include "options.h"
#include "verbs.h"

typedef struct diff_args {
    double tolerance;
    int64_t seq_len;
    int32_t json;
} diff_args;

static int compare(cli_model *a, cli_model *b, const diff_args *args)
{
    cli_diff diff;
    int status = cli_diff_models(&diff, a, b, args->tolerance, args->seq_len);
    if (status != CLI_DONE)
        return status;
    if (args->json)
        status = cli_diff_print_json(&diff, a, b);
    else
        cli_diff_print(&diff, a, b);
    if (status == CLI_DONE && diff.differs)
        status = CLI_FAILED;
    cli_diff_release(&diff);
    return status;
}

static int run(int argc, char **argv)
{
    diff_args args = {.tolerance = 0.01};
    const char *arguments[2];
    int status = cli_parse(&cli_verb_diff, argc, argv, &args, arguments);
    if (status != CLI_CONTINUE)
        return status;
    cli_model a, b;
    status = cli_model_open(&a, arguments[0], args.seq_len);
    if (status != CLI_DONE)
        return status;
    status = cli_model_open(&b, arguments[1], args.seq_len);
    if (status == CLI_DONE) {
        status = compare(&a, &b, &args);
        cli_model_close(&b);
    }
    cli_model_close(&a);
    return status;
}

static const cli_option options[] = {
    {.name = "tolerance",
     .argument = "X",
     .type = CLI_NUMBER,
     .offset = offsetof(diff_args, tolerance),
     .help =
         "radians by which two angles may part and still be the same; default 0.01"},
    {.name = "seq-len",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = INT64_MAX,
     .offset = offsetof(diff_args, seq_len),
     .help = "total length served, for what depends on it; default: the trained "
             "length.  The gaps at 4k, 32k and 128k are those of models served at "
             "that length"},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(diff_args, json),
     .help = "schema posenc.diff/1"}};

const cli_verb cli_verb_diff = {
    .name = "diff",
    .summary = "whether two models turn alike, and where they part",
    .operands = "A B",
    .about =
        "First position and pair where angles part by more than the tolerance, the\n"
        "largest gap at 4k, 32k and 128k tokens, factors, contexts, and layers that\n"
        "differ.  Exit code 0: the same; 1: different.  A rule or base that differs\n"
        "does not count where the angles agree, nor does the pairing between a GGUF\n"
        "file and a config.json, since converters permute the rows of q and k.\n"
        "\nA and B are each a MODEL.\n" CLI_MODEL_HELP,
    .examples = "posenc diff llama-3.1-8b llama-3.1-8b\n"
                "posenc diff gemma-3-4b gemma-3-4b --tolerance 0.001 --json",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 2,
    .run = run};
