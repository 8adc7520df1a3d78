/* SPDX-License-Identifier: MIT
 *
 * layout.c - how a call is cut into tiles and parts, and where its scratch lies
 *
 * Both follow from shapes alone, so that a size can be asked for first. */
#include "attention/call.h"

#include "attention/tile.h"
#include "base/checked.h"
#include "base/error.h"
#include "bias/bias_plan.h"

enum {
    TILE_ROWS = 252, /* rows worth packing a block of keys for */
    PART_LEN = 1024, /* keys of a part when streaming, at least */
    MAX_PARTS = 64,
    CACHE_BYTES = 9 << 20 /* of packed blocks in the hands of one worker */
};

static int64_t round_rows(int64_t rows)
{
    return (rows + PE_ROW_GROUP - 1) / PE_ROW_GROUP * PE_ROW_GROUP;
}

void pe_call_choose_tiles(pe_call *call)
{
    const pe_attention *plan = call->plan;
    const int64_t group = plan->group,
                  blocks = (call->k_len + PE_KEY_BLOCK - 1) / PE_KEY_BLOCK;
    call->streaming = !call->backward && call->q_len * group <= PE_STREAM_ROWS &&
                      call->variants == 1 && call->args.scores == NULL;
    call->tile_tokens = group >= TILE_ROWS ? 1 : TILE_ROWS / group;
    if (call->tile_tokens > call->q_len)
        call->tile_tokens = call->q_len > 0 ? call->q_len : 1;
    call->tile_rows = round_rows(call->tile_tokens * group);
    call->num_parts = 1;
    call->part_len = blocks * PE_KEY_BLOCK;
    if (call->streaming && call->k_len > 2 * PART_LEN) {
        const int64_t least = (blocks + MAX_PARTS - 1) / MAX_PARTS * PE_KEY_BLOCK;
        call->part_len = least > PART_LEN ? least : PART_LEN;
        call->num_parts = (call->k_len + call->part_len - 1) / call->part_len;
    }
    call->num_tiles = 0;
    for (int64_t i = 0; i < call->num_documents; i++) {
        const pe_document d = pe_call_document(call, i);
        call->num_tiles += pe_call_num_tiles(call, &d);
    }
    const int64_t slot =
        (plan->k_pad * call->variants + plan->v_pad) * PE_KEY_BLOCK * 4;
    call->num_slots = CACHE_BYTES / slot < blocks ? CACHE_BYTES / slot : blocks;
    if (call->num_slots < 1 || call->streaming)
        call->num_slots = 1;
}

void *pe_scratch_take(pe_scratch *scratch, int64_t count, size_t size)
{
    const size_t start = (scratch->used + 63) / 64 * 64;
    int64_t bytes, end;
    if (scratch->used == SIZE_MAX || !pe_mul_i64(count, (int64_t)size, &bytes) ||
        (uint64_t)start > INT64_MAX || !pe_add_i64((int64_t)start, bytes, &end) ||
        (uint64_t)end > SIZE_MAX / 2) {
        scratch->used = SIZE_MAX;
        return NULL;
    }
    scratch->used = (size_t)end;
    return scratch->base == NULL ? NULL : scratch->base + start;
}

/* Elements of that size that fill whole lines of cache. */
static int64_t whole_lines(int64_t count, size_t size)
{
    const int64_t line = 64 / (int64_t)size;
    return (count + line - 1) / line * line;
}

void pe_call_lay_out(pe_call *call, unsigned char *base)
{
    const pe_attention *plan = call->plan;
    pe_scratch all = {base, 0}, worker = {NULL, 0};
    pe_tile tile;
    int64_t parts;
    if (plan->spec.temperature.type != PE_TEMPERATURE_NONE)
        call->temperatures =
            pe_scratch_take(&all, call->batch * call->q_len, sizeof(float));
    const int64_t heads = call->num_documents * plan->spec.num_kv_heads;
    for (int i = 0; i < 2 && call->backward; i++)
        if (plan->spec.bias[i] != NULL) {
            call->sums_size[i] =
                whole_lines(plan->group * pe_bias_num_gradients(plan->spec.bias[i]),
                            sizeof(double));
            call->bias_sums[i] = pe_scratch_take(
                &all, heads, (size_t)call->sums_size[i] * sizeof(double));
        }
    if (call->backward) {
        call->sinks_size = whole_lines(plan->group, sizeof(double));
        call->sink_sums =
            pe_scratch_take(&all, heads, (size_t)call->sinks_size * sizeof(double));
    }
    if (call->makes_norms)
        call->own_norms = pe_scratch_take(
            &all, call->batch * plan->spec.num_kv_heads * pe_call_num_runs(call),
            sizeof(float));
    if (call->makes_norms)
        call->k_norms = call->own_norms;
    call->counts = pe_scratch_take(&all, call->num_workers * 8, sizeof(int64_t));
    if (call->num_parts > 1) {
        call->part_size =
            whole_lines(call->tile_rows * (plan->v_pad + 2), sizeof(float));
        if (!pe_mul_i64(call->num_tiles, plan->spec.num_kv_heads * call->num_parts,
                        &parts))
            all.used = SIZE_MAX;
        else
            call->parts =
                pe_scratch_take(&all, parts, sizeof(float) * (size_t)call->part_size);
    }
    pe_tile_place(&tile, call, &worker);
    call->worker_size =
        worker.used == SIZE_MAX ? SIZE_MAX : (worker.used + 63) / 64 * 64;
    call->workers = worker.used == SIZE_MAX
                        ? NULL
                        : pe_scratch_take(&all, call->num_workers, call->worker_size);
    call->size = worker.used == SIZE_MAX ? SIZE_MAX : all.used;
}

double *pe_call_bias_sums(const pe_call *call, int bias, int64_t document, int64_t head)
{
    const pe_attention *plan = call->plan;
    return call->bias_sums[bias] +
           (document * plan->spec.num_kv_heads + head / plan->group) *
               call->sums_size[bias] +
           head % plan->group * pe_bias_num_gradients(plan->spec.bias[bias]);
}

double *pe_call_sink_sum(const pe_call *call, int64_t document, int64_t head)
{
    const pe_attention *plan = call->plan;
    return call->sink_sums +
           (document * plan->spec.num_kv_heads + head / plan->group) *
               call->sinks_size +
           head % plan->group;
}

float *pe_call_part(const pe_call *call, int64_t item, int64_t part)
{
    return call->parts + (item * call->num_parts + part) * call->part_size;
}

pe_status pe_call_place(pe_call *call, void *workspace, size_t workspace_size,
                        pe_error *error)
{
    if (workspace == NULL || (uintptr_t)workspace % 64 != 0)
        return pe_fail(error, PE_E_WORKSPACE,
                       "workspace is %s, must be aligned to 64 bytes",
                       workspace == NULL ? "NULL" : "misaligned");
    if (workspace_size < call->size)
        return pe_fail(error, PE_E_WORKSPACE,
                       "workspace_size is %zu, must be at least %zu", workspace_size,
                       call->size);
    pe_call_lay_out(call, workspace);
    return PE_OK;
}
