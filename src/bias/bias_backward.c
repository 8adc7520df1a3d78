/* SPDX-License-Identifier: MIT
 *
 * bias_backward.c - gradients of the parameters: slopes, T5 table, KERPLE p and a
 *
 * A head is summed by one worker over rows and keys in order, in double, and added to
 * grad once: the bits do not depend on threads. */
#include "bias/scores.h"

#include "base/at.h"
#include "base/error.h"
#include "base/tensor.h"
#include "bias/real.h"
#include "kernels/vectors.h"

#include <string.h>

typedef struct {
    const pe_bias *bias;
    const pe_positions *q_at, *k_at;
    const pe_tensor *dscores;
    float *grad;
} gradient;

static void add_alibi(const pe_bias *bias, double q, const double *k, const float *ds,
                      int64_t n, double *sums)
{
    double distance[PE_BIAS_CHUNK];
    pe_bias_distances(bias, q, k, n, distance);
    for (int64_t j = 0; j < n; j++)
        sums[0] += (double)ds[j] * distance[j];
}

static void add_t5(const pe_bias *bias, double q, const double *k, const float *ds,
                   int64_t n, double *sums)
{
    for (int64_t j = 0; j < n; j++)
        sums[pe_bias_bucket(bias, q, k[j])] += (double)ds[j];
}

static void add_kerple(const pe_bias *bias, int32_t head, double q, const double *k,
                       const float *ds, int64_t n, double *sums)
{
    const double p = (double)bias->p[head], a = (double)bias->a[head];
    for (int64_t j = 0; j < n; j++) {
        const double distance = q > k[j] ? q - k[j] : k[j] - q;
        if (distance == 0)
            continue;
        const double d = (double)ds[j];
        if (bias->type == PE_BIAS_KERPLE_LOG) {
            sums[0] -= d * pe_real_ln1p(a * distance);
            sums[1] -= d * (p * distance / (1 + a * distance));
        } else {
            const double log_distance = pe_real_ln(distance);
            const double power = pe_real_exp(p * log_distance);
            sums[0] -= d * (a * power * log_distance);
            sums[1] -= d * power;
        }
    }
}

/* CAUSAL biases say nothing about keys past the query, whatever ds holds there: moves
 * the others to the front, and returns how many they are. */
static int64_t keep_seen(double q, double *k, float *ds, int64_t n)
{
    int64_t kept = 0;
    for (int64_t j = 0; j < n; j++)
        if (k[j] <= q) {
            k[kept] = k[j];
            ds[kept++] = ds[j];
        }
    return kept;
}

void pe_bias_row_gradient(const pe_bias *bias, int32_t head, double q, double *k,
                          float *ds, int64_t n, double *sums)
{
    if (bias->form == PE_BIAS_CAUSAL)
        n = keep_seen(q, k, ds, n);
    if (bias->type == PE_BIAS_ALIBI)
        add_alibi(bias, q, k, ds, n, sums);
    else if (bias->type == PE_BIAS_T5)
        add_t5(bias, q, k, ds, n, sums);
    else
        add_kerple(bias, head, q, k, ds, n, sums);
}

int64_t pe_bias_num_gradients(const pe_bias *bias)
{
    if (bias->type == PE_BIAS_ALIBI)
        return 1;
    return bias->type == PE_BIAS_T5 ? bias->num_edges + bias->later_side : 2;
}

void pe_bias_store_gradients(const pe_bias *bias, int32_t head, const double *sums,
                             float *grad)
{
    for (int64_t i = 0; i < pe_bias_num_gradients(bias); i++) {
        float *g = grad + i * bias->num_heads + head;
        *g = (float)((double)*g + bias->scale * sums[i]);
    }
}

static void add_row(const gradient *g, int64_t b, int64_t t, int64_t h, double *sums)
{
    const pe_bias *bias = g->bias;
    const int32_t head = bias->head_start + (int32_t)h;
    const double q = (double)pe_at_id(g->q_at, 0, b, t);
    double k[PE_BIAS_CHUNK];
    float ds[PE_BIAS_CHUNK];
    int64_t element;
    if (!pe_tensor_at(g->dscores, b, t, h, &element))
        return;
    for (int64_t j0 = 0; j0 < g->dscores->dim; j0 += PE_BIAS_CHUNK) {
        const int64_t rest = g->dscores->dim - j0;
        const int64_t n = rest < PE_BIAS_CHUNK ? rest : PE_BIAS_CHUNK;
        pe_scores_keys(g->k_at, b, j0, n, k);
        pe_kernels_load(pe_kernels_get(bias->env.isa), g->dscores, element, j0, n, ds);
        pe_bias_row_gradient(bias, head, q, k, ds, n, sums);
    }
}

static void work_heads(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const gradient *g = arg;
    const pe_bias *bias = g->bias;
    double sums[PE_MAX_BUCKETS];
    (void)worker;
    for (int64_t h = begin; h < end; h++) {
        const int32_t head = bias->head_start + (int32_t)h;
        memset(sums, 0, sizeof sums);
        for (int64_t b = 0; b < g->dscores->batch; b++)
            for (int64_t t = 0; t < g->dscores->seq_len; t++)
                add_row(g, b, t, h, sums);
        pe_bias_store_gradients(bias, head, sums, g->grad);
    }
}

pe_status pe_bias_backward(const pe_bias *bias, const pe_positions *q_at,
                           const pe_positions *k_at, const pe_tensor *dscores,
                           float *grad, pe_error *error)
{
    pe_status status;
    if ((status = pe_scores_check(bias, dscores, 0, "dscores", error)) != PE_OK ||
        (status = pe_scores_check_at(q_at, k_at, dscores, error)) != PE_OK)
        return status;
    if (grad == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "grad is NULL");
    gradient g = {bias, q_at, k_at, dscores, grad};
    pe_run(&bias->env, dscores->num_heads, 1, work_heads, &g);
    return PE_OK;
}
