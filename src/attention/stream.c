/* SPDX-License-Identifier: MIT
 *
 * stream.c - a block of keys and values for few rows: read once, where it lies
 *
 * int8 is multiplied as whole numbers; its scales meet the products of keys, and the
 * weights before they meet values. */
#include "attention/tile.h"
#include "attention/turn.h"
#include "base/dtype.h"

#include <string.h>

/* Shorter groups than this are not worth a call: they are converted first. */
enum { LEAST_GROUP = PE_COLUMN_GROUP, LINE = 64 };

int64_t pe_stream_groups(const pe_tensor *x)
{
    const int64_t group = pe_tensor_group(x);
    return x->dtype == PE_I8 && (group >= LEAST_GROUP || group == x->dim)
               ? x->dim / group
               : 0;
}

static int is_streamed(const pe_tensor *x)
{
    return x->dtype <= PE_BF16 || pe_stream_groups(x) > 0;
}

/* Where every step-th of count tokens from t on lies; returns how many come before one
 * that is absent.  list has room for them where they are paged. */
static int64_t rows_from(const pe_tensor *x, const pe_slot_tag *tag, int64_t count,
                         int64_t step, const void **list, pe_rows *rows)
{
    const int64_t size = pe_dtype_size(x->dtype);
    int64_t element;
    *rows = (pe_rows){.list = list};
    if (x->page_table == NULL) {
        (void)pe_tensor_at(x, tag->b, tag->key, tag->head, &element);
        *rows = (pe_rows){NULL, (const unsigned char *)x->data + element * size,
                          pe_tensor_seq_step(x) * size * step};
        return count;
    }
    for (int64_t j = 0; j < count; j++) {
        if (!pe_tensor_at(x, tag->b, tag->key + j * step, tag->head, &element))
            return j;
        list[j] = (const unsigned char *)x->data + element * size;
    }
    return count;
}

/* Scales of the block's vectors, group by group; 0 where there is no vector. */
static void gather_scales(const pe_tile *tile, const pe_tensor *x, pe_stream *stream)
{
    const int64_t groups = pe_stream_groups(x), n = tile->num_keys;
    const pe_slot_tag tag = pe_tile_tag(tile);
    int64_t element = 0;
    stream->group = x->dim / groups;
    if (n < PE_KEY_BLOCK)
        memset(stream->scales, 0,
               (size_t)(groups * PE_KEY_BLOCK) * sizeof *stream->scales);
    if (x->page_table != NULL) {
        for (int64_t j = 0; j < n; j++) {
            (void)pe_tensor_at(x, tag.b, tag.key + j, tag.head, &element);
            for (int64_t g = 0; g < groups; g++)
                stream->scales[g * PE_KEY_BLOCK + j] =
                    x->scales[element / stream->group + g];
        }
        return;
    }
    (void)pe_tensor_at(x, tag.b, tag.key, tag.head, &element);
    const float *from = x->scales + element / stream->group;
    const int64_t step = n > 1 ? x->seq_stride / stream->group : 0;
    if (groups == 1 && step == 1) {
        memcpy(stream->scales, from, (size_t)n * sizeof *from);
        return;
    }
    for (int64_t g = 0; g < groups; g++)
        for (int64_t j = 0; j < n; j++)
            stream->scales[g * PE_KEY_BLOCK + j] = from[j * step + g];
}

/* Where the block's vectors lie; 0: they have to be loaded first. */
static int point_at(const pe_tile *tile, const pe_tensor *x, const void **list,
                    pe_stream *stream)
{
    const pe_slot_tag tag = pe_tile_tag(tile);
    if (!is_streamed(x) ||
        rows_from(x, &tag, tile->num_keys, 1, list, &stream->rows) != tile->num_keys)
        return 0;
    stream->type = x->dtype - 1;
    stream->group = 0;
    if (x->dtype == PE_I8)
        gather_scales(tile, x, stream);
    return 1;
}

/* Floats, pad apart. */
static void point_at_floats(pe_stream *stream, const float *rows, int64_t pad)
{
    stream->rows = (pe_rows){NULL, rows, pad * (int64_t)sizeof *rows};
    stream->type = PE_F32 - 1;
    stream->group = 0;
}

