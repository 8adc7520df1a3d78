/* SPDX-License-Identifier: MIT
 *
 * bias_apply.c - pe_bias_fill and pe_bias_add
 */
#include "bias/scores.h"

#include "kernels/vectors.h"

/* y = x + bias, the sum taken in double and rounded to float once. */
static void work_rows(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const pe_scores_job *job = arg;
    double k[PE_BIAS_CHUNK], value[PE_BIAS_CHUNK];
    float x[PE_BIAS_CHUNK];
    const pe_kernels *kernels = pe_kernels_get(job->bias->env.isa);
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        pe_scores_row row;
        if (!pe_scores_row_at(job, i, &row))
            continue;
        for (int64_t j0 = 0; j0 < job->y->dim; j0 += PE_BIAS_CHUNK) {
            const int64_t rest = job->y->dim - j0;
            const int64_t n = rest < PE_BIAS_CHUNK ? rest : PE_BIAS_CHUNK;
            pe_scores_keys(job->k_at, row.b, j0, n, k);
            pe_bias_row(job->bias, row.head, row.q, k, n, value);
            if (job->x != NULL) {
                pe_kernels_load(kernels, job->x, row.x, j0, n, x);
                for (int64_t j = 0; j < n; j++)
                    value[j] += (double)x[j];
            }
            for (int64_t j = 0; j < n; j++)
                x[j] = (float)value[j];
            pe_kernels_store(kernels, job->y, row.y, j0, n, x);
        }
    }
}

pe_status pe_bias_fill(const pe_bias *bias, const pe_positions *q_at,
                       const pe_positions *k_at, const pe_tensor *y, pe_error *error)
{
    pe_scores_job job = {.bias = bias, .q_at = q_at, .k_at = k_at, .y = y};
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
    pe_scores_job job = {.bias = bias, .q_at = q_at, .k_at = k_at, .x = x, .y = y};
    return pe_scores_run(&job, work_rows, error);
}
