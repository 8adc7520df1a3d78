/* SPDX-License-Identifier: MIT
 *
 * tile.c - a tile's rows: queries on the way in, and what each of them sees
 */
#include "attention/tile.h"

#include "attention/turn.h"
#include "base/at.h"
#include "bias/bias_plan.h"

#include <math.h>
#include <string.h>

static void place_gradients(pe_tile *tile, const pe_call *call, pe_scratch *scratch)
{
    const pe_attention *plan = call->plan;
    const int64_t rows = call->tile_rows, slots = call->num_slots;
    const int64_t blocks = (call->k_len + PE_KEY_BLOCK - 1) / PE_KEY_BLOCK;
    const size_t f = sizeof(float);
    tile->dout = pe_scratch_take(scratch, rows * plan->v_pad, f);
    for (int v = 0; v < call->variants; v++) {
        tile->dq[v] = pe_scratch_take(scratch, rows * plan->k_pad, f);
        tile->dk[v] = pe_scratch_take(scratch, blocks * plan->k_pad, f * PE_KEY_BLOCK);
    }
    tile->ds = pe_scratch_take(scratch, rows * PE_KEY_BLOCK, f);
    if (plan->spec.softcap > 0)
        tile->cap_slopes = pe_scratch_take(scratch, rows * PE_KEY_BLOCK, f);
    tile->delta = pe_scratch_take(scratch, rows, f);
    tile->dv = pe_scratch_take(scratch, blocks * plan->v_pad, f * PE_KEY_BLOCK);
    tile->slot_key_rows = pe_scratch_take(scratch, slots * call->variants * plan->k_pad,
                                          f * PE_KEY_BLOCK);
    tile->slot_keys_finite = pe_scratch_take(scratch, slots * call->variants, 1);
    tile->slot_value_columns =
        pe_scratch_take(scratch, slots * plan->v_pad, f * PE_KEY_BLOCK);
}

void pe_tile_place(pe_tile *tile, const pe_call *call, pe_scratch *scratch)
{
    const pe_attention *plan = call->plan;
    const int64_t rows = call->tile_rows, tokens = call->tile_tokens;
    const int64_t slots = call->num_slots;
    const size_t f = sizeof(float);
    *tile = (pe_tile){.call = call};
    for (int v = 0; v < call->variants; v++)
        tile->q[v] = pe_scratch_take(scratch, rows * plan->k_pad, f);
    tile->s = pe_scratch_take(scratch, rows * PE_KEY_BLOCK, f);
    if (call->variants > 1)
        tile->s_far = pe_scratch_take(scratch, rows * PE_KEY_BLOCK, f);
    if (call->uses_extra)
        tile->extra = pe_scratch_take(scratch, rows * PE_KEY_BLOCK, f);
    tile->out = pe_scratch_take(scratch, rows * plan->v_pad, f);
    float **const columns[] = {&tile->max,   &tile->sum, &tile->query_at, &tile->slope,
                               &tile->first, &tile->end, &tile->sink};
    for (size_t i = 0; i < PE_COUNT(columns); i++)
        *columns[i] = pe_scratch_take(scratch, rows, f);
    tile->norm = pe_scratch_take(scratch, rows, sizeof(double));
    tile->low = pe_scratch_take(scratch, tokens, sizeof(int64_t));
    tile->high = pe_scratch_take(scratch, tokens, sizeof(int64_t));
    tile->sinks = pe_scratch_take(scratch, tokens, sizeof(int64_t));
    tile->far_end =
        pe_scratch_take(scratch, (call->variants - 1) * tokens, sizeof(int64_t));
    tile->position = pe_scratch_take(scratch, tokens, sizeof(double));
    tile->key_at = pe_scratch_take(scratch, PE_KEY_BLOCK, f);
    tile->key_position = pe_scratch_take(scratch, PE_KEY_BLOCK, sizeof(double));
    if (call->uses_extra) {
        const int64_t most = tokens + PE_KEY_BLOCK;
        tile->distances = pe_scratch_take(scratch, most, f);
        tile->distance_at = pe_scratch_take(scratch, most, sizeof(double));
        tile->distance_bias = pe_scratch_take(scratch, most, sizeof(double));
    }
    for (size_t i = 0; i < PE_COUNT(tile->lists); i++)
        tile->lists[i] = pe_scratch_take(scratch, PE_KEY_BLOCK, sizeof(void *));
    if (call->streaming) {
        tile->keys.scales =
            pe_scratch_take(scratch, PE_KEY_BLOCK * pe_stream_groups(call->args.k), f);
        tile->values.scales =
            pe_scratch_take(scratch, PE_KEY_BLOCK * pe_stream_groups(call->args.v), f);
        tile->group_s = pe_scratch_take(scratch, rows * PE_KEY_BLOCK, f);
    }
    tile->raw_keys = pe_scratch_take(scratch, PE_KEY_BLOCK * plan->k_pad, f);
    tile->raw_values = pe_scratch_take(scratch, PE_KEY_BLOCK * plan->v_pad, f);
    tile->turned = pe_scratch_take(scratch, plan->k_pad, f);
    tile->key_tags =
        pe_scratch_take(scratch, slots * call->variants, sizeof *tile->key_tags);
    tile->value_tags = pe_scratch_take(scratch, slots, sizeof *tile->value_tags);
    tile->slot_absent = pe_scratch_take(scratch, slots, sizeof *tile->slot_absent);
    tile->slot_value_absent =
        pe_scratch_take(scratch, slots, sizeof *tile->slot_value_absent);
    tile->slot_finite = pe_scratch_take(scratch, slots, 1);
    if (call->backward)
        place_gradients(tile, call, scratch);
    if (!call->streaming) {
        tile->key_panels = pe_scratch_take(
            scratch, slots * call->variants * plan->k_pad, f * PE_KEY_BLOCK);
        tile->value_panels =
            pe_scratch_take(scratch, slots * plan->v_pad, f * PE_KEY_BLOCK);
    }
}