static void fetch(pe_tile *tile)
{
    const pe_attention *plan = tile->call->plan;
    const pe_tensor *k = tile->call->args.k, *v = tile->call->args.v;
    tile->absent = 0;
    if (plan->spec.k_rope != NULL || !point_at(tile, k, tile->lists[0], &tile->keys)) {
        tile->absent = pe_tile_load_keys(tile, 0, tile->raw_keys);
        point_at_floats(&tile->keys, tile->raw_keys, plan->k_pad);
    }
    tile->value_panel = NULL;
    tile->values_finite = 1;
    /* Hidden values must not be multiplied by 0 unless they are finite. */
    if (tile->masked || !point_at(tile, v, tile->lists[1], &tile->values)) {
        tile->absent |= pe_tile_load_values(tile, tile->raw_values);
        tile->values_finite =
            pe_all_finite(tile->raw_values, PE_KEY_BLOCK * plan->v_pad);
        tile->value_panel = tile->raw_values;
        point_at_floats(&tile->values, tile->raw_values, plan->v_pad);
    }
}

/* What the next block will read of x, as far as this one has keys; none if x is not
 * read where it lies. */
static int64_t look_ahead(const pe_tile *tile, const pe_tensor *x, int type,
                          pe_rows *rows)
{
    const pe_slot_tag *tag = &tile->next;
    *rows = (pe_rows){0};
    if (tag->key < 0 || type != x->dtype - 1)
        return 0;
    const int64_t rest = tile->call->k_len - tag->key;
    return rows_from(x, tag, rest < tile->num_keys ? rest : tile->num_keys, 1,
                     tile->lists[2], rows);
}

/* Asks for the scales of count vectors that will be read next. */
static void touch_scales(const pe_tile *tile, const pe_tensor *x, int64_t count)
{
    const int64_t size = (int64_t)sizeof *x->scales, group = pe_tensor_group(x);
    int64_t element;
    if (count < 2 || x->page_table != NULL)
        return;
    (void)pe_tensor_at(x, tile->next.b, tile->next.key, tile->next.head, &element);
    const int64_t apart = x->seq_stride / group * size;
    const int64_t step = apart > LINE ? apart : LINE;
    const pe_rows lines = {NULL, x->scales + element / group, step};
    tile->call->plan->kernels->touch(&lines, (count * apart + step - 1) / step);
}

/* As small as pages of memory get. */
static void touch(const pe_tile *tile, const pe_tensor *x, int64_t begin, int64_t end)
{
    enum { PAGE = 4096 };
    const int64_t stride = pe_tensor_seq_step(x);
    const int64_t apart = (stride < 0 ? -stride : stride) * pe_dtype_size(x->dtype);
    if (pe_dtype_size(x->dtype) == 0) /* the caller's blocks */
        return;
    const int64_t step = apart == 0 || apart >= PAGE ? 1 : PAGE / apart;
    for (int64_t key = begin; key < end; key += step * PE_KEY_BLOCK) {
        const pe_slot_tag tag = {tile->doc.b, tile->kv_head, tile->doc.k0 + key};
        const int64_t rest = (end - key + step - 1) / step;
        pe_rows rows;
        const int64_t count =
            rows_from(x, &tag, rest < PE_KEY_BLOCK ? rest : PE_KEY_BLOCK, step,
                      tile->lists[2], &rows);
        tile->call->plan->kernels->touch(&rows, count);
    }
}

void pe_tile_touch(pe_tile *tile, int64_t begin, int64_t end)
{
    touch(tile, tile->call->args.k, begin, end);
    touch(tile, tile->call->args.v, begin, end);
}

/* --------------------------------------------------------------------- products --- */

/* Elements from begin on of each row; room holds their addresses where they are listed. */
static pe_rows part_of(const pe_rows *rows, int64_t begin, int64_t count,
                       const void **room)
{
    pe_rows part = *rows;
    if (rows->list == NULL) {
        part.first = (const int8_t *)rows->first + begin;
        return part;
    }
    for (int64_t j = 0; j < count; j++)
        room[j] = (const int8_t *)rows->list[j] + begin;
    part.list = room;
    return part;
}

