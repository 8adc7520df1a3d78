/* SPDX-License-Identifier: MIT
 *
 * bias_row.c - the bias of one head, one query and a run of keys
 *
 * In double; whoever stores it rounds once. */
#include "bias/bias_plan.h"

#include "bias/real.h"

#include <math.h>

void pe_bias_distances(const pe_bias *bias, double q, const double *k, int64_t n,
                       double *out)
{
    switch (bias->form) {
    case PE_BIAS_CAUSAL:
        for (int64_t j = 0; j < n; j++)
            out[j] = q > k[j] ? k[j] - q : 0;
        break;
    case PE_BIAS_BIDIRECTIONAL:
        for (int64_t j = 0; j < n; j++)
            out[j] = q > k[j] ? k[j] - q : q - k[j];
        break;
    default:
        for (int64_t j = 0; j < n; j++)
            out[j] = k[j];
    }
}

static double rounded(double x, pe_dtype dtype)
{
    switch (dtype) {
    case PE_F16:
        return (double)pe_f16_to_f32(pe_f16_from_f32((float)x));
    case PE_BF16:
        return (double)pe_bf16_to_f32(pe_bf16_from_f32((float)x));
    default:
        return (double)(float)x;
    }
}

/* Type promotion in the reference turns positions into round_to before the product
 * (Falcon: slopes.bfloat16() * arange); the product is rounded, scale comes after.  The
 * float between is no double rounding for the product: two 11-bit factors fit it. */
static void imitate(const pe_bias *bias, double slope, int64_t n, double *out)
{
    for (int64_t j = 0; j < n; j++) {
        const double distance = rounded(out[j], bias->round_to);
        out[j] = bias->scale * rounded(slope * distance, bias->round_to);
    }
}

static void alibi_row(const pe_bias *bias, int32_t head, double q, const double *k,
                      int64_t n, double *out)
{
    const double slope = (double)bias->slopes[head];
    pe_bias_distances(bias, q, k, n, out);
    if (bias->round_to != 0) {
        imitate(bias, slope, n, out);
        return;
    }
    const double factor = slope * bias->scale;
    for (int64_t j = 0; j < n; j++)
        out[j] *= factor;
}

int32_t pe_bias_bucket(const pe_bias *bias, double q, double k)
{
    const double distance = q > k ? q - k : k - q;
    int32_t low = 0, high = bias->num_edges - 1;
    while (low < high) {
        const int32_t middle = low + (high - low + 1) / 2;
        if (distance >= bias->edges[middle])
            low = middle;
        else
            high = middle - 1;
    }
    return k > q ? bias->later_side + low : low;
}

/* The bucket of a key at k is that of all whole positions [*low, *high). */
static void bucket_keys(const pe_bias *bias, double q, double k, int64_t bucket,
                        double *low, double *high)
{
    const int64_t i = bucket - (k > q ? bias->later_side : 0);
    const double near = bias->edges[i];
    const double far = i + 1 < bias->num_edges ? bias->edges[i + 1] : INFINITY;
    if (k > q) {
        *low = q + (near > 1 ? near : 1);
        *high = q + far;
    } else {
        *low = q - far + 1;
        *high = q - near + 1;
    }
}

static void t5_row(const pe_bias *bias, int32_t head, double q, const double *k,
                   int64_t n, double *out)
{
    const int causal = bias->form == PE_BIAS_CAUSAL;
    double low = 0, high = 0, value = 0; /* keys in [low, high) have this value */
    for (int64_t j = 0; j < n; j++) {
        if (causal && k[j] > q) {
            out[j] = 0;
            continue;
        }
        if (!(k[j] >= low && k[j] < high)) {
            const int64_t row = pe_bias_bucket(bias, q, k[j]);
            value = bias->scale * (double)bias->table[row * bias->num_heads + head];
            bucket_keys(bias, q, k[j], row, &low, &high);
        }
        out[j] = value;
    }
}

void pe_bias_t5_run(const pe_bias *bias, int32_t head, double q, double first,
                    int64_t n, double *out)
{
    for (int64_t j = 0; j < n;) {
        const double k = first + (double)j;
        double low, high = INFINITY, value = 0;
        if (k <= q || bias->form != PE_BIAS_CAUSAL) {
            const int64_t row = pe_bias_bucket(bias, q, k);
            value = bias->scale * (double)bias->table[row * bias->num_heads + head];
            bucket_keys(bias, q, k, row, &low, &high);
        }
        const int64_t end = high - first < (double)n ? (int64_t)(high - first) : n;
        for (; j < end; j++)
            out[j] = value;
    }
}

/* Without branches, so that compilers make vectors; distance 0 and, in causal plans, keys
 * past the query get 0. */
static void kerple_row(const pe_bias *bias, int32_t head, double q, const double *k,
                       int64_t n, double *out)
{
    const double p = (double)bias->p[head], a = (double)bias->a[head];
    const double later = bias->form == PE_BIAS_CAUSAL ? 0 : 1;
    for (int64_t j = 0; j < n; j++) {
        const double d = q - k[j];
        out[j] = d > 0 ? d : -d * later;
    }
    if (bias->type == PE_BIAS_KERPLE_LOG) {
        const double factor = -bias->scale * p;
        for (int64_t j = 0; j < n; j++) {
            const double value = factor * pe_real_ln1p(a * out[j]);
            out[j] = out[j] > 0 ? value : 0;
        }
        return;
    }
    const double factor = -bias->scale * a;
    for (int64_t j = 0; j < n; j++) {
        const double d = out[j] > 0 ? out[j] : 1;
        const double value = factor * pe_real_exp(p * pe_real_ln(d));
        out[j] = out[j] > 0 ? value : 0;
    }
}

void pe_bias_row(const pe_bias *bias, int32_t head, double q, const double *k,
                 int64_t n, double *out)
{
    switch (bias->type) {
    case PE_BIAS_ALIBI:
        alibi_row(bias, head, q, k, n, out);
        break;
    case PE_BIAS_T5:
        t5_row(bias, head, q, k, n, out);
        break;
    default:
        kerple_row(bias, head, q, k, n, out);
    }
}
