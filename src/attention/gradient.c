/* SPDX-License-Identifier: MIT
 *
 * gradient.c - gradients of the rows of a tile, block by block
 *
 * With P the weights and D = dout . out of a row:  dV = P^T dout,  dS = P (dout V^T - D),
 * dQ = dS K,  dK = dS^T Q.  One worker does a whole kv head of a document, tile by tile,
 * so that every sum has one order; dK and dV of that head are its only arrays as long as
 * the keys.  Under far rules a score belongs to one variant, and dQ and dK are kept for
 * each, until each goes back through the rotation of its own positions. */
#include "attention/gradient.h"

#include "attention/exp2.h"
#include "attention/tile.h"
#include "attention/turn.h"
#include "base/at.h"
#include "bias/bias_plan.h"
#include "kernels/vectors.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------------- one tile --- */

static int64_t head_of(const pe_tile *tile, int64_t r)
{
    const int64_t group = tile->call->plan->group;
    return tile->kv_head * group + r % group;
}

static int64_t token_of(const pe_tile *tile, int64_t r)
{
    return tile->doc.q0 + tile->token + r / tile->call->plan->group;
}

/* dout, D and the row's lse in log2 units, where the weights kernel looks for it. */
static void load_row(pe_tile *tile, const pe_gradient_call *g, int64_t r)
{
    const pe_attention *plan = tile->call->plan;
    const int64_t pad = plan->v_pad, dim = plan->spec.v_head_dim;
    float *dout = tile->dout + r * pad, *out = tile->raw_values;
    int64_t element;
    memset(dout, 0, (size_t)pad * sizeof *dout);
    memset(out, 0, (size_t)pad * sizeof *out);
    if (pe_tensor_at(g->grads.dout, tile->doc.b, token_of(tile, r), head_of(tile, r),
                     &element))
        pe_load(plan, g->grads.dout, element, 0, dim, dout);
    if (pe_tensor_at(tile->call->args.out, tile->doc.b, token_of(tile, r),
                     head_of(tile, r), &element))
        pe_load(plan, tile->call->args.out, element, 0, dim, out);
    double delta = 0;
    for (int64_t d = 0; d < dim; d++)
        delta += (double)dout[d] * (double)out[d];
    tile->delta[r] = (float)delta;
    const float lse =
        tile->call->args.lse[(tile->doc.b * plan->spec.num_heads + head_of(tile, r)) *
                                 tile->call->q_len +
                             token_of(tile, r)];
    tile->max[r] = (float)(((double)lse - pe_tile_bias_of_query(tile, r)) * PE_LOG2E);
}

static void load_tile(pe_tile *tile, const pe_gradient_call *g)
{
    const pe_attention *plan = tile->call->plan;
    const int64_t padding = tile->padded_rows - tile->rows;
    for (int64_t r = 0; r < tile->rows; r++)
        load_row(tile, g, r);
    memset(tile->dout + tile->rows * plan->v_pad, 0,
           (size_t)(padding * plan->v_pad) * sizeof(float));
    memset(tile->delta + tile->rows, 0, (size_t)padding * sizeof(float));
    for (int64_t r = tile->rows; r < tile->padded_rows; r++)
        tile->max[r] = INFINITY; /* weights of padding are 0 */
    tile->rows_finite = pe_all_finite(tile->dout, tile->rows * plan->v_pad);
    for (int v = 0; v < tile->call->variants; v++) {
        memset(tile->dq[v], 0,
               (size_t)(tile->padded_rows * plan->k_pad) * sizeof(float));
        tile->rows_finite &= pe_all_finite(tile->q[v], tile->rows * plan->k_pad);
    }
}

/* ------------------------------------------------------- parameters of the scores --- */

