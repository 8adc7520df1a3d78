/* SPDX-License-Identifier: MIT
 *
 * skip.c - blocks of keys that cannot matter
 *
 * exp2 is exactly +0 at and below PE_EXP2_ZERO: a block whose scores all lie that far
 * below the running maxima of the rows that see it would change nothing.  docs/attention.md
 * has the proof. */
#include "attention/tile.h"

#include "rope/plan.h"

#include <math.h>

/* No key of the block is longer. */
static double longest_key(const pe_tile *tile)
{
    const pe_call *call = tile->call;
    const int64_t runs = (call->k_len + PE_KEY_BLOCK - 1) / PE_KEY_BLOCK;
    const float *norms =
        call->args.k_norms +
        (tile->doc.b * call->plan->spec.num_kv_heads + tile->kv_head) * runs;
    const int64_t last = pe_tile_key_token(tile, tile->num_keys - 1) / PE_KEY_BLOCK;
    double longest = 0;
    for (int64_t run = pe_tile_key_token(tile, 0) / PE_KEY_BLOCK; run <= last; run++)
        if (!((double)norms[run] <= longest)) /* NaN wins, and then skips nothing */
            longest = (double)norms[run];
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
    float top = -INFINITY;
    for (int64_t j = 0; j < tile->num_keys; j++) {
        const float x = tile->extra[r * PE_KEY_BLOCK + j];
        if (!(x <= top)) /* NaN wins */
            top = x;
    }
    return (double)top;
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
    if (call->args.k_norms == NULL || call->plan->spec.no_skip)
        return 0;
    const int64_t end = tile->row_end < tile->rows ? tile->row_end : tile->rows;
    const double longest = longest_key(tile);
    double low = INFINITY, high = -INFINITY;
    if (!(longest < INFINITY))
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
