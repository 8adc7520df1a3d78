/* SPDX-License-Identifier: MIT
 *
 * bias.c - posenc bias: what is added to the scores of queries and keys
 */
#include "bias_arg.h"
#include "npy_out.h"
#include "print.h"
#include "report.h"
#include "terminal.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_NUMBERS = 1 << 24, MAX_JSON_NUMBERS = 1 << 20 };

typedef struct bias_args {
    cli_bias_args bias;
    cli_range queries, keys;
    int64_t head; /* -1: not given */
    const char *output;
    int32_t softmax, json, csv;
} bias_args;

/* [heads][queries][keys] */
typedef struct block {
    const cli_bias *bias;
    cli_range queries, keys;
    int64_t first, heads, num_queries, num_keys;
    float *values;
    int is_softmax;
} block;

static const float *row_of(const block *b, int64_t h, int64_t t)
{
    return b->values + (h * b->num_queries + t) * b->num_keys;
}

static int print_json(const block *b)
{
    const pe_bias_spec *spec = &b->bias->spec;
    json_object *root = cli_json_start("posenc.bias/1"),
                *heads = json_object_new_array();
    cli_json_text(root, "model", b->bias->name);
    cli_json_set_text(root, "type", cli_choice_name(cli_bias_names, spec->type));
    cli_json_set_text(root, "form", cli_choice_name(cli_form_names, spec->form));
    cli_json_set_text(root, "values",
                      b->is_softmax           ? "softmax"
                      : b->bias->shows_bucket ? "bucket"
                                              : "bias");
    cli_json_set_integer(root, "first_query", b->queries.begin);
    cli_json_set_integer(root, "first_key", b->keys.begin);
    cli_json_set_integer(root, "first_head", b->first);
    for (int64_t h = 0; h < b->heads; h++) {
        json_object *rows = json_object_new_array();
        for (int64_t t = 0; t < b->num_queries; t++)
            (void)json_object_array_add(rows,
                                        cli_json_floats(row_of(b, h, t), b->num_keys));
        (void)json_object_array_add(heads, rows);
    }
    (void)json_object_object_add(root, "heads", heads);
    return cli_json_print(root);
}

static void print_csv(const block *b)
{
    cli_number number;
    (void)puts("head,query,key,value");
    for (int64_t i = 0; i < b->heads * b->num_queries * b->num_keys; i++)
        (void)printf("%lld,%lld,%lld,%s\n",
                     (long long)(b->first + i / b->num_keys / b->num_queries),
                     (long long)(b->queries.begin + i / b->num_keys % b->num_queries),
                     (long long)(b->keys.begin + i % b->num_keys),
                     cli_float(&number, b->values[i]));
}

/* As many keys as fit beside each other, then the next ones below. */
static void print_matrix(const block *b)
{
    enum { LABEL = 7, CELL = 12 };
    const int64_t per_line = (cli_columns() - LABEL) / CELL;
    for (int64_t begin = 0; begin < b->num_keys; begin += per_line) {
        const int64_t left = b->num_keys - begin;
        const int64_t end = begin + (left < per_line ? left : per_line);
        (void)printf("\n%*s", LABEL, "q\\key");
        for (int64_t j = begin; j < end; j++)
            (void)printf(" %*lld", CELL - 1, (long long)(b->keys.begin + j));
        (void)putchar('\n');
        for (int64_t t = 0; t < b->num_queries; t++) {
            (void)printf("%*lld", LABEL, (long long)(b->queries.begin + t));
            for (int64_t j = begin; j < end; j++)
                (void)printf(" %*.6g", CELL - 1, (double)row_of(b, 0, t)[j]);
            (void)putchar('\n');
        }
    }
}

static void print_text(const block *b)
{
    const pe_bias_spec *spec = &b->bias->spec;
    cli_number number;
    if (b->bias->name != NULL)
        cli_print("%s: ", b->bias->name);
    cli_print("%s, %s, head %lld of %d", cli_choice_name(cli_bias_names, spec->type),
              cli_choice_name(cli_form_names, spec->form), (long long)b->first,
              (int)spec->num_heads);
    if (spec->type == PE_BIAS_ALIBI)
        cli_print(", slope %s",
                  cli_float(&number, pe_bias_slopes(b->bias->plan)[b->first]));
    cli_print("; %s\n", b->is_softmax ? "softmax of equal scores, causal"
                        : b->bias->shows_bucket
                            ? "bucket of each key (its weight is not in the settings)"
                            : "added to the scores");
    print_matrix(b);
}

static int write_npy(const block *b, const char *path)
{
    cli_file_out out;
    const int64_t shape[3] = {b->heads, b->num_queries, b->num_keys};
    int status = cli_npy_create(&out, path, "<f4", 3, shape);
    if (status == CLI_DONE)
        status = cli_file_write(&out, b->values,
                                (size_t)(shape[0] * shape[1] * shape[2]) *
                                    sizeof *b->values);
    if (status == CLI_DONE)
        status = cli_file_commit(&out);
    cli_file_discard(&out);
    return status;
}

static int fill(block *b)
{
    const pe_positions q_at = {.start = b->queries.begin};
    const pe_positions k_at = {.start = b->keys.begin};
    pe_bias_spec spec = b->bias->spec;
    pe_bias *plan;
    pe_tensor t;
    pe_error error;
    spec.head_start = (int32_t)b->first;
    pe_tensor_bhsd(&t, PE_F32, b->values, 1, b->heads, b->num_queries, b->num_keys);
    /* The reference, so that the digits do not depend on the machine. */
    const pe_env env = {.struct_size = sizeof env, .isa = PE_ISA_SCALAR};
    pe_status status = pe_bias_create(&plan, &spec, &env, &error);
    if (status == PE_OK && b->is_softmax)
        status = pe_bias_softmax(plan, 1, PE_MASK_CAUSAL, &q_at, &k_at, &t, &t, &error);
    else if (status == PE_OK)
        status = pe_bias_fill(plan, &q_at, &k_at, &t, &error);
    pe_bias_destroy(plan);
    return status == PE_OK ? CLI_DONE : cli_fail(CLI_USAGE, "%s", error.message);
}

