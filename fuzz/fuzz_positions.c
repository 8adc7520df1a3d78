/* SPDX-License-Identifier: MIT
 *
 * fuzz_positions.c - bytes -> the arguments of every position builder
 *
 * Counts come from the input as they are; a call whose result would not fit the room is
 * not made.  No crash, nothing written past what the header says, and nothing at all by
 * a call that fails. */
#include "bytes.h"
#include "posenc/positions.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 3 * 512, MAX_LIST = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bytes input;
static int64_t ids[ROOM + 1], next[MAX_LIST + 1];

/* Small most of the time, any int64 the rest. */
static int64_t number(void)
{
    const uint64_t pick = take(&input, 1);
    return pick < 224 ? (int64_t)pick % 32 - 1 : (int64_t)take(&input, 8);
}

/* count of ids may have been written, and no more; by a failure none. */
static void judge(pe_status status, const pe_error *error, int64_t count)
{
    const int64_t first = status == PE_OK ? count : 0;
    if (status != PE_OK && (error->status != status || error->message[0] == 0 ||
                            memchr(error->message, 0, sizeof error->message) == NULL))
        abort();
    for (int64_t i = first; i <= ROOM; i++)
        if (ids[i] != INT64_MIN + 77)
            abort();
}

static void masks(pe_error *error)
{
    uint8_t mask[512];
    const int64_t batch = number(), len = number(), pad = number();
    for (size_t i = 0; i < sizeof mask; i++)
        mask[i] = (uint8_t)take(&input, input.size > 0);
    if (batch > 0 && len > 0 && (batch > MAX_LIST || len > 512 || batch * len > 512))
        return;
    int64_t *at = batch <= MAX_LIST ? next : NULL;
    judge(pe_positions_from_mask(mask, batch, len, pad, ids, at, error), error,
          batch > 0 && len > 0 ? batch * len : 0);
}

static void packed(pe_error *error)
{
    int32_t cu_seqlens[MAX_LIST + 1];
    const int64_t num_seqs = (int64_t)take(&input, 1) % (MAX_LIST + 1);
    const int64_t ranks = number(), rank = number();
    const pe_shard shard = (pe_shard)(take(&input, 1) % 4);
    cu_seqlens[0] = (int32_t)(take(&input, 1) % 17 == 16);
    for (int64_t s = 0; s < MAX_LIST; s++)
        cu_seqlens[s + 1] = cu_seqlens[s] + (int32_t)(take(&input, 1) % 34) - (s == 9);
    judge(pe_positions_packed(cu_seqlens, num_seqs, ids, error), error,
          num_seqs > 0 ? cu_seqlens[num_seqs] : 0);
    for (int64_t i = 0; i <= ROOM; i++)
        ids[i] = INT64_MIN + 77;
    judge(pe_positions_shard_packed(shard, cu_seqlens, num_seqs, rank, ranks, NULL, ids,
                                    error),
          error, ranks > 0 && num_seqs > 0 ? cu_seqlens[num_seqs] / ranks : 0);
}

static void shards(pe_error *error)
{
    const pe_shard shard = (pe_shard)number();
    const int64_t len = number(), rank = number(), ranks = number();
    if (ranks > 0 && len / ranks > ROOM)
        return;
    judge(pe_positions_shard(shard, len, rank, ranks, ids, error), error,
          ranks > 0 ? len / ranks : 0);
}

static void grids(pe_error *error)
{
    const int64_t h = number(), w = number(), merge = number();
    if (h > 0 && w > 0 && (h > 256 || w > 256 || h * w > ROOM / 2))
        return;
    judge(pe_positions_grid(h, w, merge, ids, error), error,
          h > 0 && w > 0 ? 2 * h * w : 0);
}

static void mrope(pe_error *error)
{
    static const double steps[] = {0, 1, 0.5, 2, 25, 1e300, -1};
    pe_mrope_run runs[MAX_LIST];
    const int64_t num_runs = (int64_t)(take(&input, 1) % (MAX_LIST + 1));
    int64_t tokens = 0;
    for (int64_t r = 0; r < num_runs; r++) {
        pe_mrope_run *run = &runs[r];
        *run = (pe_mrope_run){.t = number()};
        if (take(&input, 1) & 1) {
            run->h = number();
            run->w = number();
            run->time_step = steps[take(&input, 1) % 7];
            if (run->time_step == 25 && input.size >= 8) {
                const uint64_t bits = take(&input, 8);
                memcpy(&run->time_step, &bits, sizeof bits);
            }
        }
        const int image = run->h != 0 || run->w != 0;
        const uint64_t h = image ? (uint64_t)run->h : 1,
                       w = image ? (uint64_t)run->w : 1;
        tokens = (int64_t)((uint64_t)tokens + (uint64_t)run->t * h * w);
    }
    if (tokens > ROOM / 3 || tokens < 0) /* wrong on purpose */
        tokens = 5;
    judge(pe_positions_mrope(runs, num_runs, number(), tokens, ids, next, error), error,
          3 * tokens);
}

static void maps(pe_error *error)
{
    int64_t near[MAX_LIST];
    const int64_t count = number(), group = number(), window = number();
    for (int i = 0; i < MAX_LIST; i++)
        near[i] = number();
    if (count <= MAX_LIST)
        judge(pe_positions_self_extend(near, count, group, window,
                                       (int32_t)(take(&input, 1) % 3), ids, error),
              error, count);
    for (int64_t i = 0; i <= ROOM; i++)
        ids[i] = INT64_MIN + 77;
    const int64_t len = number(), sinks = number();
    if (len <= ROOM)
        judge(pe_positions_streaming(len, sinks, number(), number(), ids, next, error),
              error, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const builders[])(pe_error *) = {masks, packed, shards,
                                                   grids, mrope,  maps};
    pe_error error;
    input = (struct bytes){data, size};
    for (int64_t i = 0; i <= ROOM; i++)
        ids[i] = INT64_MIN + 77;
    builders[take(&input, 1) % 6](&error);
    return 0;
}
