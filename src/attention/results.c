/* SPDX-License-Identifier: MIT
 *
 * results.c - what a tile's rows come to: outputs, log-sum-exps and probabilities
 */
#include "attention/tile.h"

#include "attention/exp2.h"
#include "bias/bias_plan.h"
#include "bias/real.h"
#include "kernels/vectors.h"

#include <math.h>
#include <string.h>

/* A sink is one more key whose value is nothing: at +inf it takes all the weight, at -inf
 * none. */
static void add_sink(pe_tile *tile, int64_t r)
{
    const pe_call *call = tile->call;
    if (call->args.sinks == NULL)
        return;
    const int64_t group = call->plan->group;
    const double sink = ((double)call->args.sinks[tile->kv_head * group + r % group] -
                         pe_tile_bias_of_query(tile, r)) *
                        PE_LOG2E;
    const double max = (double)tile->max[r];
    if (sink == -INFINITY)
        return;
    if (isnan(sink)) {
        tile->sum[r] = NAN;
        return;
    }
    if (sink > max) { /* the sink becomes the maximum, as the float that it is then */
        tile->max[r] = (float)sink;
        const double shrink = max > -INFINITY ? pe_exp2(max - (double)tile->max[r]) : 0;
        tile->sum[r] = (float)((double)tile->sum[r] * shrink + 1);
        call->plan->kernels->scale(tile->out + r * call->plan->v_pad, (float)shrink,
                                   call->plan->v_pad);
    } else {
        tile->sum[r] = (float)((double)tile->sum[r] + pe_exp2(sink - max));
    }
}

static void store_row(pe_tile *tile, int64_t r)
{
    const pe_call *call = tile->call;
    const pe_attention *plan = call->plan;
    const int64_t token = tile->doc.q0 + tile->token + r / plan->group;
    const int64_t head = tile->kv_head * plan->group + r % plan->group;
    float *out = tile->out + r * plan->v_pad;
    int64_t element;
    add_sink(tile, r);
    const float sum = tile->sum[r];
    if (sum == 0)
        memset(out, 0, (size_t)plan->v_pad * sizeof *out);
    else
        plan->kernels->scale(out, 1 / sum, plan->v_pad);
    if (pe_tensor_at(call->args.out, tile->doc.b, token, head, &element))
        pe_kernels_store(plan->plain, call->args.out, element, 0, plan->spec.v_head_dim,
                         out);
    if (call->args.lse == NULL)
        return;
    double lse = -INFINITY;
    if (sum > 0 && sum < INFINITY)
        lse = (double)tile->max[r] * PE_LN2 + pe_real_ln((double)sum) +
              pe_tile_bias_of_query(tile, r);
    else if (sum != 0)
        lse = NAN;
    call->args.lse[(tile->doc.b * plan->spec.num_heads + head) * call->q_len + token] =
        (float)lse;
}

/* ------------------------------------------------------------- probabilities --- */

/* Rows of the tile whose probabilities are wanted. */
static void wanted_rows(const pe_tile *tile, int64_t *begin, int64_t *end)
{
    const pe_call *call = tile->call;
    const int64_t first = call->args.scores_start - tile->doc.q0 - tile->token;
    const int64_t last = first + call->args.scores->seq_len;
    *begin = (first < 0 ? 0 : first) * call->plan->group;
    *end = (last < tile->num_tokens ? last : tile->num_tokens) * call->plan->group;
}

static void store_weights(pe_tile *tile, int64_t r, const float *weights, int64_t key,
                          int64_t count)
{
    const pe_call *call = tile->call;
    const int64_t group = call->plan->group;
    const int64_t token = tile->doc.q0 + tile->token + r / group;
    int64_t element;
    if (count > 0 &&
        pe_tensor_at(call->args.scores, tile->doc.b, token - call->args.scores_start,
                     tile->kv_head * group + r % group, &element))
        pe_kernels_store(call->plan->plain, call->args.scores, element + key, 0, count,
                         weights);
}

/* Weights to probabilities; in a row that is no number, of the keys that it sees. */
static void share_out(const pe_tile *tile, int64_t r, float *weights)
{
    const float sum = tile->sum[r];
    if (!isnan(sum))
        tile->call->plan->kernels->scale(weights, sum > 0 ? 1 / sum : 0, PE_KEY_BLOCK);
    for (int64_t j = 0; isnan(sum) && j < tile->num_keys; j++)
        weights[j] = pe_tile_sees(tile, r, j) ? NAN : 0;
}

/* A second walk, against the row's final maximum and sum. */
static void store_probabilities(pe_tile *tile)
{
    const pe_attention *plan = tile->call->plan;
    const float zeroes[PE_KEY_BLOCK] = {0};
    pe_softmax_block softmax;
    int64_t begin, end;
    wanted_rows(tile, &begin, &end);
    for (int64_t key = 0; key < tile->call->k_len && begin < end; key += PE_KEY_BLOCK) {
        const int64_t rest = tile->call->k_len - key;
        for (int64_t r = begin; r < end; r++)
            store_weights(tile, r, zeroes, key,
                          rest < PE_KEY_BLOCK ? rest : PE_KEY_BLOCK);
    }
    for (int64_t key = 0; key < tile->doc.k_len && begin < end; key += PE_KEY_BLOCK) {
        if (!pe_tile_block(tile, key, pe_tile_keys_in(tile, key)))
            continue;
        pe_tile_score(tile, &softmax);
        plan->kernels->weights(&softmax);
        for (int64_t r = begin > tile->row_begin ? begin : tile->row_begin;
             r < end && r < tile->row_end; r++) {
            float *weights = tile->s + r * PE_KEY_BLOCK;
            share_out(tile, r, weights);
            store_weights(tile, r, weights, tile->doc.k0 + key, tile->num_keys);
        }
    }
}

void pe_tile_store(pe_tile *tile)
{
    for (int64_t r = 0; r < tile->rows; r++)
        store_row(tile, r);
    if (tile->call->args.scores != NULL)
        store_probabilities(tile);
}
