/* SPDX-License-Identifier: MIT
 *
 * shift.c - posenc shift: cached keys, all moved by one number of positions
 */
#include "keys_arg.h"
#include "verbs.h"

#include <string.h>

typedef struct shift_args {
    cli_keys_args keys; /* first: CLI_ROPE_OPTIONS count from it */
    int64_t by;         /* INT64_MIN: not said */
} shift_args;

typedef struct shift {
    const pe_rope *plan;
    int64_t by;
} shift;

static int shift_piece(void *context, int64_t row, int64_t token, const pe_tensor *x)
{
    const shift *s = context;
    pe_error error;
    (void)row;
    (void)token;
    if (pe_rope_shift(s->plan, s->by, x, x, &error) != PE_OK)
        return cli_fail_with("--by", &error);
    return CLI_DONE;
}

static int work(const shift_args *args, cli_model *model, const cli_rope *rope)
{
    cli_keys keys;
    shift s = {.plan = rope->plan, .by = args->by};
    char done[400];
    int status = cli_keys_open(&keys, &args->keys, model, rope);
    if (status != CLI_DONE)
        return status;
    (void)snprintf(done, sizeof done, "moved by %lld, layers %s, %s angles",
                   (long long)args->by, rope->layers,
                   cli_choice_name(cli_angles_names, rope->spec.angles));
    status = cli_keys_move(&keys, &args->keys, shift_piece, &s, 1, done);
    cli_keys_close(&keys);
    return status;
}

static int run(int argc, char **argv)
{
    shift_args args = {.keys = {.rope = CLI_ROPE_DEFAULTS}, .by = INT64_MIN};
    cli_model model;
    cli_rope rope;
    const char *operand;
    int status = cli_parse(&cli_verb_shift, argc, argv, &args, &operand);
    if (status != CLI_CONTINUE)
        return status;
    if (args.keys.keys == NULL)
        return cli_fail(CLI_USAGE, "--keys FILE.npy is missing: what to move");
    if (args.keys.output == NULL)
        return cli_fail(CLI_USAGE, "-o FILE.npy is missing: where to write");
    if (args.by == INT64_MIN)
        return cli_fail(CLI_USAGE, "--by N is missing: how far to move");
    if (strcmp(operand, "-") == 0 && strcmp(args.keys.keys, "-") == 0)
        return cli_fail(CLI_USAGE, "- stands for standard input 2 times, must be at "
                                   "most once");
    status = cli_model_open(&model, operand, args.keys.rope.seq_len);
    if (status != CLI_DONE)
        return status;
    status = cli_rope_open(&rope, &model, &args.keys.rope, -1, 0);
    if (status == CLI_DONE) {
        status = work(&args, &model, &rope);
        cli_rope_close(&rope);
    }
    cli_model_close(&model);
    return status;
}

static const cli_option options[] = {
    CLI_KEYS_OPTIONS(shift_args),
    {.name = "by",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = -(INT64_C(1) << 62),
     .max = INT64_C(1) << 62,
     .offset = offsetof(shift_args, by),
     .help = "positions to add to every key's; negative: back"},
    CLI_ROPE_OPTIONS(cli_keys_args)};

const cli_verb cli_verb_shift = {
    .name = "shift",
    .summary = "move cached keys by a number of positions",
    .operands = "MODEL",
    .about =
        "Rotates keys that are rotated already on to other positions, as a cache does\n"
        "that drops its oldest tokens.  Reports how far rounding may move an element.\n"
        "\n" CLI_MODEL_HELP,
    .examples = "posenc shift llama-3.1-8b -k examples/data/q.npy --by -256 -o k.npy",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};
