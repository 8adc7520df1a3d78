/* SPDX-License-Identifier: MIT
 *
 * lab_run.c - posenc lab run: methods and seeds trained, read and reported
 *
 * What is finished is left alone and what was begun goes on, so that the same command
 * again, or another process with other methods in the same folder, completes it. */
#include "lab_arg.h"
#include "lab_job.h"
#include "lab_json.h"
#include "lab_report.h"
#include "lab_verbs.h"

#include "lab/matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_METHODS = 16 };

typedef struct run_args {
    cli_lab_arg lab;
    const char *methods, *multiples;
    int64_t layers, seeds, eval_tokens;
    int32_t no_slide, claim, json;
} run_args;

/* The configuration of a method by its name. */
static int choose_method(const char *name, lab_config *config)
{
    lab_method method;
    config->learn_slopes = strcmp(name, "alibi-slopes") == 0;
    if (!lab_method_find(config->learn_slopes ? "alibi" : name, &method))
        return cli_fail(CLI_USAGE,
                        "--methods has '%s', must be none, sin, learned, rope, alibi, "
                        "alibi-slopes, t5 or kerple",
                        name);
    lab_config_set_method(config, method);
    return CLI_DONE;
}

/* One for each name of --methods, in out[MAX_METHODS]. */
static int choose_methods(const char *list, const lab_config *config, lab_config *out,
                          int *count)
{
    int status = CLI_DONE;
    *count = 0;
    for (const char *at = list; *at != '\0' && status == CLI_DONE; (*count)++) {
        char name[32];
        const size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof name || *count == MAX_METHODS)
            return cli_fail(CLI_USAGE,
                            "--methods is '%s', must be at most %d names with commas "
                            "between",
                            list, MAX_METHODS);
        (void)snprintf(name, sizeof name, "%.*s", (int)length, at);
        at += length + (at[length] == ',' && at[length + 1] != '\0');
        out[*count] = *config;
        status = choose_method(name, &out[*count]);
    }
    return status;
}

/* What is read of a method, which the text and the sizes must allow. */
static int make_plan(const run_args *args, const cli_lab_bench *bench,
                     const lab_config *config, cli_lab_plan *out)
{
    pe_error error;
    if (lab_config_check(config, &error) != PE_OK)
        return cli_fail(CLI_USAGE, "%s", error.message);
    const int status = cli_lab_plan_make(out, config, NULL, args->multiples);
    if (status != CLI_DONE)
        return status;
    out->threads = bench->threads;
    out->eval_tokens = args->eval_tokens;
    out->slide_tokens = args->no_slide ? 0 : args->eval_tokens / CLI_LAB_SLIDE_SHARE;
    return cli_lab_plan_check(out, config, bench->corpus, "--no-slide");
}

/* Every seed of a method, in folder; adds the results. */
static int run_method(const run_args *args, const cli_lab_bench *bench,
                      lab_config config, const char *folder, lab_results *results)
{
    cli_lab_plan plan;
    int status = make_plan(args, bench, &config, &plan);
    for (int64_t seed = 0; seed < args->seeds && status == CLI_DONE; seed++) {
        config.seed = (uint64_t)seed;
        status = cli_lab_job(bench, &config, &plan, folder, results);
    }
    return status;
}

static int run_methods(const run_args *args, const cli_lab_bench *bench,
                       const lab_config *config, lab_results *results)
{
    lab_config configs[MAX_METHODS];
    cli_lab_plan plan;
    int count;
    int status = choose_methods(args->methods, config, configs, &count);
    for (int i = 0; i < count && status == CLI_DONE; i++)
        status = make_plan(args, bench, &configs[i], &plan);
    for (int i = 0; i < count && status == CLI_DONE; i++)
        status = run_method(args, bench, configs[i], args->lab.output, results);
    return status;
}

/* ALiBi on L and sinusoids on twice as much, with as many bytes in a step. */
static int run_claim(const run_args *args, const cli_lab_bench *bench,
                     lab_config config)
{
    lab_results once = {.count = 0}, twice = {.count = 0};
    lab_config longer = config;
    cli_lab_plan plan;
    char *folder = cli_lab_path(args->lab.output, "twice");
    int status = folder == NULL ? CLI_FAILED : CLI_DONE;
    lab_config_set_method(&config, LAB_ALIBI);
    lab_config_set_method(&longer, LAB_SIN);
    longer.length *= 2;
    longer.batch = longer.batch > 1 ? longer.batch / 2 : 1;
    if (status == CLI_DONE)
        status = make_plan(args, bench, &config, &plan);
    if (status == CLI_DONE)
        status = make_plan(args, bench, &longer, &plan);
    if (status == CLI_DONE)
        status = run_method(args, bench, config, args->lab.output, &once);
    if (status == CLI_DONE)
        status = run_method(args, bench, longer, folder, &twice);
    if (status == CLI_DONE)
        status = cli_lab_check_claim(&once, &twice);
    if (status == CLI_DONE)
        cli_lab_print_claim(&once, &twice);
    free(folder);
    lab_results_release(&once);
    lab_results_release(&twice);
    return status;
}

