/* SPDX-License-Identifier: MIT
 *
 * learned.c - rows of a trained table
 *
 * Here alone a position can be missing: row = position + position_offset must lie in the
 * table, so a negative position, such as the -1 of padding, is a row like any other
 * when the offset covers it.  No row is special, in backward neither: who trains with a
 * padding row clears it in dweight. */
#include "absolute/absolute.h"

#include "base/at.h"
#include "base/error.h"
#include "base/spec.h"

typedef struct {
    pe_absolute base;
    pe_tensor weight;
    pe_codec codec; /* weight.codec of PE_CODED */
    int64_t offset;
} learned;

static int64_t row_of(const learned *l, const pe_positions *at, int64_t b, int64_t t)
{
    return pe_table_row(&l->weight, pe_at_id(at, 0, b, t) + l->offset);
}

static void encode(const pe_absolute *plan, const pe_positions *at, int64_t b,
                   int64_t t, int64_t tokens, int64_t begin, int64_t count, float *out)
{
    const learned *l = (const learned *)plan;
    for (int64_t k = 0; k < tokens; k++)
        pe_kernels_load(plan->kernels, &l->weight, row_of(l, at, b, t + k), begin,
                        count, out + k * count);
}

/* ------------------------------------------------------------------ checks --- */

static pe_status check_rows(const learned *l, const pe_positions *at, int64_t batch,
                            int64_t seq_len, pe_error *error)
{
    const pe_status status = pe_at_check(at, batch, seq_len, 1, 0, "at", error);
    if (status != PE_OK)
        return status;
    const int64_t first = -l->offset, last = l->base.capacity - 1;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < seq_len; t++) {
            const int64_t position = pe_at_id(at, 0, b, t);
            if (position < first || position > last)
                return pe_fail(error, PE_E_POSITION,
                               "position is %lld at row %lld, token %lld, must be in "
                               "%lld .. %lld: the table has %lld rows, position_offset "
                               "is %lld",
                               (long long)position, (long long)b, (long long)t,
                               (long long)first, (long long)last,
                               (long long)l->weight.seq_len, (long long)l->offset);
        }
    return PE_OK;
}

static pe_status check_apart(const learned *l, const pe_tensor *y, const char *y_name,
                             pe_error *error)
{
    if (y->data == l->weight.data)
        return pe_fail(error, PE_E_ARGUMENT, "%s is the weight, must be another tensor",
                       y_name);
    return pe_tensor_check_overlap(&l->weight, "weight", y, y_name, error);
}

static pe_status check(const pe_absolute *plan, const pe_positions *at,
                       const pe_tensor *y, const char *y_name, pe_error *error)
{
    const learned *l = (const learned *)plan;
    const pe_status status = check_apart(l, y, y_name, error);
    if (status != PE_OK)
        return status;
    return check_rows(l, at, y->batch, y->seq_len, error);
}

/* A table (1, rows, 1, dim), not paged. */
static pe_status check_table(const pe_tensor *table, const char *name, pe_error *error)
{
    if (table->batch != 1 || table->num_heads != 1 || table->seq_len < 1)
        return pe_fail(
            error, PE_E_SHAPE,
            "%s is (%lld, %lld, %lld, %lld), must be (1, rows, 1, model_dim)", name,
            (long long)table->batch, (long long)table->seq_len,
            (long long)table->num_heads, (long long)table->dim);
    if (table->page_table != NULL)
        return pe_fail(error, PE_E_ARGUMENT, "%s.page_table is set, must be NULL",
                       name);
    return PE_OK;
}

/* ---------------------------------------------------------------- gradient --- */

/* Workers share out the columns, and each walks all tokens in order: every sum has one
 * order, whatever the number of threads. */
typedef struct {
    const learned *plan;
    const pe_positions *at;
    const pe_tensor *dy, *dweight;
    int64_t tile; /* columns in one item of work, at most PE_MAX_VECTOR_DIM */
} scatter;

static void scatter_columns(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const scatter *job = arg;
    const pe_tensor *dy = job->dy, *dweight = job->dweight;
    const int64_t last = end * job->tile < dy->dim ? end * job->tile : dy->dim;
    const int64_t step = PE_MAX_VECTOR_DIM / job->tile * job->tile;
    const pe_sum plain = {PE_SUM_PLAIN, 1};
    float in[PE_MAX_VECTOR_DIM];
    (void)worker;
    for (int64_t e = begin * job->tile; e < last; e += step) {
        const int64_t n = last - e < step ? last - e : step;
        for (int64_t i = 0; i < dy->batch * dy->seq_len; i++) {
            const int64_t b = i / dy->seq_len, t = i % dy->seq_len;
            int64_t from;
            if (!pe_tensor_at(dy, b, t, 0, &from))
                continue;
            const int64_t row = pe_at_id(job->at, 0, b, t) + job->plan->offset;
            pe_kernels_load(job->plan->base.kernels, dy, from, e, n, in);
            float *sum = (float *)dweight->data + pe_table_row(dweight, row) + e;
            job->plan->base.kernels->sum[PE_K_F32][PE_K_F32](&plain, sum, in, sum, n);
        }
    }
}

