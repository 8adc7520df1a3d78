/* SPDX-License-Identifier: MIT
 *
 * bench_report.c - rows and goals as text and as JSON
 */
#include "bench.h"
#include "machine.h"
#include "names.h"
#include "print.h"
#include "report.h"

#include <stdio.h>
#include <string.h>

static int is_met(const bench_goal *g)
{
    return g->at_most ? g->got <= g->goal : g->got >= g->goal;
}

static void print_machine(const bench *b, const cli_machine *m)
{
    cli_print("%s, %lld CPUs, caches %lld KiB, %lld KiB, %lld MiB; %s; %s; isa %s",
              m->cpu, (long long)m->num_cpus, (long long)m->cache[0] >> 10,
              (long long)m->cache[1] >> 10, (long long)m->cache[2] >> 20, m->compiler,
              m->flags, pe_isa_name(b->isa));
    if (m->load >= 0)
        cli_print("; load %.1f", m->load);
    cli_print("\n");
    if (m->load > (double)m->num_cpus * 0.5)
        cli_print("other programs run here: trust ratios, not times\n");
}

static void print_row(const cli_machine *m, const bench_row *row)
{
    const int is_work = row->bytes > 0;
    (void)printf("%-32s %-4s %12.1f %5.1f%%", row->id,
                 is_work ? cli_machine_place(m, row->working_set) : "", row->ns,
                 100 * (row->high - row->low) / row->ns);
    (void)printf(" %7.1f %-7s", (is_work ? row->bytes : row->flops) / row->ns,
                 is_work ? "GB/s" : "GFLOP/s");
    if (row->limit_fraction > 0)
        (void)printf(" %5.2f", row->limit_fraction);
    else
        (void)printf("     -");
    for (int i = 0; i < row->num_vs; i++)
        (void)printf("  x%.2f %s", row->ratio[i], row->vs[i]);
    (void)putchar('\n');
}

int bench_print_text(const bench *b)
{
    cli_machine m;
    size_t met = 0, known = 0;
    cli_machine_read(&m);
    print_machine(b, &m);
    (void)printf("\n%-32s %-4s %12s %6s %15s %5s\n", "row", "in", "median ns", "spread",
                 "speed", "limit");
    for (size_t i = 0; i < b->num_rows; i++)
        print_row(&m, &b->rows[i]);
    if (b->num_goals == 0)
        return CLI_DONE;
    (void)printf("\n%-48s %8s %8s\n", "goal", "wanted", "got");
    for (size_t i = 0; i < b->num_goals; i++) {
        const bench_goal *g = &b->goals[i];
        (void)printf("%-48s %s%7.2f ", g->id, g->at_most ? "<" : ">", g->goal);
        if (g->is_known)
            (void)printf("%8.2f  %s\n", g->got, is_met(g) ? "met" : "NOT MET");
        else
            (void)printf("%8s  not measured\n", "-");
        known += g->is_known != 0;
        met += g->is_known && is_met(g);
    }
    (void)printf("%zu of %zu measured goals met\n", met, known);
    return CLI_DONE;
}

static json_object *json_machine(const bench *b)
{
    cli_machine m;
    json_object *out = json_object_new_object();
    cli_machine_read(&m);
    cli_json_set_text(out, "cpu", m.cpu);
    cli_json_set_integer(out, "num_cpus", m.num_cpus);
    cli_json_set_integer(out, "l1_size", m.cache[0]);
    cli_json_set_integer(out, "l2_size", m.cache[1]);
    cli_json_set_integer(out, "l3_size", m.cache[2]);
    cli_json_set_text(out, "isa", pe_isa_name(b->isa));
    cli_json_set_text(out, "compiler", m.compiler);
    cli_json_set_text(out, "flags", m.flags);
    cli_json_set_number(out, "load", m.load);
    return out;
}

static json_object *json_row(const bench_row *row)
{
    json_object *out = json_object_new_object(), *vs = json_object_new_object();
    cli_json_set_text(out, "id", row->id);
    cli_json_set_number(out, "ns", row->ns);
    cli_json_set_number(out, "ns_low", row->low);
    cli_json_set_number(out, "ns_high", row->high);
    cli_json_set_number(out, "bytes", row->bytes);
    cli_json_set_number(out, "flops", row->flops);
    cli_json_set_number(out, "working_set", row->working_set);
    if (row->limit_fraction > 0)
        cli_json_set_number(out, "limit_fraction", row->limit_fraction);
    else
        (void)json_object_object_add(out, "limit_fraction", NULL);
    for (int i = 0; i < row->num_vs; i++)
        cli_json_set_number(vs, row->vs[i], row->ratio[i]);
    (void)json_object_object_add(out, "vs", vs);
    cli_json_numbers(out, "samples", row->samples, row->num_samples);
    return out;
}

static json_object *json_goal(const bench_goal *g)
{
    json_object *out = json_object_new_object();
    cli_json_set_text(out, "id", g->id);
    cli_json_set_number(out, "goal", g->goal);
    if (g->is_known)
        cli_json_set_number(out, "got", g->got);
    else
        (void)json_object_object_add(out, "got", NULL);
    (void)json_object_object_add(
        out, "met", g->is_known ? json_object_new_boolean(is_met(g)) : NULL);
    return out;
}

int bench_print_json(const bench *b)
{
    json_object *root = cli_json_start("posenc.bench/1");
    json_object *rows = json_object_new_array(), *goals = json_object_new_array();
    (void)json_object_object_add(root, "machine", json_machine(b));
    for (size_t i = 0; i < b->num_rows; i++)
        (void)json_object_array_add(rows, json_row(&b->rows[i]));
    for (size_t i = 0; i < b->num_goals; i++)
        (void)json_object_array_add(goals, json_goal(&b->goals[i]));
    (void)json_object_object_add(root, "rows", rows);
    (void)json_object_object_add(root, "goals", goals);
    return cli_json_print(root);
}
