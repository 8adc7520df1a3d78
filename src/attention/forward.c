/* SPDX-License-Identifier: MIT
 *
 * forward.c - blocked online softmax over tiles, and over parts of the keys for few rows
 *
 * Which keys a part holds and in what order they are walked follows from shapes alone,
 * never from threads, so the bits do not either. */
#include "attention/tile.h"

#include "attention/exp2.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------- one tile --- */

/* What the worker does after the tile in hand: head -1, nothing that is known. */
typedef struct {
    pe_walk walk;
    int64_t head;
} following;

static const following nothing_follows = {.head = -1};

/* Where the walk goes next, or after it. */
static pe_slot_tag look_ahead(const pe_tile *tile, pe_walk *walk, following *after)
{
    pe_slot_tag tag = {tile->doc.b, tile->kv_head, pe_walk_next(walk)};
    if (tag.key < 0 && after->head >= 0) {
        tag.head = after->head;
        tag.key = pe_walk_next(&after->walk);
    }
    if (tag.key >= 0)
        tag.key += tile->doc.k0;
    return tag;
}

static void attend_block(pe_tile *tile, int64_t key)
{
    pe_softmax_block softmax;
    if (!pe_tile_block(tile, key, pe_tile_keys_in(tile, key)))
        return;
    if (pe_tile_is_nothing(tile, tile->max)) {
        tile->skipped++;
        return;
    }
    tile->visited++;
    pe_tile_score(tile, &softmax);
    tile->call->plan->kernels->softmax(&softmax);
    pe_tile_add_values(tile);
}

static void attend(pe_tile *tile, int64_t begin, int64_t end, following after)
{
    pe_walk walk, ahead;
    pe_walk_start(&walk, tile, begin, end);
    ahead = walk;
    if (tile->call->streaming)
        pe_tile_touch(tile, walk.first * PE_KEY_BLOCK,
                      (walk.last + 1) * PE_KEY_BLOCK < end
                          ? (walk.last + 1) * PE_KEY_BLOCK
                          : end);
    (void)pe_walk_next(&ahead);
    for (int64_t key; (key = pe_walk_next(&walk)) >= 0;) {
        tile->next = look_ahead(tile, &ahead, &after);
        attend_block(tile, key);
    }
}

/* ------------------------------------------------------------------ whole tiles --- */

static void count_blocks(const pe_tile *tile, int32_t worker)
{
    tile->call->counts[worker * 8] += tile->visited;
    tile->call->counts[worker * 8 + 1] += tile->skipped;
}

/* Items are tiles of the first kv head, then of the next: neighbours share keys. */
static void work_tiles(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const pe_call *call = arg;
    pe_tile_cursor cursor = {0, 0};
    pe_tile tile;
    pe_tile_start(&tile, call, worker);
    for (int64_t i = begin; i < end; i++) {
        int64_t token;
        const pe_document doc =
            pe_call_tile(call, i % call->num_tiles, &cursor, &token);
        pe_tile_load(&tile, &doc, i / call->num_tiles, token);
        attend(&tile, 0, doc.k_len, nothing_follows);
        pe_tile_store(&tile);
    }
    count_blocks(&tile, worker);
}

/* ------------------------------------------------------------------------ parts --- */

static void save_part(const pe_tile *tile, float *part)
{
    const pe_call *call = tile->call;
    const int64_t rows = call->tile_rows, pad = call->plan->v_pad;
    memcpy(part, tile->out, (size_t)(rows * pad) * sizeof *part);
    memcpy(part + rows * pad, tile->max, (size_t)rows * sizeof *part);
    memcpy(part + rows * (pad + 1), tile->sum, (size_t)rows * sizeof *part);
}

static void load_item(pe_tile *tile, int64_t item)
{
    const pe_call *call = tile->call;
    pe_tile_cursor cursor = {0, 0};
    int64_t token;
    const pe_document doc = pe_call_tile(call, item % call->num_tiles, &cursor, &token);
    pe_tile_load(tile, &doc, item / call->num_tiles, token);
}

/* The part that holds the last query's place: its maximum bounds the others' weights. */
static int64_t nearest_part(const pe_tile *tile)
{
    const int64_t place = pe_tile_place_of(tile, tile->token + tile->num_tokens - 1);
    const int64_t part = place / tile->call->part_len;
    return part < 0                        ? 0
           : part >= tile->call->num_parts ? tile->call->num_parts - 1
                                           : part;
}

static int64_t end_of(const pe_tile *tile, int64_t part)
{
    const int64_t end = (part + 1) * tile->call->part_len;
    return end < tile->doc.k_len ? end : tile->doc.k_len;
}

/* The part of another item, if its query is the same. */
static following follow(const pe_tile *tile, int64_t item, int64_t next, int64_t part)
{
    const pe_call *call = tile->call;
    following after = nothing_follows;
    if (part >= call->num_parts || item % call->num_tiles != next % call->num_tiles)
        return after;
    pe_walk_start(&after.walk, tile, part * call->part_len, end_of(tile, part));
    after.head = next / call->num_tiles;
    return after;
}

static void attend_part(pe_tile *tile, int64_t part, following after)
{
    attend(tile, part * tile->call->part_len, end_of(tile, part), after);
}

static void work_nearest(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const pe_call *call = arg;
    pe_tile tile;
    pe_tile_start(&tile, call, worker);
    for (int64_t i = begin; i < end; i++) {
        load_item(&tile, i);
        const int64_t part = nearest_part(&tile);
        attend_part(&tile, part,
                    i + 1 < end ? follow(&tile, i, i + 1, part) : nothing_follows);
        save_part(&tile, pe_call_part(call, i, part));
    }
    count_blocks(&tile, worker);
}

