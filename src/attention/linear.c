/* SPDX-License-Identifier: MIT
 *
 * linear.c - linear attention with rotary positions: RoFormer's third point
 *
 * The sums over keys are carried from query to query: a head_dim x v_head_dim state and
 * a normaliser, in double. */
#include "base/base.h"

#include "posenc/attention.h"

#include "base/at.h"
#include "base/error.h"
#include "base/tensor.h"
#include "bias/real.h"
#include "rope/plan.h"
#include "rope/rotate.h"

#include <string.h>

typedef struct {
    const pe_rope *rope;
    pe_mask mask;
    const pe_positions *q_at, *k_at;
    const pe_tensor *q, *k, *v, *out;
    double *state;  /* [head_dim][v_head_dim]: sum of R f(k) v */
    double *norm;   /* [head_dim]: sum of f(k) */
    double *turned; /* [head_dim] */
    double *plain;  /* [head_dim] */
    double *result; /* [v_head_dim] */
} linear;

/* f(x) = elu(x) + 1: positive, so that the normaliser is. */
static double feature(double x)
{
    if (x > 0)
        return x + 1;
    return x < -700 ? 0 : pe_real_exp(x);
}

/* plain = f(x), turned = R f(x) of vector (b, t, h); 0 where a page is absent. */
static int load(const linear *a, const pe_tensor *x, const pe_positions *at, int64_t b,
                int64_t t, int64_t h)
{
    float in[PE_MAX_VECTOR_DIM], out[PE_MAX_VECTOR_DIM];
    pe_tensor from, to;
    int64_t element;
    if (!pe_tensor_at(x, b, t, h, &element))
        return 0;
    pe_vector_load(x, element, 0, x->dim, in);
    for (int64_t d = 0; d < x->dim; d++) {
        a->plain[d] = feature((double)in[d]);
        in[d] = (float)a->plain[d];
    }
    if (a->rope != NULL) {
        const pe_place place = pe_place_read(a->rope, at, b, t);
        pe_row_buffer buffer;
        pe_row row = pe_rope_row(a->rope, &place, PE_SCALE_FULL, &buffer);
        if (a->rope->pairs.reversed)
            row = pe_row_negate(row, a->rope->turns.n, &buffer);
        const pe_window window = {a->rope->kernels, a->rope->pairs.rotary_start,
                                  a->rope->turns.n, a->rope->pairs.pairing,
                                  a->rope->pairs.out_pairing};
        const pe_turn turn = {row.cos, row.sin, NULL, NULL};
        pe_tensor_bshd(&from, PE_F32, in, 1, 1, 1, x->dim);
        pe_tensor_bshd(&to, PE_F32, out, 1, 1, 1, x->dim);
        const pe_rotor rotor = pe_rotor_of(&window, &from, &to);
        pe_rotate_token(&rotor, &turn, 0, 0);
    }
    for (int64_t d = 0; d < x->dim; d++)
        a->turned[d] = a->rope != NULL ? (double)out[d] : a->plain[d];
    return 1;
}

static void add_key(const linear *a, int64_t b, int64_t t, int64_t h)
{
    float v[PE_MAX_VECTOR_DIM];
    int64_t element;
    if (!load(a, a->k, a->k_at, b, t, h) || !pe_tensor_at(a->v, b, t, h, &element))
        return;
    pe_vector_load(a->v, element, 0, a->v->dim, v);
    for (int64_t d = 0; d < a->k->dim; d++) {
        a->norm[d] += a->plain[d];
        for (int64_t i = 0; i < a->v->dim; i++)
            a->state[d * a->v->dim + i] += a->turned[d] * (double)v[i];
    }
}

static void ask(const linear *a, int64_t b, int64_t t, int64_t h)
{
    float out[PE_MAX_VECTOR_DIM];
    int64_t element;
    double norm = 0;
    memset(a->result, 0, (size_t)a->v->dim * sizeof *a->result);
    if (load(a, a->q, a->q_at, b, t, h))
        for (int64_t d = 0; d < a->q->dim; d++) {
            norm += a->plain[d] * a->norm[d];
            for (int64_t i = 0; i < a->v->dim; i++)
                a->result[i] += a->turned[d] * a->state[d * a->v->dim + i];
        }
    for (int64_t i = 0; i < a->v->dim; i++)
        out[i] = norm == 0 ? 0 : (float)(a->result[i] / norm);
    if (pe_tensor_at(a->out, b, t, h, &element))
        pe_vector_store(a->out, element, 0, a->v->dim, out);
}

static void attend_head(const linear *a, int64_t b, int64_t h)
{
    const int64_t kv = h / (a->q->num_heads / a->k->num_heads);
    const int64_t offset = a->k->seq_len - a->q->seq_len;
    int64_t key = 0;
    memset(a->state, 0, (size_t)(a->k->dim * a->v->dim) * sizeof *a->state);
    memset(a->norm, 0, (size_t)a->k->dim * sizeof *a->norm);
    for (int64_t t = 0; t < a->q->seq_len; t++) {
        const int64_t end = a->mask == PE_MASK_CAUSAL ? t + offset + 1 : a->k->seq_len;
        for (; key < end; key++)
            add_key(a, b, key, kv);
        ask(a, b, t, h);
    }
}

