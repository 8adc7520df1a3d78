/* SPDX-License-Identifier: MIT
 *
 * extra.c - what is added to scores outside the softmax loop: T5, KERPLE, masks, a second
 * bias
 *
 * In log2 units.  Where queries and keys count up by one, which is nearly always, a tile
 * and a block have few distances: the bias is computed once for each and copied. */
#include "attention/tile.h"

#include "attention/turn.h"
#include "base/at.h"
#include "bias/bias_plan.h"

#include <math.h>
#include <string.h>

void pe_tile_positions(pe_tile *tile)
{
    const pe_call *call = tile->call;
    if (call->plan->spec.bias[0] == NULL && call->plan->spec.bias[1] == NULL)
        return;
    const pe_positions *at = call->args.k_at;
    const double first =
        (double)pe_at_id(at, 0, tile->doc.b, pe_tile_key_token(tile, 0));
    tile->keys_count_up = 1;
    if (at->ids == NULL) {
        for (int64_t j = 0; j < PE_KEY_BLOCK; j++) {
            const int64_t i = j < tile->num_keys ? j : tile->num_keys - 1;
            tile->key_position[j] = first + (double)(int32_t)i;
            tile->key_at[j] = (float)(tile->key_position[j] - tile->base);
        }
        return;
    }
    for (int64_t j = 0; j < PE_KEY_BLOCK; j++) {
        const int64_t i = j < tile->num_keys ? j : tile->num_keys - 1;
        tile->key_position[j] =
            (double)pe_at_id(at, 0, tile->doc.b, pe_tile_key_token(tile, i));
        tile->key_at[j] = (float)(tile->key_position[j] - tile->base);
        tile->keys_count_up &=
            tile->key_position[j] == tile->key_position[0] + (double)i;
    }
}

static int is_key_only(const pe_bias *bias)
{
    return bias->type == PE_BIAS_ALIBI && bias->form == PE_BIAS_KEY_ONLY;
}

static int64_t head_of(const pe_tile *tile, const pe_bias *bias, int64_t r)
{
    const int64_t group = tile->call->plan->group;
    return bias->head_start + tile->kv_head * group + r % group;
}

static void add_row(const pe_tile *tile, const pe_bias *bias, int64_t r, float *extra)
{
    const int64_t head = head_of(tile, bias, r);
    const double q = tile->position[r / tile->call->plan->group];
    const double at_query =
        is_key_only(bias) ? (double)bias->slopes[head] * bias->scale * q : 0;
    double row[PE_KEY_BLOCK];
    pe_bias_row(bias, (int32_t)head, q, tile->key_position, tile->num_keys, row);
    for (int64_t j = 0; j < tile->num_keys; j++)
        extra[j] += (float)((row[j] - at_query) * PE_LOG2E);
}

/* Tokens [begin, end) of the tile see the block.  distances = the bias of one head for
 * each of their distances to its keys: the row of token end - 1, then of keys further on,
 * so that the row of token i begins end - 1 - i after it. */
static void fill_distances(pe_tile *tile, const pe_bias *bias, int64_t h, int64_t begin,
                           int64_t end)
{
    const int64_t n = end - begin - 1 + tile->num_keys;
    for (int64_t i = 0; i < n; i++)
        tile->distance_at[i] = tile->key_position[0] + (double)i;
    pe_bias_row(bias, (int32_t)head_of(tile, bias, h), tile->position[end - 1],
                tile->distance_at, n, tile->distance_bias);
    for (int64_t i = 0; i < n; i++)
        tile->distances[i] = (float)(tile->distance_bias[i] * PE_LOG2E);
}

static void copy_distances(pe_tile *tile, const pe_bias *bias, int is_first)
{
    const int64_t group = tile->call->plan->group;
    const int64_t rows = tile->row_end < tile->rows ? tile->row_end : tile->rows;
    const int64_t begin = tile->row_begin / group, end = (rows + group - 1) / group;
    for (int64_t h = 0; h < group; h++) {
        fill_distances(tile, bias, h, begin, end);
        for (int64_t i = begin; i < end; i++) {
            const int64_t r = i * group + h;
            const float *from = tile->distances + (end - 1 - i);
            float *extra = tile->extra + r * PE_KEY_BLOCK;
            if (r < tile->row_begin || r >= rows)
                continue;
            if (is_first)
                memcpy(extra, from, (size_t)tile->num_keys * sizeof *extra);
            for (int64_t j = 0; !is_first && j < tile->num_keys; j++)
                extra[j] += from[j];
        }
    }
}

/* is_first: extra holds nothing yet. */
static void add_bias(pe_tile *tile, const pe_bias *bias, int is_first)
{
    const int64_t rows = tile->row_end < tile->rows ? tile->row_end : tile->rows;
    if (tile->queries_count_up && tile->keys_count_up && !is_key_only(bias)) {
        copy_distances(tile, bias, is_first);
        return;
    }
    for (int64_t r = tile->row_begin; r < rows; r++) {
        float *extra = tile->extra + r * PE_KEY_BLOCK;
        if (is_first)
            memset(extra, 0, PE_KEY_BLOCK * sizeof *extra);
        add_row(tile, bias, r, extra);
    }
}

static void add_mask(pe_tile *tile, int64_t r, float *extra)
{
    const pe_call *call = tile->call;
    const pe_tensor *m = call->args.mask;
    const int64_t group = call->plan->group;
    float row[PE_KEY_BLOCK];
    int64_t element;
    if (!pe_tensor_at(
            m, m->batch > 1 ? tile->doc.b : 0, tile->doc.q0 + tile->token + r / group,
            m->num_heads > 1 ? tile->kv_head * group + r % group : 0, &element))
        return;
    pe_load(call->plan, m, element, pe_tile_key_token(tile, 0), tile->num_keys, row);
    for (int64_t j = 0; j < tile->num_keys; j++)
        extra[j] += row[j] * (float)PE_LOG2E;
}

void pe_tile_fill_extra(pe_tile *tile)
{
    const pe_call *call = tile->call;
    const pe_attention *plan = call->plan;
    const int64_t rows = tile->row_end < tile->rows ? tile->row_end : tile->rows;
    int is_first = 1;
    tile->extra_is_ready = 1;
    for (int i = 0; i < 2; i++)
        if (plan->spec.bias[i] != NULL && i != plan->fast_bias) {
            add_bias(tile, plan->spec.bias[i], is_first);
            is_first = 0;
        }
    for (int64_t r = tile->row_begin; r < rows; r++) {
        float *extra = tile->extra + r * PE_KEY_BLOCK;
        const int64_t filled = is_first ? 0 : tile->num_keys;
        memset(extra + filled, 0, (size_t)(PE_KEY_BLOCK - filled) * sizeof *extra);
        if (call->args.mask != NULL)
            add_mask(tile, r, extra);
        for (int64_t j = 0; tile->absent != 0 && j < tile->num_keys; j++)
            if (tile->absent >> j & 1)
                extra[j] = -INFINITY;
    }
}
