/* SPDX-License-Identifier: MIT
 *
 * apply.c - posenc apply: rotates the q and k of .npy files, or adds to their x
 *
 * Outputs get their names only when all of them are whole. */
#include "apply_absolute.h"
#include "folder_out.h"
#include "keys_arg.h"
#include "positions_arg.h"
#include "print.h"
#include "rope_arg.h"
#include "stream.h"
#include "tensor_arg.h"
#include "verbs.h"

#include <stdio.h>
#include <string.h>

enum { PIECE_SIZE = 512 << 10, MAX_TABLE_LEN = 8192, NUM_TENSORS = 2 };

typedef struct apply_args {
    cli_rope_args rope;
    const char *inputs[NUM_TENSORS]; /* q, k */
    const char *x, *table, *positions, *output;
    int32_t layout, bf16, isa;
} apply_args;

typedef struct apply_job {
    const apply_args *args;
    cli_model model;
    cli_rope rope;
    cli_positions positions;
    cli_tensor tensors[NUM_TENSORS];
    cli_file_out outputs[NUM_TENSORS];
} apply_job;

static const char *const names[NUM_TENSORS] = {"q.npy", "k.npy"};

/* head_dim and the plan must be known before the tensors can be checked, and the
 * tensors before the length that the frequencies may depend on. */
static int open_inputs(apply_job *job)
{
    const apply_args *args = job->args;
    int status = cli_rope_open(&job->rope, &job->model, &args->rope, -1, 0);
    const pe_model_info *info = pe_model_get_info(job->model.model);
    const int32_t num_heads[NUM_TENSORS] = {info->num_heads, info->num_kv_heads};
    for (int i = 0; i < NUM_TENSORS && status == CLI_DONE; i++) {
        cli_tensor_want want = {.head_dim = job->rope.info->head_dim,
                                .num_heads = num_heads[i],
                                .layout = args->layout,
                                .is_bf16 = args->bf16};
        if (args->inputs[i] != NULL)
            status = cli_tensor_open(&job->tensors[i], args->inputs[i], &want);
    }
    const cli_tensor *q = &job->tensors[0], *k = &job->tensors[1];
    if (status == CLI_DONE && args->inputs[0] != NULL && args->inputs[1] != NULL &&
        (q->batch != k->batch || q->seq_len != k->seq_len))
        return cli_fail(CLI_FAILED,
                        "q has batch %lld and seq_len %lld, k %lld and %lld; only "
                        "their heads may differ (see --layout)",
                        (long long)q->batch, (long long)q->seq_len, (long long)k->batch,
                        (long long)k->seq_len);
    return status;
}

static int open_rope(apply_job *job)
{
    const cli_tensor *t = &job->tensors[job->args->inputs[0] ? 0 : 1];
    int64_t last = cli_positions_last(&job->positions, t->seq_len);
    int64_t table_len = last < 0 ? 0 : last < MAX_TABLE_LEN ? last + 1 : MAX_TABLE_LEN;
    cli_rope_close(&job->rope);
    return cli_rope_open(&job->rope, &job->model, &job->args->rope, last, table_len);
}

static int create_outputs(apply_job *job)
{
    const apply_args *args = job->args;
    int status = cli_folder_make(args->output);
    for (int i = 0; i < NUM_TENSORS && status == CLI_DONE; i++)
        if (args->inputs[i] != NULL)
            status =
                cli_folder_create(&job->outputs[i], args->output, names[i],
                                  job->tensors[i].in.weight, args->inputs, NUM_TENSORS);
    return status;
}

typedef struct rotation {
    const pe_rope *plan;
    pe_positions at;
    const char *name;
} rotation;

static int rotate_piece(void *context, int64_t row, int64_t token, const pe_tensor *x)
{
    const rotation *r = context;
    const pe_positions at = cli_stream_positions(&r->at, row, token);
    pe_error error;
    if (pe_rope_apply(r->plan, &at, x, x, &error) != PE_OK)
        return cli_fail_with(r->name, &error);
    return CLI_DONE;
}

static int rotate(apply_job *job, int which)
{
    cli_tensor *t = &job->tensors[which];
    rotation r = {.plan = job->rope.plan, .name = t->in.name};
    int status = cli_positions_fit(&job->positions, t->batch, t->seq_len,
                                   job->rope.info->num_axes, &r.at);
    if (status != CLI_DONE)
        return status;
    return cli_stream(t, &job->outputs[which], names[which], rotate_piece, &r);
}

static void report(const apply_job *job, int which)
{
    const cli_tensor *t = &job->tensors[which];
    const pe_weight *weight = t->in.weight;
    cli_shape shape;
    cli_say("%s/%s: %s %s", job->args->output, names[which],
            t->dtype == PE_BF16 ? "bf16" : weight->dtype_name,
            cli_shape_text(&shape, weight->rank, weight->shape));
    if (weight->rank > 2)
        cli_say(" %s", cli_choice_name(cli_layout_names, t->layout));
    if (job->positions.ids != NULL)
        cli_say(", positions of %s", job->positions.name);
    else
        cli_say(", positions from %lld", (long long)job->positions.start);
    cli_say(", layers %s, %s angles\n", job->rope.layers,
            cli_choice_name(cli_angles_names, job->rope.spec.angles));
}

static int work(apply_job *job)
{
    int status = open_inputs(job);
    if (status == CLI_DONE)
        status = cli_positions_open(&job->positions, "positions", job->args->positions);
    if (status == CLI_DONE)
        status = open_rope(job);
    if (status == CLI_DONE)
        status = create_outputs(job);
    for (int i = 0; i < NUM_TENSORS && status == CLI_DONE; i++)
        if (job->args->inputs[i] != NULL)
            status = rotate(job, i);
    for (int i = 0; i < NUM_TENSORS && status == CLI_DONE; i++)
        if (job->args->inputs[i] != NULL) {
            status = cli_file_commit(&job->outputs[i]);
            if (status == CLI_DONE)
                report(job, i);
        }
    return status;
}

