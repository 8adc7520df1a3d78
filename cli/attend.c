/* SPDX-License-Identifier: MIT
 *
 * attend.c - posenc attend: attention over q, k and v of .npy files
 *
 * Positions enter as the model's attention does it: q and k rotated, or a bias added to
 * the scores.  What absolute encodings add to the input is no business of this verb. */
#include "model_arg.h"
#include "names.h"
#include "npy_out.h"
#include "print.h"
#include "rope_arg.h"
#include "tensor_arg.h"
#include "verbs.h"

#include "posenc/attention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { Q, K, V, NUM_INPUTS };

typedef struct attend_args {
    cli_rope_args rope;
    const char *output, *scores;
    int64_t start, window, num_sinks;
    int32_t mask, layout, is_rotated, bf16, isa;
} attend_args;

typedef struct attend_job {
    const attend_args *args;
    cli_model model;
    cli_rope rope;
    pe_bias *bias;
    pe_attention *plan;
    cli_tensor in[NUM_INPUTS];
    void *data[NUM_INPUTS];
    pe_tensor t[NUM_INPUTS], out, scores;
    float *out_data, *scores_data;
    void *work;
} attend_job;

static const cli_choice layouts[] = {{"bshd", CLI_BSHD}, {"bhsd", CLI_BHSD}, {NULL, 0}};
static const cli_choice masks[] = {
    {"causal", PE_MASK_CAUSAL}, {"none", PE_MASK_NONE}, {NULL, 0}};

static void lay_out(pe_tensor *t, const cli_tensor *like, pe_dtype dtype,
                    const void *data, int64_t dim)
{
    if (like->layout == CLI_BHSD)
        pe_tensor_bhsd(t, dtype, data, like->batch, like->num_heads, like->seq_len,
                       dim);
    else
        pe_tensor_bshd(t, dtype, data, like->batch, like->seq_len, like->num_heads,
                       dim);
}

static int out_of_memory(void)
{
    return cli_fail(CLI_FAILED, "out of memory");
}

static int read_input(attend_job *job, int i, const char *path, int32_t num_heads)
{
    const cli_tensor_want want = {.num_heads = num_heads,
                                  .layout = job->args->layout,
                                  .is_bf16 = job->args->bf16};
    cli_tensor *t = &job->in[i];
    int status = cli_tensor_open(t, path, &want);
    if (status != CLI_DONE)
        return status;
    const size_t size = t->in.weight->size;
    job->data[i] = malloc(size + 1);
    if (job->data[i] == NULL)
        return out_of_memory();
    lay_out(&job->t[i], t, t->dtype, job->data[i], t->dim);
    return cli_npy_read(&t->in, job->data[i], size);
}

/* What positions do in this model: a rotation, a bias, or nothing here. */
static int open_positions(attend_job *job, int64_t last)
{
    const pe_model_info *info = pe_model_get_info(job->model.model);
    const pe_env env = {.struct_size = sizeof env, .isa = job->args->rope.isa};
    pe_bias_spec spec = {.struct_size = sizeof spec};
    pe_error error;
    if (info->num_ropes > 0)
        return cli_rope_open(&job->rope, &job->model, &job->args->rope, last, 0);
    if (info->num_biases == 0)
        return CLI_DONE;
    if (job->in[Q].num_heads != info->num_heads)
        return cli_fail(CLI_FAILED,
                        "%s has %lld heads, must have those of the model (%d): slopes "
                        "depend on them",
                        job->in[Q].in.name, (long long)job->in[Q].num_heads,
                        (int)info->num_heads);
    if (pe_model_bias_spec(job->model.model, 0, &spec, &error) != PE_OK ||
        pe_bias_create(&job->bias, &spec, &env, &error) != PE_OK)
        return cli_fail_with(job->model.name, &error);
    return CLI_DONE;
}

