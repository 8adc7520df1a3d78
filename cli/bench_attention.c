/* SPDX-License-Identifier: MIT
 *
 * bench_attention.c - prefill, gradients, decoding, threads and scratch of attention
 *
 * 32 q heads and 8 kv heads of 128.  "fma" is as many operations on registers, so that
 * its ratio is the fraction of the peak; "read" reads the cache and does nothing. */
#include "bench_attend.h"

#include "posenc/threads.h"

#include <stdio.h>

typedef bench_attention_shape shape;

static shape prefill_of(int64_t n)
{
    return (shape){.q_len = n,
                   .k_len = n,
                   .heads = BENCH_HEADS,
                   .kv_heads = BENCH_KV_HEADS,
                   .cache = PE_F32};
}

static void measure(bench *b, const char *id, const shape *s, const char *side,
                    void (*other)(void *), double goal)
{
    if (!bench_wants(b, id))
        return;
    bench_attend w;
    bench_attend_open(b, &w, s);
    if (b->status == CLI_DONE) {
        const bench_side sides[] = {
            {NULL, s->has_gradients ? bench_attend_backward : bench_attend_forward, &w},
            {side, other, &w}};
        (void)bench_measure(b, id, w.bytes, w.flops, w.bytes, 0, sides, 2);
        if (goal > 0)
            bench_goal_at_least(b, id, side, goal);
    }
    bench_attend_close(&w);
}

/* --------------------------------------------------------------------- prefill --- */

static void measure_prefill(bench *b, const char *isa, pe_isa with,
                            const double goals[3])
{
    static const char *const names[] = {"none", "alibi", "rope"};
    for (int i = 0; i < 3; i++) {
        shape s = prefill_of(2048);
        char id[64];
        s.isa = with;
        s.has_alibi = s.no_skip = i == 1;
        s.has_rope = i == 2;
        (void)snprintf(id, sizeof id, "attention.%s%s.2048", isa, names[i]);
        measure(b, id, &s, "fma", bench_attend_multiply_add, goals[i]);
    }
}

static void measure_prefills(bench *b)
{
    static const double wide[] = {0.78, 0.74, 0.76}, narrow[] = {0.7, 0.7, 0.7};
    measure_prefill(b, "", 0, b->isa == PE_ISA_AVX512 ? wide : narrow);
    if (b->isa == PE_ISA_AVX512)
        measure_prefill(b, "avx2.", PE_ISA_AVX2, narrow);
    shape s = prefill_of(1024);
    s.has_gradients = 1;
    measure(b, "attention.backward.1024", &s, "fma", bench_attend_multiply_add, 0.6);
}

/* ------------------------------------------------------------------------ skip --- */

/* The same work twice, differently: the other side is the one to beat. */
static const bench_row *compare(bench *b, const char *id, const shape *ours,
                                const char *side, const shape *theirs, double goal,
                                int64_t blocks[2])
{
    const bench_row *row = NULL;
    if (!bench_wants(b, id))
        return NULL;
    bench_attend w, other;
    bench_attend_open(b, &w, ours);
    bench_attend_open(b, &other, theirs);
    if (b->status == CLI_DONE) {
        const bench_side sides[] = {{NULL, bench_attend_forward, &w},
                                    {side, bench_attend_forward, &other}};
        row = bench_measure(b, id, w.bytes, w.flops, w.bytes, 0, sides, 2);
        if (goal > 0)
            bench_goal_at_least(b, id, side, goal);
        blocks[0] = w.blocks[0];
        blocks[1] = w.blocks[1];
    }
    bench_attend_close(&w);
    bench_attend_close(&other);
    return row;
}

static void measure_skip(bench *b, const char *id, shape s, double goal, double share)
{
    shape all = s;
    char name[80];
    int64_t blocks[2] = {0, 1};
    all.no_skip = 1;
    const bench_row *row = compare(b, id, &s, "no-skip", &all, goal, blocks);
    if (row == NULL || share == 0)
        return;
    const double allowed = (double)(blocks[0] + blocks[1]) / (double)blocks[0];
    (void)snprintf(name, sizeof name, "%s: of what visited blocks allow", id);
    bench_goal_above(b, name, row->ratio[0] / allowed, share);
}