static int report(const bias_args *args, block *b)
{
    const int64_t limit = args->json ? MAX_JSON_NUMBERS : MAX_NUMBERS;
    int64_t count;
    if (__builtin_mul_overflow(b->num_queries, b->num_keys, &count) ||
        __builtin_mul_overflow(count, b->heads, &count) || count > limit)
        return cli_fail(CLI_USAGE,
                        "%lld queries x %lld keys x %lld heads are more than %lld "
                        "numbers; narrow --queries, --keys or --head",
                        (long long)b->num_queries, (long long)b->num_keys,
                        (long long)b->heads, (long long)limit);
    b->values = calloc((size_t)count, sizeof *b->values);
    if (b->values == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    int status = fill(b);
    if (status == CLI_DONE) {
        if (args->output != NULL)
            status = write_npy(b, args->output);
        else if (args->json)
            status = print_json(b);
        else if (args->csv)
            print_csv(b);
        else
            print_text(b);
    }
    free(b->values);
    return status;
}

static int open_block(const bias_args *args, const cli_bias *bias, block *b)
{
    const int is_text = !args->json && !args->csv && args->output == NULL;
    *b = (block){.bias = bias,
                 .queries = args->queries,
                 .keys = args->keys,
                 .first = args->head,
                 .heads = 1,
                 .is_softmax = args->softmax};
    if (b->queries.begin == b->queries.end)
        b->queries = (cli_range){0, 6};
    if (b->keys.begin == b->keys.end)
        b->keys = (cli_range){0, 6};
    if (args->head < 0) {
        b->first = 0;
        b->heads = is_text ? 1 : bias->spec.num_heads;
    }
    if (b->first >= bias->spec.num_heads)
        return cli_fail(CLI_USAGE, "--head is %lld, must be below %d",
                        (long long)b->first, (int)bias->spec.num_heads);
    if (__builtin_sub_overflow(b->queries.end, b->queries.begin, &b->num_queries) ||
        __builtin_sub_overflow(b->keys.end, b->keys.begin, &b->num_keys))
        return cli_fail(CLI_USAGE, "--queries and --keys must span less than 2^63");
    if (args->softmax && bias->shows_bucket)
        return cli_fail(CLI_FAILED,
                        "%s: --softmax needs the T5 table, a weight that the "
                        "settings do not have",
                        bias->name);
    return CLI_DONE;
}

static int run(int argc, char **argv)
{
    bias_args args = {.bias = CLI_BIAS_DEFAULTS, .head = -1};
    const char *operand;
    int status = cli_parse(&cli_verb_bias, argc, argv, &args, &operand);
    if (status != CLI_CONTINUE)
        return status;
    if (args.json + args.csv + (args.output != NULL) > 1)
        return cli_fail(CLI_USAGE, "--json, --csv and --output exclude each other");
    cli_bias bias;
    block b;
    status = cli_bias_open(&bias, operand, &args.bias);
    if (status != CLI_DONE)
        return status;
    status = open_block(&args, &bias, &b);
    if (status == CLI_DONE)
        status = report(&args, &b);
    cli_bias_close(&bias);
    return status;
}

static const cli_option options[] = {
    {.name = "queries",
     .letter = 'q',
     .argument = "A:B",
     .type = CLI_RANGE,
     .offset = offsetof(bias_args, queries),
     .help = "positions of the queries; default 0:6"},
    {.name = "keys",
     .letter = 'k',
     .argument = "A:B",
     .type = CLI_RANGE,
     .offset = offsetof(bias_args, keys),
     .help = "positions of the keys; default 0:6"},
    {.name = "head",
     .argument = "N",
     .type = CLI_INTEGER,
     .max = INT32_MAX,
     .offset = offsetof(bias_args, head),
     .help = "one head; default 0 in text, else all"},
    {.name = "form",
     .argument = "NAME",
     .type = CLI_CHOICE,
     .choices = cli_form_names,
     .offset = offsetof(bias_args, bias.form),
     .help = "default the model's own, causal for a head count"},
    {.name = "softmax",
     .type = CLI_FLAG,
     .offset = offsetof(bias_args, softmax),
     .help = "the causal attention that equal scores get, instead of the bias"},
    CLI_BIAS_OPTIONS(bias_args),
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(bias_args, json),
     .help = "schema posenc.bias/1"},
    {.name = "csv",
     .type = CLI_FLAG,
     .offset = offsetof(bias_args, csv),
     .help = "head,query,key,value"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE.npy",
     .type = CLI_TEXT,
     .offset = offsetof(bias_args, output),
     .help =
         "write float32 (heads, queries, keys) there instead; - is standard output"}};

const cli_verb cli_verb_bias = {
    .name = "bias",
    .summary = "what ALiBi or T5 adds to the scores",
    .operands = "HEADS|MODEL",
    .about =
        "One line for each query, one column for each key.  A causal bias is 0 for\n"
        "later keys, which the mask hides.  Of a T5 model the settings give only the\n"
        "buckets, which is what is shown.\n"
        "\n" CLI_BIAS_HELP,
    .examples = "posenc bias 8 --queries 5 --keys 0:6\n"
                "posenc bias bloom-560m --head 3 --softmax\n"
                "posenc bias t5-base --keys 0:130 --queries 129 --csv",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};