static int read_inputs(attend_job *job, const char *const *paths)
{
    const pe_model_info *info = pe_model_get_info(job->model.model);
    int status = read_input(job, Q, paths[Q], info->num_heads);
    if (status == CLI_DONE)
        status = read_input(job, K, paths[K], info->num_kv_heads);
    if (status == CLI_DONE)
        status = read_input(job, V, paths[V], info->num_kv_heads);
    return status;
}

static int fail_axis(const attend_job *job, int i, const char *what, int64_t value,
                     int64_t wanted)
{
    static const char names[] = "qkv";
    return cli_fail(CLI_FAILED, "%s (%c) has %s %lld, must be %lld as in %s",
                    job->in[i].in.name, names[i], what, (long long)value,
                    (long long)wanted, job->in[i == V ? K : Q].in.name);
}

/* Which file does not fit which. */
static int check_shapes(const attend_job *job)
{
    const cli_tensor *q = &job->in[Q], *k = &job->in[K], *v = &job->in[V];
    if (job->rope.plan != NULL && q->dim != job->rope.info->head_dim)
        return cli_fail(CLI_FAILED, "%s: the last axis is %lld, must be head_dim (%d)",
                        q->in.name, (long long)q->dim, (int)job->rope.info->head_dim);
    if (k->dim != q->dim)
        return fail_axis(job, K, "head_dim", k->dim, q->dim);
    if (k->batch != q->batch)
        return fail_axis(job, K, "batch", k->batch, q->batch);
    if (v->batch != k->batch)
        return fail_axis(job, V, "batch", v->batch, k->batch);
    if (v->seq_len != k->seq_len)
        return fail_axis(job, V, "seq_len", v->seq_len, k->seq_len);
    if (v->num_heads != k->num_heads)
        return fail_axis(job, V, "heads", v->num_heads, k->num_heads);
    if (k->num_heads == 0 || q->num_heads % k->num_heads != 0)
        return cli_fail(
            CLI_FAILED, "%s has %lld heads, must be a multiple of those of %s (%lld)",
            q->in.name, (long long)q->num_heads, k->in.name, (long long)k->num_heads);
    return CLI_DONE;
}

/* What the library still refuses lies in the shape of q, not in the model. */
static int create_plan(attend_job *job)
{
    const attend_args *args = job->args;
    const pe_env env = {.struct_size = sizeof env, .isa = args->rope.isa};
    const pe_attention_spec spec = {
        .struct_size = sizeof spec,
        .num_heads = (int32_t)job->in[Q].num_heads,
        .num_kv_heads = (int32_t)job->in[K].num_heads,
        .head_dim = (int32_t)job->in[Q].dim,
        .v_head_dim = (int32_t)job->in[V].dim,
        .visible = {.mask = args->mask != 0 ? args->mask : PE_MASK_CAUSAL,
                    .window = args->window,
                    .num_sinks = (int32_t)args->num_sinks},
        .q_rope = args->is_rotated ? NULL : job->rope.plan,
        .k_rope = args->is_rotated ? NULL : job->rope.plan,
        .bias = {job->bias}};
    pe_error error;
    return pe_attention_create(&job->plan, &spec, &env, &error) == PE_OK
               ? CLI_DONE
               : cli_fail_with(job->in[Q].in.name, &error);
}