/* The goal is for norms as real models have; small and large ones show the way. */
static void measure_skips(bench *b)
{
    static const struct {
        const char *name;
        double norm_product, goal;
    } rows[] = {{"attention.skip", BENCH_NORMS, 1.5},
                {"attention.skip.small-norms", BENCH_NORMS_SMALL, 0},
                {"attention.skip.large-norms", BENCH_NORMS_LARGE, 0}};
    shape s = prefill_of(b->quick ? 2048 : 8192);
    s.has_alibi = 1;
    for (size_t i = 0; i < CLI_COUNT(rows); i++) {
        char id[64];
        s.norm_product = rows[i].norm_product;
        (void)snprintf(id, sizeof id, "%s.%d", rows[i].name, (int)s.q_len);
        measure_skip(b, id, s, b->quick ? 0 : rows[i].goal, 0.9);
    }
    if (b->quick && b->only == NULL) {
        bench_goal_at_least(b, "attention.skip.8192", "no-skip", 1.5);
        bench_goal_above(b, "attention.skip.8192: of what visited blocks allow", 0,
                         0.9);
    }
}

/* ---------------------------------------------------------------------- decoding --- */

static void measure_decoding(bench *b)
{
    const shape decode = {.q_len = 1,
                          .k_len = 32768,
                          .heads = BENCH_HEADS,
                          .kv_heads = BENCH_KV_HEADS,
                          .cache = PE_F16};
    static const struct {
        const char *id;
        pe_dtype cache;
        int by_token;
        pe_isa isa;
        double goal;
    } rows[] = {
        {"attention.decode.32768", PE_F16, 0, 0, 0.75},
        {"attention.decode.by-token.32768", PE_F16, 1, 0, 0},
        {"attention.decode.bf16.32768", PE_BF16, 0, 0, 0},
        {"attention.decode.f32.32768", PE_F32, 0, 0, 0},
        {"attention.decode.int8.32768", PE_I8, 0, 0, 0},
        {"attention.decode.int8.by-token.32768", PE_I8, 1, 0, 0},
        {"attention.decode.avx2.32768", PE_F16, 0, PE_ISA_AVX2, 0},
    };
    for (size_t i = 0; i < CLI_COUNT(rows); i++) {
        shape s = decode;
        if (rows[i].isa != 0 && b->isa != PE_ISA_AVX512)
            continue;
        s.cache = rows[i].cache;
        s.by_token = rows[i].by_token;
        s.isa = rows[i].isa;
        measure(b, rows[i].id, &s, "read", bench_attend_read, rows[i].goal);
    }
    shape s = decode;
    s.has_alibi = 1;
    s.norm_product = BENCH_NORMS;
    measure_skip(b, "attention.decode.alibi.32768", s, 3, 0);
}

/* ----------------------------------------------------------------------- threads --- */

static void measure_threads(bench *b)
{
    const shape alone = prefill_of(2048);
    shape both = alone;
    pe_executor executor;
    pe_pool *pool;
    pe_error error;
    int64_t blocks[2];
    if (!bench_wants(b, "attention.threads.2048"))
        return;
    if (pe_pool_create(&pool, 2, &error) != PE_OK) {
        bench_failed(b, &error);
        return;
    }
    pe_pool_executor(pool, &executor);
    both.executor = &executor;
    b->by_wall = 1;
    (void)compare(b, "attention.threads.2048", &both, "one-thread", &alone, 1.85,
                  blocks);
    b->by_wall = 0;
    pe_pool_destroy(pool);
}

/* Scratch of a thread, which must not grow with the square of the length. */
static void measure_scratch(bench *b)
{
    shape s = prefill_of(32768);
    s.has_alibi = 1;
    if (b->only == NULL && b->status == CLI_DONE)
        bench_goal_at_most(b, "attention.32768 scratch in MiB",
                           (double)bench_attend_scratch(b, &s) / 0x1p20, 16);
}

/* ------------------------------------------------------------------------ peers --- */

static void goals_against_peers(bench *b)
{
    static const struct {
        const char *row, *peer;
        double goal;
    } goals[] = {{"attention.none.2048", "onnxruntime", 1},
                 {"attention.alibi.2048", "onnxruntime", 1.55},
                 {"attention.alibi.2048", "torch", 4},
                 {"attention.none.2048", "ggml", 2.1},
                 {"attention.alibi.2048", "ggml", 2.1}};
    for (size_t i = 0; i < CLI_COUNT(goals) && b->only == NULL; i++)
        bench_goal_at_least(b, goals[i].row, goals[i].peer, goals[i].goal);
}

void bench_attention(bench *b)
{
    measure_prefills(b);
    measure_decoding(b);
    measure_skips(b);
    bench_growth(b);
    measure_threads(b);
    measure_scratch(b);
    goals_against_peers(b);
}
