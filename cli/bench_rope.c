/* SPDX-License-Identifier: MIT
 *
 * bench_rope.c - rotation of q (32 heads) and k (8 heads): sizes, types, shapes
 */
#include "bench_naive.h"
#include "bench_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t lengths[] = {1, 32, 512, 4096, 32768};

static const struct {
    const char *name;
    pe_pairing pairing;
} pairings[] = {{"half", PE_HALF_SPLIT}, {"inter", PE_INTERLEAVED}};

static double value(pe_dtype dtype, const void *data, int64_t i)
{
    const float *f = data;
    const uint16_t *h = data;
    uint32_t bits = (uint32_t)h[dtype == PE_F32 ? 0 : i];
    float x;
    if (dtype == PE_F32)
        return (double)f[i];
    bits =
        dtype == PE_BF16 ? bits << 16 : (bits & 0x8000) << 16 | (bits & 0x7fff) << 13;
    memcpy(&x, &bits, sizeof x);
    return (double)(dtype == PE_BF16 ? x : x * 0x1p112f);
}

/* A baseline that does other work would be no baseline: once over the same data both
 * must agree, as closely as its float angles at position 1000 allow. */
static void check_naive(bench *b, const bench_shape *shape)
{
    bench_shape small = *shape;
    bench_work ours;
    small.tokens = 2;
    bench_work_open(b, &ours, &small, NULL);
    if (b->status != CLI_DONE) {
        bench_work_close(&ours);
        return;
    }
    const size_t size = (size_t)ours.count * (ours.q.dtype == PE_F32 ? 4 : 2);
    void *copy = malloc(size);
    if (copy == NULL) {
        b->status = cli_fail(CLI_FAILED, "out of memory");
    } else {
        memcpy(copy, ours.q.data, size);
        bench_naive naive = {.dtype = ours.q.dtype,
                             .pairing = shape->pairs.pairing,
                             .tokens = 2,
                             .head_dim = shape->head_dim,
                             .start = BENCH_START,
                             .theta = 10000,
                             .num_heads = {BENCH_Q_HEADS, BENCH_K_HEADS},
                             .data = {copy, NULL}};
        naive.data[1] = (unsigned char *)copy +
                        ((unsigned char *)ours.k.data - (unsigned char *)ours.q.data);
        bench_naive_run(&naive);
        bench_work_rotate(&ours);
        const double allowed = ours.q.dtype == PE_F32   ? 1e-3
                               : ours.q.dtype == PE_F16 ? 3e-3
                                                        : 2e-2;
        for (int64_t i = 0; i < ours.count && b->status == CLI_DONE; i++) {
            const double x = value(ours.q.dtype, ours.q.data, i),
                         y = value(ours.q.dtype, copy, i);
            if (!(fabs(x - y) <= allowed))
                b->status = cli_fail(CLI_FAILED,
                                     "the naive baseline disagrees at element %lld: %g "
                                     "against %g",
                                     (long long)i, y, x);
        }
        free(copy);
    }
    bench_work_close(&ours);
}

static bench_shape shape_of(const bench *b, int dtype, pe_pairing pairing,
                            int64_t tokens)
{
    return (bench_shape){.dtype = dtype,
                         .tokens = tokens,
                         .head_dim = 128,
                         .pairs = {.pairing = pairing},
                         .isa = b->isa};
}

