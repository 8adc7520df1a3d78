/* SPDX-License-Identifier: MIT
 *
 * block.c - a block of keys: fetched, multiplied with a tile, and its values added
 *
 * Packed: keys are transposed into panels and multiplied in register tiles; a worker
 * keeps as many panels as its scratch holds, found again by their first key.
 * Streaming: see stream.c. */
#include "attention/tile.h"

#include "attention/turn.h"
#include "base/at.h"
#include "base/dtype.h"

#include <math.h>
#include <string.h>

/* -------------------------------------------------------------------- fetching --- */

int64_t pe_tile_key_token(const pe_tile *tile, int64_t j)
{
    return tile->doc.k0 + tile->key + j;
}

uint64_t pe_tile_load_keys(pe_tile *tile, int variant, float *out)
{
    const pe_call *call = tile->call;
    const pe_attention *plan = call->plan;
    const pe_tensor *k = call->args.k;
    const pe_positions *at =
        variant == 0 ? call->args.k_at : call->args.far_rules[variant - 1].k_at;
    const int64_t pad = plan->k_pad;
    uint64_t absent = 0;
    for (int64_t j = 0; j < PE_KEY_BLOCK; j++) {
        float *row = out + j * pad;
        pe_row_buffer buffer;
        int64_t element;
        if (j >= tile->num_keys ||
            !pe_tensor_at(k, tile->doc.b, pe_tile_key_token(tile, j), tile->kv_head,
                          &element)) {
            absent |= (uint64_t)1 << j;
            memset(row, 0, (size_t)pad * sizeof *row);
            continue;
        }
        memset(row + k->dim, 0, (size_t)(pad - k->dim) * sizeof *row);
        const pe_turning turning = pe_turn_make(plan->spec.k_rope, at, tile->doc.b,
                                                pe_tile_key_token(tile, j), &buffer);
        pe_turn_load(plan, k, element, &turning, tile->turned, row);
    }
    return absent;
}

uint64_t pe_tile_load_values(pe_tile *tile, float *out)
{
    const pe_call *call = tile->call;
    const pe_tensor *v = call->args.v;
    const int64_t pad = call->plan->v_pad;
    uint64_t absent = 0;
    for (int64_t j = 0; j < PE_KEY_BLOCK; j++) {
        float *row = out + j * pad;
        int64_t element;
        if (j >= tile->num_keys ||
            !pe_tensor_at(v, tile->doc.b, pe_tile_key_token(tile, j), tile->kv_head,
                          &element)) {
            absent |= (uint64_t)1 << j;
            memset(row, 0, (size_t)pad * sizeof *row);
            continue;
        }
        memset(row + v->dim, 0, (size_t)(pad - v->dim) * sizeof *row);
        pe_load(call->plan, v, element, 0, v->dim, row);
    }
    return absent;
}

static int is_tagged(const pe_slot_tag *tag, const pe_tile *tile)
{
    return tag->b == tile->doc.b && tag->head == tile->kv_head &&
           tag->key == pe_tile_key_token(tile, 0);
}

pe_slot_tag pe_tile_tag(const pe_tile *tile)
{
    return (pe_slot_tag){tile->doc.b, tile->kv_head, pe_tile_key_token(tile, 0)};
}

static int64_t slot_of(const pe_tile *tile)
{
    return tile->key / PE_KEY_BLOCK % tile->call->num_slots;
}

static const float *key_panel(pe_tile *tile, int variant)
{
    const pe_attention *plan = tile->call->plan;
    const int64_t slot = slot_of(tile), index = slot * tile->call->variants + variant;
    float *panel = tile->key_panels + index * plan->k_pad * PE_KEY_BLOCK;
    float *rows = tile->call->backward
                      ? tile->slot_key_rows + index * plan->k_pad * PE_KEY_BLOCK
                      : tile->raw_keys;
    if (!is_tagged(&tile->key_tags[index], tile)) {
        tile->slot_absent[slot] = pe_tile_load_keys(tile, variant, rows);
        plan->kernels->transpose(rows, plan->k_pad, plan->k_pad, panel);
        if (tile->call->backward)
            tile->slot_keys_finite[index] =
                (unsigned char)pe_all_finite(rows, plan->k_pad * PE_KEY_BLOCK);
        tile->key_tags[index] = pe_tile_tag(tile);
    }
    tile->absent = tile->slot_absent[slot];
    return panel;
}

const float *pe_tile_key_rows(const pe_tile *tile, int variant, int *finite)
{
    const int64_t index = slot_of(tile) * tile->call->variants + variant;
    *finite = tile->slot_keys_finite[index];
    return tile->slot_key_rows + index * tile->call->plan->k_pad * PE_KEY_BLOCK;
}

