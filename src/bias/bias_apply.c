/* SPDX-License-Identifier: MIT
 *
 * bias_apply.c - pe_bias_fill and pe_bias_add
 *
 * y = x + bias, the sum taken in double and rounded to float once.  ALiBi is computed key
 * by key.  The others depend on the distance alone: over keys that follow each other, the
 * rows of a head are windows of one line, which is made once. */
#include "bias/scores.h"

#include "base/at.h"
#include "bias/ramp.h"
#include "kernels/vectors.h"

enum { MOST_ROWS = 256 };

typedef struct {
    const pe_scores_job *job;
    const pe_kernels *kernels;
    int are_floats; /* every bias is one, so that adding it in float is no different */
} writer;

/* n keys of a row from j on, of bias values; floats: the same, rounded. */
static void write_keys(const writer *w, const pe_scores_row *row, int64_t j, int64_t n,
                       const double *values, const float *floats)
{
    const pe_tensor *x = w->job->x, *y = w->job->y;
    if (x == NULL) {
        pe_kernels_store(w->kernels, y, row->y, j, n, floats);
        return;
    }
    const pe_sum plain = {PE_SUM_PLAIN, 1};
    const void *in = (const unsigned char *)x->data + pe_tensor_bytes(x, row->x + j);
    void *out = (unsigned char *)y->data + pe_tensor_bytes(y, row->y + j);
    const int from = pe_kernels_kind(x), to = pe_kernels_kind(y);
    if (w->are_floats)
        w->kernels->sum[from][to](&plain, in, floats, out, n);
    else
        w->kernels->sum_doubles[from][to](values, in, out, n);
}

/* The bias of n keys of a row from j on, at positions of their own. */
static void bias_of_ids(const writer *w, const pe_scores_row *row, int64_t j, int64_t n,
                        double *values)
{
    static const pe_past past[] = {[PE_BIAS_CAUSAL] = PE_PAST_ZERO,
                                   [PE_BIAS_BIDIRECTIONAL] = PE_PAST_MIRRORED,
                                   [PE_BIAS_KEY_ONLY] = PE_PAST_SAME};
    const pe_bias *bias = w->job->bias;
    const pe_positions *at = w->job->k_at;
    double k[PE_BIAS_CHUNK];
    if (bias->type == PE_BIAS_ALIBI && bias->round_to == 0) {
        const int64_t q = bias->form == PE_BIAS_KEY_ONLY ? 0 : (int64_t)row->q;
        w->kernels->alibi((double)bias->slopes[row->head] * bias->scale,
                          past[bias->form], q, at->ids + row->b * at->batch_stride + j,
                          values, n);
        return;
    }
    pe_scores_keys(at, row->b, j, n, k);
    pe_bias_row(bias, row->head, row->q, k, n, values);
}

static void write_ids(const writer *w, const pe_scores_row *row)
{
    double values[PE_BIAS_CHUNK];
    float floats[PE_BIAS_CHUNK];
    for (int64_t j = 0, n; j < w->job->y->dim; j += n) {
        const int64_t rest = w->job->y->dim - j;
        n = rest < PE_BIAS_CHUNK ? rest : PE_BIAS_CHUNK;
        bias_of_ids(w, row, j, n, values);
        if (w->job->x == NULL || w->are_floats)
            w->kernels->narrow(values, floats, n);
        write_keys(w, row, j, n, values, floats);
    }
}

/* Rows of one head and batch row whose queries are fewer than PE_BIAS_CHUNK apart; last
 * is the greatest of their positions. */
typedef struct {
    pe_scores_row rows[MOST_ROWS];
    int64_t count;
    double first, last;
} row_group;

/* Takes rows from begin on; returns how many it looked at, with those that are absent. */
static int64_t take_rows(const pe_scores_job *job, int64_t begin, int64_t end,
                         row_group *g)
{
    int64_t i = begin;
    for (g->count = 0; i < end && g->count < MOST_ROWS; i++) {
        pe_scores_row *row = &g->rows[g->count];
        if (!pe_scores_row_at(job, i, row))
            continue;
        if (g->count == 0)
            g->first = g->last = row->q;
        const double first = row->q < g->first ? row->q : g->first;
        const double last = row->q > g->last ? row->q : g->last;
        if (row->b != g->rows[0].b || row->head != g->rows[0].head ||
            last - first >= PE_BIAS_CHUNK)
            break;
        g->first = first;
        g->last = last;
        g->count++;
    }
    return i - begin;
}

