/* SPDX-License-Identifier: MIT
 *
 * gradient.c - gradients of the rows of a tile, block by block
 *
 * With P the weights and D = dout . out of a row:  dV = P^T dout,  dS = P (dout V^T - D),
 * dQ = dS K,  dK = dS^T Q.  One worker does a whole kv head of a document, tile by tile,
 * so that every sum has one order; dK and dV of that head are its only array as long as
 * the keys. */
#include "attention/gradient.h"

#include "attention/exp2.h"
#include "attention/tile.h"
#include "attention/turn.h"
#include "base/at.h"
#include "bias/bias_plan.h"

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
    memset(tile->dq, 0, (size_t)(tile->padded_rows * plan->k_pad) * sizeof(float));
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

static double *sums_of(const pe_tile *tile, int i, int64_t document, int64_t r)
{
    const pe_attention *plan = tile->call->plan;
    return tile->call->bias_sums[i] +
           (document * plan->spec.num_heads + head_of(tile, r)) *
               pe_bias_num_gradients(plan->spec.bias[i]);
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
                         tile->num_keys, sums_of(tile, i, document, r));
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
        k->multiply(PE_KEY_BLOCK, plan->v_pad, rows, s, 1, PE_KEY_BLOCK, dout,
                    plan->v_pad, tile->dv + tile->key * plan->v_pad, plan->v_pad, 1);
    if (g->grads.dk != NULL)
        k->multiply(PE_KEY_BLOCK, plan->k_pad, rows, ds, 1, PE_KEY_BLOCK,
                    tile->q[0] + begin * plan->k_pad, plan->k_pad,
                    tile->dk + tile->key * plan->k_pad, plan->k_pad, 1);
    if (g->grads.dq != NULL)
        k->multiply(rows, plan->k_pad, PE_KEY_BLOCK, ds, PE_KEY_BLOCK, 1,
                    tile->key_rows, plan->k_pad, tile->dq + begin * plan->k_pad,
                    plan->k_pad, 1);
}

/* ------------------------------------------------------------------------- stores --- */

/* The rotation was the first thing on the way in: its transpose is the last on the way
 * out. */
static void store_turned(pe_tile *tile, const pe_tensor *out, const pe_rope *rope,
                         const pe_positions *at, int64_t token, int64_t head,
                         const float *x)
{
    pe_row_buffer buffer;
    int64_t element;
    if (!pe_tensor_at(out, tile->doc.b, token, head, &element))
        return;
    const pe_turning turning = pe_turn_make(rope, at, tile->doc.b, token, &buffer);
    pe_turn_back(&turning, out->dim, x, tile->turned);
    pe_vector_store(out, element, 0, out->dim, tile->turned);
}

static void store_queries(pe_tile *tile, const pe_gradient_call *g)
{
    const pe_attention *plan = tile->call->plan;
    for (int64_t r = 0; r < tile->rows && g->grads.dq != NULL; r++) {
        double scale = plan->spec.scale;
        float *dq = tile->dq + r * plan->k_pad;
        if (tile->call->temperatures != NULL)
            scale *=
                (double)tile->call
                    ->temperatures[tile->doc.b * tile->call->q_len + token_of(tile, r)];
        plan->kernels->scale(dq, (float)scale, plan->k_pad);
        store_turned(tile, g->grads.dq, plan->spec.q_rope, tile->call->args.q_at,
                     token_of(tile, r), head_of(tile, r), dq);
    }
}

/* q went in with a factor log2(e), unless there is a cap. */
static void store_keys(pe_tile *tile, const pe_gradient_call *g)
{
    const pe_attention *plan = tile->call->plan;
    for (int64_t j = 0; j < tile->doc.k_len; j++) {
        const int64_t token = tile->doc.k0 + j;
        float *dk = tile->dk + j * plan->k_pad;
        int64_t element;
        if (g->grads.dk != NULL) {
            if (plan->spec.softcap == 0)
                plan->kernels->scale(dk, (float)PE_LN2, plan->k_pad);
            store_turned(tile, g->grads.dk, plan->spec.k_rope, tile->call->args.k_at,
                         token, tile->kv_head, dk);
        }
        if (g->grads.dv != NULL &&
            pe_tensor_at(g->grads.dv, tile->doc.b, token, tile->kv_head, &element))
            pe_vector_store(g->grads.dv, element, 0, plan->spec.v_head_dim,
                            tile->dv + j * plan->v_pad);
    }
}

static void add_sink_gradients(const pe_tile *tile, int64_t document)
{
    const pe_call *call = tile->call;
    for (int64_t r = 0; call->args.sinks != NULL && r < tile->rows; r++) {
        const double sink = ((double)call->args.sinks[head_of(tile, r)] -
                             pe_tile_bias_of_query(tile, r)) *
                            PE_LOG2E;
        const double lse = (double)tile->max[r];
        if (lse > -INFINITY && sink > -INFINITY)
            call->sink_sums[document * call->plan->spec.num_heads + head_of(tile, r)] -=
                pe_exp2(sink - lse) * (double)tile->delta[r];
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
        memset(tile.dk, 0, (size_t)(keys * plan->k_pad) * sizeof(float));
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
