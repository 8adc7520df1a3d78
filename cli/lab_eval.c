/* SPDX-License-Identifier: MIT
 *
 * lab_eval.c - posenc lab eval: a trained model read in some modes, at some lengths
 */
#include "input.h"
#include "lab_arg.h"
#include "lab_json.h"
#include "lab_measure.h"
#include "lab_store.h"
#include "lab_verbs.h"
#include "print.h"

#include "lab/matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct eval_args {
    cli_lab_arg lab;
    const char *modes, *multiples, *output;
    int64_t eval_tokens;
    int32_t slide, by_position, json;
} eval_args;

static void print_row(const lab_results *results, const lab_result *r)
{
    cli_print("%-9s %8.0f  %-10s  %.6f\n", r->mode,
              r->multiple * (double)results->settings.length,
              r->slide ? "slide" : "nonoverlap", r->nll);
}

static void print_positions(const lab_results *results)
{
    const double length = (double)results->settings.length;
    cli_print("\nmode        tokens   position  nll\n");
    for (int64_t i = 0; i < results->count; i++) {
        const lab_result *r = &results->items[i];
        for (int32_t b = 0; r->by_position != NULL && b < r->num_blocks; b++)
            cli_print("%-9s %8.0f %10.0f  %.6f\n", r->mode, r->multiple * length,
                      b * length, r->by_position[b]);
    }
}

static int print(const eval_args *args, const lab_results *results)
{
    if (args->json)
        return cli_json_print(cli_lab_json(results, args->by_position));
    cli_print("%s, seed %llu: loss in nats a byte of %s\n", results->items[0].method,
              (unsigned long long)results->items[0].seed, results->settings.text);
    cli_print("\nmode        tokens  windows     nll\n");
    for (int64_t i = 0; i < results->count; i++)
        print_row(results, &results->items[i]);
    if (args->by_position)
        print_positions(results);
    return CLI_DONE;
}

static int make_plan(const eval_args *args, const lab_config *config, cli_lab_plan *out)
{
    const int is_all = args->modes != NULL && strcmp(args->modes, "all") == 0;
    const char *modes = is_all ? NULL : args->modes != NULL ? args->modes : "base";
    const int status = cli_lab_plan_make(out, config, modes, args->multiples);
    out->eval_tokens = args->eval_tokens;
    out->slide_tokens = args->slide ? args->eval_tokens / CLI_LAB_SLIDE_SHARE : 0;
    return status;
}

static int measure(const eval_args *args, cli_lab_plan *plan, const lab_state *state,
                   const lab_corpus *corpus)
{
    lab_results results = {.source = "this run"};
    pe_pool *pool;
    pe_env env;
    int status = cli_lab_threads(&args->lab, &pool, &env, &plan->threads);
    if (status != CLI_DONE)
        return status;
    cli_lab_plan_settings(plan, &state->config, corpus, &results.settings);
    status = cli_lab_measure(plan, state, corpus, &env, &results);
    if (status == CLI_DONE && args->output != NULL)
        status = cli_lab_save_json(cli_lab_json(&results, 1), args->output);
    if (status == CLI_DONE)
        status = print(args, &results);
    lab_results_release(&results);
    pe_pool_destroy(pool);
    return status;
}

/* The text that the model was trained on, and a model that has been. */
static int check(const eval_args *args, const lab_state *state,
                 const lab_corpus *corpus, const char *sha256)
{
    if (strcmp(sha256, corpus->sha256) != 0)
        return cli_fail(CLI_FAILED,
                        "the model was trained on a text of SHA-256 %.12s, and %s has "
                        "%.12s",
                        sha256, corpus->name, corpus->sha256);
    if (state->step >= state->config.steps)
        return CLI_DONE;
    if (args->output != NULL)
        return cli_fail(CLI_FAILED,
                        "the model is at step %lld of %d: no results are kept before "
                        "the last",
                        (long long)state->step, state->config.steps);
    cli_note("the model is at step %lld of %d", (long long)state->step,
             state->config.steps);
    return CLI_DONE;
}

/* Known before the reading, which may take minutes. */
static int check_output(const eval_args *args, const char *checkpoint)
{
    char *inside = cli_lab_path(checkpoint, CLI_LAB_CHECKPOINT);
    if (inside == NULL)
        return CLI_FAILED;
    cli_input_add(checkpoint);
    cli_input_add(inside);
    free(inside);
    if (args->output != NULL && cli_input_is(args->output))
        return cli_fail(CLI_USAGE, "%s is an input; choose another output",
                        args->output);
    return CLI_DONE;
}

