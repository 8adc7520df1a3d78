/* SPDX-License-Identifier: MIT
 *
 * table.c - posenc table: cos and sin, or what is added, for a range of positions
 *
 * Rows are made in pieces, so that a long range to text, CSV or .npy needs no memory. */
#include "npy_out.h"
#include "report.h"
#include "rope_arg.h"
#include "table_absolute.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE_ROWS = 256, MAX_JSON_NUMBERS = 1 << 22 };

typedef struct table_args {
    cli_rope_args rope;
    cli_range positions;
    const char *table, *output;
    int32_t json, csv;
} table_args;

typedef struct piece {
    const cli_rope *rope;
    int64_t begin, rows, pairs;
    float *cos, *sin; /* [PIECE_ROWS][pairs] */
} piece;

/* The rows from begin on; the last piece of a range is shorter. */
static int fill(piece *p, int64_t begin, int64_t end)
{
    pe_tensor cos, sin;
    pe_error error;
    pe_positions at = {.start = begin};
    p->begin = begin;
    p->rows = end - begin < PIECE_ROWS ? end - begin : PIECE_ROWS;
    pe_tensor_bshd(&cos, PE_F32, p->cos, 1, p->rows, 1, p->pairs);
    pe_tensor_bshd(&sin, PE_F32, p->sin, 1, p->rows, 1, p->pairs);
    if (pe_rope_table(p->rope->plan, &at, &cos, &sin, &error) != PE_OK)
        return cli_fail_with("--positions", &error);
    return CLI_DONE;
}

static int print_rows(piece *p, cli_range range, int is_csv)
{
    if (is_csv)
        (void)puts("position,pair,cos,sin");
    else
        (void)printf("%10s %5s %13s %13s\n", "position", "pair", "cos", "sin");
    for (int64_t begin = range.begin; begin < range.end; begin += p->rows) {
        int status = fill(p, begin, range.end);
        if (status != CLI_DONE)
            return status;
        for (int64_t i = 0; i < p->rows * p->pairs; i++) {
            cli_number cos, sin;
            (void)printf(is_csv ? "%lld,%lld,%s,%s\n" : "%10lld %5lld %13s %13s\n",
                         (long long)(begin + i / p->pairs), (long long)(i % p->pairs),
                         cli_float(&cos, p->cos[i]), cli_float(&sin, p->sin[i]));
        }
        if (ferror(stdout))
            return CLI_FAILED;
    }
    return CLI_DONE;
}

/* (2, positions, pairs): all of cos, then all of sin. */
static int write_npy(piece *p, cli_range range, const char *path)
{
    cli_file_out out;
    int64_t shape[3] = {2, range.end - range.begin, p->pairs};
    int status = cli_npy_create(&out, path, "<f4", 3, shape);
    for (int half = 0; half < 2; half++)
        for (int64_t begin = range.begin; status == CLI_DONE && begin < range.end;
             begin += p->rows) {
            status = fill(p, begin, range.end);
            if (status == CLI_DONE)
                status = cli_file_write(&out, half == 0 ? p->cos : p->sin,
                                        (size_t)(p->rows * p->pairs) * sizeof(float));
        }
    if (status == CLI_DONE)
        status = cli_file_commit(&out);
    cli_file_discard(&out);
    return status;
}

static int print_json(piece *p, cli_range range, const cli_model *model)
{
    json_object *root = cli_json_start("posenc.table/1");
    json_object *cos = json_object_new_array(), *sin = json_object_new_array();
    cli_json_set_text(root, "model", model->name);
    cli_json_set_text(root, "layers", p->rope->layers);
    cli_json_set_text(root, "angles",
                      cli_choice_name(cli_angles_names, p->rope->spec.angles));
    cli_json_set_integer(root, "begin", range.begin);
    cli_json_set_integer(root, "end", range.end);
    cli_json_set_integer(root, "num_pairs", p->pairs);
    (void)json_object_object_add(root, "cos", cos);
    (void)json_object_object_add(root, "sin", sin);
    for (int64_t begin = range.begin; begin < range.end; begin += p->rows) {
        int status = fill(p, begin, range.end);
        if (status != CLI_DONE) {
            (void)json_object_put(root);
            return status;
        }
        for (int64_t t = 0; t < p->rows; t++) {
            (void)json_object_array_add(
                cos, cli_json_floats(p->cos + t * p->pairs, p->pairs));
            (void)json_object_array_add(
                sin, cli_json_floats(p->sin + t * p->pairs, p->pairs));
        }
    }
    return cli_json_print(root);
}