/* Standard input can be read once. */
static int check_stdin(const apply_args *args, const char *model)
{
    const char *const paths[] = {model,   args->inputs[0], args->inputs[1],
                                 args->x, args->table,     args->positions};
    int count = 0;
    for (size_t i = 0; i < CLI_COUNT(paths); i++)
        count += paths[i] != NULL && strcmp(paths[i], "-") == 0;
    return count <= 1 ? CLI_DONE
                      : cli_fail(CLI_USAGE,
                                 "- stands for standard input %d times, "
                                 "must be at most once",
                                 count);
}

static int apply(apply_args *args, const char *argument)
{
    apply_job job = {.args = args};
    int status = cli_model_open(&job.model, argument, args->rope.seq_len);
    if (status == CLI_DONE && args->x != NULL) {
        const cli_apply_absolute_args absolute = {.x = args->x,
                                                  .table = args->table,
                                                  .positions = args->positions,
                                                  .output = args->output,
                                                  .rope = &args->rope,
                                                  .is_bf16 = args->bf16};
        status = cli_apply_absolute(&job.model, &absolute);
    } else if (status == CLI_DONE) {
        status = work(&job);
    }
    for (int i = 0; i < NUM_TENSORS; i++) {
        cli_file_discard(&job.outputs[i]);
        cli_tensor_close(&job.tensors[i]);
    }
    cli_positions_close(&job.positions);
    cli_rope_close(&job.rope);
    cli_model_close(&job.model);
    return status;
}

static int run(int argc, char **argv)
{
    apply_args args = {.rope = CLI_ROPE_DEFAULTS};
    const char *argument;
    int status = cli_parse(&cli_verb_apply, argc, argv, &args, &argument);
    if (status != CLI_CONTINUE)
        return status;
    const int rotates = args.inputs[0] != NULL || args.inputs[1] != NULL;
    if (!rotates && args.x == NULL)
        return cli_fail(CLI_USAGE, "--q FILE.npy is missing: what to rotate (or --x "
                                   "FILE.npy, what to add to)");
    if (rotates && args.x != NULL)
        return cli_fail(CLI_USAGE, "--x excludes --q and --k: a model rotates or adds");
    if (args.x == NULL && args.table != NULL)
        return cli_fail(CLI_USAGE, "--table goes with --x");
    if (args.x != NULL && args.layout != CLI_LAYOUT_UNSAID)
        return cli_fail(CLI_USAGE, "--layout is for --q and --k; --x has no heads");
    if (args.output == NULL)
        return cli_fail(CLI_USAGE, "-o FOLDER is missing: where to write");
    status = check_stdin(&args, argument);
    if (status == CLI_DONE)
        status = cli_isa_choose(args.isa, &args.rope.isa);
    return status == CLI_DONE ? apply(&args, argument) : status;
}

static const cli_option options[] = {
    {.name = "q",
     .argument = "FILE.npy",
     .type = CLI_TEXT,
     .offset = offsetof(apply_args, inputs[0]),
     .help = "queries; - is standard input"},
    {.name = "k",
     .argument = "FILE.npy",
     .type = CLI_TEXT,
     .offset = offsetof(apply_args, inputs[1]),
     .help = "keys, with the batch and seq_len of q"},
    {.name = "x",
     .argument = "FILE.npy",
     .type = CLI_TEXT,
     .offset = offsetof(apply_args, x),
     .help = "hidden states (batch, seq_len, model_dim), the input of the first layer, "
             "to add positions to; two axes: no batch"},
    CLI_TABLE_OPTION(apply_args),
    {.name = "output",
     .letter = 'o',
     .argument = "FOLDER",
     .type = CLI_TEXT,
     .offset = offsetof(apply_args, output),
     .help =
         "where q.npy, k.npy or x.npy go, with the dtype and shape of the inputs; made "
         "if it does not exist"},
    {.name = "layout",
     .argument = "ORDER",
     .type = CLI_CHOICE,
     .choices = cli_layout_names,
     .offset = offsetof(apply_args, layout),
     .help = "axes of the files: bshd (default: batch, seq_len, heads, head_dim) or "
             "bhsd.  Three axes: no batch.  Two: one head"},
    {.name = "positions",
     .letter = 'p',
     .argument = "START|IDS.npy",
     .type = CLI_TEXT,
     .offset = offsetof(apply_args, positions),
     .help = "position of the first token (default 0; --x of a model with a padding "
             "position: the one after it), or int64 or int32 ids of shape "
             "(seq_len), (batch, seq_len), (axes, seq_len) or (axes, batch, seq_len)"},
    CLI_ROPE_OPTIONS(apply_args),
    CLI_ISA_OPTION(apply_args),
    {.name = "bf16",
     .type = CLI_FLAG,
     .offset = offsetof(apply_args, bf16),
     .help = "the files are uint16 that hold bfloat16"}};

const cli_verb cli_verb_apply = {
    .name = "apply",
    .summary = "rotate q and k, or add to x, at their positions, file to file",
    .operands = "MODEL",
    .about =
        "Reads float32, float16 or bfloat16 tensors and writes them rotated as the\n"
        "model's attention does it, or, with --x, with the model's sinusoidal or\n"
        "learned positions added.  Larger than memory is fine.\n"
        "\n" CLI_MODEL_HELP,
    .examples =
        "posenc apply llama-3.1-8b --q examples/data/q.npy -o out\n"
        "posenc apply llama-3.1-8b --q examples/data/q.npy --positions 1000 -o out",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};
