/* SPDX-License-Identifier: MIT
 *
 * bench_attention.c - attention beside the multiply-adds and bytes that it cannot avoid
 *
 * 32 q heads and 8 kv heads of 128.  "fma" is as many operations on registers, so that
 * its ratio is the fraction of the peak; only what causal attention needs counts. */
#include "bench.h"

#include "posenc/attention.h"
#include "posenc/threads.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 32, KV_HEADS = 8, DIM = 128, RUN = 64 };

static volatile float one = 1; /* not known to the compiler */
static volatile uint64_t sink; /* keeps what was read */

typedef struct work {
    pe_attention *plan;
    pe_bias *alibi;
    pe_rope *rope;
    pe_tensor q, k, v, out, dout, dq, dk, dv;
    pe_positions q_at, k_at;
    pe_attention_args args;
    int64_t blocks[2];
    float *norms, *lse;
    void *data[8];
    void *scratch;
    size_t size, backward_size;
    const bench_limits *limits;
    double flops, bytes;
} work;

typedef struct shape {
    int64_t q_len, k_len;
    int32_t heads, kv_heads;
    int has_alibi, has_rope, has_norms, has_gradients, no_skip;
    pe_dtype cache; /* of k and v */
    const pe_executor *executor;
} shape;

static void forward(void *ctx)
{
    work *w = ctx;
    (void)pe_attention_forward(w->plan, &w->args, w->scratch, w->size, NULL);
}

static void backward(void *ctx)
{
    work *w = ctx;
    const pe_attention_grads grads = {.struct_size = sizeof grads,
                                      .dout = &w->dout,
                                      .dq = &w->dq,
                                      .dk = &w->dk,
                                      .dv = &w->dv};
    (void)pe_attention_backward(w->plan, &w->args, &grads, w->scratch, w->backward_size,
                                NULL);
}

static void multiply_add(void *ctx)
{
    const work *w = ctx;
    const double rounds = w->flops / (double)w->limits->flops_per_round;
    (void)w->limits->multiply_add((int64_t)rounds, one);
}

static void read_cache(void *ctx)
{
    const work *w = ctx;
    uint64_t sum[8] = {0};
    for (int t = 0; t < 2; t++) {
        const uint64_t *x = t ? w->v.data : w->k.data;
        for (int64_t i = 0; i < (int64_t)(w->bytes / 16); i += 8)
            for (int j = 0; j < 8; j++)
                sum[j] += x[i + j];
    }
    for (int j = 0; j < 8; j++)
        sink += sum[j];
}

static pe_tensor tensor(bench *b, work *w, int slot, pe_dtype dtype, int64_t len,
                        int64_t heads)
{
    pe_tensor t;
    w->data[slot] = bench_alloc(b, dtype, len * heads * DIM);
    pe_tensor_bhsd(&t, dtype, w->data[slot], 1, heads, len, DIM);
    return t;
}

static void fill_norms(bench *b, work *w, const shape *s)
{
    const int64_t runs = (s->k_len + RUN - 1) / RUN;
    w->norms = malloc((size_t)(runs * s->kv_heads) * sizeof *w->norms);
    if (w->norms == NULL) {
        b->status = cli_fail(CLI_FAILED, "out of memory");
        return;
    }
    for (int64_t i = 0; i < runs * s->kv_heads; i++)
        w->norms[i] = 8; /* elements are uniform in [-1, 1): lengths are about 6.5 */
    w->args.k_norms = w->norms;
}

static void open_plan(bench *b, work *w, const shape *s)
{
    pe_env env = {.struct_size = sizeof env, .isa = b->isa};
    const pe_bias_spec bias_spec = {.struct_size = sizeof bias_spec,
                                    .type = PE_BIAS_ALIBI,
                                    .form = PE_BIAS_CAUSAL,
                                    .num_heads = s->heads};
    const pe_rope_spec rope_spec = {.struct_size = sizeof rope_spec,
                                    .head_dim = DIM,
                                    .table_len = s->k_len,
                                    .pairs = {.pairing = PE_HALF_SPLIT},
                                    .freqs = {.rope_theta = 10000}};
    pe_attention_spec spec = {.struct_size = sizeof spec,
                              .num_heads = s->heads,
                              .num_kv_heads = s->kv_heads,
                              .head_dim = DIM,
                              .no_skip = s->no_skip,
                              .visible = {.mask = PE_MASK_CAUSAL}};
    pe_error error;
    if (s->executor != NULL)
        env.executor = *s->executor;
    if (pe_bias_create(&w->alibi, &bias_spec, &env, &error) != PE_OK ||
        pe_rope_create(&w->rope, &rope_spec, &env, &error) != PE_OK) {
        bench_failed(b, &error);
        return;
    }
    spec.bias[0] = s->has_alibi ? w->alibi : NULL;
    spec.q_rope = spec.k_rope = s->has_rope ? w->rope : NULL;
    if (pe_attention_create(&w->plan, &spec, &env, &error) != PE_OK ||
        pe_attention_workspace(w->plan, &w->args, &w->size,
                               s->has_gradients ? &w->backward_size : NULL,
                               &error) != PE_OK)
        bench_failed(b, &error);
}