static int report(const table_args *args, const cli_model *model, const cli_rope *rope)
{
    piece p = {.rope = rope, .pairs = rope->info->num_pairs};
    int64_t rows = args->positions.end - args->positions.begin;
    if (args->json && rows > MAX_JSON_NUMBERS / 2 / p.pairs)
        return cli_fail(CLI_USAGE,
                        "--positions spans %lld, at most %lld with --json; "
                        "write a longer table with -o FILE.npy",
                        (long long)rows, (long long)(MAX_JSON_NUMBERS / 2 / p.pairs));
    p.cos = malloc((size_t)p.pairs * PIECE_ROWS * sizeof *p.cos);
    p.sin = malloc((size_t)p.pairs * PIECE_ROWS * sizeof *p.sin);
    int status;
    if (p.cos == NULL || p.sin == NULL)
        status = cli_fail(CLI_FAILED, "out of memory");
    else if (args->output != NULL)
        status = write_npy(&p, args->positions, args->output);
    else if (args->json)
        status = print_json(&p, args->positions, model);
    else
        status = print_rows(&p, args->positions, args->csv);
    free(p.cos);
    free(p.sin);
    return status;
}

static int run(int argc, char **argv)
{
    table_args args = {.rope = CLI_ROPE_DEFAULTS};
    const char *argument;
    int status = cli_parse(&cli_verb_table, argc, argv, &args, &argument);
    if (status != CLI_CONTINUE)
        return status;
    int64_t rows;
    if (args.positions.begin == args.positions.end)
        return cli_fail(CLI_USAGE, "--positions A:B is missing: which rows to make");
    if (__builtin_sub_overflow(args.positions.end, args.positions.begin, &rows))
        return cli_fail(CLI_USAGE, "--positions spans more than 2^63");
    if (args.json + args.csv + (args.output != NULL) > 1)
        return cli_fail(CLI_USAGE, "--json, --csv and --output exclude each other");
    cli_model model;
    cli_rope rope;
    status = cli_model_open(&model, argument, args.rope.seq_len);
    if (status != CLI_DONE)
        return status;
    if (cli_absolute_is_meant(&model, args.table)) {
        const cli_table_absolute_args absolute = {.positions = args.positions,
                                                  .table = args.table,
                                                  .output = args.output,
                                                  .rope = &args.rope,
                                                  .is_json = args.json,
                                                  .is_csv = args.csv};
        status = cli_table_absolute(&model, &absolute);
        cli_model_close(&model);
        return status;
    }
    status = cli_rope_open(&rope, &model, &args.rope, args.positions.end - 1, 0);
    if (status == CLI_DONE) {
        status = report(&args, &model, &rope);
        cli_rope_close(&rope);
    }
    cli_model_close(&model);
    return status;
}

static const cli_option options[] = {
    {.name = "positions",
     .letter = 'p',
     .argument = "A:B",
     .type = CLI_RANGE,
     .offset = offsetof(table_args, positions),
     .help = "positions A to B - 1; may be negative"},
    CLI_TABLE_OPTION(table_args),
    CLI_ROPE_OPTIONS(table_args),
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(table_args, json),
     .help = "schema posenc.table/1"},
    {.name = "csv",
     .type = CLI_FLAG,
     .offset = offsetof(table_args, csv),
     .help = "position,pair,cos,sin, or position,channel,value"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE.npy",
     .type = CLI_TEXT,
     .offset = offsetof(table_args, output),
     .help = "write float32 (2, positions, pairs), cos first, or (positions, "
             "model_dim) there instead; - is standard output"}};

const cli_verb cli_verb_table = {
    .name = "table",
    .summary = "cos and sin of the rotation, or what is added, at each position",
    .operands = "MODEL",
    .about =
        "The float32 values that rotate each pair, attention factor included, or\n"
        "that a sinusoidal or learned encoding adds to each channel.  A model with\n"
        "several position axes gets one position on all of them.\n"
        "\n" CLI_MODEL_HELP,
    .examples = "posenc table llama-3.1-8b --positions 0:4 --csv\n"
                "posenc table llama-3.1-8b --positions 131071 --angles hf_f32\n"
                "posenc table whisper-base --positions 1499 --csv",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};