static void measure(bench *b, const char *id, const bench_shape *shape, int with_naive)
{
    bench_work w;
    bench_side sides[BENCH_SIDES];
    int n = 0;
    if (!bench_wants(b, id))
        return;
    bench_work_open(b, &w, shape, NULL);
    bench_naive naive = {
        .dtype = w.q.dtype,
        .pairing = shape->pairs.pairing,
        .tokens = shape->tokens,
        .head_dim = shape->head_dim,
        .start = BENCH_START,
        .theta = 10000,
        .num_heads = {BENCH_Q_HEADS, BENCH_K_HEADS},
        .data = {w.q.data, w.k.data},
    };
    bench_naive at_once = naive;
    at_once.converts_at_once = 1;
    sides[n++] = (bench_side){NULL, bench_work_rotate, &w};
    sides[n++] = (bench_side){"limit", bench_work_scale, &w};
    if (shape->dtype != 0)
        sides[n++] = (bench_side){"convert", bench_work_convert, &w};
    if (with_naive) {
        check_naive(b, shape);
        sides[n++] = (bench_side){"naive", bench_naive_run, &naive};
        if (naive.dtype == PE_F16)
            sides[n++] = (bench_side){"naive-f16c", bench_naive_run, &at_once};
    }
    const double bytes = bench_work_bytes(&w);
    (void)bench_measure(b, id, bytes, bench_work_flops(&w), bytes / 2, bytes, sides, n);
    bench_work_close(&w);
}

static void measure_lengths(bench *b)
{
    char id[64];
    for (int dtype = 0; dtype < BENCH_DTYPES; dtype++)
        for (int p = 0; p < 2; p++)
            for (size_t t = 0; t < CLI_COUNT(lengths) && lengths[t] <= b->dram_tokens;
                 t++) {
                bench_shape s = shape_of(b, dtype, pairings[p].pairing, lengths[t]);
                (void)snprintf(id, sizeof id, "rope.%s.%s.%lld",
                               bench_dtype_names[dtype], pairings[p].name,
                               (long long)lengths[t]);
                measure(b, id, &s, 1);
                s.is_tabulated = 1;
                (void)snprintf(id, sizeof id, "rope-row.%s.%s.%lld",
                               bench_dtype_names[dtype], pairings[p].name,
                               (long long)lengths[t]);
                measure(b, id, &s, 0);
            }
}

/* The naive baseline in half-split, of ggml's published work. */
static void goals_against_naive(bench *b, const char *side)
{
    static const struct {
        int dtype, pairing;
        int64_t tokens; /* 0: in DRAM */
        double goal;
    } goals[] = {{0, 0, 1, 15},    {0, 0, 512, 13}, {0, 0, 0, 3},    {0, 1, 1, 7},
                 {0, 1, 512, 3.5}, {0, 1, 0, 1.7},  {1, 0, 1, 55},   {1, 0, 512, 55},
                 {1, 0, 0, 25},    {1, 1, 1, 12},   {1, 1, 512, 12}, {1, 1, 0, 8}};
    char id[64];
    for (size_t i = 0; i < CLI_COUNT(goals); i++) {
        (void)snprintf(id, sizeof id, "rope.%s.%s.%lld",
                       bench_dtype_names[goals[i].dtype],
                       pairings[goals[i].pairing].name,
                       (long long)(goals[i].tokens ? goals[i].tokens : b->dram_tokens));
        bench_goal_at_least(b, id, side, goals[i].goal);
    }
}

static void goals_against_limit(bench *b)
{
    char id[64];
    for (int dtype = 0; dtype < BENCH_DTYPES; dtype++)
        for (size_t t = 0; t < 3; t++) {
            (void)snprintf(id, sizeof id, "rope-row.%s.half.%lld",
                           bench_dtype_names[dtype], (long long)lengths[t]);
            bench_goal_at_least(b, id, dtype == 0 ? "limit" : "convert",
                                dtype == 0 ? 0.8 : 0.85);
        }
    for (int dtype = 0; dtype < BENCH_DTYPES; dtype++) {
        (void)snprintf(id, sizeof id, "rope-row.%s.half.%lld", bench_dtype_names[dtype],
                       (long long)b->dram_tokens);
        bench_goal_at_least(b, id, "limit", 0.9);
    }
}

/* ------------------------------------------------------------ shapes, per byte --- */

typedef struct shape_case {
    const char *name;
    int64_t head_dim;
    pe_pairs pairs;
    int is_mrope, is_back;
} shape_case;