static void add_mask_gradient(const pe_tile *tile, const pe_tensor *dmask, int64_t r,
                              const float *ds)
{
    int64_t element;
    if (!pe_tensor_at(dmask, dmask->batch > 1 ? tile->doc.b : 0, token_of(tile, r),
                      dmask->num_heads > 1 ? head_of(tile, r) : 0, &element))
        return;
    float *out = (float *)dmask->data + element + tile->doc.k0 + tile->key;
    for (int64_t j = 0; j < tile->num_keys; j++)
        out[j] += ds[j];
}

static void add_bias_gradient(const pe_tile *tile, int i, int64_t document, int64_t r,
                              const float *ds)
{
    const pe_bias *bias = tile->call->plan->spec.bias[i];
    double k[PE_KEY_BLOCK];
    float copy[PE_KEY_BLOCK];
    memcpy(k, tile->key_position, sizeof k);
    memcpy(copy, ds, sizeof copy);
    pe_bias_row_gradient(bias, bias->head_start + (int32_t)head_of(tile, r),
                         tile->position[r / tile->call->plan->group], k, copy,
                         tile->num_keys,
                         pe_call_bias_sums(tile->call, i, document, head_of(tile, r)));
}

static void add_score_gradients(const pe_tile *tile, const pe_gradient_call *g,
                                int64_t document)
{
    const int64_t end = tile->row_end < tile->rows ? tile->row_end : tile->rows;
    for (int64_t r = tile->row_begin; r < end; r++) {
        const float *ds = tile->ds + r * PE_KEY_BLOCK;
        if (g->grads.dmask != NULL)
            add_mask_gradient(tile, g->grads.dmask, r, ds);
        for (int i = 0; i < 2; i++)
            if (g->grads.dbias[i] != NULL)
                add_bias_gradient(tile, i, document, r, ds);
    }
}

/* --------------------------------------------------------------------- one block --- */

/* c[rows][cols] += a b, as the multiply kernel does it.  Unless b is finite, a 0 in a is
 * no product: a vector that is no number reaches those that see it, and no other. */
static void add_product(const pe_attention *plan, int finite, int64_t rows,
                        int64_t cols, int64_t depth, const float *a, int64_t a_row,
                        int64_t a_col, const float *b, float *c)
{
    if (finite) {
        plan->kernels->multiply(rows, cols, depth, a, a_row, a_col, b, cols, c, cols,
                                1);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < depth; k++) {
            const float x = a[i * a_row + k * a_col];
            for (int64_t j = 0; x != 0 && j < cols; j++)
                c[i * cols + j] += x * b[k * cols + j];
        }
}

/* s_far = the gradients of those scores that a variant made, 0 elsewhere. */
static const float *own_gradients(const pe_tile *tile, int variant)
{
    const int64_t group = tile->call->plan->group, begin = tile->row_begin;
    memset(tile->s_far + begin * PE_KEY_BLOCK, 0,
           (size_t)((tile->row_end - begin) * PE_KEY_BLOCK) * sizeof(float));
    for (int64_t r = begin; r < tile->row_end && r < tile->rows; r++) {
        const int64_t at = r * PE_KEY_BLOCK;
        int64_t first, end;
        pe_tile_own(tile, variant, r / group, &first, &end);
        memcpy(tile->s_far + at + first, tile->ds + at + first,
               (size_t)(end - first) * sizeof(float));
    }
    return tile->s_far;
}

/* Gradients of queries and keys as a variant turned them. */
static void add_dot_gradients(const pe_tile *tile, const pe_gradient_call *g,
                              int variant)
{
    const pe_attention *plan = tile->call->plan;
    const int64_t begin = tile->row_begin, rows = tile->row_end - begin;
    const int64_t pad = plan->k_pad;
    const pe_share share = pe_tile_share(tile, variant);
    if (share == PE_SHARE_NONE)
        return;
    const float *ds = begin * PE_KEY_BLOCK +
                      (share == PE_SHARE_ALL ? tile->ds : own_gradients(tile, variant));
    int finite;
    const float *keys = pe_tile_key_rows(tile, variant, &finite);
    if (g->grads.dk != NULL)
        add_product(plan, tile->rows_finite, PE_KEY_BLOCK, pad, rows, ds, 1,
                    PE_KEY_BLOCK, tile->q[variant] + begin * pad,
                    tile->dk[variant] + tile->key * pad);
    if (g->grads.dq != NULL)
        add_product(plan, finite, rows, pad, PE_KEY_BLOCK, ds, PE_KEY_BLOCK, 1, keys,
                    tile->dq[variant] + begin * pad);
}

