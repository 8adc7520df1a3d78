/* SPDX-License-Identifier: MIT
 *
 * bench_add.c - what is added: encodings to hidden states, biases to scores
 */
#include "bench.h"

#include "posenc/posenc.h"

#include <stdio.h>
#include <stdlib.h>

enum { DIM = 1024, KEYS = 2048 };

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
    return s->x.batch * s->x.seq_len * s->x.num_heads * s->x.dim;
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

static void scale(void *ctx)
{
    const sum *s = ctx;
    bench_scale(s->limits, s->x.dtype, s->x.data, count_of(s));
}

static void convert(void *ctx)
{
    const sum *s = ctx;
    bench_convert(s->limits, s->x.dtype, s->x.data, count_of(s));
}

static void run(bench *b, sum *s, const char *id)
{
    const double bytes = (double)count_of(s) * (s->x.dtype == PE_F32 ? 4 : 2);
    const bench_side sides[] = {
        {NULL, add, s}, {"limit", scale, s}, {"convert", convert, s}};
    s->limits = b->limits;
    if (b->status == CLI_DONE)
        (void)bench_measure(b, id, (s->is_filled ? 1 : 2) * bytes, 0, bytes, 2 * bytes,
                            sides, s->x.dtype == PE_F32 ? 2 : 3);
}

/* ---------------------------------------------------------------- encodings --- */

typedef struct encoding {
    const char *name;
    int learned, dtype;
    double embed_scale;
    int64_t tokens;
    int is_one_row;   /* one token of each of so many sequences, at one position */
    int64_t first;    /* position; past the table, if not 0 */
    int is_scattered; /* every other position, from the last to the first */
} encoding;

static void create_plan(bench *b, sum *s, const encoding *e, const pe_tensor *table)
{
    const pe_env env = {.struct_size = sizeof env, .isa = b->isa};
    const pe_learned_spec rows = {
        .struct_size = sizeof rows, .weight = table, .embed_scale = e->embed_scale};
    const pe_sinusoidal_spec waves = {.struct_size = sizeof waves,
                                      .order = PE_SIN_COS_HALVES,
                                      .model_dim = DIM,
                                      .embed_scale = e->embed_scale,
                                      .table_len = e->first != 0 ? 0 : e->tokens};
    pe_error error;
    if (b->status == CLI_DONE &&
        (e->learned ? pe_learned_create(&s->plan, &rows, &env, &error)
                    : pe_sinusoidal_create(&s->plan, &waves, &env, &error)) != PE_OK)
        bench_failed(b, &error);
}

static int64_t *scattered(bench *b, const encoding *e)
{
    int64_t *ids = calloc((size_t)e->tokens, sizeof *ids);
    for (int64_t t = 0; t < e->tokens && ids != NULL; t++)
        ids[t] = e->first + 2 * (e->tokens - t);
    if (ids == NULL && b->status == CLI_DONE)
        b->status = cli_fail(CLI_FAILED, "out of memory");
    return ids;
}

static void add_encoding(bench *b, const encoding *e)
{
    char id[64];
    (void)snprintf(id, sizeof id, "add.%s.%s.%lld", e->name,
                   bench_dtype_names[e->dtype], (long long)e->tokens);
    if (!bench_wants(b, id))
        return;
    const pe_dtype dtype = bench_dtypes[e->dtype];
    void *weight = e->learned ? bench_alloc(b, dtype, e->tokens * DIM) : NULL;
    void *data = bench_alloc(b, dtype, e->tokens * DIM);
    int64_t *ids = e->is_scattered ? scattered(b, e) : NULL;
    pe_tensor table;
    pe_tensor_bshd(&table, dtype, weight, 1, e->tokens, 1, DIM);
    sum s = {.at = {.start = e->is_scattered ? 0 : e->first, .ids = ids}};
    create_plan(b, &s, e, &table);
    pe_tensor_bshd(&s.x, dtype, data, e->is_one_row ? e->tokens : 1,
                   e->is_one_row ? 1 : e->tokens, 1, DIM);
    run(b, &s, id);
    pe_absolute_destroy(s.plan);
    free(ids);
    free(weight);
    free(data);
}

