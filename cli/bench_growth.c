/* SPDX-License-Identifier: MIT
 *
 * bench_growth.c - how prefill with ALiBi grows when far blocks are left out
 *
 * 8 heads, n from 4096 to 65536, lengths as a model's.  All blocks are visited as well up
 * to 8192.  Beyond, where that takes up to minutes, the queries of four tiles in the
 * middle visit all of theirs, half of n on average as those of a whole prefill do, and
 * the time of a block is multiplied. */
#include "bench_attend.h"

#include <math.h>
#include <stdio.h>

enum { FIRST = 4096, SIZES = 5, LAST_WHOLE = 8192, HEADS = 8, MIDDLE = 1008 };

typedef struct growth {
    double ns[SIZES], allowed_ns[SIZES]; /* of visited blocks, none chosen */
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

/* All blocks of n tokens, or of MIDDLE queries that see half of them. */
static bench_attention_shape shape_of(int64_t n, int in_the_middle)
{
    return (bench_attention_shape){.q_len = in_the_middle ? MIDDLE : n,
                                   .k_len = in_the_middle ? n / 2 + MIDDLE / 2 : n,
                                   .heads = HEADS,
                                   .kv_heads = HEADS,
                                   .cache = PE_F32,
                                   .has_alibi = 1,
                                   .norm_product = BENCH_NORMS};
}

/* Time of ours over what its visited blocks take without a choice, and how much more is
 * allowed. */
static void measure_pair(bench *b, const char *id, bench_attend *w, bench_attend *all,
                         growth *g)
{
    char name[80];
    const bench_side sides[] = {{NULL, bench_attend_forward, w},
                                {"no-skip", bench_attend_forward, all}};
    bench_row *row = bench_measure(b, id, w->bytes, w->flops, w->bytes, 0, sides, 2);
    if (row == NULL)
        return;
    const double visited = (double)w->blocks[0], left_out = (double)w->blocks[1];
    row->ratio[0] *= (visited + left_out) / (double)all->blocks[0];
    const double allowed = (visited + left_out) / visited;
    (void)snprintf(name, sizeof name, "%s: over what visited blocks cost", id);
    bench_goal_at_most(b, name, allowed / row->ratio[0], 1.15);
    g->ns[g->count] = row->ns;
    g->allowed_ns[g->count++] = row->ns * row->ratio[0] / allowed;
}

static void measure_size(bench *b, int64_t n, growth *g)
{
    bench_attention_shape s = shape_of(n, 0), whole = shape_of(n, n > LAST_WHOLE);
    bench_attend w, all;
    char id[40], name[80];
    (void)snprintf(id, sizeof id, "attention.growth.%d", (int)n);
    if (!bench_wants(b, id))
        return;
    if (b->quick && n > FIRST) {
        (void)snprintf(name, sizeof name, "%s: over what visited blocks cost", id);
        bench_goal_at_most(b, name, 0, 1.15);
        return;
    }
    whole.no_skip = 1;
    bench_attend_open(b, &w, &s);
    bench_attend_open(b, &all, &whole);
    if (b->status == CLI_DONE)
        measure_pair(b, id, &w, &all, g);
    bench_attend_close(&w);
    bench_attend_close(&all);
}

void bench_growth(bench *b)
{
    growth g = {.count = 0};
    for (int i = 0; i < SIZES; i++)
        measure_size(b, (int64_t)FIRST << i, &g);
    if (b->only != NULL && g.count < SIZES)
        return;
    /* Blocks that are visited cost what they do without a choice. */
    const int whole = g.count == SIZES;
    bench_goal_at_most(b, "attention.growth exponent, 4096 to 65536",
                       whole ? exponent(g.ns, SIZES) : 0,
                       whole ? exponent(g.allowed_ns, SIZES) + 0.05 : 1.6);
}