static pe_status check_shapes(const linear *a, pe_error *error)
{
    const pe_tensor *q = a->q, *k = a->k, *v = a->v, *out = a->out;
    if (q->dim > PE_MAX_VECTOR_DIM || v->dim > PE_MAX_VECTOR_DIM)
        return pe_fail(error, PE_E_LIMIT,
                       "q.dim is %lld and v.dim %lld, must be at most %d",
                       (long long)q->dim, (long long)v->dim, PE_MAX_VECTOR_DIM);
    if (k->batch != q->batch || k->dim != q->dim || q->num_heads % k->num_heads != 0)
        return pe_fail(
            error, PE_E_SHAPE,
            "k has batch %lld, dim %lld and %lld heads, must have those of q "
            "(%lld, %lld) and heads that divide %lld",
            (long long)k->batch, (long long)k->dim, (long long)k->num_heads,
            (long long)q->batch, (long long)q->dim, (long long)q->num_heads);
    if (v->batch != k->batch || v->num_heads != k->num_heads ||
        v->seq_len != k->seq_len)
        return pe_fail(error, PE_E_SHAPE,
                       "v has batch %lld, seq_len %lld and %lld heads, must have those "
                       "of k (%lld, %lld, %lld)",
                       (long long)v->batch, (long long)v->seq_len,
                       (long long)v->num_heads, (long long)k->batch,
                       (long long)k->seq_len, (long long)k->num_heads);
    if (out->batch != q->batch || out->num_heads != q->num_heads ||
        out->seq_len != q->seq_len || out->dim != v->dim)
        return pe_fail(error, PE_E_SHAPE,
                       "out is (%lld, %lld, %lld, %lld), must be (%lld, %lld, %lld, "
                       "%lld)",
                       (long long)out->batch, (long long)out->seq_len,
                       (long long)out->num_heads, (long long)out->dim,
                       (long long)q->batch, (long long)q->seq_len,
                       (long long)q->num_heads, (long long)v->dim);
    if (a->rope != NULL && a->rope->info.head_dim != q->dim)
        return pe_fail(error, PE_E_SHAPE,
                       "q.dim is %lld, must be the rope's head_dim (%d)",
                       (long long)q->dim, a->rope->info.head_dim);
    return PE_OK;
}

static pe_status check(const linear *a, pe_error *error)
{
    pe_status status;
    if (a->mask != PE_MASK_NONE && a->mask != PE_MASK_CAUSAL)
        return pe_fail(error, PE_E_ARGUMENT,
                       "mask is %d, must be PE_MASK_NONE (1) or PE_MASK_CAUSAL (2)",
                       a->mask);
    if ((status = pe_tensor_check(a->q, PE_INPUT, "q", error)) != PE_OK ||
        (status = pe_tensor_check(a->k, PE_INPUT, "k", error)) != PE_OK ||
        (status = pe_tensor_check(a->v, PE_INPUT, "v", error)) != PE_OK ||
        (status = pe_tensor_check(a->out, PE_OUTPUT, "out", error)) != PE_OK ||
        (status = check_shapes(a, error)) != PE_OK)
        return status;
    if (a->rope != NULL &&
        ((status = pe_at_check(a->q_at, a->q->batch, a->q->seq_len,
                               a->rope->info.num_axes, 1, "q_at", error)) != PE_OK ||
         (status = pe_at_check(a->k_at, a->k->batch, a->k->seq_len,
                               a->rope->info.num_axes, 1, "k_at", error)) != PE_OK))
        return status;
    if (pe_tensor_same(a->k, a->out) || pe_tensor_same(a->v, a->out))
        return pe_fail(error, PE_E_ARGUMENT, "out is k or v, must be another tensor");
    if ((status = pe_tensor_check_overlap(a->k, "k", a->out, "out", error)) != PE_OK ||
        (status = pe_tensor_check_overlap(a->q, "q", a->out, "out", error)) != PE_OK)
        return status;
    return pe_tensor_check_overlap(a->v, "v", a->out, "out", error);
}

pe_status pe_linear_attention(const pe_rope *rope, pe_mask mask,
                              const pe_positions *q_at, const pe_positions *k_at,
                              const pe_tensor *q, const pe_tensor *k,
                              const pe_tensor *v, const pe_tensor *out, void *workspace,
                              size_t workspace_size, pe_error *error)
{
    linear a = {rope, mask, q_at, k_at, q, k, v, out, NULL, NULL, NULL, NULL, NULL};
    const pe_status status = check(&a, error);
    if (status != PE_OK)
        return status;
    const int64_t doubles = q->dim * (v->dim + 1) + 2 * q->dim + v->dim;
    if (workspace == NULL || (uintptr_t)workspace % 64 != 0)
        return pe_fail(error, PE_E_WORKSPACE,
                       "workspace is %s, must be aligned to 64 bytes",
                       workspace == NULL ? "NULL" : "misaligned");
    if (workspace_size < (size_t)doubles * sizeof(double))
        return pe_fail(error, PE_E_WORKSPACE,
                       "workspace_size is %zu, must be at least %zu", workspace_size,
                       (size_t)doubles * sizeof(double));
    a.state = workspace;
    a.norm = a.state + q->dim * v->dim;
    a.turned = a.norm + q->dim;
    a.plain = a.turned + q->dim;
    a.result = a.plain + q->dim;
    for (int64_t b = 0; b < q->batch; b++)
        for (int64_t h = 0; h < q->num_heads; h++)
            attend_head(&a, b, h);
    return PE_OK;
}