static void add_encodings(bench *b)
{
    static const encoding encodings[] = {
        {"learned-row", 1, 0, 1, 4, 1, 0, 0},
        {"learned-row", 1, 0, 1, 32, 1, 0, 0},
        {"learned-row", 1, 1, 1, 32, 1, 0, 0},
        {"learned-row", 1, 2, 1, 32, 1, 0, 0},
        {"learned", 1, 0, 1, 512, 0, 0, 0},
        {"learned", 1, 1, 1, 512, 0, 0, 0},
        {"learned", 1, 2, 1, 512, 0, 0, 0},
        {"learned", 1, 0, 1, 8192, 0, 0, 0},
        {"learned-times-32", 1, 0, 32, 512, 0, 0, 0},
        {"learned-times-27.7", 1, 0, 27.712812921102035, 512, 0, 0, 0},
        {"sinusoidal", 0, 0, 1, 512, 0, 0, 0},
        {"sinusoidal", 0, 1, 1, 512, 0, 0, 0},
        {"sinusoidal", 0, 2, 1, 512, 0, 0, 0},
        {"sinusoidal-past-table", 0, 0, 1, 512, 0, 100000, 0},
        {"sinusoidal-scattered", 0, 0, 1, 512, 0, 100000, 1},
    };
    for (size_t i = 0; i < CLI_COUNT(encodings); i++)
        add_encoding(b, &encodings[i]);
    bench_goal_at_least(b, "add.learned-row.f32.32", "limit", 0.8);
    bench_goal_at_least(b, "add.learned-row.f16.32", "convert", 0.85);
    bench_goal_at_least(b, "add.learned-row.bf16.32", "convert", 0.85);
}

/* ------------------------------------------------------------------- biases --- */

typedef struct bias {
    const char *name;
    pe_bias_type type;
    int is_filled, dtype;
    int32_t heads;
    int64_t queries;
} bias;

/* A chunk of prefill: every key lies before every query. */
static void add_bias(bench *b, const bias *c)
{
    enum { BUCKETS = 32, MOST = 16 };
    float p[MOST], a[MOST], table[BUCKETS * MOST];
    char id[64];
    (void)snprintf(id, sizeof id, "add.%s%s.%s.%lld", c->name,
                   c->is_filled ? "-fill" : "", bench_dtype_names[c->dtype],
                   (long long)c->queries);
    if (!bench_wants(b, id))
        return;
    for (int i = 0; i < BUCKETS * MOST; i++)
        table[i] = (float)(i % 37) * -0.07f;
    for (int i = 0; i < MOST; i++)
        p[i] = a[i] = 0.5f;
    const int is_kerple = c->type == PE_BIAS_KERPLE_LOG;
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = c->type,
                               .form = PE_BIAS_CAUSAL,
                               .num_heads = c->heads,
                               .table = c->type == PE_BIAS_T5 ? table : NULL,
                               .kerple_p = is_kerple ? p : NULL,
                               .kerple_a = is_kerple ? a : NULL};
    const pe_env env = {.struct_size = sizeof env, .isa = b->isa};
    const pe_dtype dtype = bench_dtypes[c->dtype];
    void *data = bench_alloc(b, dtype, c->heads * c->queries * KEYS);
    sum s = {.at = {.start = KEYS}, .is_filled = c->is_filled};
    pe_error error;
    if (b->status == CLI_DONE && pe_bias_create(&s.bias, &spec, &env, &error) != PE_OK)
        bench_failed(b, &error);
    pe_tensor_bhsd(&s.x, dtype, data, 1, c->heads, c->queries, KEYS);
    run(b, &s, id);
    pe_bias_destroy(s.bias);
    free(data);
}

/* Slopes of 8 heads are powers of two; half of those of 16 are not. */
static void add_biases(bench *b)
{
    static const bias biases[] = {
        {"alibi", PE_BIAS_ALIBI, 1, 0, 8, 8},
        {"alibi", PE_BIAS_ALIBI, 0, 0, 8, 8},
        {"alibi", PE_BIAS_ALIBI, 1, 0, 8, 64},
        {"alibi", PE_BIAS_ALIBI, 0, 0, 8, 64},
        {"alibi", PE_BIAS_ALIBI, 1, 1, 8, 64},
        {"alibi", PE_BIAS_ALIBI, 0, 1, 8, 64},
        {"alibi", PE_BIAS_ALIBI, 1, 2, 8, 64},
        {"alibi", PE_BIAS_ALIBI, 0, 2, 8, 64},
        {"alibi", PE_BIAS_ALIBI, 0, 0, 8, 1024},
        {"alibi-16", PE_BIAS_ALIBI, 0, 0, 16, 4},
        {"t5", PE_BIAS_T5, 0, 0, 8, 64},
        {"kerple", PE_BIAS_KERPLE_LOG, 0, 0, 8, 64},
    };
    for (size_t i = 0; i < CLI_COUNT(biases); i++)
        add_bias(b, &biases[i]);
}

void bench_add(bench *b)
{
    add_encodings(b);
    add_biases(b);
}