static pe_status backward(const pe_absolute *plan, const pe_positions *at,
                          const pe_tensor *dy, const pe_tensor *dweight,
                          pe_error *error)
{
    const learned *l = (const learned *)plan;
    const int64_t groups[3] = {pe_tensor_group(dy), 1, 1}, narrow = 64;
    int64_t chunk;
    pe_status status;
    if ((status = pe_tensor_check(dweight, PE_OUTPUT, "dweight", error)) != PE_OK ||
        (status = check_table(dweight, "dweight", error)) != PE_OK ||
        (status = pe_tensor_check_same_shape(&l->weight, "weight", dweight, "dweight",
                                             error)) != PE_OK)
        return status;
    if (dweight->dtype != PE_F32)
        return pe_fail(error, PE_E_DTYPE, "dweight.dtype is %d, must be PE_F32 (1)",
                       dweight->dtype);
    if (dweight->data == dy->data)
        return pe_fail(error, PE_E_ARGUMENT, "dweight is dy, must be another tensor");
    if ((status = pe_tensor_check_overlap(dy, "dy", dweight, "dweight", error)) !=
            PE_OK ||
        (status = check_apart(l, dweight, "dweight", error)) != PE_OK ||
        (status = pe_absolute_chunk(dy->dim, groups, "dy", &chunk, error)) != PE_OK ||
        (status = check_rows(l, at, dy->batch, dy->seq_len, error)) != PE_OK)
        return status;
    const int64_t group = groups[0];
    scatter job = {l, at, dy, dweight,
                   group >= narrow ? group : narrow / group * group};
    pe_run(&plan->env, (dy->dim + job.tile - 1) / job.tile, 1, scatter_columns, &job);
    return PE_OK;
}

/* ------------------------------------------------------------------ create --- */

static const pe_absolute_kind learned_kind = {encode, check, backward};

static pe_status check_spec(const pe_learned_spec *spec, pe_error *error)
{
    pe_status status;
    if (spec->weight == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "weight is NULL, must be set");
    if ((status = pe_tensor_check(spec->weight, PE_INPUT, "weight", error)) != PE_OK ||
        (status = check_table(spec->weight, "weight", error)) != PE_OK)
        return status;
    if (spec->position_offset < 0 || spec->position_offset >= spec->weight->seq_len)
        return pe_fail(
            error, PE_E_ARGUMENT,
            "position_offset is %d, must be in 0 .. %lld: the table has %lld "
            "rows",
            spec->position_offset, (long long)spec->weight->seq_len - 1,
            (long long)spec->weight->seq_len);
    if (!(spec->embed_scale >= -DBL_MAX && spec->embed_scale <= DBL_MAX))
        return pe_fail(error, PE_E_ARGUMENT, "embed_scale is %g, must be finite",
                       spec->embed_scale);
    return PE_OK;
}

pe_status pe_learned_create(pe_absolute **out, const pe_learned_spec *spec,
                            const pe_env *env, pe_error *error)
{
    pe_learned_spec s;
    pe_env full;
    pe_status status;
    if (out == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "out is NULL");
    *out = NULL;
    if ((status = pe_spec_read(&s, sizeof s, spec, PE_LEARNED_SPEC_SIZE_V1,
                               "pe_learned_spec", error)) != PE_OK ||
        (status = pe_env_resolve(&full, env, error)) != PE_OK ||
        (status = check_spec(&s, error)) != PE_OK)
        return status;
    learned *l = pe_alloc(&full, sizeof *l);
    if (l == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for a plan of %zu bytes",
                       sizeof *l);
    l->weight = *s.weight;
    if (l->weight.dtype == PE_CODED) {
        l->codec = *l->weight.codec;
        l->weight.codec = &l->codec;
    }
    l->offset = s.position_offset;
    l->base = (pe_absolute){
        .kind = &learned_kind,
        .kernels = pe_kernels_get(full.isa),
        .env = full,
        .size = sizeof *l,
        .model_dim = l->weight.dim,
        .capacity = l->weight.seq_len - l->offset,
        .group = pe_tensor_group(&l->weight),
        .sum = pe_absolute_sum(s.embed_scale == 0 ? 1 : s.embed_scale, 0),
    };
    if (l->weight.dtype <= PE_BF16)
        l->base.rows = (pe_absolute_rows){
            .data = l->weight.data,
            .first = -l->offset,
            .count = l->weight.seq_len,
            .stride = pe_tensor_bytes(&l->weight, pe_tensor_seq_step(&l->weight)),
            .without = INT64_MIN,
            .kind = pe_kernels_kind(&l->weight)};
    *out = &l->base;
    return PE_OK;
}
