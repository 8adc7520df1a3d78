/* SPDX-License-Identifier: MIT
 *
 * bench_attend.c - attention beside the multiply-adds and bytes that it cannot avoid
 *
 * Only what causal attention needs counts as operations. */
#include "bench_attend.h"

#include <stdlib.h>

static volatile uint64_t sink; /* keeps what was read */

void bench_attend_forward(void *work)
{
    bench_attend *w = work;
    (void)pe_attention_forward(w->plan, &w->args, w->scratch, w->size, NULL);
}

void bench_attend_backward(void *work)
{
    bench_attend *w = work;
    const pe_attention_grads grads = {.struct_size = sizeof grads,
                                      .dout = &w->dout,
                                      .dq = &w->dq,
                                      .dk = &w->dk,
                                      .dv = &w->dv};
    (void)pe_attention_backward(w->plan, &w->args, &grads, w->scratch, w->backward_size,
                                NULL);
}

void bench_attend_multiply_add(void *work)
{
    const bench_attend *w = work;
    const double rounds = w->flops / (double)w->limits->flops_per_round;
    (void)w->limits->multiply_add((int64_t)rounds, bench_one);
}

void bench_attend_read(void *work)
{
    const bench_attend *w = work;
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

static pe_tensor tensor(bench *b, bench_attend *w, int slot, pe_dtype dtype,
                        int64_t len, int64_t heads)
{
    pe_tensor t;
    w->data[slot] = bench_alloc(b, dtype, len * heads * BENCH_HEAD_DIM);
    pe_tensor_bhsd(&t, dtype, w->data[slot], 1, heads, len, BENCH_HEAD_DIM);
    return t;
}

static pe_tensor cache(bench *b, bench_attend *w, int slot,
                       const bench_attention_shape *s)
{
    const int64_t vectors = s->k_len * s->kv_heads;
    /* Half as many 16-bit elements are as many bytes of int8. */
    pe_tensor t = tensor(b, w, slot, s->cache == PE_I8 ? PE_BF16 : s->cache,
                         s->cache == PE_I8 ? s->k_len / 2 : s->k_len, s->kv_heads);
    if (s->by_token)
        pe_tensor_bshd(&t, s->cache, w->data[slot], 1, s->k_len, s->kv_heads,
                       BENCH_HEAD_DIM);
    else
        pe_tensor_bhsd(&t, s->cache, w->data[slot], 1, s->kv_heads, s->k_len,
                       BENCH_HEAD_DIM);
    if (s->cache != PE_I8)
        return t;
    if (w->scales == NULL)
        w->scales = bench_alloc(b, PE_F32, vectors);
    for (int64_t i = 0; w->scales != NULL && i < vectors; i++)
        w->scales[i] = 1.0f / 256;
    t.scales = w->scales;
    return t;
}

static void open_plan(bench *b, bench_attend *w, const bench_attention_shape *s)
{
    pe_env env = {.struct_size = sizeof env, .isa = s->isa ? s->isa : b->isa};
    const pe_bias_spec bias_spec = {.struct_size = sizeof bias_spec,
                                    .type = PE_BIAS_ALIBI,
                                    .form = PE_BIAS_CAUSAL,
                                    .num_heads = s->heads};
    const pe_rope_spec rope_spec = {.struct_size = sizeof rope_spec,
                                    .head_dim = BENCH_HEAD_DIM,
                                    .table_len = s->k_len,
                                    .pairs = {.pairing = PE_HALF_SPLIT},
                                    .freqs = {.rope_theta = 10000}};
    pe_attention_spec spec = {.struct_size = sizeof spec,
                              .num_heads = s->heads,
                              .num_kv_heads = s->kv_heads,
                              .head_dim = BENCH_HEAD_DIM,
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
static void count(bench_attend *w, const bench_attention_shape *s)
{
    const double pairs = (double)s->q_len * (double)(s->k_len - s->q_len) +
                         (double)s->q_len * (double)(s->q_len + 1) / 2;
    w->flops = (s->has_gradients ? 10.0 : 4.0) * s->heads * BENCH_HEAD_DIM * pairs;
    w->bytes = 2.0 * (double)s->k_len * s->kv_heads * BENCH_HEAD_DIM *
               (s->cache == PE_F32  ? 4
                : s->cache == PE_I8 ? 1
                                    : 2);
}

void bench_attend_open(bench *b, bench_attend *w, const bench_attention_shape *s)
{
    *w = (bench_attend){.limits = s->isa ? bench_limits_get(s->isa) : b->limits,
                        .q_at = {.start = s->k_len - s->q_len}};
    w->q = tensor(b, w, 0, PE_F32, s->q_len, s->heads);
    w->k = cache(b, w, 1, s);
    w->v = cache(b, w, 2, s);
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
    if (s->norm_product > 0)
        bench_attend_draw(b, w, s);
    count(w, s);
    if (b->status == CLI_DONE)
        open_plan(b, w, s);
    const size_t most = w->size > w->backward_size ? w->size : w->backward_size;
    if (b->status == CLI_DONE)
        w->scratch = bench_alloc(b, PE_F32, (int64_t)(most / sizeof(float)) + 16);
    if (b->status == CLI_DONE && s->has_gradients)
        bench_attend_forward(w);
}

void bench_attend_close(bench_attend *w)
{
    pe_attention_destroy(w->plan);
    pe_bias_destroy(w->alibi);
    pe_rope_destroy(w->rope);
    for (size_t i = 0; i < CLI_COUNT(w->data); i++)
        free(w->data[i]);
    free(w->norms);
    free(w->scales);
    free(w->lse);
    free(w->scratch);
}

size_t bench_attend_scratch(bench *b, const bench_attention_shape *s)
{
    bench_attend w = {.limits = b->limits};
    /* Only shapes are looked at, and whether outputs lie apart from inputs. */
    const uintptr_t far = (uintptr_t)1 << 40;
    pe_tensor_bshd(&w.q, PE_F32, (void *)far, 1, s->q_len, s->heads, BENCH_HEAD_DIM);
    pe_tensor_bshd(&w.k, PE_F32, (void *)(2 * far), 1, s->k_len, s->kv_heads,
                   BENCH_HEAD_DIM);
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
    open_plan(b, &w, s);
    const size_t size = w.size;
    bench_attend_close(&w);
    return size;
}
