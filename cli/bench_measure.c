/* SPDX-License-Identifier: MIT
 *
 * bench_measure.c - sides in turn, medians, and the ratios of each round
 */
#define _GNU_SOURCE
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_ROUNDS = 2000, MIN_ROUNDS = 5, MIN_QUICK_ROUNDS = 3 };

#define LONG_NS      1e9 /* a side that takes longer makes it three rounds in all, */
#define VERY_LONG_NS 8e9 /* one that takes longer still, a single one */

/* By the wall clock other threads take part: waking one, and moving its share of the data
 * from the cache of the CPU that had it in the sample before, take some 0.1 ms. */
#define WALL_SAMPLE_NS 4e6

const char *const bench_dtype_names[] = {"f32", "f16", "bf16"};
const pe_dtype bench_dtypes[] = {PE_F32, PE_F16, PE_BF16};

static double now_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double time_of(const bench_side *side, clockid_t clock, int64_t times)
{
    const double start = now_ns(clock);
    for (int64_t i = 0; i < times; i++)
        side->run(side->ctx);
    return (now_ns(clock) - start) / (double)times;
}

/* Repetitions that fill a sample; the first run warms caches and is not counted, unless
 * it is so long that it says enough: *first_ns. */
static int64_t calibrate(const bench_side *side, clockid_t clock, double sample_ns,
                         double *first_ns)
{
    int64_t times = 1;
    double ns = *first_ns = time_of(side, clock, 1);
    if (ns > 4 * sample_ns)
        return 1;
    for (; (ns = time_of(side, clock, times) * (double)times) < sample_ns / 4;
         times *= 2)
        ;
    times = (int64_t)((double)times * sample_ns / ns);
    return times < 1 ? 1 : times;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *sorted, int count, double q)
{
    return sorted[(int)(q * (count - 1) + 0.5)];
}

static double median_ratio(const double *above, const double *below, double *scratch,
                           int count)
{
    for (int i = 0; i < count; i++)
        scratch[i] = above[i] / below[i];
    qsort(scratch, (size_t)count, sizeof *scratch, by_size);
    return quantile(scratch, count, 0.5);
}

static bench_row *new_row(bench *b, const char *id)
{
    if (b->num_rows == b->room) {
        const size_t room = b->room ? 2 * b->room : 64;
        bench_row *rows = realloc(b->rows, room * sizeof *rows);
        if (rows == NULL) {
            b->status = cli_fail(CLI_FAILED, "out of memory");
            return NULL;
        }
        b->rows = rows;
        b->room = room;
    }
    bench_row *row = &b->rows[b->num_rows];
    *row = (bench_row){0};
    (void)snprintf(row->id, sizeof row->id, "%s", id);
    return row;
}

static void fill_row(bench_row *row, const bench_side *sides, int num_sides,
                     double (*times)[MAX_ROUNDS], int rounds, double limit_bytes)
{
    static double scratch[MAX_ROUNDS];
    for (int s = 1; s < num_sides; s++) {
        const double ratio = median_ratio(times[s], times[0], scratch, rounds);
        if (strcmp(sides[s].name, "limit") == 0) {
            row->limit_fraction = ratio * row->bytes / limit_bytes;
        } else {
            row->vs[row->num_vs] = sides[s].name;
            row->ratio[row->num_vs++] = ratio;
        }
    }
    row->num_samples = rounds < BENCH_SAMPLES ? rounds : BENCH_SAMPLES;
    for (int i = 0; i < row->num_samples; i++)
        row->samples[i] = times[0][(int64_t)i * rounds / row->num_samples];
    memcpy(scratch, times[0], (size_t)rounds * sizeof *scratch);
    qsort(scratch, (size_t)rounds, sizeof *scratch, by_size);
    row->ns = quantile(scratch, rounds, 0.5);
    row->low = quantile(scratch, rounds, 0.25);
    row->high = quantile(scratch, rounds, 0.75);
}

int bench_wants(const bench *b, const char *id)
{
    return b->status == CLI_DONE && (b->only == NULL || strstr(id, b->only) != NULL);
}

