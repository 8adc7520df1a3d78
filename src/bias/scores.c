/* SPDX-License-Identifier: MIT
 *
 * scores.c - checking score tensors, and walking their rows
 */
#include "bias/scores.h"

#include "base/at.h"
#include "base/error.h"
#include "base/tensor.h"

static const int64_t LIMIT = (int64_t)1 << 52;

pe_status pe_scores_check(const pe_bias *bias, const pe_tensor *x, int is_output,
                          const char *name, pe_error *error)
{
    pe_status status;
    if (bias == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "bias is NULL");
    if ((status = pe_tensor_check(x, is_output ? PE_OUTPUT : PE_INPUT, name, error)) !=
        PE_OK)
        return status;
    if (x->dtype > PE_BF16)
        return pe_fail(error, PE_E_DTYPE,
                       "%s.dtype is %d, scores must be PE_F32 (1), PE_F16 (2) or "
                       "PE_BF16 (3)",
                       name, x->dtype);
    const int32_t heads = bias->num_heads - bias->head_start;
    if (x->num_heads > heads)
        return pe_fail(
            error, PE_E_SHAPE,
            "%s.num_heads is %lld, must be at most %d: heads %d .. %d of the "
            "model",
            name, (long long)x->num_heads, heads, bias->head_start,
            bias->num_heads - 1);
    return PE_OK;
}

static pe_status check_places(const pe_positions *at, int64_t batch, int64_t len,
                              const char *name, pe_error *error)
{
    /* With one line for all rows there is one line to look at. */
    const int64_t rows =
        at->starts == NULL && (at->ids == NULL || at->batch_stride == 0) ? 1 : batch;
    for (int64_t b = 0; b < rows; b++)
        for (int64_t t = 0; t < len; t++) {
            const int64_t p = pe_at_id(at, 0, b, t);
            if (at->ids == NULL && p >= -LIMIT && p <= LIMIT - (len - 1 - t))
                break; /* so are those that follow it */
            if (p < -LIMIT || p > LIMIT)
                return pe_fail(error, PE_E_POSITION,
                               "%s of row %lld, token %lld is %lld, must be at most "
                               "2^52 in size for a bias",
                               name, (long long)b, (long long)t, (long long)p);
        }
    return PE_OK;
}

pe_status pe_scores_check_at(const pe_positions *q_at, const pe_positions *k_at,
                             const pe_tensor *x, pe_error *error)
{
    pe_status status;
    if ((status = pe_at_check(q_at, x->batch, x->seq_len, 1, 0, "q_at", error)) !=
            PE_OK ||
        (status = pe_at_check(k_at, x->batch, x->dim, 1, 0, "k_at", error)) != PE_OK ||
        (status = check_places(q_at, x->batch, x->seq_len, "q_at", error)) != PE_OK)
        return status;
    return x->seq_len == 0 ? PE_OK
                           : check_places(k_at, x->batch, x->dim, "k_at", error);
}

static void work_piece(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const pe_scores_job *job = arg;
    (void)worker;
    begin = pe_tensor_cut_rows(job->y, begin);
    end = pe_tensor_cut_rows(job->y, end);
    if (begin < end)
        job->work(arg, begin, end);
}

pe_status pe_scores_run(pe_scores_job *job, void (*work)(void *, int64_t, int64_t),
                        pe_error *error)
{
    pe_status status;
    const pe_tensor *x = job->x, *y = job->y;
    if (x != NULL && (status = pe_scores_check(job->bias, x, 0, "x", error)) != PE_OK)
        return status;
    if ((status = pe_scores_check(job->bias, y, 1, "y", error)) != PE_OK)
        return status;
    if (x != NULL &&
        ((status = pe_tensor_check_same_shape(x, "x", y, "y", error)) != PE_OK ||
         (status = pe_tensor_check_overlap(x, "x", y, "y", error)) != PE_OK))
        return status;
    if ((status = pe_scores_check_at(job->q_at, job->k_at, y, error)) != PE_OK)
        return status;
    /* Rows that are windows of one line (bias_apply.c) go many together. */
    const int64_t few = y->dim >= 16384 ? 1 : 16384 / y->dim;
    const int64_t many = job->by_lines ? 64 : 1, grain = few > many ? few : many;
    job->work = work;
    pe_run(&job->bias->env, y->batch * y->seq_len * y->num_heads, grain, work_piece,
           job);
    return PE_OK;
}

int pe_scores_row_at(const pe_scores_job *job, int64_t index, pe_scores_row *row)
{
    const pe_tensor *x = job->x, *y = job->y;
    int64_t t, h;
    pe_tensor_row(y, index, &row->b, &t, &h);
    row->head = job->bias->head_start + (int32_t)h;
    row->q = (double)pe_at_id(job->q_at, 0, row->b, t);
    row->x = 0;
    return (x == NULL || pe_tensor_at(x, row->b, t, h, &row->x)) &&
           pe_tensor_at(y, row->b, t, h, &row->y);
}

void pe_scores_keys(const pe_positions *k_at, int64_t b, int64_t begin, int64_t n,
                    double *k)
{
    if (k_at->ids != NULL) {
        const int64_t *ids = k_at->ids + b * k_at->batch_stride + begin;
        for (int64_t j = 0; j < n; j++)
            k[j] = (double)ids[j];
        return;
    }
    const double first = (double)pe_at_id(k_at, 0, b, begin);
    for (int64_t j = 0; j < n; j++)
        k[j] = first + (double)(int32_t)j;
}
