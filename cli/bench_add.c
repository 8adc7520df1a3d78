/* SPDX-License-Identifier: MIT
 *
 * bench_add.c - what is added: encodings to hidden states, ALiBi to scores
 */
#include "bench.h"

#include "posenc/posenc.h"

#include <stdio.h>
#include <stdlib.h>

static volatile float one = 1; /* not known to the compiler */

enum { DIM = 1024 };

typedef struct sum {
    pe_absolute *plan;
    pe_bias *bias;
    pe_positions at, k_at;
    pe_tensor x;
    int is_filled;
    const bench_limits *limits;
} sum;

static int64_t count_of(const sum *s)
{
    return s->x.seq_len * s->x.num_heads * s->x.dim;
}

static void add(void *ctx)
{
    const sum *s = ctx;
    if (s->plan != NULL)
        (void)pe_absolute_add(s->plan, &s->at, &s->x, &s->x, NULL);
    else if (s->is_filled)
        (void)pe_bias_fill(s->bias, &s->at, &s->k_at, &s->x, NULL);
    else
        (void)pe_bias_add(s->bias, &s->at, &s->k_at, &s->x, &s->x, NULL);
}

/* The same bytes as floats. */
static void scale(void *ctx)
{
    const sum *s = ctx;
    s->limits->scale(s->x.data, count_of(s) / (s->x.dtype == PE_F32 ? 1 : 2), one);
}

static void run(bench *b, sum *s, const char *id)
{
    const double bytes = (double)count_of(s) * (s->x.dtype == PE_F32 ? 4 : 2);
    const bench_side sides[] = {{NULL, add, s}, {"limit", scale, s}};
    s->limits = b->limits;
    if (b->status == CLI_DONE)
        (void)bench_measure(b, id, (s->is_filled ? 1 : 2) * bytes, 0, bytes, 2 * bytes,
                            sides, 2);
}

static void add_absolute(bench *b, int learned, int dtype, double embed_scale,
                         int64_t tokens)
{
    char id[64];
    (void)snprintf(id, sizeof id, "add.%s.%s%s.%lld",
                   learned ? "learned" : "sinusoidal", bench_dtype_names[dtype],
                   embed_scale != 1 ? ".scaled" : "", (long long)tokens);
    if (!bench_wants(b, id))
        return;
    float *weight = bench_alloc(b, PE_F32, tokens * DIM);
    void *data = bench_alloc(b, bench_dtypes[dtype], tokens * DIM);
    pe_tensor table;
    pe_tensor_bshd(&table, PE_F32, weight, 1, tokens, 1, DIM);
    const pe_env env = {.struct_size = sizeof env, .isa = b->isa};
    const pe_learned_spec rows = {
        .struct_size = sizeof rows, .weight = &table, .embed_scale = embed_scale};
    const pe_sinusoidal_spec waves = {.struct_size = sizeof waves,
                                      .order = PE_SIN_COS_HALVES,
                                      .model_dim = DIM,
                                      .embed_scale = embed_scale,
                                      .table_len = tokens};
    sum s = {.at = {.start = 0}};
    pe_error error;
    if (b->status == CLI_DONE &&
        (learned ? pe_learned_create(&s.plan, &rows, &env, &error)
                 : pe_sinusoidal_create(&s.plan, &waves, &env, &error)) != PE_OK)
        bench_failed(b, &error);
    pe_tensor_bshd(&s.x, bench_dtypes[dtype], data, 1, tokens, 1, DIM);
    run(b, &s, id);
    pe_absolute_destroy(s.plan);
    free(weight);
    free(data);
}

static void add_alibi(bench *b, int is_filled, int dtype)
{
    enum { HEADS = 8, QUERIES = 64, KEYS = 2048 };
    char id[64];
    (void)snprintf(id, sizeof id, "add.alibi%s.%s.%d", is_filled ? "-fill" : "",
                   bench_dtype_names[dtype], KEYS);
    if (!bench_wants(b, id))
        return;
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = PE_BIAS_ALIBI,
                               .form = PE_BIAS_CAUSAL,
                               .num_heads = HEADS};
    const pe_env env = {.struct_size = sizeof env, .isa = b->isa};
    void *data = bench_alloc(b, bench_dtypes[dtype], (int64_t)HEADS * QUERIES * KEYS);
    sum s = {.at = {.start = KEYS}, .is_filled = is_filled};
    pe_error error;
    if (b->status == CLI_DONE && pe_bias_create(&s.bias, &spec, &env, &error) != PE_OK)
        bench_failed(b, &error);
    pe_tensor_bhsd(&s.x, bench_dtypes[dtype], data, 1, HEADS, QUERIES, KEYS);
    run(b, &s, id);
    pe_bias_destroy(s.bias);
    free(data);
}

void bench_add(bench *b)
{
    for (int dtype = 0; dtype < BENCH_DTYPES; dtype++) {
        add_absolute(b, 1, dtype, 1, 512);
        add_absolute(b, 0, dtype, 1, 512);
    }
    add_absolute(b, 1, 0, 32, 512);
    add_absolute(b, 1, 0, 1, 8192);
    for (int dtype = 0; dtype < BENCH_DTYPES; dtype++) {
        add_alibi(b, 1, dtype);
        add_alibi(b, 0, dtype);
    }
}