bench_row *bench_measure(bench *b, const char *id, double bytes, double flops,
                         double working_set, double limit_bytes,
                         const bench_side *sides, int num_sides)
{
    static double times[BENCH_SIDES + 1][MAX_ROUNDS];
    const double sample_ns = b->by_wall ? WALL_SAMPLE_NS : b->quick ? 4e4 : 1e5;
    const double budget_ns = b->quick ? 2.5e8 : 3e9;
    const clockid_t clock = b->by_wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    int64_t repeats[BENCH_SIDES + 1];
    bench_row *row = b->status == CLI_DONE ? new_row(b, id) : NULL;
    if (row == NULL)
        return NULL;
    row->bytes = bytes;
    row->flops = flops;
    row->working_set = working_set;
    double longest = 0;
    for (int s = 0; s < num_sides; s++) {
        repeats[s] = calibrate(&sides[s], clock, sample_ns, &times[s][0]);
        longest = times[s][0] > longest ? times[s][0] : longest;
    }
    /* The first run of a long side says enough to count. */
    int rounds = longest > LONG_NS;
    const int least = longest > VERY_LONG_NS ? 1
                      : rounds || b->quick   ? MIN_QUICK_ROUNDS
                                             : MIN_ROUNDS;
    for (int s = 0; s < num_sides && rounds; s++)
        if (times[s][0] <= LONG_NS)
            times[s][0] = time_of(&sides[s], clock, repeats[s]);
    const double start = now_ns(CLOCK_MONOTONIC);
    while (rounds < MAX_ROUNDS &&
           (rounds < least ||
            (longest <= LONG_NS && now_ns(CLOCK_MONOTONIC) - start < budget_ns))) {
        for (int s = 0; s < num_sides; s++)
            times[s][rounds] = time_of(&sides[s], clock, repeats[s]);
        rounds++;
    }
    fill_row(row, sides, num_sides, times, rounds, limit_bytes);
    b->num_rows++;
    return row;
}

/* --------------------------------------------------------------------- goals --- */

const bench_row *bench_find(const bench *b, const char *id)
{
    for (size_t i = 0; i < b->num_rows; i++)
        if (strcmp(b->rows[i].id, id) == 0)
            return &b->rows[i];
    return NULL;
}

double bench_ratio(const bench *b, const char *id, const char *side)
{
    const bench_row *row = bench_find(b, id);
    if (row == NULL)
        return 0;
    if (strcmp(side, "limit") == 0)
        return row->limit_fraction;
    for (int i = 0; i < row->num_vs; i++)
        if (strcmp(row->vs[i], side) == 0)
            return row->ratio[i];
    return 0;
}

static void add_goal(bench *b, const bench_goal *goal)
{
    if (b->num_goals == CLI_COUNT(b->goals)) {
        if (b->status == CLI_DONE)
            b->status = cli_fail(CLI_FAILED, "more than %zu goals", b->num_goals);
        return;
    }
    bench_goal *g = &b->goals[b->num_goals++];
    *g = *goal;
    g->is_known = g->got > 0;
}

void bench_goal_at_least(bench *b, const char *row, const char *side, double goal)
{
    bench_goal g = {.goal = goal, .got = bench_ratio(b, row, side)};
    (void)snprintf(g.id, sizeof g.id, "%s vs %s", row, side);
    if (b->only == NULL || bench_find(b, row))
        add_goal(b, &g);
}

void bench_goal_above(bench *b, const char *id, double got, double goal)
{
    bench_goal g = {.goal = goal, .got = got};
    (void)snprintf(g.id, sizeof g.id, "%s", id);
    if (b->only == NULL || got > 0)
        add_goal(b, &g);
}

void bench_goal_at_most(bench *b, const char *id, double got, double goal)
{
    bench_goal g = {.goal = goal, .got = got, .at_most = 1};
    (void)snprintf(g.id, sizeof g.id, "%s", id);
    if (b->only == NULL || got > 0)
        add_goal(b, &g);
}

/* -------------------------------------------------------------------- memory --- */

void *bench_alloc(bench *b, pe_dtype dtype, int64_t count)
{
    enum { LINE = 64 };
    const size_t size = dtype == PE_F32 ? 4 : 2;
    const size_t bytes = ((size_t)count * size + LINE - 1) / LINE * LINE;
    void *data = b->status == CLI_DONE ? aligned_alloc(LINE, bytes) : NULL;
    uint32_t state = 1;
    if (data == NULL) {
        if (b->status == CLI_DONE)
            b->status = cli_fail(CLI_FAILED, "out of memory for %zu MiB", bytes >> 20);
        return NULL;
    }
    /* Sizes from 2^-8 to 1 in every dtype: the sign and some fraction at random. */
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        const uint32_t random = state >> 8;
        if (dtype == PE_F32)
            ((uint32_t *)data)[i] =
                (random & 1) << 31 | (119 + (random >> 1) % 8) << 23 | random >> 1;
        else if (dtype == PE_F16)
            ((uint16_t *)data)[i] =
                (uint16_t)((random & 1) << 15 | (7 + (random >> 1) % 8) << 10 |
                           random >> 14);
        else
            ((uint16_t *)data)[i] =
                (uint16_t)((random & 1) << 15 | (119 + (random >> 1) % 8) << 7 |
                           random >> 17);
    }
    return data;
}

void bench_failed(bench *b, const pe_error *error)
{
    if (b->status == CLI_DONE)
        b->status = cli_fail(CLI_FAILED, "%s", error->message);
}