static const shape_case shapes[] = {
    {"head_dim-64", 64, {.pairing = PE_HALF_SPLIT}, 0, 0},
    {"head_dim-80", 80, {.pairing = PE_HALF_SPLIT}, 0, 0},
    {"head_dim-96", 96, {.pairing = PE_HALF_SPLIT}, 0, 0},
    {"head_dim-256", 256, {.pairing = PE_HALF_SPLIT}, 0, 0},
    {"first-64-of-128", 128, {.pairing = PE_HALF_SPLIT, .rotary_dim = 64}, 0, 0},
    {"last-64-of-192",
     192,
     {.pairing = PE_HALF_SPLIT, .rotary_dim = 64, .rotary_start = 128},
     0,
     0},
    {"inter-to-half",
     128,
     {.pairing = PE_INTERLEAVED, .out_pairing = PE_HALF_SPLIT},
     0,
     0},
    {"mrope", 128, {.pairing = PE_HALF_SPLIT}, 1, 0},
    {"transpose", 128, {.pairing = PE_HALF_SPLIT}, 0, 1}};

/* Beside head_dim 128, half-split, over the same memory and as many bytes. */
static void measure_shape(bench *b, int dtype, const shape_case *c, int64_t tokens)
{
    char id[64], goal[80];
    bench_work w, plain;
    (void)snprintf(id, sizeof id, "shape.%s.%s.%lld", bench_dtype_names[dtype], c->name,
                   (long long)tokens);
    if (!bench_wants(b, id))
        return;
    bench_shape s = shape_of(b, dtype, PE_HALF_SPLIT, tokens * 128 / c->head_dim);
    s.head_dim = c->head_dim;
    s.pairs = c->pairs;
    s.is_mrope = c->is_mrope;
    const bench_shape reference = shape_of(b, dtype, PE_HALF_SPLIT, tokens);
    bench_work_open(b, &plain, &reference, NULL);
    bench_work_open(b, &w, &s, plain.data);
    const double bytes = bench_work_bytes(&w), full = bench_work_bytes(&plain);
    const bench_side sides[] = {
        {NULL, c->is_back ? bench_work_back : bench_work_rotate, &w},
        {"limit", bench_work_scale, &plain},
        {"head_dim-128", bench_work_rotate, &plain}};
    (void)bench_measure(b, id, bytes, bench_work_flops(&w), bytes / 2, full, sides, 3);
    const double ratio = bench_ratio(b, id, "head_dim-128");
    (void)snprintf(goal, sizeof goal, "%s per byte", id);
    if (b->status == CLI_DONE && ratio > 0)
        bench_goal_at_most(b, goal, full / bytes / ratio, 1.25);
    bench_work_close(&w);
    bench_work_close(&plain);
}

void bench_rope(bench *b)
{
    bench_naive_start();
    measure_lengths(b);
    goals_against_naive(b, "naive");
    goals_against_limit(b);
    for (int dtype = 0; dtype < BENCH_DTYPES; dtype++)
        for (size_t i = 0; i < CLI_COUNT(shapes); i++)
            measure_shape(b, dtype, &shapes[i], 512);
}

void bench_peer_goals(bench *b)
{
    static const struct {
        int64_t tokens;
        double goal[2];
    } ort[] = {{1, {10, 6}}, {32, {5, 4}}, {512, {3, 3}}, {0, {1.2, 1.5}}};
    char id[64];
    for (int dtype = 0; dtype < 2; dtype++)
        for (size_t i = 0; i < CLI_COUNT(ort); i++) {
            (void)snprintf(id, sizeof id, "rope-row.%s.half.%lld",
                           bench_dtype_names[dtype],
                           (long long)(ort[i].tokens ? ort[i].tokens : b->dram_tokens));
            bench_goal_at_least(b, id, "onnxruntime", ort[i].goal[dtype]);
        }
    goals_against_naive(b, "ggml");
}
