/* SPDX-License-Identifier: MIT
 *
 * bench_bias.c - softmax with ALiBi in place, beside one that is given the bias
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct scores {
    pe_bias *bias;
    pe_positions q_at, k_at;
    pe_tensor x;
    const bench_limits *limits;
    float *mask; /* [queries][keys], as engines share it between heads */
} scores;

static void softmax(void *ctx)
{
    const scores *s = ctx;
    (void)pe_bias_softmax(s->bias, 0.125, PE_MASK_CAUSAL, &s->q_at, &s->k_at, &s->x,
                          &s->x, NULL);
}

static int64_t count_of(const scores *s)
{
    return s->x.num_heads * s->x.seq_len * s->x.dim;
}

static void scale(void *ctx)
{
    const scores *s = ctx;
    bench_scale(s->limits, s->x.dtype, s->x.data, count_of(s));
}

static void exponential(void *ctx)
{
    const scores *s = ctx;
    s->limits->exponential(s->x.data, s->x.data, count_of(s));
}

static void masked(void *ctx)
{
    const scores *s = ctx;
    float *x = s->x.data;
    for (int64_t h = 0; h < s->x.num_heads; h++)
        for (int64_t t = 0; t < s->x.seq_len; t++, x += s->x.dim)
            s->limits->masked_softmax(x, s->mask + t * s->x.dim, 0.125f, s->x.dim);
}

/* A chunk of prefill: every key lies before every query, so that all are seen. */
static void measure(bench *b, const char *place, int64_t heads, int64_t queries,
                    int64_t keys)
{
    char id[64];
    (void)snprintf(id, sizeof id, "softmax.alibi.%s", place);
    if (!bench_wants(b, id))
        return;
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = PE_BIAS_ALIBI,
                               .form = PE_BIAS_CAUSAL,
                               .num_heads = (int32_t)heads};
    const pe_env env = {.struct_size = sizeof env, .isa = b->isa};
    float *data = bench_alloc(b, PE_F32, heads * queries * keys);
    scores s = {.q_at = {.start = keys},
                .limits = b->limits,
                .mask = bench_alloc(b, PE_F32, queries * keys)};
    pe_error error;
    if (b->status == CLI_DONE && pe_bias_create(&s.bias, &spec, &env, &error) != PE_OK)
        bench_failed(b, &error);
    if (b->status == CLI_DONE) {
        pe_tensor_bhsd(&s.x, PE_F32, data, 1, heads, queries, keys);
        const bench_side sides[] = {{NULL, softmax, &s},
                                    {"limit", scale, &s},
                                    {"exp", exponential, &s},
                                    {"masked", masked, &s}};
        const double bytes = (double)count_of(&s) * 8;
        (void)bench_measure(b, id, bytes, 0, bytes / 2, bytes, sides, 4);
    }
    pe_bias_destroy(s.bias);
    free(s.mask);
    free(data);
}

void bench_bias(bench *b)
{
    measure(b, "l2", 4, 16, 2048);
    measure(b, "l3", 8, 64, 4096);
    measure(b, "dram", 8, 1024, 4096);
    bench_goal_at_least(b, "softmax.alibi.l2", "exp", 0.7);
    bench_goal_at_least(b, "softmax.alibi.dram", "limit", 0.7);
}
