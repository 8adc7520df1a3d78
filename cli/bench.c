/* SPDX-License-Identifier: MIT
 *
 * bench.c - posenc bench: the verb
 */
#include "bench.h"
#include "names.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench_args {
    const char *rows, *output;
    int32_t quick, json, isa;
} bench_args;

static int measure(bench *b)
{
    bench_limit_rows(b);
    bench_rope(b);
    bench_uses(b);
    bench_cache(b);
    bench_tables(b);
    bench_bias(b);
    bench_add(b);
    bench_attention(b);
    if (b->status == CLI_DONE && b->num_rows == 0)
        b->status = cli_fail(CLI_USAGE, "--rows is '%s', which no row has in its name",
                             b->only);
    if (b->only == NULL)
        bench_peer_goals(b);
    return b->status;
}

static int run(int argc, char **argv)
{
    bench_args args = {0};
    int status = cli_parse(&cli_verb_bench, argc, argv, &args, NULL);
    if (status != CLI_CONTINUE)
        return status;
    bench b = {.quick = args.quick, .only = args.rows};
    status = cli_isa_choose(args.isa, &b.isa);
    if (status != CLI_DONE)
        return status;
    b.limits = bench_limits_get(b.isa);
    b.dram_tokens = args.quick ? 4096 : 32768;
    status = measure(&b);
    if (status == CLI_DONE && args.output != NULL)
        status = bench_write_svg(&b, args.output);
    if (status == CLI_DONE)
        status = args.json ? bench_print_json(&b) : bench_print_text(&b);
    free(b.rows);
    return status;
}

static const cli_option options[] = {
    {.name = "quick",
     .type = CLI_FLAG,
     .offset = offsetof(bench_args, quick),
     .help = "fewer samples, and prefill of at most 4096 tokens: under two minutes "
             "instead of fifteen"},
    {.name = "rows",
     .argument = "TEXT",
     .type = CLI_TEXT,
     .offset = offsetof(bench_args, rows),
     .help = "only rows whose name has this in it, such as rope.f16 or .512"},
    CLI_ISA_OPTION(bench_args),
    {.name = "output",
     .letter = 'o',
     .argument = "FILE.svg",
     .type = CLI_TEXT,
     .offset = offsetof(bench_args, output),
     .help = "draw speed against size, with the limits, one panel per kernel"},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(bench_args, json),
     .help = "schema posenc.bench/1, with samples"}};

const cli_verb cli_verb_bench = {
    .name = "bench",
    .summary = "how fast the kernels are here, against this machine's limits",
    .operands = "",
    .about =
        "Measures rotation, tables, stores into a cache, softmax with ALiBi, sums and\n"
        "attention.  Every row takes turns with its limit: scaling the same bytes in\n"
        "place, for attention as many multiply-adds, or reading the cache, whose\n"
        "layout is (heads, tokens, 128) unless a row says by-token.\n"
        "\n"
        "Rows that leave blocks out draw queries and keys as long as a model's, or\n"
        "shorter or longer.  Beyond 8192 tokens no-skip is the time of 1008 queries "
        "in\n"
        "the middle, times all blocks over theirs.\n"
        "\n"
        "naive is the published shape of ggml's rope: a scalar table per tensor with\n"
        "sinf and cosf, then one pair after the other.  convert is scaling in place "
        "by\n"
        "way of floats.  libm is sincos() in double.  Numbers after x are how many\n"
        "times longer the other took.",
    .examples = "posenc bench --quick --rows rope-row.f32.half.1\n"
                "posenc bench --quick --rows limit.fma --json",
    .options = options,
    .num_options = CLI_COUNT(options),
    .run = run};
