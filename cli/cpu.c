/* SPDX-License-Identifier: MIT
 *
 * cpu.c - posenc cpu: which instruction sets run here, and the machine's limits
 */
#include "bench.h"
#include "machine.h"
#include "names.h"
#include "print.h"
#include "report.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct cpu_args {
    int32_t json, limits;
} cpu_args;

static int measure_limits(bench *b, pe_isa isa)
{
    *b = (bench){.quick = 1, .isa = isa, .limits = bench_limits_get(isa)};
    bench_limit_rows(b);
    return b->status;
}

static double speed_of(const bench_row *row)
{
    return (row->bytes > 0 ? row->bytes : row->flops) / row->ns;
}

static int print_text(const cli_machine *m, pe_isa chosen, const bench *b)
{
    static const char *const caches[] = {"l1 data", "l2", "l3"};
    cli_print("cpu        %s\n", m->cpu);
    cli_print("cpus       %lld\n", (long long)m->num_cpus);
    for (int i = 0; i < 3; i++)
        if (m->cache[i] > 0)
            cli_print("%-10s %lld KiB\n", caches[i], (long long)m->cache[i] >> 10);
        else
            cli_print("%-10s unknown\n", caches[i]);
    for (const cli_choice *c = cli_isa_names + 1; c->name != NULL; c++)
        cli_print("%-10s %s\n", c->name,
                  c->value == chosen           ? "chosen"
                  : pe_isa_available(c->value) ? "available"
                                               : "not here");
    for (size_t i = 0; i < b->num_rows; i++)
        cli_print("%-23s %8.1f %s\n", b->rows[i].id, speed_of(&b->rows[i]),
                  b->rows[i].bytes > 0 ? "GB/s" : "GFLOP/s");
    return CLI_DONE;
}

static int print_json(const cli_machine *m, pe_isa chosen, const bench *b)
{
    json_object *root = cli_json_start("posenc.cpu/1");
    json_object *isas = json_object_new_array(), *limits = json_object_new_object();
    cli_json_set_text(root, "cpu", m->cpu);
    cli_json_set_integer(root, "num_cpus", m->num_cpus);
    cli_json_set_integer(root, "l1_size", m->cache[0]);
    cli_json_set_integer(root, "l2_size", m->cache[1]);
    cli_json_set_integer(root, "l3_size", m->cache[2]);
    cli_json_set_text(root, "chosen", pe_isa_name(chosen));
    for (const cli_choice *c = cli_isa_names + 1; c->name != NULL; c++)
        if (pe_isa_available(c->value))
            (void)json_object_array_add(isas, json_object_new_string(c->name));
    (void)json_object_object_add(root, "available", isas);
    for (size_t i = 0; i < b->num_rows; i++)
        cli_json_set_number(limits, b->rows[i].id, speed_of(&b->rows[i]));
    if (b->num_rows > 0)
        (void)json_object_object_add(root, "limits", limits);
    else
        (void)json_object_put(limits);
    return cli_json_print(root);
}

static int run(int argc, char **argv)
{
    cpu_args args = {0};
    int status = cli_parse(&cli_verb_cpu, argc, argv, &args, NULL);
    if (status != CLI_CONTINUE)
        return status;
    cli_machine m;
    pe_isa chosen;
    bench b = {0};
    cli_machine_read(&m);
    status = cli_isa_choose(PE_ISA_AUTO, &chosen);
    if (status == CLI_DONE && args.limits)
        status = measure_limits(&b, chosen);
    if (status == CLI_DONE)
        status = args.json ? print_json(&m, chosen, &b) : print_text(&m, chosen, &b);
    free(b.rows);
    return status;
}

static const cli_option options[] = {
    {.name = "limits",
     .type = CLI_FLAG,
     .offset = offsetof(cpu_args, limits),
     .help = "measure them, in some ten seconds: GFLOP/s, and GB/s of scaling in place "
             "in each cache and in memory"},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(cpu_args, json),
     .help = "schema posenc.cpu/1"}};

const cli_verb cli_verb_cpu = {
    .name = "cpu",
    .summary = "which instruction sets run here, and the machine's limits",
    .operands = "",
    .about =
        "Lists the instruction sets that the library knows.  The chosen one is what\n"
        "every verb uses unless --isa says otherwise; tables are the same bits in all\n"
        "of them, rotations agree to a few units of their last place.",
    .examples = "posenc cpu\nposenc cpu --json",
    .options = options,
    .num_options = CLI_COUNT(options),
    .run = run};