/* Work that useful causal attention has: a query sees the keys up to its own place. */
static void count(work *w, const shape *s)
{
    const double pairs = (double)s->q_len * (double)(s->k_len - s->q_len) +
                         (double)s->q_len * (double)(s->q_len + 1) / 2;
    w->flops = (s->has_gradients ? 10.0 : 4.0) * s->heads * DIM * pairs;
    w->bytes =
        2.0 * (double)s->k_len * s->kv_heads * DIM * (s->cache == PE_F32 ? 4 : 2);
}

static void open_work(bench *b, work *w, const shape *s)
{
    *w = (work){.limits = b->limits, .q_at = {.start = s->k_len - s->q_len}};
    w->q = tensor(b, w, 0, PE_F32, s->q_len, s->heads);
    w->k = tensor(b, w, 1, s->cache, s->k_len, s->kv_heads);
    w->v = tensor(b, w, 2, s->cache, s->k_len, s->kv_heads);
    w->out = tensor(b, w, 3, PE_F32, s->q_len, s->heads);
    w->lse = bench_alloc(b, PE_F32, s->q_len * s->heads);
    if (s->has_gradients) {
        w->dout = tensor(b, w, 4, PE_F32, s->q_len, s->heads);
        w->dq = tensor(b, w, 5, PE_F32, s->q_len, s->heads);
        w->dk = tensor(b, w, 6, PE_F32, s->k_len, s->kv_heads);
        w->dv = tensor(b, w, 7, PE_F32, s->k_len, s->kv_heads);
    }
    w->args = (pe_attention_args){.struct_size = sizeof w->args,
                                  .q = &w->q,
                                  .k = &w->k,
                                  .v = &w->v,
                                  .out = &w->out,
                                  .q_at = &w->q_at,
                                  .k_at = &w->k_at,
                                  .lse = w->lse,
                                  .num_blocks = w->blocks};
    if (s->has_norms)
        fill_norms(b, w, s);
    count(w, s);
    if (b->status == CLI_DONE)
        open_plan(b, w, s);
    const size_t most = w->size > w->backward_size ? w->size : w->backward_size;
    if (b->status == CLI_DONE)
        w->scratch = bench_alloc(b, PE_F32, (int64_t)(most / sizeof(float)) + 16);
    if (b->status == CLI_DONE)
        forward(w);
}

static void close_work(work *w)
{
    pe_attention_destroy(w->plan);
    pe_bias_destroy(w->alibi);
    pe_rope_destroy(w->rope);
    for (size_t i = 0; i < CLI_COUNT(w->data); i++)
        free(w->data[i]);
    free(w->norms);
    free(w->lse);
    free(w->scratch);
}

static void measure(bench *b, const char *id, const shape *s, const char *side,
                    void (*other)(void *), double goal)
{
    if (!bench_wants(b, id))
        return;
    work w;
    open_work(b, &w, s);
    if (b->status == CLI_DONE) {
        const bench_side sides[] = {{NULL, s->has_gradients ? backward : forward, &w},
                                    {side, other, &w}};
        (void)bench_measure(b, id, w.bytes, w.flops, w.bytes, 0, sides, 2);
        bench_goal_at_least(b, id, side, goal);
    }
    close_work(&w);
}

/* The same work twice, differently: the other side is the one to beat. */
static const bench_row *compare(bench *b, const char *id, const shape *ours,
                                const char *side, const shape *theirs, double goal,
                                int64_t blocks[2])
{
    const bench_row *row = NULL;
    if (!bench_wants(b, id))
        return NULL;
    work w, other;
    open_work(b, &w, ours);
    open_work(b, &other, theirs);
    if (b->status == CLI_DONE) {
        const bench_side sides[] = {{NULL, forward, &w}, {side, forward, &other}};
        row = bench_measure(b, id, w.bytes, w.flops, w.bytes, 0, sides, 2);
        if (goal > 0)
            bench_goal_at_least(b, id, side, goal);
        if (blocks != NULL) {
            blocks[0] = w.blocks[0];
            blocks[1] = w.blocks[1];
        }
    }
    close_work(&w);
    close_work(&other);
    return row;
}

