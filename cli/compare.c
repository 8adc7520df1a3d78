/* SPDX-License-Identifier: MIT
 *
 * compare.c - posenc compare: the four methods, and none, on the same q, k and v
 */
#include "compare_out.h"
#include "options.h"
#include "tensor_arg.h"
#include "verbs.h"

#include <stdlib.h>

enum { TOKENS = 6, HEADS = 2, DIM = 8, TRAINED = 16 };

typedef struct compare_args {
    const char *files[3]; /* q, k, v */
    const char *output;
    int64_t trained, head;
    int32_t json;
} compare_args;

/* Content that is the same everywhere: golden hash, a multiple of 2^-24 times size. */
static float *content(int64_t start, int64_t count, float size)
{
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; x != NULL && i < count; i++) {
        const uint32_t hash = (uint32_t)((uint64_t)(start + i) * 2654435761u);
        x[i] = size * ((float)(hash >> 8) * 0x1p-24f - 0.5f);
    }
    return x;
}

static int read_file(const char *path, cmp_problem *p, const float **out, int is_first)
{
    const cli_tensor_want want = {.layout = CLI_BSHD};
    cli_tensor t;
    int status = cli_tensor_open(&t, path, &want);
    if (status != CLI_DONE)
        return status;
    const int fits = is_first || (t.seq_len == p->tokens && t.num_heads == p->heads &&
                                  t.dim == p->dim);
    if (t.dtype != PE_F32 || t.batch != 1 || !fits || t.seq_len < 1 ||
        t.seq_len > CMP_MAX_TOKENS || t.dim % 2 != 0 || t.dim > 256 || t.num_heads > 64)
        status = cli_fail(CLI_FAILED,
                          "%s must be float32 (tokens, heads, dim), at most %d tokens, "
                          "64 heads and 256 wide, dim even, and all three alike",
                          path, CMP_MAX_TOKENS);
    float *data = status == CLI_DONE ? malloc(t.in.weight->size + 1) : NULL;
    if (status == CLI_DONE && data == NULL)
        status = cli_fail(CLI_FAILED, "out of memory");
    if (status == CLI_DONE)
        status = cli_npy_read(&t.in, data, t.in.weight->size);
    p->tokens = t.seq_len;
    p->heads = t.num_heads;
    p->dim = t.dim;
    *out = data;
    cli_tensor_close(&t);
    return status;
}

static int open_problem(const compare_args *args, cmp_problem *p)
{
    const float **const inputs[] = {&p->q, &p->k, &p->v};
    const int is_given = args->files[0] || args->files[1] || args->files[2];
    *p = (cmp_problem){
        .tokens = TOKENS, .heads = HEADS, .dim = DIM, .trained = args->trained};
    for (int i = 0; i < 3; i++) {
        if (is_given && args->files[i] == NULL)
            return cli_fail(CLI_USAGE, "--q, --k and --v go together");
        int status = CLI_DONE;
        if (is_given)
            status = read_file(args->files[i], p, inputs[i], i == 0);
        else
            *inputs[i] = content(1000 * i, TOKENS * HEADS * DIM, i < 2 ? 4 : 1);
        if (status != CLI_DONE)
            return status;
        if (*inputs[i] == NULL)
            return cli_fail(CLI_FAILED, "out of memory");
    }
    p->table = content(9000, p->trained * p->dim, 1);
    if (p->table == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    if (args->head >= p->heads)
        return cli_fail(CLI_USAGE, "--head is %lld, must be below %lld",
                        (long long)args->head, (long long)p->heads);
    if (p->trained < p->tokens)
        return cli_fail(CLI_USAGE,
                        "--trained is %lld, must be at least the tokens (%lld)",
                        (long long)p->trained, (long long)p->tokens);
    return CLI_DONE;
}

static int compare(const compare_args *args, const cmp_problem *p)
{
    cmp_report r = {.problem = p, .head = args->head};
    int status = CLI_DONE;
    for (int m = 0; m < CMP_METHODS && status == CLI_DONE; m++) {
        status = cmp_attend(p, m, 0, &r.here[m]);
        if (status == CLI_DONE)
            status = cmp_attend(p, m, p->trained, &r.past[m]);
        if (status == CLI_DONE)
            status = cmp_run_tests(p, m, &r.tests[m]);
    }
    if (status == CLI_DONE && args->output != NULL)
        status = cmp_write_svg(&r, args->output);
    if (status == CLI_DONE)
        status = args->json ? cmp_print_json(&r) : cmp_print_text(&r);
    for (int m = 0; m < CMP_METHODS; m++) {
        cmp_release(&r.here[m]);
        cmp_release(&r.past[m]);
    }
    return status;
}

static int run(int argc, char **argv)
{
    compare_args args = {.trained = TRAINED};
    int status = cli_parse(&cli_verb_compare, argc, argv, &args, NULL);
    if (status != CLI_CONTINUE)
        return status;
    cmp_problem p;
    status = open_problem(&args, &p);
    if (status == CLI_DONE)
        status = compare(&args, &p);
    free((void *)(uintptr_t)p.q);
    free((void *)(uintptr_t)p.k);
    free((void *)(uintptr_t)p.v);
    free(p.table);
    return status;
}

static const cli_option options[] = {
    {.name = "q",
     .argument = "FILE.npy",
     .type = CLI_TEXT,
     .offset = offsetof(compare_args, files[0]),
     .help = "float32 (tokens, heads, dim) instead of the built-in 6 tokens"},
    {.name = "k",
     .argument = "FILE.npy",
     .type = CLI_TEXT,
     .offset = offsetof(compare_args, files[1]),
     .help = "the same shape"},
    {.name = "v",
     .argument = "FILE.npy",
     .type = CLI_TEXT,
     .offset = offsetof(compare_args, files[2]),
     .help = "the same shape"},
    {.name = "trained",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = 1 << 20,
     .offset = offsetof(compare_args, trained),
     .help = "positions seen in training, the rows of the learned table; default 16"},
    {.name = "head",
     .argument = "N",
     .type = CLI_INTEGER,
     .max = INT32_MAX,
     .offset = offsetof(compare_args, head),
     .help = "whose scores are shown; default 0"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE.svg",
     .type = CLI_TEXT,
     .offset = offsetof(compare_args, output),
     .help = "draw the probabilities, too"},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(compare_args, json),
     .help = "schema posenc.compare/1"}};

const cli_verb cli_verb_compare = {
    .name = "compare",
    .summary = "none, sinusoidal, learned, RoPE and ALiBi on the same input",
    .operands = "",
    .about =
        "Causal attention over the same q, k and v under each method, side by side,\n"
        "and questions to each: do scores survive moving all positions, as they are\n"
        "and where q and k are 0 but for what the method adds; do outputs survive\n"
        "trading places (without a mask); what happens past the trained length.",
    .examples = "posenc compare\nposenc compare --head 1 -o compare.svg",
    .options = options,
    .num_options = CLI_COUNT(options),
    .run = run};