void pe_tile_start(pe_tile *tile, const pe_call *call, int32_t worker)
{
    pe_scratch scratch = {call->workers + (size_t)worker * call->worker_size, 0};
    pe_tile_place(tile, call, &scratch);
}

void pe_tile_clear(const pe_call *call)
{
    const pe_slot_tag nothing = {-1, -1, -1};
    for (int64_t w = 0; w < call->num_workers; w++) {
        pe_tile tile;
        pe_tile_start(&tile, call, (int32_t)w);
        for (int64_t i = 0; i < call->num_slots * call->variants; i++)
            tile.key_tags[i] = nothing;
        for (int64_t i = 0; i < call->num_slots; i++)
            tile.value_tags[i] = nothing;
        /* Columns that no key fills are hidden, but they are read. */
        memset(tile.s, 0, (size_t)(call->tile_rows * PE_KEY_BLOCK) * sizeof(float));
    }
}

/* ------------------------------------------------------------------ visibility --- */

int64_t pe_tile_place_of(const pe_tile *tile, int64_t token)
{
    return tile->doc.k_len - tile->doc.q_len + token;
}

int64_t pe_tile_keys_in(const pe_tile *tile, int64_t key)
{
    const int64_t rest = tile->doc.k_len - key;
    return rest < PE_KEY_BLOCK ? rest : PE_KEY_BLOCK;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t at_most(int64_t x)
{
    const int64_t limit = (int64_t)1 << 45; /* past any place, far from overflow */
    return x < limit ? x : limit;
}

static void see(pe_tile *tile, int64_t i, int64_t place)
{
    const pe_visibility *v = &tile->call->plan->spec.visible;
    const int causal = v->mask == PE_MASK_CAUSAL;
    const int64_t all =
        causal ? pe_clamp(place + 1, 0, tile->doc.k_len) : tile->doc.k_len;
    int64_t low = 0, high = all;
    if (v->window > 0) {
        const int64_t window = at_most(v->window);
        low = place - window + 1;
        high = pe_clamp(high, 0, place + window > 0 ? place + window : 0);
    }
    if (v->chunk > 0) {
        const int64_t chunk = at_most(v->chunk),
                      first = floor_div(place, chunk) * chunk;
        low = low > first ? low : first;
        high = pe_clamp(high, 0, first + chunk > 0 ? first + chunk : 0);
    }
    tile->low[i] = pe_clamp(low, 0, high);
    tile->high[i] = high;
    tile->sinks[i] = v->window > 0 || v->chunk > 0 ? pe_clamp(v->num_sinks, 0, all) : 0;
}

static void see_far(pe_tile *tile, int64_t i, int64_t place)
{
    const pe_call *call = tile->call;
    for (int v = 1; v < call->variants; v++) {
        const pe_far *rule = &call->args.far_rules[v - 1];
        const int64_t unit = floor_div(place, rule->unit) - rule->from + 1;
        tile->far_end[(v - 1) * call->tile_tokens + i] =
            unit <= 0                ? 0
            : unit > tile->doc.k_len ? tile->doc.k_len
                                     : pe_clamp(unit * rule->unit, 0, tile->doc.k_len);
    }
}

void pe_tile_own(const pe_tile *tile, int variant, int64_t i, int64_t *begin,
                 int64_t *end)
{
    const pe_call *call = tile->call;
    int64_t low = 0, high = tile->num_keys;
    for (int v = 1; v < call->variants; v++) {
        const int64_t far_end = pe_clamp(
            tile->far_end[(v - 1) * call->tile_tokens + i] - tile->key, 0, high);
        if (v == variant)
            high = far_end;
        else if (v > variant)
            low = low > far_end ? low : far_end;
    }
    *begin = low < high ? low : high;
    *end = high;
}

pe_share pe_tile_share(const pe_tile *tile, int variant)
{
    const int64_t group = tile->call->plan->group;
    const int64_t rows = tile->row_end < tile->rows ? tile->row_end : tile->rows;
    int none = 1, all = 1;
    for (int64_t i = tile->row_begin / group; i * group < rows; i++) {
        int64_t begin, end;
        pe_tile_own(tile, variant, i, &begin, &end);
        none &= begin == end;
        all &= begin == 0 && end == tile->num_keys;
    }
    return none ? PE_SHARE_NONE : all ? PE_SHARE_ALL : PE_SHARE_SOME;
}

/* -------------------------------------------------------------------- queries --- */

/* Scale of a token's queries: into log2 units unless a cap comes between. */
static float query_scale(const pe_tile *tile, int64_t token)
{
    const pe_call *call = tile->call;
    double scale = call->plan->spec.scale;
    if (call->temperatures != NULL)
        scale *= (double)call->temperatures[tile->doc.b * call->q_len + token];
    return (float)(call->plan->spec.softcap > 0 ? scale : scale * PE_LOG2E);
}

static void load_query(pe_tile *tile, int64_t i, int64_t h, int variant, float scale,
                       const pe_turning *turning)
{
    const pe_call *call = tile->call;
    const pe_tensor *q = call->args.q;
    const int64_t row = i * call->plan->group + h, pad = call->plan->k_pad;
    float *out = tile->q[variant] + row * pad;
    int64_t element;
    memset(out, 0, (size_t)pad * sizeof *out);
    if (!pe_tensor_at(q, tile->doc.b, tile->doc.q0 + tile->token + i,
                      tile->kv_head * call->plan->group + h, &element))
        return;
    pe_turn_load(call->plan, q, element, turning, tile->turned, out);
    for (int64_t d = 0; d < q->dim; d++)
        out[d] *= scale;
    const double norm = call->k_norms != NULL ? pe_length(out, q->dim) : 0;
    tile->norm[row] = variant == 0 ? norm : pe_larger(norm, tile->norm[row]);
}

static void load_token(pe_tile *tile, int64_t i)
{
    const pe_call *call = tile->call;
    const pe_attention *plan = call->plan;
    const int64_t token = tile->doc.q0 + tile->token + i;
    const float scale = query_scale(tile, token);
    pe_row_buffer buffer;
    for (int v = 0; v < call->variants; v++) {
        const pe_positions *at =
            v == 0 ? call->args.q_at : call->args.far_rules[v - 1].q_at;
        const pe_turning turning =
            pe_turn_make(plan->spec.q_rope, at, tile->doc.b, token, &buffer);
        for (int64_t h = 0; h < plan->group; h++)
            load_query(tile, i, h, v, scale, &turning);
    }
}

static void load_biases(pe_tile *tile)
{
    const pe_call *call = tile->call;
    const pe_attention *plan = call->plan;
    if (plan->spec.bias[0] == NULL && plan->spec.bias[1] == NULL)
        return;
    tile->queries_count_up = 1;
    for (int64_t i = 0; i < tile->num_tokens; i++) {
        tile->position[i] = (double)pe_at_id(call->args.q_at, 0, tile->doc.b,
                                             tile->doc.q0 + tile->token + i);
        tile->queries_count_up &= tile->position[i] == tile->position[0] + (double)i;
    }
    tile->base = tile->position[0];
    if (plan->fast_bias < 0)
        return;
    const pe_bias *bias = plan->spec.bias[plan->fast_bias];
    const int64_t first = bias->head_start + tile->kv_head * plan->group;
    for (int64_t r = 0; r < tile->rows; r++) {
        const double slope = (double)bias->slopes[first + r % plan->group];
        tile->slope[r] = (float)(slope * bias->scale * PE_LOG2E);
        tile->query_at[r] = (float)(tile->position[r / plan->group] - tile->base);
    }
}

static double bias_at(const pe_tile *tile, int i, int64_t r)
{
    const pe_attention *plan = tile->call->plan;
    const pe_bias *bias = plan->spec.bias[i];
    if (bias == NULL || bias->type != PE_BIAS_ALIBI || bias->form != PE_BIAS_KEY_ONLY)
        return 0;
    const int64_t head =
        bias->head_start + tile->kv_head * plan->group + r % plan->group;
    return (double)bias->slopes[head] * bias->scale * tile->position[r / plan->group];
}

double pe_tile_bias_of_query(const pe_tile *tile, int64_t r)
{
    return bias_at(tile, 0, r) + bias_at(tile, 1, r);
}

/* Rows that fill the last group score like zeroes and are never stored. */
static void pad_rows(pe_tile *tile)
{
    const pe_call *call = tile->call;
    const int64_t pad = call->plan->k_pad;
    const int64_t begin = tile->rows, count = tile->padded_rows - begin;
    for (int v = 0; v < call->variants; v++)
        memset(tile->q[v] + begin * pad, 0, (size_t)(count * pad) * sizeof(float));
    memset(tile->query_at + begin, 0, (size_t)count * sizeof(float));
    memset(tile->slope + begin, 0, (size_t)count * sizeof(float));
    if (tile->extra != NULL)
        memset(tile->extra + begin * PE_KEY_BLOCK, 0,
               (size_t)(count * PE_KEY_BLOCK) * sizeof(float));
}

void pe_tile_load(pe_tile *tile, const pe_document *doc, int64_t kv_head, int64_t token)
{
    const pe_call *call = tile->call;
    const int64_t rest = doc->q_len - token, group = call->plan->group;
    tile->doc = *doc;
    tile->kv_head = kv_head;
    tile->token = token;
    tile->num_tokens = rest < call->tile_tokens ? rest : call->tile_tokens;
    tile->rows = tile->num_tokens * group;
    tile->padded_rows = (tile->rows + PE_ROW_GROUP - 1) / PE_ROW_GROUP * PE_ROW_GROUP;
    for (int64_t i = 0; i < tile->num_tokens; i++) {
        const int64_t place = pe_tile_place_of(tile, token + i);
        see(tile, i, place);
        see_far(tile, i, place);
        load_token(tile, i);
    }
    load_biases(tile);
    pad_rows(tile);
    for (int64_t r = 0; r < tile->padded_rows; r++)
        tile->max[r] = -INFINITY;
    memset(tile->sum, 0, (size_t)tile->padded_rows * sizeof(float));
    memset(tile->out, 0,
           (size_t)(tile->padded_rows * call->plan->v_pad) * sizeof(float));
}

int pe_tile_reaches(const pe_tile *tile, int64_t key, int64_t num_keys)
{
    for (int64_t i = 0; i < tile->num_tokens; i++)
        if ((tile->low[i] < tile->high[i] && tile->low[i] < key + num_keys &&
             tile->high[i] > key) ||
            tile->sinks[i] > key)
            return 1;
    return 0;
}

int pe_tile_block(pe_tile *tile, int64_t key, int64_t num_keys)
{
    const int64_t group = tile->call->plan->group;
    int64_t begin = tile->rows, end = 0;
    tile->key = key;
    tile->num_keys = num_keys;
    tile->masked = 0;
    tile->absent = 0;
    tile->extra_is_ready = 0;
    for (int64_t i = 0; i < tile->num_tokens; i++) {
        const int64_t first = pe_clamp(tile->low[i] - key, 0, num_keys);
        const int64_t last = pe_clamp(tile->high[i] - key, 0, num_keys);
        const int64_t sink = pe_clamp(tile->sinks[i] - key, 0, num_keys);
        const int any = first < last || sink > 0;
        if (any) {
            begin = begin < i * group ? begin : i * group;
            end = (i + 1) * group;
        }
        tile->masked |= first > 0 || last < PE_KEY_BLOCK;
        for (int64_t r = i * group; r < (i + 1) * group; r++) {
            tile->first[r] = (float)first;
            tile->end[r] = (float)last;
            tile->sink[r] = (float)sink;
        }
    }
    for (int64_t r = tile->rows; r < tile->padded_rows; r++)
        tile->first[r] = tile->end[r] = tile->sink[r] = 0;
    tile->row_begin = begin / PE_ROW_GROUP * PE_ROW_GROUP;
    tile->row_end = (end + PE_ROW_GROUP - 1) / PE_ROW_GROUP * PE_ROW_GROUP;
    if (begin >= end)
        return 0;
    pe_tile_positions(tile);
    return 1;
}