static void measure_skip(bench *b, const char *id, shape s, double goal, double share)
{
    shape all = s;
    char name[96];
    int64_t blocks[2] = {0, 1};
    all.no_skip = 1;
    const bench_row *row = compare(b, id, &s, "no-skip", &all, goal, blocks);
    if (row == NULL || share == 0)
        return;
    const double allowed = (double)(blocks[0] + blocks[1]) / (double)blocks[0];
    (void)snprintf(name, sizeof name, "%s: visited over time saved", id);
    bench_goal_at_most(b, name, allowed / row->ratio[0], share);
}

static void measure_threads(bench *b)
{
    static const shape alone = {.q_len = 2048,
                                .k_len = 2048,
                                .heads = HEADS,
                                .kv_heads = KV_HEADS,
                                .cache = PE_F32};
    pe_executor executor;
    pe_pool *pool;
    pe_error error;
    shape both = alone;
    if (!bench_wants(b, "attention.threads.2048"))
        return;
    if (pe_pool_create(&pool, 2, &error) != PE_OK) {
        bench_failed(b, &error);
        return;
    }
    pe_pool_executor(pool, &executor);
    both.executor = &executor;
    b->by_wall = 1;
    (void)compare(b, "attention.threads.2048", &both, "one-thread", &alone, 1.85, NULL);
    b->by_wall = 0;
    pe_pool_destroy(pool);
}

/* Scratch of a thread, which must not grow with the square of the length. */
static void measure_scratch(bench *b)
{
    static const shape s = {.q_len = 32768,
                            .k_len = 32768,
                            .heads = HEADS,
                            .kv_heads = KV_HEADS,
                            .has_alibi = 1,
                            .cache = PE_F32};
    work w = {.limits = b->limits};
    if (b->only != NULL)
        return;
    /* Only shapes are looked at, and whether outputs lie apart from inputs. */
    const uintptr_t far = (uintptr_t)1 << 40;
    pe_tensor_bshd(&w.q, PE_F32, (void *)far, 1, s.q_len, HEADS, DIM);
    pe_tensor_bshd(&w.k, PE_F32, (void *)(2 * far), 1, s.k_len, KV_HEADS, DIM);
    w.v = w.k;
    w.out = w.q;
    w.out.data = (void *)(3 * far);
    w.args = (pe_attention_args){.struct_size = sizeof w.args,
                                 .q = &w.q,
                                 .k = &w.k,
                                 .v = &w.v,
                                 .out = &w.out,
                                 .q_at = &w.q_at,
                                 .k_at = &w.k_at};
    open_plan(b, &w, &s);
    if (b->status == CLI_DONE)
        bench_goal_at_most(b, "attention.32768 scratch in MiB", (double)w.size / 0x1p20,
                           16);
    close_work(&w);
}

void bench_attention(bench *b)
{
    const int is_wide = b->isa == PE_ISA_AVX512;
    const shape prefill = {.q_len = 2048,
                           .k_len = 2048,
                           .heads = HEADS,
                           .kv_heads = KV_HEADS,
                           .cache = PE_F32};
    const shape decode = {.q_len = 1,
                          .k_len = 32768,
                          .heads = HEADS,
                          .kv_heads = KV_HEADS,
                          .cache = PE_F16};
    shape s = prefill;
    measure(b, "attention.none.2048", &s, "fma", multiply_add, is_wide ? 0.78 : 0.7);
    s.has_alibi = 1;
    measure(b, "attention.alibi.2048", &s, "fma", multiply_add, is_wide ? 0.74 : 0.7);
    s.has_alibi = 0;
    s.has_rope = 1;
    measure(b, "attention.rope.2048", &s, "fma", multiply_add, is_wide ? 0.76 : 0.7);
    s = prefill;
    s.q_len = s.k_len = 1024;
    s.has_gradients = 1;
    measure(b, "attention.backward.1024", &s, "fma", multiply_add, 0.6);
    s = decode;
    measure(b, "attention.decode.32768", &s, "read", read_cache, 0.75);
    s.has_alibi = s.has_norms = 1;
    measure_skip(b, "attention.decode.alibi.32768", s, 3, 0);
    s = prefill;
    s.q_len = s.k_len = b->quick ? 4096 : 8192;
    s.has_alibi = s.has_norms = 1;
    measure_skip(b, b->quick ? "attention.skip.4096" : "attention.skip.8192", s,
                 b->quick ? 0 : 1.5, 1 / 0.9);
    s.heads = s.kv_heads = 8;
    for (int64_t n = 4096; n <= (b->quick ? 4096 : 16384); n *= 2) {
        char id[64];
        (void)snprintf(id, sizeof id, "attention.growth.%lld", (long long)n);
        s.q_len = s.k_len = n;
        measure_skip(b, id, s, 0, 1.15);
    }
    measure_threads(b);
    measure_scratch(b);
}
