/* SPDX-License-Identifier: MIT
 *
 * bench_uses.c - stores into a cache, one instruction set against another, two threads
 */
#include "bench_work.h"

#include "posenc/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------- keys into a cache of fewer bits --- */

/* k, f32 (8 heads of 128), into a cache of f16 or int8 as long: at once, or by way of two
 * buffers as separate operations do it. */
typedef struct store {
    pe_rope *rope;
    pe_positions at;
    pe_tensor k, rotated, small, cache;
    const bench_limits *limits;
    float *scaled; /* half the bytes that fusing reads and writes: so does scaling */
    int64_t num_scaled;
} store;

static void store_fused(void *ctx)
{
    const store *s = ctx;
    (void)pe_rope_apply(s->rope, &s->at, &s->k, &s->cache, NULL);
}

static void store_separately(void *ctx)
{
    const store *s = ctx;
    (void)pe_rope_apply(s->rope, &s->at, &s->k, &s->rotated, NULL);
    (void)pe_tensor_copy(&s->rotated, &s->small, NULL, NULL);
    (void)pe_tensor_copy(&s->small, &s->cache, NULL, NULL);
}

static void store_limit(void *ctx)
{
    const store *s = ctx;
    bench_scale(s->limits, PE_F32, s->scaled, s->num_scaled);
}

static void measure_store(bench *b, pe_dtype dtype, int64_t tokens)
{
    enum { HEADS = BENCH_K_HEADS, DIM = 128 };
    const int64_t count = tokens * HEADS * DIM, vectors = tokens * HEADS;
    const int64_t bytes = count * (dtype == PE_I8 ? 5 : 6);
    char id[64];
    (void)snprintf(id, sizeof id, "store.f32-to-%s.%lld",
                   dtype == PE_I8 ? "int8" : "f16", (long long)tokens);
    if (!bench_wants(b, id))
        return;
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = DIM,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .freqs = {.rope_theta = 10000}};
    const pe_env env = {.struct_size = sizeof env, .isa = b->isa};
    store s = {.at = {.start = BENCH_START},
               .limits = b->limits,
               .num_scaled = bytes / 8,
               .scaled = bench_alloc(b, PE_F32, bytes / 8)};
    /* Room for 16 bits an element; int8 leaves half of it. */
    void *k = bench_alloc(b, PE_F32, count), *rotated = bench_alloc(b, PE_F32, count),
         *small = bench_alloc(b, PE_F16, count), *cache = bench_alloc(b, PE_F16, count),
         *scales = bench_alloc(b, PE_F32, 2 * vectors);
    pe_error error;
    if (b->status == CLI_DONE && pe_rope_create(&s.rope, &spec, &env, &error) != PE_OK)
        bench_failed(b, &error);
    if (b->status == CLI_DONE) {
        pe_tensor_bshd(&s.k, PE_F32, k, 1, tokens, HEADS, DIM);
        pe_tensor_bshd(&s.rotated, PE_F32, rotated, 1, tokens, HEADS, DIM);
        pe_tensor_bshd(&s.small, dtype, small, 1, tokens, HEADS, DIM);
        pe_tensor_bhsd(&s.cache, dtype, cache, 1, HEADS, tokens, DIM);
        s.small.scales = scales;
        s.cache.scales = (float *)scales + vectors;
        const bench_side sides[] = {{NULL, store_fused, &s},
                                    {"limit", store_limit, &s},
                                    {"separate", store_separately, &s}};
        (void)bench_measure(b, id, (double)bytes, (double)count * 3, (double)bytes,
                            (double)bytes, sides, 3);
    }
    pe_rope_destroy(s.rope);
    free(s.scaled);
    free(k);
    free(rotated);
    free(small);
    free(cache);
    free(scales);
}

/* ------------------------------------------------------------ to other memory --- */

typedef struct apart {
    const bench_work *work;
    pe_tensor q, k;
} apart;

static void rotate_apart(void *ctx)
{
    const apart *a = ctx;
    const bench_work *w = a->work;
    (void)pe_rope_apply_qk(w->rope, &w->at, &w->q, &a->q, &w->k, &a->k, NULL);
}

/* The same bytes, unturned. */
static void copy_apart(void *ctx)
{
    const apart *a = ctx;
    const size_t size = a->work->q.dtype == PE_F32 ? 4 : 2;
    memcpy(a->q.data, a->work->q.data, (size_t)a->work->count * size);
}

/* q and k to other memory, of the same layout or (heads, tokens, 128). */
static void measure_apart(bench *b, const char *layout, int by_heads, int dtype,
                          int64_t tokens)
{
    char id[64];
    bench_work w;
    (void)snprintf(id, sizeof id, "store.%s.%s.%lld", layout, bench_dtype_names[dtype],
                   (long long)tokens);
    if (!bench_wants(b, id))
        return;
    const bench_shape s = {.dtype = dtype,
                           .tokens = tokens,
                           .head_dim = 128,
                           .pairs = {.pairing = PE_HALF_SPLIT},
                           .isa = b->isa};
    bench_work_open(b, &w, &s, NULL);
    unsigned char *out = bench_alloc(b, bench_dtypes[dtype], w.count);
    if (out != NULL) {
        apart a = {&w, w.q, w.k};
        a.q.data = out;
        a.k.data = out + ((unsigned char *)w.k.data - (unsigned char *)w.q.data);
        if (by_heads) {
            pe_tensor_bhsd(&a.q, w.q.dtype, a.q.data, 1, BENCH_Q_HEADS, tokens, 128);
            pe_tensor_bhsd(&a.k, w.k.dtype, a.k.data, 1, BENCH_K_HEADS, tokens, 128);
        }
        const bench_side sides[] = {{NULL, rotate_apart, &a},
                                    {"limit", bench_work_scale, &w},
                                    {"memcpy", copy_apart, &a},
                                    {"in-place", bench_work_rotate, &w}};
        const double bytes = bench_work_bytes(&w);
        (void)bench_measure(b, id, bytes, bench_work_flops(&w), bytes, bytes, sides, 4);
    }
    free(out);
    bench_work_close(&w);
}