static void block_gradients(pe_tile *tile, const pe_gradient_call *g, int64_t document)
{
    const pe_attention *plan = tile->call->plan;
    const pe_attention_kernels *k = plan->kernels;
    const int64_t begin = tile->row_begin, rows = tile->row_end - begin;
    const int64_t at = begin * PE_KEY_BLOCK;
    float *s = tile->s + at, *ds = tile->ds + at;
    float *dout = tile->dout + begin * plan->v_pad;
    pe_softmax_block softmax;
    pe_tile_score(tile, &softmax);
    if (plan->spec.softcap > 0) {
        memcpy(tile->cap_slopes, s, (size_t)(rows * PE_KEY_BLOCK) * sizeof *s);
        k->cap_slope(tile->cap_slopes, (float)plan->spec.softcap, rows * PE_KEY_BLOCK);
    }
    k->weights(&softmax);
    k->multiply(rows, PE_KEY_BLOCK, plan->spec.v_head_dim, dout, plan->v_pad, 1,
                tile->value_columns, PE_KEY_BLOCK, ds, PE_KEY_BLOCK, 0);
    k->score_gradient(rows, s, tile->delta + begin, ds);
    add_score_gradients(tile, g, document);
    if (plan->spec.softcap > 0)
        k->times(ds, tile->cap_slopes, rows * PE_KEY_BLOCK);
    if (g->grads.dv != NULL)
        add_product(plan, tile->rows_finite, PE_KEY_BLOCK, plan->v_pad, rows, s, 1,
                    PE_KEY_BLOCK, dout, tile->dv + tile->key * plan->v_pad);
    for (int v = 0; v < tile->call->variants; v++)
        add_dot_gradients(tile, g, v);
}

/* ------------------------------------------------------------------------- stores --- */

/* A token of q or k. */
typedef struct {
    const pe_tensor *out;
    const pe_rope *rope;
    int64_t token, head;
    int of_query;
} whose;

static const pe_positions *positions_of(const pe_call *call, int variant, int of_query)
{
    if (variant == 0)
        return of_query ? call->args.q_at : call->args.k_at;
    const pe_far *rule = &call->args.far_rules[variant - 1];
    return of_query ? rule->q_at : rule->k_at;
}

/* The rotation was the first thing on the way in: its transpose is the last on the way
 * out.  Each variant has its own, of gradients[variant][row] times factor. */
static void store_turned(pe_tile *tile, const whose *w, float *const *gradients,
                         int64_t row, float factor)
{
    const pe_attention *plan = tile->call->plan;
    float *sum = tile->raw_keys;
    int64_t element;
    if (!pe_tensor_at(w->out, tile->doc.b, w->token, w->head, &element))
        return;
    for (int v = 0; v < tile->call->variants; v++) {
        float *x = gradients[v] + row * plan->k_pad;
        pe_row_buffer buffer;
        const pe_turning turning =
            pe_turn_make(w->rope, positions_of(tile->call, v, w->of_query), tile->doc.b,
                         w->token, &buffer);
        plan->kernels->scale(x, factor, plan->k_pad);
        pe_turn_back(&turning, w->out->dim, x, v == 0 ? sum : tile->turned);
        for (int64_t d = 0; v > 0 && d < w->out->dim; d++)
            sum[d] += tile->turned[d];
    }
    pe_kernels_store(plan->plain, w->out, element, 0, w->out->dim, sum);
}

