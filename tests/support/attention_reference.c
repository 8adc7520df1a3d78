/* SPDX-License-Identifier: MIT
 *
 * attention_reference.c - attention by the textbook
 */
#include "attention_reference.h"

#include <math.h>
#include <string.h>

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;

    return q * b > a ? q - 1 : q;
}

int ref_attention_sees(const ref_attention *ref, int64_t b, int64_t i, int64_t j)
{
    int64_t q_begin = 0, q_end = ref->q_len, k_begin = 0, k_end = ref->k_len;

    if (ref->num_seqs > 0) {
        int32_t s = 0;
        while (s < ref->num_seqs && i >= ref->q_cu[s + 1])
            s++;
        if (s == ref->num_seqs)
            return 0;
        q_begin = ref->q_cu[s];
        q_end = ref->q_cu[s + 1];
        k_begin = ref->k_cu[s];
        k_end = ref->k_cu[s + 1];
    } else if (ref->k_lens != NULL) {
        k_end = ref->k_lens[b];
    }
    if (j < k_begin || j >= k_end)
        return 0;
    const int64_t k = j - k_begin;
    const int64_t q = (k_end - k_begin) - (q_end - q_begin) + (i - q_begin);
    if (ref->visible.mask == PE_MASK_CAUSAL && k > q)
        return 0;
    if ((ref->visible.window > 0 || ref->visible.chunk > 0) &&
        k < ref->visible.num_sinks)
        return 1;
    if (ref->visible.window > 0 &&
        (q - k >= ref->visible.window || k - q >= ref->visible.window))
        return 0;
    return ref->visible.chunk == 0 ||
           floor_div(k, ref->visible.chunk) == floor_div(q, ref->visible.chunk);
}

static double score(const ref_attention *ref, int64_t b, int64_t i, int64_t at)
{
    const double factor =
        ref->scale * (ref->factors != NULL ? ref->factors[b * ref->q_len + i] : 1);
    double s = ref->dots[at] * factor;

    if (ref->softcap > 0)
        s = ref->softcap * tanh(s / ref->softcap);
    return s + ref->bias[at];
}

static int exists(const ref_attention *ref, int64_t b, int64_t kv, int64_t i, int64_t j)
{
    return ref_attention_sees(ref, b, i, j) &&
           (ref->absent == NULL ||
            !ref->absent[(b * ref->kv_heads + kv) * ref->k_len + j]);
}

static void row(const ref_attention *ref, int64_t b, int64_t h, int64_t i, double *p,
                double *out, double *lse)
{
    const int64_t kv = h / (ref->heads / ref->kv_heads);
    const int64_t at = ((b * ref->heads + h) * ref->q_len + i) * ref->k_len;
    const double *v = ref->v + (b * ref->kv_heads + kv) * ref->k_len * ref->v_dim;
    double top = ref->sinks != NULL ? (double)ref->sinks[h] : -INFINITY, sum = 0;

    for (int64_t j = 0; j < ref->k_len; j++)
        if (exists(ref, b, kv, i, j) && score(ref, b, i, at + j) > top)
            top = score(ref, b, i, at + j);
    if (ref->sinks != NULL)
        sum += exp((double)ref->sinks[h] - top);
    for (int64_t j = 0; j < ref->k_len; j++) {
        p[j] = 0;
        if (exists(ref, b, kv, i, j) && top > -INFINITY)
            p[j] = exp(score(ref, b, i, at + j) - top);
        sum += p[j];
    }
    for (int64_t d = 0; d < ref->v_dim; d++)
        out[d] = 0;
    for (int64_t j = 0; j < ref->k_len; j++) {
        p[j] = sum > 0 ? p[j] / sum : 0;
        for (int64_t d = 0; d < ref->v_dim && p[j] > 0; d++)
            out[d] += p[j] * v[j * ref->v_dim + d];
    }
    *lse = sum > 0 ? top + log(sum) : -INFINITY;
}

void ref_attention_forward(const ref_attention *ref, double *probs, double *out,
                           double *lse)
{
    for (int64_t b = 0; b < ref->batch; b++)
        for (int64_t h = 0; h < ref->heads; h++)
            for (int64_t i = 0; i < ref->q_len; i++) {
                const int64_t r = (b * ref->heads + h) * ref->q_len + i;
                row(ref, b, h, i, probs + r * ref->k_len, out + r * ref->v_dim,
                    lse + r);
            }
}

static void back_row(const ref_attention *ref, int64_t b, int64_t h, int64_t i,
                     const double *probs, const double *out, const double *lse,
                     const double *dout, double *dscores, double *ddots, double *dv,
                     double *dsinks)
{
    const int64_t kv = h / (ref->heads / ref->kv_heads);
    const int64_t r = (b * ref->heads + h) * ref->q_len + i, at = r * ref->k_len;
    const int64_t base = (b * ref->kv_heads + kv) * ref->k_len * ref->v_dim;
    const double factor =
        ref->scale * (ref->factors != NULL ? ref->factors[b * ref->q_len + i] : 1);
    double delta = 0;

    for (int64_t d = 0; d < ref->v_dim; d++)
        delta += dout[r * ref->v_dim + d] * out[r * ref->v_dim + d];
    for (int64_t j = 0; j < ref->k_len; j++) {
        const double p = probs[at + j];
        double dp = 0;
        for (int64_t d = 0; d < ref->v_dim; d++) {
            dp += dout[r * ref->v_dim + d] * ref->v[base + j * ref->v_dim + d];
            dv[base + j * ref->v_dim + d] += p * dout[r * ref->v_dim + d];
        }
        const double ds = p * (dp - delta);
        double slope = factor;
        if (ref->softcap > 0) {
            const double t = tanh(ref->dots[at + j] * factor / ref->softcap);
            slope *= 1 - t * t;
        }
        dscores[at + j] = ds;
        ddots[at + j] = ds * slope;
    }
    if (ref->sinks != NULL && lse[r] > -INFINITY)
        dsinks[h] -= exp((double)ref->sinks[h] - lse[r]) * delta;
}

void ref_attention_backward(const ref_attention *ref, const double *probs,
                            const double *out, const double *lse, const double *dout,
                            double *dscores, double *ddots, double *dv, double *dsinks)
{
    const int64_t nv = ref->batch * ref->kv_heads * ref->k_len * ref->v_dim;

    memset(dv, 0, (size_t)nv * sizeof *dv);
    memset(dsinks, 0, (size_t)ref->heads * sizeof *dsinks);
    for (int64_t b = 0; b < ref->batch; b++)
        for (int64_t h = 0; h < ref->heads; h++)
            for (int64_t i = 0; i < ref->q_len; i++)
                back_row(ref, b, h, i, probs, out, lse, dout, dscores, ddots, dv,
                         dsinks);
}