static int run(int argc, char **argv)
{
    eval_args args = {.lab = cli_lab_defaults, .eval_tokens = 32768};
    const char *path;
    char sha256[65];
    lab_state state;
    lab_corpus corpus;
    cli_lab_plan plan;
    pe_error error;
    int status = cli_parse(&cli_verb_lab_eval, argc, argv, &args, &path);
    if (status != CLI_CONTINUE)
        return status;
    if (lab_matmul_load(&error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    status = cli_lab_load(path, &state, sha256);
    if (status != CLI_DONE)
        return status;
    status = make_plan(&args, &state.config, &plan);
    if (status == CLI_DONE)
        status = cli_lab_corpus(&args.lab, &corpus);
    if (status == CLI_DONE) {
        status = check_output(&args, path);
        if (status == CLI_DONE)
            status = check(&args, &state, &corpus, sha256);
        if (status == CLI_DONE)
            status = cli_lab_plan_check(&plan, &state.config, &corpus,
                                        "a command without --slide");
        if (status == CLI_DONE)
            status = measure(&args, &plan, &state, &corpus);
        lab_corpus_release(&corpus);
    }
    lab_state_release(&state);
    return status;
}

static const cli_option options[] = {
    {.name = "mode",
     .argument = "LIST",
     .type = CLI_TEXT,
     .offset = offsetof(eval_args, modes),
     .help = "how to read past the trained length: base (default), window, pi, ntk, "
             "ntkxM, ntk@S, dyn, yarn, yarn-bN, parts-bN, clamp, wrap, interp, with "
             "commas between; or all"},
    {.name = "multiple",
     .argument = "LIST",
     .type = CLI_TEXT,
     .offset = offsetof(eval_args, multiples),
     .help = "of the trained length, rising (1,2,4,8,16)"},
    {.name = "slide",
     .type = CLI_FLAG,
     .offset = offsetof(eval_args, slide),
     .help = "sliding windows as well, an eighth as many bytes"},
    {.name = "by-position",
     .type = CLI_FLAG,
     .offset = offsetof(eval_args, by_position),
     .help = "also the loss at each place of a window"},
    {.name = "eval-tokens",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = 1 << 30,
     .offset = offsetof(eval_args, eval_tokens),
     .help = "bytes to read, of those kept for the test (32768)"},
    CLI_LAB_TEXT_OPTIONS(eval_args),
    CLI_LAB_THREADS_OPTION(eval_args),
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(eval_args, json),
     .help = "schema posenc.lab/1"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE.json",
     .type = CLI_TEXT,
     .offset = offsetof(eval_args, output),
     .help = "also write that there; lab report reads results.json in the folder of "
             "the run"}};

const cli_verb cli_verb_lab_eval = {
    .name = "lab eval",
    .summary = "the loss of a trained model at multiples of its length",
    .operands = "CHECKPOINT",
    .about =
        "CHECKPOINT is a file that lab train wrote, or the folder of a run.  The loss\n"
        "is read on bytes that training did not see, by default in windows that do\n"
        "not overlap: every byte counts, those at the beginning of a window, with\n"
        "little before them, too.  Sliding windows end at the same bytes whatever\n"
        "their length, and only the last L count.\n"
        "\n"
        "Modes, with s the multiple:\n"
        "  base         as it was trained; a learned table ends at L and is refused\n"
        "  window       keys limited to the last L positions\n"
        "  pi           positions divided by s (rope, sin)\n"
        "  ntk, ntkxM   rope's base times s^(d / (d - 2)); s times M\n"
        "  ntk@S        the same for s = S at every length\n"
        "  dyn          NTK whose s grows with each L tokens, keys turned anew\n"
        "  yarn, -bN    YaRN, alpha 1 and beta 32, or N; parts-bN: no temperature\n"
        "  clamp, wrap, interp  a learned table: its last row, from its start again,\n"
        "               or stretched",
    .examples =
        "posenc lab eval try/alibi-seed0 --copy 16 --mode base,window\n"
        "posenc lab eval try/alibi-seed0 --copy 16 --multiple 4 --by-position --slide\n"
        "posenc lab eval try/alibi-seed0 --copy 16 --mode all --slide \\\n"
        "    -o try/alibi-seed0/results.json",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};