/* Each chunk of keys is a window of the line that the last query sees, from the keys of
 * the chunk on to what the first one sees of it; the whole of it where a query does not
 * count. */
static void write_rows(const writer *w, const row_group *g)
{
    const pe_bias *bias = w->job->bias;
    const int counts = bias->form != PE_BIAS_KEY_ONLY;
    const int64_t spread = counts ? (int64_t)(g->last - g->first) : 0;
    double k[2 * PE_BIAS_CHUNK], values[2 * PE_BIAS_CHUNK];
    float floats[2 * PE_BIAS_CHUNK];
    for (int64_t j = 0, n; j < w->job->y->dim && g->count > 0; j += n) {
        const int64_t rest = w->job->y->dim - j;
        n = rest < PE_BIAS_CHUNK ? rest : PE_BIAS_CHUNK;
        pe_scores_keys(w->job->k_at, g->rows[0].b, j,
                       bias->type == PE_BIAS_T5 ? 1 : n + spread, k);
        if (bias->type == PE_BIAS_T5)
            pe_bias_t5_run(bias, g->rows[0].head, g->last, k[0], n + spread, values);
        else
            pe_bias_row(bias, g->rows[0].head, g->last, k, n + spread, values);
        w->kernels->narrow(values, floats, n + spread);
        for (int64_t i = 0; i < g->count; i++) {
            const int64_t at = counts ? (int64_t)(g->last - g->rows[i].q) : 0;
            write_keys(w, &g->rows[i], j, n, values + at, floats + at);
        }
    }
}

static void work_rows(void *arg, int64_t begin, int64_t end)
{
    const pe_scores_job *job = arg;
    const pe_bias *bias = job->bias;
    const int imitates = bias->type == PE_BIAS_ALIBI && bias->round_to != 0;
    const int in_order = job->k_at->ids == NULL;
    const writer w = {job, pe_kernels_get(bias->env.isa),
                      (bias->type == PE_BIAS_T5 || imitates) && bias->scale == 1};
    if (job->by_lines) {
        row_group g;
        for (int64_t i = begin; i < end;) {
            i += take_rows(job, i, end, &g);
            write_rows(&w, &g);
        }
        return;
    }
    pe_ramp_head head = {.index = -1};
    for (int64_t i = begin; i < end; i++) {
        pe_scores_row row;
        if (!pe_scores_row_at(job, i, &row))
            continue;
        if (!in_order) {
            write_ids(&w, &row);
            continue;
        }
        if (row.head != head.index)
            pe_ramp_head_set(&head, bias, row.head);
        pe_bias_ramps(job, w.kernels, &head, &row);
    }
}

static int goes_by_lines(const pe_bias *bias, const pe_positions *k_at)
{
    return bias != NULL && k_at != NULL && k_at->ids == NULL &&
           (bias->type != PE_BIAS_ALIBI || bias->round_to != 0);
}

pe_status pe_bias_fill(const pe_bias *bias, const pe_positions *q_at,
                       const pe_positions *k_at, const pe_tensor *y, pe_error *error)
{
    pe_scores_job job = {.bias = bias,
                         .q_at = q_at,
                         .k_at = k_at,
                         .y = y,
                         .by_lines = goes_by_lines(bias, k_at)};
    return pe_scores_run(&job, work_rows, error);
}

pe_status pe_bias_add(const pe_bias *bias, const pe_positions *q_at,
                      const pe_positions *k_at, const pe_tensor *x, const pe_tensor *y,
                      pe_error *error)
{
    /* pe_scores_run leaves out an x that is NULL, which only fill may do. */
    const pe_status status =
        x == NULL ? pe_scores_check(bias, x, 0, "x", error) : PE_OK;
    if (status != PE_OK)
        return status;
    pe_scores_job job = {.bias = bias,
                         .q_at = q_at,
                         .k_at = k_at,
                         .x = x,
                         .y = y,
                         .by_lines = goes_by_lines(bias, k_at)};
    return pe_scores_run(&job, work_rows, error);
}
