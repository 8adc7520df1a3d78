/* SPDX-License-Identifier: MIT
 *
 * lab_inspect.c - posenc lab inspect CKPT: what is in a checkpoint of the lab
 */
#include "lab_store.h"
#include "lab_verbs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct arguments {
    int32_t json;
} arguments;

/* Of one parameter: sizes in the sense of root mean square. */
typedef struct norms {
    double weight, moment1, moment2;
} norms;

static double rms(const float *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    return sqrt(sum / (double)count);
}

static norms norms_of(const lab_state *state, const lab_parameter *item)
{
    const int64_t count = lab_parameter_size(item);
    return (norms){rms(state->weights + item->offset, count),
                   rms(state->moment1 + item->offset, count),
                   rms(state->moment2 + item->offset, count)};
}

static void shape_text(const lab_parameter *item, char *out, size_t size)
{
    if (item->cols > 0)
        (void)snprintf(out, size, "[%" PRId64 ", %" PRId64 "]", item->rows, item->cols);
    else
        (void)snprintf(out, size, "[%" PRId64 "]", item->rows);
}

static void print_text(const lab_state *state, const char *corpus_sha256)
{
    const lab_config *c = &state->config;
    char name[LAB_NAME_SIZE];
    lab_config_name(c, name, sizeof name);
    (void)printf("method     %s\n", name);
    (void)printf("model      %d layer%s, width %d, %d head%s, %" PRId64 " parameters\n",
                 c->layers, c->layers == 1 ? "" : "s", c->width, c->heads,
                 c->heads == 1 ? "" : "s", state->layout.num_weights);
    (void)printf("rows       %d tokens", c->length);
    if (c->first_length > 0)
        (void)printf(", %d before", c->first_length);
    (void)printf("; %d a step\n", c->batch);
    (void)printf("rate       up to %g in %d steps, decay %g, clip %g\n", c->peak_rate,
                 c->warmup, c->weight_decay, c->clip);
    (void)printf("seed       %" PRIu64 "\n", c->seed);
    (void)printf("sha256     %s\n", corpus_sha256);
    (void)printf("step       %" PRId64 " of %d\n", state->step, c->steps);
    if (state->step > 0)
        (void)printf("loss       %.4f (average)\n", state->loss_average);
    (void)printf("\n%-12s %-12s %12s %12s %12s\n", "parameter", "shape", "rms",
                 "rms of m", "rms of v");
    for (int32_t i = 0; i < state->layout.count; i++) {
        const lab_parameter *item = &state->layout.items[i];
        const norms n = norms_of(state, item);
        char shape[48];
        shape_text(item, shape, sizeof shape);
        (void)printf("%-12s %-12s %12.4g %12.4g %12.4g\n", item->name, shape, n.weight,
                     n.moment1, n.moment2);
    }
}

static int print_json(const lab_state *state, const char *corpus_sha256)
{
    json_object *object = cli_json_start("posenc.lab.inspect/1");
    json_object *parameters = json_object_new_array();
    cli_lab_json_config(object, &state->config);
    cli_json_set_text(object, "corpus_sha256", corpus_sha256);
    cli_json_set_integer(object, "step", state->step);
    if (state->step > 0)
        cli_json_set_number(object, "loss_average", state->loss_average);
    cli_json_set_integer(object, "num_weights", state->layout.num_weights);
    for (int32_t i = 0; i < state->layout.count; i++) {
        const lab_parameter *item = &state->layout.items[i];
        const norms n = norms_of(state, item);
        json_object *entry = json_object_new_object();
        json_object *shape = json_object_new_array();
        (void)json_object_array_add(shape, json_object_new_int64(item->rows));
        if (item->cols > 0)
            (void)json_object_array_add(shape, json_object_new_int64(item->cols));
        cli_json_set_text(entry, "name", item->name);
        (void)json_object_object_add(entry, "shape", shape);
        cli_json_set_number(entry, "rms", n.weight);
        cli_json_set_number(entry, "rms_moment1", n.moment1);
        cli_json_set_number(entry, "rms_moment2", n.moment2);
        (void)json_object_array_add(parameters, entry);
    }
    (void)json_object_object_add(object, "parameters", parameters);
    return cli_json_print(object);
}

static const cli_option options[] = {
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(arguments, json),
     .help = "print JSON, schema posenc.lab.inspect/1"},
};

static int run_inspect(int argc, char **argv)
{
    arguments args = {0};
    const char *path;
    char corpus_sha256[65];
    lab_state state;
    int code = cli_parse(&cli_verb_lab_inspect, argc, argv, &args, &path);
    if (code != CLI_CONTINUE)
        return code;
    code = cli_lab_load(path, &state, corpus_sha256);
    if (code != CLI_DONE)
        return code;
    if (args.json)
        code = print_json(&state, corpus_sha256);
    else
        print_text(&state, corpus_sha256);
    lab_state_release(&state);
    return code;
}

const cli_verb cli_verb_lab_inspect = {
    .name = "lab inspect",
    .summary = "what is in a checkpoint of the lab",
    .operands = "CKPT",
    .about =
        "Prints the configuration of the run, how far it came, and every parameter:\n"
        "its shape, and the root mean square of its values and of AdamW's first and\n"
        "second moments of them.  CKPT is a checkpoint, or the folder of a run.",
    .examples = "posenc lab train --method sin --copy 4 --steps 5 -o few\n"
                "posenc lab inspect few/sin-seed0\n"
                "posenc lab inspect few/sin-seed0/checkpoint.safetensors --json",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run_inspect,
};
