/* SPDX-License-Identifier: MIT
 *
 * bench_growth.c - how prefill with ALiBi grows when far blocks are left out
 *
 * 8 heads, n from 4096 to 65536.  All blocks are visited as well up to 16384, which is
 * where that takes seconds; beyond, its time is that of 16384 times the square of the
 * length: a block costs the same wherever it is. */
#include "bench_attend.h"

#include <math.h>
#include <stdio.h>

enum { FIRST = 4096, SIZES = 5, LAST_WHOLE = 16384 };

typedef struct growth {
    double ns[SIZES], visited[SIZES];
    int count;
} growth;

/* The slope of log2 y over log2 n, n doubling from one to the next. */
static double exponent(const double *y, int count)
{
    double above = 0, below = 0;
    for (int i = 0; i < count; i++) {
        const double x = i - (count - 1) / 2.0;
        above += x * log2(y[i]);
        below += x * x;
    }
    return above / below;
}

/* Time of a visit to all blocks over that of ours, and how much is allowed. */
static void measure_size(bench *b, int64_t n, double *all_ns, growth *g)
{
    bench_attention_shape s = {.q_len = n,
                               .k_len = n,
                               .heads = 8,
                               .kv_heads = 8,
                               .cache = PE_F32,
                               .has_alibi = 1,
                               .has_norms = 1};
    bench_attend w, all;
    char id[40], name[80];
    (void)snprintf(id, sizeof id, "attention.growth.%d", (int)n);
    (void)snprintf(name, sizeof name, "%s: over what visited blocks cost", id);
    if (!bench_wants(b, id))
        return;
    if (b->quick && n > FIRST) {
        bench_goal_at_most(b, name, 0, 1.15);
        return;
    }
    bench_attend_open(b, &w, &s);
    s.no_skip = 1;
    s.q_len = s.k_len = n <= LAST_WHOLE ? n : 64;
    bench_attend_open(b, &all, &s);
    if (b->status == CLI_DONE) {
        const bench_side sides[] = {{NULL, bench_attend_forward, &w},
                                    {"no-skip", bench_attend_forward, &all}};
        const bench_row *row = bench_measure(b, id, w.bytes, w.flops, w.bytes, 0, sides,
                                             n <= LAST_WHOLE ? 2 : 1);
        const double visited = (double)w.blocks[0];
        const double share = visited / (visited + (double)w.blocks[1]);
        *all_ns = n <= LAST_WHOLE ? row->ratio[0] * row->ns : *all_ns * 4;
        bench_goal_at_most(b, name, row->ns / (*all_ns * share), 1.15);
        g->ns[g->count] = row->ns;
        g->visited[g->count++] = visited;
    }
    bench_attend_close(&w);
    bench_attend_close(&all);
}

void bench_growth(bench *b)
{
    growth g = {.count = 0};
    double all_ns = 0;
    for (int i = 0; i < SIZES; i++)
        measure_size(b, (int64_t)FIRST << i, &all_ns, &g);
    if (b->only != NULL && g.count < SIZES)
        return;
    /* Visited blocks have one, too; time may grow no faster. */
    const int whole = g.count == SIZES;
    bench_goal_at_most(b, "attention.growth exponent, 4096 to 65536",
                       whole ? exponent(g.ns, SIZES) : 0,
                       whole ? exponent(g.visited, SIZES) + 0.05 : 1.6);
}
