/* SPDX-License-Identifier: MIT
 *
 * table.c - a plan's cosines and sines as tensors, for other kernels
 */
#include "base/at.h"
#include "base/error.h"
#include "base/tensor.h"
#include "kernels/vectors.h"
#include "rope/pairs.h"
#include "rope/plan.h"

typedef struct {
    const pe_rope *rope;
    const pe_positions *at;
    const pe_tensor *cosine, *sine;
} tabulation;

/* One value a pair, or the same value at both places of its pair. */
static void store(const pe_rope *rope, const float *row, const pe_tensor *y, int64_t b,
                  int64_t t)
{
    float wide[2 * PE_MAX_PAIRS];
    const int64_t n = rope->turns.n;
    int64_t element;
    if (!pe_tensor_at(y, b, t, 0, &element))
        return;
    if (y->dim == n) {
        pe_kernels_store(rope->kernels, y, element, 0, n, row);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        wide[pe_pair_first(rope->pairs.pairing, i)] =
            wide[pe_pair_second(rope->pairs.pairing, i, n)] = row[i];
    pe_kernels_store(rope->kernels, y, element, 0, 2 * n, wide);
}

/* Tokens [begin, end) of one batch row, whose positions follow each other. */
static void tabulate_run(const tabulation *job, int64_t b, int64_t begin, int64_t end)
{
    const pe_rope *rope = job->rope;
    const int64_t n = rope->turns.n, room = PE_MAX_PAIRS / n;
    pe_row_buffer buffer;
    for (int64_t t = begin, rows; t < end; t += rows) {
        rows = end - t < room ? end - t : room;
        pe_row run =
            pe_rope_run(rope, pe_at_id(job->at, 0, b, t), rows, PE_SCALE_FULL, &buffer);
        if (rope->pairs.reversed)
            run = pe_row_negate(run, rows * n, &buffer);
        for (int64_t k = 0; k < rows; k++) {
            store(rope, run.cos + k * n, job->cosine, b, t + k);
            store(rope, run.sin + k * n, job->sine, b, t + k);
        }
    }
}

static void tabulate_each(const tabulation *job, int64_t b, int64_t begin, int64_t end)
{
    const pe_rope *rope = job->rope;
    pe_row_buffer buffer;
    for (int64_t t = begin; t < end; t++) {
        const pe_place place = pe_place_read(rope, job->at, b, t);
        pe_row row = pe_rope_row(rope, &place, PE_SCALE_FULL, &buffer);
        if (rope->pairs.reversed)
            row = pe_row_negate(row, rope->turns.n, &buffer);
        store(rope, row.cos, job->cosine, b, t);
        store(rope, row.sin, job->sine, b, t);
    }
}

/* Rows that are what the kernels write: floats, one value a pair, in order. */
static int is_direct(const tabulation *job)
{
    const pe_rope *rope = job->rope;
    const pe_tensor *c = job->cosine, *s = job->sine;
    return rope->angles == PE_ANGLES_EXACT && rope->info.num_axes == 1 &&
           !rope->pairs.reversed && job->at->values == NULL && c->dtype == PE_F32 &&
           s->dtype == PE_F32 && c->dim == rope->turns.n && c->page_table == NULL &&
           s->page_table == NULL && pe_tensor_seq_step(c) == pe_tensor_seq_step(s);
}

static void tabulate_directly(const tabulation *job, int64_t b, int64_t begin,
                              int64_t end)
{
    const pe_rope *rope = job->rope;
    const pe_tensor *c = job->cosine, *s = job->sine;
    const pe_positions *at = job->at;
    const pe_factor *factor = &rope->factors[PE_SCALE_FULL];
    const int64_t step = pe_tensor_seq_step(c);
    float *const cos_out = (float *)c->data + b * c->batch_stride + begin * step;
    float *const sin_out = (float *)s->data + b * s->batch_stride + begin * step;
    if (at->ids != NULL)
        pe_angle_rows_at(rope->kernels, &rope->turns,
                         at->ids + b * at->batch_stride + begin, end - begin, factor,
                         cos_out, sin_out, step);
    else
        pe_angle_rows(rope->kernels, &rope->turns, pe_at_id(at, 0, b, begin),
                      end - begin, factor, cos_out, sin_out, step);
}

static void tabulate(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const tabulation *job = arg;
    const int64_t seq_len = job->cosine->seq_len;
    const int direct = is_direct(job), runs = pe_rope_has_runs(job->rope, job->at);
    (void)worker;
    while (begin < end) {
        const int64_t b = begin / seq_len, t = begin % seq_len;
        const int64_t left = seq_len - t,
                      count = end - begin < left ? end - begin : left;
        if (direct)
            tabulate_directly(job, b, t, t + count);
        else if (runs)
            tabulate_run(job, b, t, t + count);
        else
            tabulate_each(job, b, t, t + count);
        begin += count;
    }
}

static pe_status check_output(const pe_rope *rope, const pe_tensor *y, const char *name,
                              pe_error *error)
{
    const pe_status status = pe_tensor_check(y, PE_OUTPUT, name, error);
    if (status != PE_OK)
        return status;
    if (y->num_heads != 1)
        return pe_fail(error, PE_E_SHAPE, "%s.num_heads is %lld, must be 1", name,
                       (long long)y->num_heads);
    if (y->dim != rope->info.num_pairs && y->dim != rope->info.rotary_dim)
        return pe_fail(error, PE_E_SHAPE,
                       "%s.dim is %lld, must be num_pairs (%d) or rotary_dim (%d)",
                       name, (long long)y->dim, rope->info.num_pairs,
                       rope->info.rotary_dim);
    return PE_OK;
}

pe_status pe_rope_table(const pe_rope *rope, const pe_positions *at,
                        const pe_tensor *cos, const pe_tensor *sin, pe_error *error)
{
    pe_status status;
    if (rope == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "rope is NULL");
    if ((status = check_output(rope, cos, "cos", error)) != PE_OK ||
        (status = check_output(rope, sin, "sin", error)) != PE_OK ||
        (status = pe_tensor_check_same_shape(cos, "cos", sin, "sin", error)) != PE_OK ||
        (status = pe_at_check(at, cos->batch, cos->seq_len, rope->info.num_axes, 1,
                              "at", error)) != PE_OK)
        return status;
    if (cos->seq_len > 0 && pe_tensor_same(cos, sin))
        return pe_fail(error, PE_E_ARGUMENT, "sin is cos, must be another tensor");
    if ((status = pe_tensor_check_overlap(cos, "cos", sin, "sin", error)) != PE_OK)
        return status;
    tabulation job = {rope, at, cos, sin};
    pe_run(&rope->env, cos->batch * cos->seq_len, 64, tabulate, &job);
    return PE_OK;
}
