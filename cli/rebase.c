/* SPDX-License-Identifier: MIT
 *
 * rebase.c - posenc rebase: cached keys to other positions, or other frequencies
 */
#include "keys_arg.h"
#include "positions_arg.h"
#include "verbs.h"

#include <string.h>

typedef struct rebase_args {
    cli_keys_args keys; /* first: CLI_ROPE_OPTIONS count from it */
    const char *from, *to;
    int64_t to_seq_len;
} rebase_args;

/* One end of the move. */
typedef struct side {
    cli_model model;
    cli_rope rope;
    cli_positions positions;
    pe_positions at;
} side;

typedef struct rebase_job {
    const rebase_args *args;
    side from, to;
    cli_keys keys;
} rebase_job;

static int rebase_piece(void *context, int64_t row, int64_t token, const pe_tensor *x)
{
    const rebase_job *job = context;
    const pe_positions from = cli_stream_positions(&job->from.at, row, token);
    const pe_positions to = cli_stream_positions(&job->to.at, row, token);
    pe_error error;
    if (pe_rope_rebase(job->from.rope.plan, &from, job->to.rope.plan, &to, x, x,
                       &error) != PE_OK)
        return cli_fail_with(job->keys.tensor.in.name, &error);
    return CLI_DONE;
}

static int open_side(side *s, const char *model, const cli_rope_args *rope,
                     const char *option, const char *positions)
{
    int status = cli_model_open(&s->model, model, rope->seq_len);
    if (status == CLI_DONE)
        status = cli_rope_open(&s->rope, &s->model, rope, -1, 0);
    if (status == CLI_DONE)
        status = cli_positions_open(&s->positions, option, positions);
    return status;
}

static void close_side(side *s)
{
    cli_positions_close(&s->positions);
    cli_rope_close(&s->rope);
    cli_model_close(&s->model);
}

static int fit_side(side *s, const cli_tensor *t)
{
    const int64_t last = cli_positions_last(&s->positions, t->seq_len);
    if (last < INT64_MAX && last >= s->rope.info->seq_len_max)
        cli_note(
            "positions reach %lld, but the frequencies are right for lengths up to "
            "%lld (see --seq-len and --to-seq-len)",
            (long long)last, (long long)s->rope.info->seq_len_max);
    return cli_positions_fit(&s->positions, t->batch, t->seq_len,
                             s->rope.info->num_axes, &s->at);
}

static void name_positions(char *out, size_t size, const cli_positions *p)
{
    if (p->ids != NULL)
        (void)snprintf(out, size, "those of %s", p->name);
    else
        (void)snprintf(out, size, "%lld on", (long long)p->start);
}

static int work(rebase_job *job, const char *model)
{
    const rebase_args *args = job->args;
    cli_rope_args rope = args->keys.rope;
    char from[100], to[100], done[500];
    int status = open_side(&job->from, model, &rope, "from", args->from);
    if (args->to_seq_len != 0)
        rope.seq_len = args->to_seq_len;
    if (status == CLI_DONE)
        status = open_side(&job->to, model, &rope, args->to ? "to" : "from",
                           args->to ? args->to : args->from);
    if (status == CLI_DONE)
        status =
            cli_keys_open(&job->keys, &args->keys, &job->from.model, &job->from.rope);
    if (status == CLI_DONE)
        status = fit_side(&job->from, &job->keys.tensor);
    if (status == CLI_DONE)
        status = fit_side(&job->to, &job->keys.tensor);
    if (status != CLI_DONE)
        return status;
    const double factor =
        job->to.rope.info->attention_factor / job->from.rope.info->attention_factor;
    name_positions(from, sizeof from, &job->from.positions);
    name_positions(to, sizeof to, &job->to.positions);
    (void)snprintf(done, sizeof done, "positions from %s to %s, layers %s, %s angles",
                   from, to, job->from.rope.layers,
                   cli_choice_name(cli_angles_names, rope.angles));
    return cli_keys_move(&job->keys, &args->keys, rebase_piece, job, factor, done);
}

/* Standard input can be read once. */
static int check_stdin(const rebase_args *args, const char *model)
{
    const char *const paths[] = {model, args->keys.keys, args->from, args->to};
    int count = 0;
    for (size_t i = 0; i < CLI_COUNT(paths); i++)
        count += paths[i] != NULL && strcmp(paths[i], "-") == 0;
    if (strcmp(model, "-") == 0)
        return cli_fail(CLI_USAGE, "MODEL is -, which can be read once: two models are "
                                   "made here");
    return count <= 1
               ? CLI_DONE
               : cli_fail(CLI_USAGE,
                          "- stands for standard input %d times, must be at most "
                          "once",
                          count);
}

static int run(int argc, char **argv)
{
    rebase_args args = {.keys = {.rope = CLI_ROPE_DEFAULTS}};
    rebase_job job = {.args = &args};
    const char *operand;
    int status = cli_parse(&cli_verb_rebase, argc, argv, &args, &operand);
    if (status != CLI_CONTINUE)
        return status;
    if (args.keys.keys == NULL)
        return cli_fail(CLI_USAGE, "--keys FILE.npy is missing: what to move");
    if (args.keys.output == NULL)
        return cli_fail(CLI_USAGE, "-o FILE.npy is missing: where to write");
    if (args.to == NULL && args.to_seq_len == 0)
        return cli_fail(CLI_USAGE, "--to or --to-seq-len is missing: what changes");
    status = check_stdin(&args, operand);
    if (status == CLI_DONE)
        status = work(&job, operand);
    cli_keys_close(&job.keys);
    close_side(&job.from);
    close_side(&job.to);
    return status;
}

static const cli_option options[] = {
    CLI_KEYS_OPTIONS(rebase_args),
    {.name = "from",
     .argument = "START|IDS.npy",
     .type = CLI_TEXT,
     .offset = offsetof(rebase_args, from),
     .help =
         "where the keys stand: the position of the first token (default 0), or ids "
         "as apply --positions takes them"},
    {.name = "to",
     .argument = "START|IDS.npy",
     .type = CLI_TEXT,
     .offset = offsetof(rebase_args, to),
     .help = "where they shall stand; default: as --from"},
    {.name = "to-seq-len",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = INT64_MAX,
     .offset = offsetof(rebase_args, to_seq_len),
     .help = "total length served from now on, where frequencies depend on it "
             "(dynamic, longrope); --seq-len is the one they are rotated for"},
    CLI_ROPE_OPTIONS(cli_keys_args)};

const cli_verb cli_verb_rebase = {
    .name = "rebase",
    .summary = "move cached keys to other positions or frequencies",
    .operands = "MODEL",
    .about =
        "Keys rotated at some positions become keys rotated at others, each token by\n"
        "its own distance; or keys for one total length become keys for another, as\n"
        "when LongRoPE switches factors.  One rotation, from the exact difference of\n"
        "the angles.  Reports how far rounding may move an element.\n"
        "\n" CLI_MODEL_HELP,
    .examples =
        "posenc rebase llama-3.1-8b -k examples/data/q.npy --from 300 --to 44 -o "
        "k.npy",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};