/* 1: merged with the nearest part's maximum, this part's weight would be +0. */
static int part_is_nothing(pe_tile *tile, int64_t part, const float *maximum,
                           int64_t *num_blocks)
{
    const int64_t begin = part * tile->call->part_len, end = end_of(tile, part);
    const int far = pe_tile_is_far(tile, begin, end, maximum);
    pe_walk walk;
    *num_blocks = 0;
    pe_walk_start(&walk, tile, begin, end);
    for (int64_t key; (key = pe_walk_next(&walk)) >= 0;) {
        if (far ? !pe_tile_reaches(tile, key, pe_tile_keys_in(tile, key))
                : !pe_tile_block(tile, key, pe_tile_keys_in(tile, key)))
            continue;
        if (!far && !pe_tile_is_nothing(tile, maximum))
            return 0;
        ++*num_blocks;
    }
    return 1;
}

static void work_others(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const pe_call *call = arg;
    const int64_t rows = call->tile_rows, pad = call->plan->v_pad;
    const int64_t num_items = call->num_tiles * call->plan->spec.num_kv_heads;
    pe_tile tile;
    pe_tile_start(&tile, call, worker);
    for (int64_t i = begin; i < end; i++) {
        /* All heads of a part before the next part: their keys lie side by side. */
        const int64_t item = i % num_items, part = i / num_items;
        int64_t num_blocks;
        load_item(&tile, item);
        const int64_t nearest = nearest_part(&tile);
        if (part == nearest)
            continue;
        const float *maximum = pe_call_part(call, item, nearest) + rows * pad;
        if (part_is_nothing(&tile, part, maximum, &num_blocks)) {
            tile.skipped += num_blocks;
        } else {
            const int64_t next = (i + 1) % num_items;
            const int64_t next_part = (i + 1) / num_items;
            attend_part(&tile, part,
                        i + 1 >= end ? nothing_follows
                                     : follow(&tile, item, next,
                                              next_part + (next_part == nearest)));
        }
        save_part(&tile, pe_call_part(call, item, part));
    }
    count_blocks(&tile, worker);
}

/* Parts in order of their keys; weights against the largest maximum. */
static void merge_row(pe_tile *tile, int64_t item, int64_t r)
{
    const pe_call *call = tile->call;
    const int64_t rows = call->tile_rows, pad = call->plan->v_pad;
    float *out = tile->out + r * pad, max = -INFINITY;
    for (int64_t p = 0; p < call->num_parts; p++) {
        const float m = pe_call_part(call, item, p)[rows * pad + r];
        max = m > max ? m : max;
    }
    tile->max[r] = max;
    for (int64_t p = 0; p < call->num_parts; p++) {
        const float *part = pe_call_part(call, item, p);
        const float m = part[rows * pad + r], sum = part[rows * (pad + 1) + r];
        /* Nothing was seen (sum 0), or only NaN (sum NaN, max -inf). */
        const float weight =
            m > -INFINITY ? pe_exp2_weight((double)m - (double)max) : sum;
        if (weight == 0)
            continue;
        tile->sum[r] += weight * sum;
        for (int64_t d = 0; d < pad; d++)
            out[d] += weight * part[r * pad + d];
    }
}

static void work_merge(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const pe_call *call = arg;
    pe_tile tile;
    pe_tile_start(&tile, call, worker);
    for (int64_t i = begin; i < end; i++) {
        load_item(&tile, i);
        for (int64_t r = 0; r < tile.rows; r++)
            merge_row(&tile, i, r);
        pe_tile_store(&tile);
    }
}

/* ------------------------------------------------------------------------- call --- */

static void run(const pe_call *call)
{
    const pe_env *env = &call->plan->env;
    const int64_t items = call->num_tiles * call->plan->spec.num_kv_heads;
    void *arg = (void *)(uintptr_t)call;
    if (call->num_parts == 1) {
        pe_run(env, items, 1, work_tiles, arg);
        return;
    }
    pe_run(env, items, 1, work_nearest, arg);
    pe_run(env, items * call->num_parts, 1, work_others, arg);
    pe_run(env, items, 1, work_merge, arg);
}

pe_status pe_attention_workspace(const pe_attention *plan,
                                 const pe_attention_args *args, size_t *forward,
                                 size_t *backward, pe_error *error)
{
    pe_call call;
    pe_status status = PE_OK;
    size_t sizes[2] = {0, 0};
    size_t *const out[2] = {forward, backward};
    for (int i = 0; i < 2 && status == PE_OK; i++)
        if (out[i] != NULL) {
            status = pe_call_check(&call, plan, args, i, error);
            sizes[i] = call.size;
        }
    if (status != PE_OK)
        return status;
    for (int i = 0; i < 2; i++)
        if (out[i] != NULL)
            *out[i] = sizes[i];
    return PE_OK;
}

pe_status pe_attention_forward(const pe_attention *plan, const pe_attention_args *args,
                               void *workspace, size_t workspace_size, pe_error *error)
{
    pe_call call;
    pe_status status;
    if ((status = pe_call_check(&call, plan, args, 0, error)) != PE_OK ||
        (status = pe_call_place(&call, workspace, workspace_size, error)) != PE_OK ||
        (status = pe_call_prepare(&call, error)) != PE_OK)
        return status;
    memset(call.counts, 0, (size_t)call.num_workers * 8 * sizeof *call.counts);
    pe_tile_clear(&call);
    run(&call);
    if (call.args.num_blocks != NULL) {
        call.args.num_blocks[0] = call.args.num_blocks[1] = 0;
        for (int64_t w = 0; w < call.num_workers; w++)
            for (int i = 0; i < 2; i++)
                call.args.num_blocks[i] += call.counts[w * 8 + i];
    }
    return PE_OK;
}