static int report(const run_args *args, const lab_results *results)
{
    const int status = cli_lab_save_report(results, NULL, NULL, args->lab.output);
    if (status != CLI_DONE)
        return status;
    return args->json ? cli_json_print(cli_lab_json(results, 0))
                      : cli_lab_print(results);
}

static int run_all(const run_args *args, const lab_config *config,
                   const lab_corpus *corpus)
{
    cli_lab_bench bench = {.corpus = corpus, .again = "the same command"};
    pe_pool *pool;
    int status = cli_lab_threads(&args->lab, &pool, &bench.env, &bench.threads);
    if (status != CLI_DONE)
        return status;
    if (args->claim) {
        status = run_claim(args, &bench, *config);
    } else {
        lab_results results = {.count = 0};
        status = run_methods(args, &bench, config, &results);
        if (status == CLI_DONE)
            status = report(args, &results);
        lab_results_release(&results);
    }
    pe_pool_destroy(pool);
    return status;
}

static int run(int argc, char **argv)
{
    run_args args = {.lab = cli_lab_defaults,
                     .methods = "none,sin,learned,rope,alibi",
                     .seeds = 1,
                     .eval_tokens = 32768};
    lab_config config;
    lab_corpus corpus;
    pe_error error;
    int status = cli_parse(&cli_verb_lab_run, argc, argv, &args, NULL);
    if (status != CLI_CONTINUE)
        return status;
    if (args.claim && args.json)
        return cli_fail(CLI_USAGE, "--claim is a table: without --json");
    status = cli_lab_sizes(&args.lab, &config);
    if (status != CLI_DONE)
        return status;
    if (args.layers > 0)
        config.layers = (int32_t)args.layers;
    if (lab_matmul_load(&error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    status = cli_lab_corpus(&args.lab, &corpus);
    if (status != CLI_DONE)
        return status;
    status = run_all(&args, &config, &corpus);
    lab_corpus_release(&corpus);
    return status;
}

static const cli_option options[] = {
    CLI_LAB_SIZE_OPTIONS(run_args),
    {.name = "layers",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = LAB_MAX_LAYERS,
     .offset = offsetof(run_args, layers),
     .help = "how many: A has 3, B 2"},
    {.name = "methods",
     .argument = "LIST",
     .type = CLI_TEXT,
     .offset = offsetof(run_args, methods),
     .help = "of none, sin, learned, rope, alibi, alibi-slopes (learned ones), t5, "
             "kerple, with commas between (none,sin,learned,rope,alibi)"},
    {.name = "seeds",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = 1000,
     .offset = offsetof(run_args, seeds),
     .help = "runs of each method: seeds 0 to N - 1 (1)"},
    {.name = "multiple",
     .argument = "LIST",
     .type = CLI_TEXT,
     .offset = offsetof(run_args, multiples),
     .help = "of the trained length, rising (1,2,4,8,16)"},
    {.name = "eval-tokens",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = 1 << 30,
     .offset = offsetof(run_args, eval_tokens),
     .help = "bytes to read, of those kept for the test (32768); an eighth as many "
             "in sliding windows"},
    {.name = "no-slide",
     .type = CLI_FLAG,
     .offset = offsetof(run_args, no_slide),
     .help = "leave sliding windows out"},
    {.name = "claim",
     .type = CLI_FLAG,
     .offset = offsetof(run_args, claim),
     .help = "instead: ALiBi trained on L against sinusoids trained on 2 L, both read "
             "at 2 L"},
    CLI_LAB_TEXT_OPTIONS(run_args),
    CLI_LAB_THREADS_OPTION(run_args),
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(run_args, json),
     .help = "schema posenc.lab/1"},
    CLI_LAB_OUTPUT_OPTION(run_args)};

const cli_verb cli_verb_lab_run = {
    .name = "lab run",
    .summary = "train, read and report: all methods, some seeds",
    .operands = "",
    .about =
        "Every method and seed is a run of its own, in a folder of its own, with its\n"
        "checkpoint and its results.json.  What is finished is not done again, and\n"
        "what was begun goes on: the same command completes an interrupted one.  At\n"
        "the end report.json, report.csv and report.svg lie there, too.\n"
        "\n"
        "For a scheduler, lab train and lab eval make the same folders one by one,\n"
        "anywhere, and lab report merges them.\n"
        "\n"
        "On two cores the five methods of configuration B take a minute or two, and\n"
        "of A two or three minutes each.",
    .examples = "posenc lab run --steps 20 --width 16 --copy 8 --multiple 1,2 \\\n"
                "    --methods sin,rope -o tries",
    .options = options,
    .num_options = CLI_COUNT(options),
    .run = run};