static int compute(attend_job *job)
{
    const int64_t start = job->args->start;
    const cli_tensor *q = &job->in[Q], *k = &job->in[K];
    const pe_positions k_at = {.start = start};
    const pe_positions q_at = {.start = start + k->seq_len - q->seq_len};
    pe_attention_args args = {.struct_size = sizeof args,
                              .q = &job->t[Q],
                              .k = &job->t[K],
                              .v = &job->t[V],
                              .out = &job->out,
                              .q_at = &q_at,
                              .k_at = &k_at,
                              .scores = job->args->scores ? &job->scores : NULL};
    const int64_t rows = q->batch * q->seq_len * q->num_heads;
    size_t size;
    pe_error error;
    job->out_data = calloc((size_t)(rows * job->in[V].dim) + 1, sizeof(float));
    lay_out(&job->out, q, PE_F32, job->out_data, job->in[V].dim);
    if (job->args->scores != NULL) {
        job->scores_data = calloc((size_t)(rows * k->seq_len) + 1, sizeof(float));
        pe_tensor_bhsd(&job->scores, PE_F32, job->scores_data, q->batch, q->num_heads,
                       q->seq_len, k->seq_len);
    }
    if (job->out_data == NULL ||
        (job->args->scores != NULL && job->scores_data == NULL))
        return out_of_memory();
    if (pe_attention_workspace(job->plan, &args, &size, NULL, &error) != PE_OK)
        return cli_fail_with(job->in[Q].in.name, &error);
    job->work = aligned_alloc(64, (size + 63) / 64 * 64);
    if (job->work == NULL)
        return out_of_memory();
    return pe_attention_forward(job->plan, &args, job->work, size, &error) == PE_OK
               ? CLI_DONE
               : cli_fail_with(job->in[Q].in.name, &error);
}

static int write_file(const char *path, int32_t rank, const int64_t *shape,
                      const float *data)
{
    cli_file_out out = {NULL, NULL, NULL};
    size_t count = 1;
    for (int32_t i = 0; i < rank; i++)
        count *= (size_t)shape[i];
    int status = cli_npy_create(&out, path, "<f4", rank, shape);
    if (status == CLI_DONE)
        status = cli_file_write(&out, data, count * sizeof *data);
    if (status == CLI_DONE)
        status = cli_file_commit(&out);
    cli_file_discard(&out);
    return status;
}

static int write_outputs(const attend_job *job)
{
    const pe_weight *like = job->in[Q].in.weight;
    const cli_tensor *q = &job->in[Q];
    const int64_t scores[] = {q->batch, q->num_heads, q->seq_len, job->in[K].seq_len};
    int64_t shape[8];
    for (int32_t i = 0; i < like->rank; i++)
        shape[i] = like->shape[i];
    shape[like->rank - 1] = job->in[V].dim;
    int status = write_file(job->args->output, like->rank, shape, job->out_data);
    if (status == CLI_DONE && job->args->scores != NULL)
        status = write_file(job->args->scores, 4, scores, job->scores_data);
    return status;
}

static void report(const attend_job *job)
{
    const attend_args *args = job->args;
    const pe_model_info *info = pe_model_get_info(job->model.model);
    cli_shape shape;
    cli_say(
        "%s: %s, %lld queries at positions from %lld, %lld keys, %s", args->output,
        cli_shape_text(&shape, job->in[Q].in.weight->rank, job->in[Q].in.weight->shape),
        (long long)job->in[Q].seq_len,
        (long long)(args->start + job->in[K].seq_len - job->in[Q].seq_len),
        (long long)job->in[K].seq_len,
        cli_choice_name(masks, args->mask != 0 ? args->mask : PE_MASK_CAUSAL));
    if (job->rope.plan != NULL && args->is_rotated)
        cli_say(", rotated already\n");
    else if (job->rope.plan != NULL)
        cli_say(", rope of layers %s\n", job->rope.layers);
    else
        cli_say(", %s\n",
                job->bias != NULL ? info->method : "no positions in attention itself");
}

static int attend(attend_job *job, const char *const *operands)
{
    int status = cli_model_open(&job->model, operands[0], job->args->rope.seq_len);
    if (status == CLI_DONE)
        status = read_inputs(job, operands + 1);
    if (status == CLI_DONE)
        status = open_positions(job, job->args->start + job->in[K].seq_len - 1);
    if (status == CLI_DONE)
        status = check_shapes(job);
    if (status == CLI_DONE)
        status = create_plan(job);
    if (status == CLI_DONE)
        status = compute(job);
    if (status == CLI_DONE)
        status = write_outputs(job);
    if (status == CLI_DONE)
        report(job);
    for (int i = 0; i < NUM_INPUTS; i++) {
        free(job->data[i]);
        cli_tensor_close(&job->in[i]);
    }
    free(job->out_data);
    free(job->scores_data);
    free(job->work);
    pe_attention_destroy(job->plan);
    pe_bias_destroy(job->bias);
    cli_rope_close(&job->rope);
    cli_model_close(&job->model);
    return status;
}