static void store_queries(pe_tile *tile, const pe_gradient_call *g)
{
    const pe_call *call = tile->call;
    for (int64_t r = 0; r < tile->rows && g->grads.dq != NULL; r++) {
        const whose w = {g->grads.dq, call->plan->spec.q_rope, token_of(tile, r),
                         head_of(tile, r), 1};
        double scale = call->plan->spec.scale;
        if (call->temperatures != NULL)
            scale *= (double)call->temperatures[tile->doc.b * call->q_len + w.token];
        store_turned(tile, &w, tile->dq, r, (float)scale);
    }
}

/* q went in with a factor log2(e), unless there is a cap. */
static void store_keys(pe_tile *tile, const pe_gradient_call *g)
{
    const pe_attention *plan = tile->call->plan;
    const float factor = plan->spec.softcap == 0 ? (float)PE_LN2 : 1;
    for (int64_t j = 0; j < tile->doc.k_len; j++) {
        const whose w = {g->grads.dk, plan->spec.k_rope, tile->doc.k0 + j,
                         tile->kv_head, 0};
        int64_t element;
        if (g->grads.dk != NULL)
            store_turned(tile, &w, tile->dk, j, factor);
        if (g->grads.dv != NULL &&
            pe_tensor_at(g->grads.dv, tile->doc.b, w.token, tile->kv_head, &element))
            pe_kernels_store(plan->plain, g->grads.dv, element, 0,
                             plan->spec.v_head_dim, tile->dv + j * plan->v_pad);
    }
}

/* The share of the weights that a sink has. */
static double sink_weight(double sink, double lse)
{
    if (sink == -INFINITY || lse == -INFINITY)
        return 0;
    if (isnan(sink) || isnan(lse))
        return NAN;
    return sink < lse ? pe_exp2(sink - lse) : 1; /* lse was rounded */
}

static void add_sink_gradients(const pe_tile *tile, int64_t document)
{
    const pe_call *call = tile->call;
    for (int64_t r = 0; call->args.sinks != NULL && r < tile->rows; r++) {
        const double sink = ((double)call->args.sinks[head_of(tile, r)] -
                             pe_tile_bias_of_query(tile, r)) *
                            PE_LOG2E;
        *pe_call_sink_sum(call, document, head_of(tile, r)) -=
            sink_weight(sink, (double)tile->max[r]) * (double)tile->delta[r];
    }
}

void pe_gradient_heads(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const pe_gradient_call *g = arg;
    const pe_call *call = &g->call;
    const pe_attention *plan = call->plan;
    pe_tile tile;
    pe_tile_start(&tile, call, worker);
    for (int64_t i = begin; i < end; i++) {
        const int64_t index = i / plan->spec.num_kv_heads;
        const pe_document doc = pe_call_document(call, index);
        const int64_t keys =
            (doc.k_len + PE_KEY_BLOCK - 1) / PE_KEY_BLOCK * PE_KEY_BLOCK;
        for (int v = 0; v < call->variants; v++)
            memset(tile.dk[v], 0, (size_t)(keys * plan->k_pad) * sizeof(float));
        memset(tile.dv, 0, (size_t)(keys * plan->v_pad) * sizeof(float));
        tile.doc = doc;
        tile.kv_head = i % plan->spec.num_kv_heads;
        for (int64_t t = 0; t < doc.q_len; t += call->tile_tokens) {
            pe_tile_load(&tile, &doc, tile.kv_head, t);
            load_tile(&tile, g);
            for (int64_t key = 0; key < doc.k_len; key += PE_KEY_BLOCK) {
                const int64_t rest = doc.k_len - key;
                if (pe_tile_block(&tile, key,
                                  rest < PE_KEY_BLOCK ? rest : PE_KEY_BLOCK))
                    block_gradients(&tile, g, index);
            }
            store_queries(&tile, g);
            add_sink_gradients(&tile, index);
        }
        store_keys(&tile, g);
    }
}
