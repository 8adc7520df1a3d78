/* SPDX-License-Identifier: MIT
 *
 * bench_work.c - a rotation of q and k, with its limits, as sides of a row
 */
#include "bench_work.h"

#include <stdlib.h>
#include <string.h>

static void create_rope(bench *b, bench_work *w)
{
    const bench_shape *s = &w->shape;
    const int32_t pairs =
        (s->pairs.rotary_dim ? s->pairs.rotary_dim : (int32_t)s->head_dim) / 2;
    pe_rope_spec spec = {.struct_size = sizeof spec,
                         .head_dim = (int32_t)s->head_dim,
                         .table_len = s->is_tabulated ? BENCH_START + s->tokens : 0,
                         .pairs = s->pairs,
                         .freqs = {.rope_theta = 10000}};
    pe_env env = {.struct_size = sizeof env, .isa = s->isa};
    pe_error error;
    if (s->is_mrope)
        spec.axes =
            (pe_axes){.map = PE_AXIS_INTERLEAVED,
                      .section = {pairs - 2 * (pairs / 3), pairs / 3, pairs / 3}};
    if (s->executor != NULL)
        env.executor = *s->executor;
    if (b->status == CLI_DONE && pe_rope_create(&w->rope, &spec, &env, &error) != PE_OK)
        bench_failed(b, &error);
}

/* An image of 16 columns: time stands still, rows and columns do not. */
static void set_ids(bench *b, bench_work *w)
{
    const int64_t n = w->shape.tokens;
    w->ids = malloc((size_t)(3 * n) * sizeof *w->ids);
    if (w->ids == NULL) {
        b->status = cli_fail(CLI_FAILED, "out of memory");
        return;
    }
    for (int64_t t = 0; t < n; t++) {
        w->ids[t] = BENCH_START;
        w->ids[n + t] = BENCH_START + t / 16;
        w->ids[2 * n + t] = BENCH_START + t % 16;
    }
    w->at = (pe_positions){.ids = w->ids, .axis_stride = n, .num_axes = 3};
}

void bench_work_open(bench *b, bench_work *w, const bench_shape *shape, void *data)
{
    const pe_dtype dtype = bench_dtypes[shape->dtype];
    const size_t size = dtype == PE_F32 ? 4 : 2;
    const int64_t per_head = shape->tokens * shape->head_dim;
    *w = (bench_work){.shape = *shape,
                      .at = {.start = BENCH_START},
                      .count = per_head * (BENCH_Q_HEADS + BENCH_K_HEADS),
                      .limits = bench_limits_get(shape->isa)};
    create_rope(b, w);
    if (shape->is_mrope)
        set_ids(b, w);
    w->data = data == NULL ? bench_alloc(b, dtype, w->count) : NULL;
    unsigned char *base = data == NULL ? w->data : data;
    if (base == NULL)
        return;
    pe_tensor_bshd(&w->q, dtype, base, 1, shape->tokens, BENCH_Q_HEADS,
                   shape->head_dim);
    pe_tensor_bshd(&w->k, dtype, base + (size_t)(per_head * BENCH_Q_HEADS) * size, 1,
                   shape->tokens, BENCH_K_HEADS, shape->head_dim);
    pe_error error;
    if (b->status == CLI_DONE &&
        pe_rope_apply_qk(w->rope, &w->at, &w->q, &w->q, &w->k, &w->k, &error) != PE_OK)
        bench_failed(b, &error);
}

void bench_work_close(bench_work *w)
{
    pe_rope_destroy(w->rope);
    free(w->data);
    free(w->ids);
    *w = (bench_work){0};
}

double bench_work_bytes(const bench_work *w)
{
    return (double)w->count * (w->q.dtype == PE_F32 ? 8 : 4);
}

/* Four products and two sums for a pair. */
double bench_work_flops(const bench_work *w)
{
    const double dim = (double)w->shape.head_dim;
    const double turning =
        w->shape.pairs.rotary_dim ? (double)w->shape.pairs.rotary_dim : dim;
    return (double)w->count * 3 * turning / dim;
}

void bench_work_rotate(void *work)
{
    const bench_work *w = work;
    (void)pe_rope_apply_qk(w->rope, &w->at, &w->q, &w->q, &w->k, &w->k, NULL);
}

void bench_work_back(void *work)
{
    const bench_work *w = work;
    (void)pe_rope_transpose(w->rope, &w->at, &w->q, &w->q, NULL);
    (void)pe_rope_transpose(w->rope, &w->at, &w->k, &w->k, NULL);
}

void bench_work_scale(void *work)
{
    const bench_work *w = work;
    bench_scale(w->limits, w->q.dtype, w->q.data, w->count);
}

void bench_work_convert(void *work)
{
    const bench_work *w = work;
    bench_convert(w->limits, w->q.dtype, w->q.data, w->count);
}
