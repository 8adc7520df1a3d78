/* SPDX-License-Identifier: MIT
 *
 * bench_cache.c - keys that a cache holds already: moved, or given another plan's angles
 */
#include "bench_work.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEADS = BENCH_K_HEADS, DIM = 128 };

/* f16 keys, (heads, tokens, dim), at positions from BENCH_START. */
typedef struct keys {
    pe_rope *plans[2];
    int now; /* whose angles the keys have */
    int64_t delta;
    pe_positions at, apart;
    pe_tensor k;
    const bench_limits *limits;
    int64_t count;
} keys;

/* To and fro, so that the keys stay as large as they are. */
static void shift(void *ctx)
{
    keys *s = ctx;
    s->delta = -s->delta;
    (void)pe_rope_shift(s->plans[0], s->delta, &s->k, &s->k, NULL);
}

static void rebase(void *ctx)
{
    keys *s = ctx;
    const pe_rope *from = s->plans[s->now], *to = s->plans[!s->now];
    s->now = !s->now;
    (void)pe_rope_rebase(from, &s->at, to, &s->at, &s->k, &s->k, NULL);
}

static void rebase_way(void *ctx)
{
    const keys *s = ctx;
    (void)pe_rope_rebase(s->plans[0], &s->at, s->plans[0], &s->apart, &s->k, &s->k,
                         NULL);
}

static void scale(void *ctx)
{
    const keys *s = ctx;
    bench_scale(s->limits, PE_F16, s->k.data, s->count);
}

static void convert(void *ctx)
{
    const keys *s = ctx;
    bench_convert(s->limits, PE_F16, s->k.data, s->count);
}

static void create_plans(bench *b, keys *s)
{
    pe_rope_spec spec = {.struct_size = sizeof spec,
                         .head_dim = DIM,
                         .pairs = {.pairing = PE_HALF_SPLIT},
                         .freqs = {.rope_theta = 10000}};
    const pe_env env = {.struct_size = sizeof env, .isa = b->isa};
    pe_error error;
    for (int i = 0; i < 2 && b->status == CLI_DONE; i++) {
        if (pe_rope_create(&s->plans[i], &spec, &env, &error) != PE_OK)
            bench_failed(b, &error);
        spec.freqs.rope_theta = 40000;
    }
}

static void measure(bench *b, const char *name, void (*run)(void *ctx), int64_t tokens)
{
    char id[64];
    (void)snprintf(id, sizeof id, "cache.%s.f16.%lld", name, (long long)tokens);
    if (!bench_wants(b, id))
        return;
    keys s = {.delta = 5,
              .at = {.start = BENCH_START},
              .apart = {.start = BENCH_START + 300},
              .limits = b->limits,
              .count = tokens * HEADS * DIM};
    void *data = bench_alloc(b, PE_F16, s.count);
    create_plans(b, &s);
    if (b->status == CLI_DONE) {
        pe_tensor_bhsd(&s.k, PE_F16, data, 1, HEADS, tokens, DIM);
        const bench_side sides[] = {
            {NULL, run, &s}, {"limit", scale, &s}, {"convert", convert, &s}};
        const double bytes = (double)s.count * 4;
        (void)bench_measure(b, id, bytes, (double)s.count * 3, bytes / 2, bytes, sides,
                            3);
    }
    pe_rope_destroy(s.plans[0]);
    pe_rope_destroy(s.plans[1]);
    free(data);
}

void bench_cache(bench *b)
{
    static const int64_t lengths[] = {256, 4096, 32768};
    for (size_t i = 0; i < CLI_COUNT(lengths); i++)
        measure(b, "shift", shift, lengths[i]);
    for (size_t i = 0; i < CLI_COUNT(lengths); i++)
        measure(b, "rebase-way", rebase_way, lengths[i]);
    for (size_t i = 0; i < CLI_COUNT(lengths); i++)
        measure(b, "rebase", rebase, lengths[i]);
}
