/* SPDX-License-Identifier: MIT
 *
 * skip.c - blocks of keys that cannot matter
 *
 * exp2 is exactly +0 at and below PE_EXP2_ZERO: a block whose scores all lie that far
 * below the running maxima of the rows that see it would change nothing.  docs/attention.md
 * has the proof. */
#include "attention/tile.h"

#include "attention/turn.h"
#include "base/at.h"
#include "base/dtype.h"
#include "bias/bias_plan.h"
#include "rope/plan.h"

#include <math.h>

/* ------------------------------------------------------------------- own norms --- */

int64_t pe_call_num_runs(const pe_call *call)
{
    return (call->k_len + PE_KEY_BLOCK - 1) / PE_KEY_BLOCK;
}

/* The largest slope that all heads of some kv head have, in log2 units. */
static double steepest_group(const pe_attention *plan)
{
    const pe_bias *bias = plan->spec.bias[plan->fast_bias];
    double steepest = 0;
    for (int64_t kv = 0; kv < plan->spec.num_kv_heads; kv++) {
        double least = INFINITY;
        for (int64_t h = kv * plan->group; h < (kv + 1) * plan->group; h++) {
            const double slope = fabs((double)bias->slopes[bias->head_start + h]);
            least = slope < least ? slope : least;
        }
        steepest = least > steepest ? least : steepest;
    }
    return steepest * fabs(bias->scale) * PE_LOG2E;
}

/* Whether blocks can go where positions count up by one and products are small, and
 * enough of them to pay for the norms; a streaming call would read its keys for their
 * norms alone. */
int pe_call_may_skip(const pe_call *call)
{
    const pe_attention_spec *s = &call->plan->spec;
    const int64_t window = s->visible.window;
    const double reach =
        (double)(window > 0 && window < call->k_len ? window : call->k_len);
    return call->k_norms == NULL && !s->no_skip && !call->backward &&
           !call->streaming && call->plan->fast_bias >= 0 &&
           steepest_group(call->plan) * reach > -2 * (double)PE_EXP2_ZERO;
}

/* Tokens of row b that a document may hold. */
static int64_t tokens_of(const pe_call *call, int64_t b)
{
    const pe_attention_args *a = &call->args;
    if (a->num_seqs > 0)
        return a->k_cu_seqlens[a->num_seqs];
    return a->k_lens != NULL ? a->k_lens[b] : call->k_len;
}

static double length_of(const pe_call *call, const pe_tensor *x, int64_t b, int64_t t,
                        int64_t head, float *room)
{
    int64_t element;
    if (!pe_tensor_at(x, b, t, head, &element))
        return 0;
    pe_load(call->plan, x, element, 0, x->dim, room);
    return pe_length(room, x->dim);
}

enum { LINE = 16 }; /* norms that one item makes */

static int64_t num_norms(const pe_call *call)
{
    return call->batch * call->plan->spec.num_kv_heads * pe_call_num_runs(call);
}

static void make_norms(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const pe_call *call = arg;
    const int64_t runs = pe_call_num_runs(call), heads = call->plan->spec.num_kv_heads;
    const int64_t last = end * LINE < num_norms(call) ? end * LINE : num_norms(call);
    (void)worker;
    for (int64_t i = begin * LINE; i < last; i++) {
        const int64_t b = i / runs / heads, head = i / runs % heads;
        const int64_t first = i % runs * PE_KEY_BLOCK, tokens = tokens_of(call, b);
        float room[PE_MAX_VECTOR_DIM];
        double longest = 0;
        for (int64_t t = first; t < first + PE_KEY_BLOCK && t < tokens; t++) {
            const double key = length_of(call, call->args.k, b, t, head, room);
            const double value = length_of(call, call->args.v, b, t, head, room);
            longest = pe_larger(longest, value < INFINITY ? key : NAN);
        }
        call->own_norms[i] = pe_above(longest, 0x1p-30);
    }
}

void pe_call_make_norms(const pe_call *call)
{
    pe_run(&call->plan->env, (num_norms(call) + LINE - 1) / LINE, 1, make_norms,
           (void *)(uintptr_t)call);
}

/* ------------------------------------------------------------------- the bound --- */

#define SAFE 0x1p126 /* floats of this size can be turned and added up */

/* No key from the document's begin to its last is longer. */
static double longest_key(const pe_tile *tile, int64_t begin, int64_t last)
{
    const pe_call *call = tile->call;
    const int64_t runs = pe_call_num_runs(call);
    const float *norms =
        call->k_norms +
        (tile->doc.b * call->plan->spec.num_kv_heads + tile->kv_head) * runs;
    const int64_t last_run = (tile->doc.k0 + last) / PE_KEY_BLOCK;
    double longest = 0;
    for (int64_t run = (tile->doc.k0 + begin) / PE_KEY_BLOCK; run <= last_run; run++)
        longest = pe_larger(longest, (double)norms[run]);
    const pe_rope *rope = call->plan->spec.k_rope;
    return rope == NULL ? longest
                        : longest * fabs(rope->info.attention_factor) * (1 + 0x1p-20);
}