static void fetch_value_panel(pe_tile *tile)
{
    const pe_attention *plan = tile->call->plan;
    const int64_t slot = slot_of(tile), size = plan->v_pad * PE_KEY_BLOCK;
    float *panel = tile->value_panels + slot * size;
    float *columns =
        tile->call->backward ? tile->slot_value_columns + slot * size : NULL;
    if (!is_tagged(&tile->value_tags[slot], tile)) {
        tile->slot_value_absent[slot] = pe_tile_load_values(tile, panel);
        tile->slot_finite[slot] = (unsigned char)pe_all_finite(panel, size);
        if (columns != NULL)
            plan->kernels->transpose(panel, plan->v_pad, plan->v_pad, columns);
        tile->value_tags[slot] = pe_tile_tag(tile);
    }
    tile->value_panel = panel;
    tile->value_columns = columns;
    tile->absent |= tile->slot_value_absent[slot];
    tile->values_finite = tile->slot_finite[slot];
}

/* --------------------------------------------------------------------- scoring --- */

static void multiply(pe_tile *tile, int variant, float *s)
{
    const pe_attention *plan = tile->call->plan;
    const float *panel = key_panel(tile, variant);
    plan->kernels->multiply(
        tile->row_end - tile->row_begin, PE_KEY_BLOCK, plan->spec.head_dim,
        tile->q[variant] + tile->row_begin * plan->k_pad, plan->k_pad, 1, panel,
        PE_KEY_BLOCK, s + tile->row_begin * PE_KEY_BLOCK, PE_KEY_BLOCK, 0);
}

static void score_variants(pe_tile *tile)
{
    const int64_t group = tile->call->plan->group;
    float *s = tile->s; /* of the first that has a share */
    for (int v = 0; v < tile->call->variants; v++) {
        if (pe_tile_share(tile, v) == PE_SHARE_NONE)
            continue;
        multiply(tile, v, s);
        for (int64_t r = tile->row_begin;
             s != tile->s && r < tile->row_end && r < tile->rows; r++) {
            int64_t begin, end;
            pe_tile_own(tile, v, r / group, &begin, &end);
            memcpy(tile->s + r * PE_KEY_BLOCK + begin, s + r * PE_KEY_BLOCK + begin,
                   (size_t)(end - begin) * sizeof *s);
        }
        s = tile->s_far;
    }
}

void pe_tile_score(pe_tile *tile, pe_softmax_block *softmax)
{
    const pe_call *call = tile->call;
    const pe_attention *plan = call->plan;
    const int64_t begin = tile->row_begin;
    if (call->streaming) {
        pe_tile_stream_keys(tile);
    } else {
        score_variants(tile);
        fetch_value_panel(tile);
    }
    if (call->uses_extra && (!tile->extra_is_ready || tile->absent != 0))
        pe_tile_fill_extra(tile);
    *softmax = (pe_softmax_block){
        .s = tile->s + begin * PE_KEY_BLOCK,
        .rows = call->streaming ? tile->rows : tile->row_end - begin,
        .cap = (float)plan->spec.softcap,
        .cap_scale = (float)(plan->spec.softcap * PE_LOG2E),
        .distance = plan->distance,
        .key_at = tile->key_at,
        .query_at = tile->query_at + begin,
        .slope = tile->slope + begin,
        .extra = call->uses_extra ? tile->extra + begin * PE_KEY_BLOCK : NULL,
        .first = tile->masked ? tile->first + begin : NULL,
        .end = tile->end + begin,
        .sink = tile->sink + begin,
        .max = tile->max + begin,
        .sum = tile->sum + begin,
        .out = tile->out + begin * plan->v_pad,
        .out_row = plan->v_pad,
    };
}

/* ---------------------------------------------------------------------- values --- */

int pe_tile_sees(const pe_tile *tile, int64_t r, int64_t j)
{
    const float c = (float)j;
    return !tile->masked || (c >= tile->first[r] && c < tile->end[r]) ||
           c < tile->sink[r];
}

/* A value that is not finite reaches the rows that see it, and no other. */
static void add_seen_values(pe_tile *tile)
{
    const int64_t pad = tile->call->plan->v_pad;
    for (int64_t r = tile->row_begin; r < tile->row_end && r < tile->rows; r++)
        for (int64_t j = 0; j < tile->num_keys; j++) {
            const float weight = tile->s[r * PE_KEY_BLOCK + j];
            if (!pe_tile_sees(tile, r, j))
                continue;
            for (int64_t d = 0; d < pad; d++)
                tile->out[r * pad + d] += weight * tile->value_panel[j * pad + d];
        }
}

void pe_tile_add_values(pe_tile *tile)
{
    const pe_attention *plan = tile->call->plan;
    const int64_t begin = tile->row_begin;
    if (!tile->values_finite)
        add_seen_values(tile);
    else if (tile->call->streaming)
        pe_tile_stream_values(tile);
    else
        plan->kernels->multiply(tile->row_end - begin, plan->v_pad, PE_KEY_BLOCK,
                                tile->s + begin * PE_KEY_BLOCK, PE_KEY_BLOCK, 1,
                                tile->value_panel, plan->v_pad,
                                tile->out + begin * plan->v_pad, plan->v_pad, 1);
}