/* ------------------------------------------------ one instruction set, another --- */

static void measure_isa(bench *b, int dtype, int64_t tokens)
{
    char id[64];
    bench_work narrow, wide;
    (void)snprintf(id, sizeof id, "isa.avx2.%s.%lld", bench_dtype_names[dtype],
                   (long long)tokens);
    if (!bench_wants(b, id) || !pe_isa_available(PE_ISA_AVX512))
        return;
    bench_shape s = {.dtype = dtype,
                     .tokens = tokens,
                     .head_dim = 128,
                     .pairs = {.pairing = PE_HALF_SPLIT},
                     .isa = PE_ISA_AVX512};
    bench_work_open(b, &wide, &s, NULL);
    s.isa = PE_ISA_AVX2;
    bench_work_open(b, &narrow, &s, wide.data);
    const bench_side sides[] = {{NULL, bench_work_rotate, &narrow},
                                {"limit", bench_work_scale, &narrow},
                                {"avx512", bench_work_rotate, &wide}};
    const double bytes = bench_work_bytes(&wide);
    (void)bench_measure(b, id, bytes, bench_work_flops(&wide), bytes / 2, bytes, sides,
                        3);
    bench_goal_at_least(b, id, "avx512", tokens > 512 ? 0.9 : 0.6);
    bench_work_close(&narrow);
    bench_work_close(&wide);
}

/* -------------------------------------------------------------------- threads --- */

typedef struct shared_scale {
    const pe_executor *executor;
    const bench_work *work;
} shared_scale;

static void scale_piece(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const bench_work *w = arg;
    (void)worker;
    bench_scale(w->limits, PE_F32, (float *)w->q.data + begin * 1024,
                (end - begin) * 1024);
}

static void scale_alone(void *ctx)
{
    const shared_scale *s = ctx;
    scale_piece((void *)(uintptr_t)s->work, 0, 0, s->work->count / 1024);
}

static void scale_together(void *ctx)
{
    const shared_scale *s = ctx;
    s->executor->run(s->executor->ctx, s->work->count / 1024, 64, scale_piece,
                     (void *)(uintptr_t)s->work);
}

static void measure_threads(bench *b, int64_t tokens)
{
    char id[64];
    pe_pool *pool = NULL;
    pe_executor executor;
    bench_work alone, together;
    pe_error error;
    (void)snprintf(id, sizeof id, "threads.f32.half.%lld", (long long)tokens);
    if (!bench_wants(b, id))
        return;
    if (pe_pool_create(&pool, 2, &error) != PE_OK) {
        bench_failed(b, &error);
        return;
    }
    pe_pool_executor(pool, &executor);
    bench_shape s = {.tokens = tokens,
                     .head_dim = 128,
                     .pairs = {.pairing = PE_HALF_SPLIT},
                     .isa = b->isa};
    bench_work_open(b, &alone, &s, NULL);
    s.executor = &executor;
    bench_work_open(b, &together, &s, alone.data);
    shared_scale limit = {&executor, &together};
    const bench_side sides[] = {{NULL, bench_work_rotate, &together},
                                {"limit", scale_together, &limit},
                                {"limit-one-thread", scale_alone, &limit},
                                {"one-thread", bench_work_rotate, &alone}};
    const double bytes = bench_work_bytes(&alone);
    b->by_wall = 1;
    (void)bench_measure(b, id, bytes, bench_work_flops(&alone), bytes / 2, bytes, sides,
                        4);
    b->by_wall = 0;
    if (tokens > 512)
        bench_goal_at_least(b, id, "limit", 0.9);
    else
        bench_goal_at_least(b, id, "one-thread", 1.8);
    bench_work_close(&together);
    bench_work_close(&alone);
    pe_pool_destroy(pool);
}

void bench_uses(bench *b)
{
    static const int64_t lengths[] = {32, 512, 4096};
    static const int64_t cache_lengths[] = {32, 512, 8192, 32768};
    for (int small = 0; small < 2; small++)
        for (size_t i = 0; i < CLI_COUNT(cache_lengths); i++)
            measure_store(b, small ? PE_I8 : PE_F16, cache_lengths[i]);
    bench_goal_at_least(b, "store.f32-to-f16.32768", "separate", 1.8);
    for (int dtype = 0; dtype < BENCH_DTYPES; dtype++)
        for (size_t i = 0; i < CLI_COUNT(lengths); i++)
            measure_apart(b, "apart", 0, dtype, lengths[i]);
    for (size_t i = 0; i < CLI_COUNT(lengths); i++)
        measure_apart(b, "to-heads", 1, 0, lengths[i]);
    for (int dtype = 0; dtype < BENCH_DTYPES; dtype++)
        for (size_t i = 0; i < CLI_COUNT(lengths); i++)
            measure_isa(b, dtype, lengths[i]);
    for (size_t i = 0; i < CLI_COUNT(lengths); i++)
        measure_threads(b, lengths[i]);
}