/* Largest bias that the softmax loop computes for row r within positions of keys
 * [near, far], relative to the tile's base. */
static double largest_bias(const pe_tile *tile, int64_t r, double low, double high)
{
    const double q = (double)tile->query_at[r], slope = (double)tile->slope[r];
    double a = q - low, b = q - high; /* the distances at both ends, a >= b */
    if (tile->call->plan->distance == PE_DISTANCE_CAUSAL) {
        a = a > 0 ? a : 0;
        b = b > 0 ? b : 0;
    } else if (tile->call->plan->distance == PE_DISTANCE_SYMMETRIC) {
        const double far = a > -b ? a : -b;
        b = b > 0 ? b : a < 0 ? -a : 0;
        a = far;
    }
    return slope >= 0 ? -slope * b : -slope * a;
}

static double largest_extra(const pe_tile *tile, int64_t r)
{
    double top = -INFINITY;
    for (int64_t j = 0; j < tile->num_keys; j++)
        top = pe_larger(top, (double)tile->extra[r * PE_KEY_BLOCK + j]);
    return top;
}

/* The bound is computed in double and widened by 2^-18 of its parts, more than the
 * loop's few roundings in float (2^-24 each, and dim of them in the product, which the
 * factor on the norms covers), so that it is above the score that the loop would have
 * computed.  score - max, rounded to float, is then at most PE_EXP2_ZERO. */
static int row_is_nothing(const pe_tile *tile, int64_t r, double longest, double low,
                          double high, double maximum)
{
    const pe_attention *plan = tile->call->plan;
    const double rounding = 1 + 0x1p-22 * (double)(plan->spec.head_dim + 16);
    double dot = tile->norm[r] * longest * rounding + 0x1p-100;
    if (!(dot < SAFE)) /* the loop's products might overflow */
        return 0;
    if (plan->spec.softcap > 0) {
        const double cap = plan->spec.softcap;
        dot = (dot < cap ? dot : cap) * PE_LOG2E * (1 + 0x1p-16);
    }
    const double bias =
        plan->distance == PE_DISTANCE_NONE ? 0 : largest_bias(tile, r, low, high);
    const double extra = tile->call->uses_extra ? largest_extra(tile, r) : 0;
    if (extra == -INFINITY)
        return 1;
    const double bound =
        dot + bias + extra + (dot + fabs(bias) + fabs(extra)) * 0x1p-18;
    return bound - maximum <= (double)PE_EXP2_ZERO - 0x1p-10 - fabs(maximum) * 0x1p-18;
}

int pe_tile_is_nothing(pe_tile *tile, const float *maximum)
{
    const pe_call *call = tile->call;
    if (call->k_norms == NULL)
        return 0;
    const int64_t end = tile->row_end < tile->rows ? tile->row_end : tile->rows;
    const double longest = longest_key(tile, tile->key, tile->key + tile->num_keys - 1);
    double low = INFINITY, high = -INFINITY;
    if (!(longest < SAFE))
        return 0;
    if (call->uses_extra)
        pe_tile_fill_extra(tile);
    for (int64_t j = 0; j < tile->num_keys; j++) {
        low = (double)tile->key_at[j] < low ? (double)tile->key_at[j] : low;
        high = (double)tile->key_at[j] > high ? (double)tile->key_at[j] : high;
    }
    for (int64_t r = end - 1; r >= tile->row_begin; r--) {
        const int sees = tile->first[r] < tile->end[r] || tile->sink[r] > 0;
        if (sees && !(maximum[r] > -INFINITY && maximum[r] < INFINITY))
            return 0;
        if (sees && !row_is_nothing(tile, r, longest, low, high, (double)maximum[r]))
            return 0;
    }
    return 1;
}

int pe_tile_is_far(const pe_tile *tile, int64_t begin, int64_t end,
                   const float *maximum)
{
    const pe_call *call = tile->call;
    if (call->k_norms == NULL || call->uses_extra || begin >= end)
        return 0;
    double low = 0, high = 0;
    if (call->plan->distance != PE_DISTANCE_NONE) {
        const pe_positions *at = call->args.k_at;
        if (at->ids != NULL) /* in any order */
            return 0;
        const int64_t b = tile->doc.b, k0 = tile->doc.k0;
        low = (double)(float)((double)pe_at_id(at, 0, b, k0 + begin) - tile->base);
        high = (double)(float)((double)pe_at_id(at, 0, b, k0 + end - 1) - tile->base);
    }
    const double longest = longest_key(tile, begin, end - 1);
    if (!(longest < SAFE))
        return 0;
    for (int64_t r = 0; r < tile->rows; r++)
        if (!(maximum[r] > -INFINITY && maximum[r] < INFINITY) ||
            !row_is_nothing(tile, r, longest, low, high, (double)maximum[r]))
            return 0;
    return 1;
}