/* Groups of int8 are short: what is to be read ahead is asked for before them. */
static void touch_lines(const pe_tile *tile, const pe_rows *ahead, int64_t count,
                        int64_t dim)
{
    for (int64_t d = 0; d < dim && count > 0; d += LINE) {
        const pe_rows line = part_of(ahead, d, count, tile->lists[3]);
        tile->call->plan->kernels->touch(&line, count);
    }
}

static void scale_columns(const pe_tile *tile, float *s, const float *scales)
{
    for (int64_t r = 0; r < tile->rows; r++)
        tile->call->plan->kernels->times(s + r * PE_KEY_BLOCK, scales, PE_KEY_BLOCK);
}

/* s = the sum over groups of their products times their scales. */
static void multiply_groups(pe_tile *tile)
{
    const pe_attention *plan = tile->call->plan;
    const pe_stream *keys = &tile->keys;
    const int64_t dim = plan->spec.head_dim, size = tile->rows * PE_KEY_BLOCK;
    for (int64_t d = 0; d < dim; d += keys->group) {
        const pe_rows part = part_of(&keys->rows, d, tile->num_keys, tile->lists[3]);
        float *s = d == 0 ? tile->s : tile->group_s;
        plan->kernels->dots[keys->type](tile->rows, tile->q[0] + d, plan->k_pad, &part,
                                        tile->num_keys, keys->group, s, NULL, 0);
        scale_columns(tile, s, keys->scales + d / keys->group * PE_KEY_BLOCK);
        for (int64_t i = 0; d > 0 && i < size; i++)
            tile->s[i] += s[i];
    }
}

void pe_tile_stream_keys(pe_tile *tile)
{
    const pe_attention *plan = tile->call->plan;
    const pe_stream *keys = &tile->keys;
    pe_rows ahead;
    fetch(tile);
    const int64_t count = look_ahead(tile, tile->call->args.k, keys->type, &ahead);
    if (keys->group != 0 && keys->group < plan->spec.head_dim) {
        touch_lines(tile, &ahead, count, plan->spec.head_dim);
        multiply_groups(tile);
        return;
    }
    if (keys->group != 0)
        touch_scales(tile, tile->call->args.k, count);
    plan->kernels->dots[keys->type](tile->rows, tile->q[0], plan->k_pad, &keys->rows,
                                    tile->num_keys, plan->spec.head_dim, tile->s,
                                    &ahead, count);
    if (keys->group != 0)
        scale_columns(tile, tile->s, keys->scales);
}

static void add_groups(pe_tile *tile)
{
    const pe_attention *plan = tile->call->plan;
    const pe_stream *values = &tile->values;
    const int64_t dim = plan->spec.v_head_dim, size = tile->rows * PE_KEY_BLOCK;
    for (int64_t d = 0; d < dim; d += values->group) {
        const pe_rows part = part_of(&values->rows, d, tile->num_keys, tile->lists[3]);
        memcpy(tile->group_s, tile->s, (size_t)size * sizeof *tile->s);
        scale_columns(tile, tile->group_s,
                      values->scales + d / values->group * PE_KEY_BLOCK);
        plan->kernels->sums[values->type](tile->rows, tile->group_s, &part,
                                          tile->num_keys, values->group, tile->out + d,
                                          plan->v_pad, NULL, 0);
    }
}

void pe_tile_stream_values(pe_tile *tile)
{
    const pe_attention *plan = tile->call->plan;
    const pe_stream *values = &tile->values;
    pe_rows ahead;
    const int64_t count = look_ahead(tile, tile->call->args.v, values->type, &ahead);
    if (values->group != 0 && values->group < plan->spec.v_head_dim) {
        touch_lines(tile, &ahead, count, plan->spec.v_head_dim);
        add_groups(tile);
        return;
    }
    if (values->group != 0) {
        touch_scales(tile, tile->call->args.v, count);
        scale_columns(tile, tile->s, values->scales);
    }
    plan->kernels->sums[values->type](tile->rows, tile->s, &values->rows,
                                      tile->num_keys, plan->spec.v_head_dim, tile->out,
                                      plan->v_pad, &ahead, count);
}