static int run(int argc, char **argv)
{
    attend_args args = {.rope = CLI_ROPE_DEFAULTS};
    const char *operands[1 + NUM_INPUTS];
    int status = cli_parse(&cli_verb_attend, argc, argv, &args, operands);
    if (status != CLI_CONTINUE)
        return status;
    if (args.output == NULL)
        return cli_fail(CLI_USAGE, "-o FILE.npy is missing: where to write");
    if (args.scores != NULL && cli_file_is_same(args.scores, args.output))
        return cli_fail(CLI_USAGE,
                        "--output %s and --scores %s are the same: one would be "
                        "written into the other",
                        args.output, args.scores);
    status = cli_isa_choose(args.isa, &args.rope.isa);
    if (status != CLI_DONE)
        return status;
    attend_job job = {.args = &args};
    return attend(&job, operands);
}

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FILE.npy",
     .type = CLI_TEXT,
     .offset = offsetof(attend_args, output),
     .help = "float32, the axes of q; - is standard output"},
    {.name = "scores",
     .argument = "FILE.npy",
     .type = CLI_TEXT,
     .offset = offsetof(attend_args, scores),
     .help = "the probabilities, too: float32 (batch, heads, queries, keys)"},
    {.name = "mask",
     .argument = "KIND",
     .type = CLI_CHOICE,
     .choices = masks,
     .offset = offsetof(attend_args, mask),
     .help = "causal (default) or none; the last query stands at the last key"},
    {.name = "window",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = INT64_MAX,
     .offset = offsetof(attend_args, window),
     .help = "see keys less than N places away"},
    {.name = "sinks",
     .argument = "N",
     .type = CLI_INTEGER,
     .max = INT32_MAX,
     .offset = offsetof(attend_args, num_sinks),
     .help = "and always the first N"},
    {.name = "positions",
     .letter = 'p',
     .argument = "START",
     .type = CLI_INTEGER,
     .min = -((int64_t)1 << 52),
     .max = (int64_t)1 << 52,
     .offset = offsetof(attend_args, start),
     .help = "position of the first key; default 0"},
    {.name = "rotated",
     .type = CLI_FLAG,
     .offset = offsetof(attend_args, is_rotated),
     .help = "q and k are rotated already"},
    {.name = "layout",
     .argument = "ORDER",
     .type = CLI_CHOICE,
     .choices = layouts,
     .offset = offsetof(attend_args, layout),
     .help = "axes of the files: bshd (default: batch, seq_len, heads, head_dim) or "
             "bhsd.  Three axes: no batch.  Two: one head"},
    CLI_ROPE_OPTIONS(attend_args),
    CLI_ISA_OPTION(attend_args),
    {.name = "bf16",
     .type = CLI_FLAG,
     .offset = offsetof(attend_args, bf16),
     .help = "the files are uint16 that hold bfloat16"}};

const cli_verb cli_verb_attend = {
    .name = "attend",
    .summary = "attention with positions, from q, k and v",
    .operands = "MODEL Q.npy K.npy V.npy",
    .about =
        "Computes softmax(q k / sqrt(head_dim) + bias) v with the rotation or the\n"
        "bias of the model, in float32.  k and v have the same batch and keys;\n"
        "query heads come in groups that share a key head.\n"
        "\n" CLI_MODEL_HELP,
    .examples = "posenc attend llama-2-7b examples/data/q.npy examples/data/q.npy \\\n"
                "    examples/data/q.npy -o out.npy",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1 + NUM_INPUTS,
    .run = run};
