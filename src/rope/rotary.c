/* SPDX-License-Identifier: MIT
 *
 * rotary.c - the same rotation over the caller's own cosines and sines
 */
#include "base/at.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernels/vectors.h"
#include "rope/pairs.h"
#include "rope/rotate.h"

typedef struct {
    const pe_tensor *cosine, *sine, *x, *y;
    const pe_positions *rows;
    pe_window window;
    pe_rotor rotor;
    int reversed;
} lookup;

/* Row of token (b, t) and head h of a table, whose batch and heads may be 1. */
static int load_row(const lookup *job, const pe_tensor *table, int64_t b, int64_t t,
                    int64_t h, float *out)
{
    int64_t element;
    const int64_t row = job->rows != NULL ? pe_at_id(job->rows, 0, b, t) : t;
    if (!pe_tensor_at(table, table->batch == 1 ? 0 : b, row,
                      table->num_heads == 1 ? 0 : h, &element))
        return 0;
    pe_kernels_load(job->window.kernels, table, element, 0, table->dim, out);
    return 1;
}

/* The numbers of first and of second elements, by their places in y. */
static void deal(const pe_window *w, const float *row, float *first, float *second)
{
    for (int64_t i = 0; i < w->num_pairs; i++) {
        first[i] = row[pe_pair_first(w->out, i)];
        second[i] = row[pe_pair_second(w->out, i, w->num_pairs)];
    }
}

static void negate(float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = -values[i];
}

static void turn_tokens(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    enum { HALF = PE_MAX_VECTOR_DIM / 2 };
    const lookup *job = arg;
    const int64_t n = job->window.num_pairs;
    const int per_head = job->cosine->num_heads != 1 || job->sine->num_heads != 1;
    float cos_row[2 * HALF], sin_row[2 * HALF];
    float c0[HALF], s0[HALF], c1[HALF], s1[HALF];
    (void)worker;
    end = pe_tensor_cut(&job->y, 1, end);
    for (int64_t i = pe_tensor_cut(&job->y, 1, begin); i < end; i++) {
        const int64_t b = i / job->x->seq_len, t = i % job->x->seq_len;
        for (int64_t h = 0; h < (per_head ? job->x->num_heads : 1); h++) {
            pe_turn turn = {cos_row, sin_row, NULL, NULL};
            if (!load_row(job, job->cosine, b, t, h, cos_row) ||
                !load_row(job, job->sine, b, t, h, sin_row))
                continue;
            if (job->reversed)
                negate(sin_row, job->sine->dim);
            if (job->cosine->dim != n) {
                deal(&job->window, cos_row, c0, c1);
                deal(&job->window, sin_row, s0, s1);
                turn = (pe_turn){c0, s0, c1, s1};
            }
            if (per_head)
                pe_rotate_head(&job->rotor, &turn, b, t, h);
            else
                pe_rotate_token(&job->rotor, &turn, b, t);
        }
    }
}

static pe_status check_table(const pe_tensor *table, const char *name,
                             const pe_tensor *x, int64_t rotary_dim, int by_row,
                             pe_error *error)
{
    const pe_status status = pe_tensor_check(table, PE_INPUT, name, error);
    if (status != PE_OK)
        return status;
    if (table->dim != rotary_dim / 2 && table->dim != rotary_dim)
        return pe_fail(
            error, PE_E_SHAPE,
            "%s.dim is %lld, must be rotary_dim / 2 (%lld) or rotary_dim (%lld)", name,
            (long long)table->dim, (long long)rotary_dim / 2, (long long)rotary_dim);
    if (by_row && (table->batch != 1 || table->num_heads != 1))
        return pe_fail(
            error, PE_E_SHAPE,
            "%s has batch %lld and %lld heads, must be 1 and 1 when rows are "
            "given",
            name, (long long)table->batch, (long long)table->num_heads);
    if (!by_row && ((table->batch != 1 && table->batch != x->batch) ||
                    (table->num_heads != 1 && table->num_heads != x->num_heads) ||
                    table->seq_len != x->seq_len))
        return pe_fail(
            error, PE_E_SHAPE,
            "%s is (%lld, %lld, %lld), must be (1 or %lld, %lld, 1 or %lld) as "
            "x",
            name, (long long)table->batch, (long long)table->seq_len,
            (long long)table->num_heads, (long long)x->batch, (long long)x->seq_len,
            (long long)x->num_heads);
    return PE_OK;
}

static pe_status check_rows(const pe_positions *rows, const pe_tensor *x,
                            int64_t length, pe_error *error)
{
    const pe_status status =
        pe_at_check(rows, x->batch, x->seq_len, 1, 0, "rows", error);
    if (status != PE_OK)
        return status;
    for (int64_t b = 0; b < x->batch; b++)
        for (int64_t t = 0; t < x->seq_len; t++) {
            const int64_t row = pe_at_id(rows, 0, b, t);
            if (row < 0 || row >= length)
                return pe_fail(error, PE_E_POSITION,
                               "rows of batch row %lld, token %lld is %lld, must be in "
                               "[0, %lld), the rows of the table",
                               (long long)b, (long long)t, (long long)row,
                               (long long)length);
        }
    return PE_OK;
}

pe_status pe_rotary_apply(const pe_pairs *pairs, const pe_tensor *cos,
                          const pe_tensor *sin, const pe_positions *rows,
                          const pe_tensor *x, const pe_tensor *y, const pe_env *env,
                          pe_error *error)
{
    pe_pairs p;
    pe_env full;
    pe_status status;
    if (pairs == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "pairs is NULL");
    if ((status = pe_env_resolve(&full, env, error)) != PE_OK)
        return status;
    if (x != NULL && x->dim > PE_MAX_VECTOR_DIM)
        return pe_fail(error, PE_E_LIMIT, "x.dim is %lld, must be at most %d",
                       (long long)x->dim, PE_MAX_VECTOR_DIM);
    if ((status = pe_rotate_check(x, "x", y, "y", x != NULL ? x->dim : 0, error)) !=
            PE_OK ||
        (status = pe_pairs_resolve(pairs, x->dim, &p, error)) != PE_OK ||
        (status = check_table(cos, "cos", x, p.rotary_dim, rows != NULL, error)) !=
            PE_OK ||
        (status = check_table(sin, "sin", x, p.rotary_dim, rows != NULL, error)) !=
            PE_OK)
        return status;
    if (cos->dim != sin->dim || cos->seq_len != sin->seq_len)
        return pe_fail(error, PE_E_SHAPE,
                       "sin is (%lld rows, dim %lld), must be as cos (%lld, %lld)",
                       (long long)sin->seq_len, (long long)sin->dim,
                       (long long)cos->seq_len, (long long)cos->dim);
    if (rows != NULL && (status = check_rows(rows, x, cos->seq_len, error)) != PE_OK)
        return status;
    if ((status = pe_tensor_check_overlap(cos, "cos", y, "y", error)) != PE_OK ||
        (status = pe_tensor_check_overlap(sin, "sin", y, "y", error)) != PE_OK)
        return status;
    lookup job = {.cosine = cos,
                  .sine = sin,
                  .x = x,
                  .y = y,
                  .rows = rows,
                  .window = {pe_kernels_get(full.isa), p.rotary_start, p.rotary_dim / 2,
                             p.pairing, p.out_pairing},
                  .reversed = p.reversed};
    job.rotor = pe_rotor_of(&job.window, x, y);
    pe_run(&full, x->batch * x->seq_len, pe_rotate_grain(x->num_heads, x->dim),
           turn_tokens, &job);
    return PE_OK;
}
