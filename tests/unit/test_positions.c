/* SPDX-License-Identifier: MIT
 *
 * test_positions.c - the builders of positions: by hand, by property, and refused
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/refusal.h"
#include "../support/rng.h"
#include "posenc/positions.h"

static pe_error error;

#define OK(call)                     \
  do {                               \
    if ((call) != PE_OK)             \
      fail_msg("%s", error.message); \
  } while (0)

#define IDS(ids, ...)                                    \
  do {                                                   \
    const int64_t expected[] = {__VA_ARGS__};            \
    assert_memory_equal(ids, expected, sizeof expected); \
  } while (0)

static void test_from_mask(void **state)
{
    static const uint8_t mask[] = {0, 0, 1, 1, 1, 1, 255, 1, 1, 1, 1, 0, 1, 0, 0};
    int64_t ids[15], next[3];
    (void)state;
    OK(pe_positions_from_mask(mask, 3, 5, 0, ids, next, &error));
    IDS(ids, 0, 0, 0, 1, 2, 0, 1, 2, 3, 4, 0, 0, 1, 0, 0);
    IDS(next, 3, 5, 2);
    OK(pe_positions_from_mask(mask, 3, 5, -1, ids, NULL, &error));
    IDS(ids, -1, -1, 0, 1, 2, 0, 1, 2, 3, 4, 0, -1, 1, -1, -1);
    OK(pe_positions_from_mask(NULL, 2, 0, 0, NULL, next, &error));
    IDS(next, 0, 0, 2);
}

static void test_packed(void **state)
{
    static const int32_t cu_seqlens[] = {0, 3, 4, 4, 6};
    int64_t ids[7] = {9, 9, 9, 9, 9, 9, 9};
    (void)state;
    OK(pe_positions_packed(cu_seqlens, 4, ids, &error));
    IDS(ids, 0, 1, 2, 0, 0, 1, 9);
}

/* Every token belongs to one rank, and all ranks pay the same under a causal mask. */
static void test_shards(void **state)
{
    test_rng r = {12};
    int64_t ids[1024];
    (void)state;
    OK(pe_positions_shard(PE_SHARD_CONTIGUOUS, 12, 2, 3, ids, &error));
    IDS(ids, 8, 9, 10, 11);
    OK(pe_positions_shard(PE_SHARD_ZIGZAG, 16, 0, 2, ids, &error));
    IDS(ids, 0, 1, 2, 3, 12, 13, 14, 15);
    OK(pe_positions_shard(PE_SHARD_ZIGZAG, 16, 1, 2, ids, &error));
    IDS(ids, 4, 5, 6, 7, 8, 9, 10, 11);
    for (int round = 0; round < 200; round++) {
        const int64_t ranks = test_rng_int(&r, 1, 9), run = test_rng_int(&r, 0, 12);
        const pe_shard shard = round % 2 ? PE_SHARD_ZIGZAG : PE_SHARD_CONTIGUOUS;
        const int64_t len = run * ranks * (shard == PE_SHARD_ZIGZAG ? 2 : 1);
        int seen[256] = {0};
        int64_t cost = -1;
        for (int64_t rank = 0; rank < ranks; rank++) {
            int64_t sum = 0;
            OK(pe_positions_shard(shard, len, rank, ranks, ids, &error));
            for (int64_t i = 0; i < len / ranks; i++) {
                assert_true(ids[i] >= 0 && ids[i] < len && !seen[ids[i]]++);
                assert_true(i == 0 || ids[i] > ids[i - 1]);
                sum += ids[i] + 1;
            }
            if (shard == PE_SHARD_ZIGZAG && cost >= 0)
                assert_int_equal(sum, cost);
            cost = sum;
        }
    }
}

static void test_packed_shards(void **state)
{
    static const int32_t cu_seqlens[] = {0, 4, 4, 12};
    int64_t rows[6], ids[6];
    (void)state;
    OK(pe_positions_shard_packed(PE_SHARD_ZIGZAG, cu_seqlens, 3, 0, 2, rows, ids,
                                 &error));
    IDS(rows, 0, 3, 4, 5, 10, 11);
    IDS(ids, 0, 3, 0, 1, 6, 7);
    OK(pe_positions_shard_packed(PE_SHARD_ZIGZAG, cu_seqlens, 3, 1, 2, NULL, ids,
                                 &error));
    IDS(ids, 1, 2, 2, 3, 4, 5);
    OK(pe_positions_shard_packed(PE_SHARD_CONTIGUOUS, cu_seqlens, 3, 1, 2, rows, ids,
                                 &error));
    IDS(rows, 2, 3, 8, 9, 10, 11);
    IDS(ids, 2, 3, 4, 5, 6, 7);
}

static void test_grid(void **state)
{
    int64_t ids[48];
    (void)state;
    OK(pe_positions_grid(2, 3, 1, ids, &error));
    IDS(ids, 0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2);
    OK(pe_positions_grid(2, 4, 2, ids, &error));
    IDS(ids, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 1, 2, 3, 2, 3);
    OK(pe_positions_grid(4, 6, 2, ids, &error));
    /* The third block of the first row of blocks, then the first of the second. */
    IDS(ids + 8, 0, 0, 1, 1, 2, 2, 3, 3);
    IDS(ids + 24 + 8, 4, 5, 4, 5, 0, 1, 0, 1);
}

static void test_mrope(void **state)
{
    /* Two words, an image of 2 x 3 merged patches, a word, a video of 2 frames of 1 x 2
     * with two and a half ids per frame, a word. */
    static const pe_mrope_run runs[] = {{.t = 2},
                                        {.t = 1, .h = 2, .w = 3},
                                        {.t = 1},
                                        {.t = 3, .h = 1, .w = 2, .time_step = 2.5},
                                        {.t = 1}};
    enum { N = 2 + 6 + 1 + 6 + 1 };
    int64_t ids[3 * N], next = -1;
    (void)state;
    OK(pe_positions_mrope(runs, 5, 10, N, ids, &next, &error));
    IDS(ids, 10, 11, 12, 12, 12, 12, 12, 12, 15, 16, 16, 18, 18, 21, 21, 22);
    IDS(ids + N, 10, 11, 12, 12, 12, 13, 13, 13, 15, 16, 16, 16, 16, 16, 16, 22);
    IDS(ids + 2 * N, 10, 11, 12, 13, 14, 12, 13, 14, 15, 16, 17, 16, 17, 16, 17, 22);
    assert_int_equal(next, 23);
    OK(pe_positions_mrope(NULL, 0, 7, 0, NULL, &next, &error));
    assert_int_equal(next, 7);
    /* Text alone is one line on all axes. */
    OK(pe_positions_mrope(runs, 1, -1, 2, ids, NULL, &error));
    IDS(ids, -1, 0, -1, 0, -1, 0);
}

static void test_self_extend(void **state)
{
    static const int64_t ids[] = {0, 1, 7, 8, 9, 1023, 1024, -1, -8, -9};
    int64_t far[10];
    (void)state;
    OK(pe_positions_self_extend(ids, 10, 8, 1024, 0, far, &error));
    IDS(far, 0, 0, 0, 1, 1, 127, 128, -1, -1, -2);
    OK(pe_positions_self_extend(ids, 10, 8, 1024, 1, far, &error));
    IDS(far, 896, 896, 896, 897, 897, 1023, 1024, 895, 895, 894);
    OK(pe_positions_self_extend(ids, 10, 3, 10, 1, far, &error));
    IDS(far, 7, 7, 9, 9, 10, 348, 348, 6, 4, 4);
    static const int64_t ends[] = {INT64_MIN, INT64_MAX};
    OK(pe_positions_self_extend(ends, 2, 2, INT64_MAX, 1, far, &error));
    IDS(far, 0, INT64_MAX);
    memcpy(far, ids, sizeof far);
    OK(pe_positions_self_extend(far, 10, 8, 1024, 0, far, &error));
    IDS(far, 0, 0, 0, 1, 1, 127, 128, -1, -1, -2);
}

/* Against a cache that really evicts. */
static void test_streaming(void **state)
{
    int64_t ids[40], next;
    (void)state;
    OK(pe_positions_streaming(9, 2, 3, -1, ids, &next, &error));
    IDS(ids, 0, 1, -1, -1, -1, -1, 2, 3, 4);
    assert_int_equal(next, 4);
    OK(pe_positions_streaming(4, 2, 3, -1, ids, &next, &error));
    IDS(ids, 0, 1, 2, 3);
    assert_int_equal(next, 4);
    for (int64_t sinks = 0; sinks < 4; sinks++)
        for (int64_t window = 1; window < 5; window++) {
            int64_t cache[8], used = 0;
            for (int64_t len = 0; len < 40; len++) {
                OK(pe_positions_streaming(len, sinks, window, -7, ids, &next, &error));
                int64_t kept = 0;
                for (int64_t t = 0; t < len; t++)
                    if (ids[t] != -7) {
                        assert_true(ids[t] >= 0 && ids[t] < used);
                        assert_int_equal(cache[ids[t]], t);
                        kept++;
                    }
                assert_int_equal(kept, used);
                if (used == sinks + window) {
                    memmove(cache + sinks, cache + sinks + 1,
                            (size_t)(window - 1) * sizeof *cache);
                    used--;
                }
                assert_int_equal(next, used);
                cache[used++] = len;
            }
        }
}

/* ------------------------------------------------------------------ refusals --- */

static int64_t out[64];

static void refused(int line, pe_status got, pe_status status, const char *words)
{
    const char *complaint = test_refusal(&error, got, status, words);

    if (complaint != NULL)
        fail_msg("line %d: %s", line, complaint);
    for (int i = 0; i < 64; i++)
        if (out[i] != i * 1000)
            fail_msg("line %d: ids were written", line);
}

#define REFUSED(call, status, words) refused(__LINE__, call, status, words)

static void test_refusals(void **state)
{
    static const uint8_t mask[4] = {1, 1, 1, 1};
    static const int32_t falls[] = {0, 3, 2}, late[] = {1, 3}, odd[] = {0, 4, 7};
    static const int64_t ids[] = {0, INT64_MAX};
    const pe_status ARG = PE_E_ARGUMENT, SHAPE = PE_E_SHAPE;
    pe_mrope_run run = {.t = 1, .h = 2, .w = 3};
    (void)state;
    for (int i = 0; i < 64; i++)
        out[i] = i * 1000;
    pe_error *const e = &error;
    REFUSED(pe_positions_from_mask(mask, 0, 4, 0, out, NULL, e), SHAPE, "batch is 0");
    REFUSED(pe_positions_from_mask(mask, 1, -1, 0, out, NULL, e), SHAPE,
            "seq_len is -1");
    REFUSED(pe_positions_from_mask(mask, INT64_MAX, 4, 0, out, NULL, e), SHAPE,
            "batch|seq_len");
    REFUSED(pe_positions_from_mask(NULL, 1, 4, 0, out, NULL, e), ARG, "mask is NULL");
    REFUSED(pe_positions_from_mask(mask, 1, 4, 0, NULL, NULL, e), ARG, "ids is NULL");
    REFUSED(pe_positions_packed(falls, 2, out, e), ARG,
            "cu_seqlens[2] is 2|at least cu_seqlens[1] (3)");
    REFUSED(pe_positions_packed(late, 1, out, e), ARG, "cu_seqlens[0] is 1|0");
    REFUSED(pe_positions_packed(falls, 0, out, e), SHAPE, "num_seqs is 0");
    REFUSED(pe_positions_packed(NULL, 1, out, e), ARG, "cu_seqlens is NULL");
    REFUSED(pe_positions_packed(odd, 2, NULL, e), ARG, "ids is NULL");
    REFUSED(pe_positions_shard(0, 8, 0, 2, out, e), ARG, "shard is 0|ZIGZAG (2)");
    REFUSED(pe_positions_shard(3, 8, 0, 2, out, e), ARG, "shard is 3");
    REFUSED(pe_positions_shard(PE_SHARD_ZIGZAG, 6, 0, 2, out, e), SHAPE,
            "seq_len is 6|runs (4)");
    REFUSED(pe_positions_shard(PE_SHARD_ZIGZAG, -4, 0, 2, out, e), SHAPE,
            "seq_len is -4");
    REFUSED(pe_positions_shard(PE_SHARD_ZIGZAG, 8, 2, 2, out, e), ARG,
            "rank is 2|num_ranks (2)");
    REFUSED(pe_positions_shard(PE_SHARD_ZIGZAG, 8, -1, 2, out, e), ARG, "rank is -1");
    REFUSED(pe_positions_shard(PE_SHARD_ZIGZAG, 8, 0, 0, out, e), ARG,
            "num_ranks is 0");
    REFUSED(pe_positions_shard(PE_SHARD_ZIGZAG, 8, 0, INT64_MAX, out, e), ARG,
            "num_ranks");
    REFUSED(pe_positions_shard(PE_SHARD_ZIGZAG, 8, 0, 2, NULL, e), ARG, "ids is NULL");
    REFUSED(pe_positions_shard_packed(PE_SHARD_ZIGZAG, odd, 2, 0, 2, out, out + 32, e),
            SHAPE, "sequence 1 has 3 tokens|runs (4)");
    REFUSED(
        pe_positions_shard_packed(PE_SHARD_ZIGZAG, falls, 2, 0, 2, out, out + 32, e),
        ARG, "cu_seqlens[2]");
    REFUSED(pe_positions_grid(0, 3, 1, out, e), SHAPE, "0 x 3");
    REFUSED(pe_positions_grid(INT64_MAX, 3, 1, out, e), SHAPE, "2^40");
    REFUSED(pe_positions_grid(4, 6, 0, out, e), ARG, "merge is 0");
    REFUSED(pe_positions_grid(4, 5, 2, out, e), ARG, "merge is 2|w (5)");
    REFUSED(pe_positions_grid(4, 6, 1, NULL, e), ARG, "ids is NULL");
    REFUSED(pe_positions_mrope(&run, 1, 0, 5, out, NULL, e), SHAPE,
            "num_tokens is 5|(6)");
    REFUSED(pe_positions_mrope(NULL, 1, 0, 6, out, NULL, e), ARG, "runs is NULL");
    REFUSED(pe_positions_mrope(&run, -1, 0, 6, out, NULL, e), SHAPE, "num_runs is -1");
    REFUSED(pe_positions_mrope(&run, 1, INT64_MAX, 6, out, NULL, e), PE_E_POSITION,
            "start|runs[0]");
    REFUSED(pe_positions_mrope(&run, 1, 0, 6, NULL, NULL, e), ARG, "ids is NULL");
    run.time_step = -1;
    REFUSED(pe_positions_mrope(&run, 1, 0, 6, out, NULL, e), ARG,
            "runs[0].time_step is -1");
    run.time_step = NAN;
    REFUSED(pe_positions_mrope(&run, 1, 0, 6, out, NULL, e), ARG, "time_step is nan");
    run.time_step = 1e300;
    REFUSED(pe_positions_mrope(&run, 1, 0, 6, out, NULL, e), ARG, "2^40");
    run = (pe_mrope_run){.t = 1, .h = 2};
    REFUSED(pe_positions_mrope(&run, 1, 0, 2, out, NULL, e), SHAPE,
            "runs[0] is t 1, h 2, w 0");
    run = (pe_mrope_run){.t = -1};
    REFUSED(pe_positions_mrope(&run, 1, 0, -1, out, NULL, e), SHAPE, "t -1");
    run = (pe_mrope_run){.t = INT64_MAX, .h = 2, .w = 2};
    REFUSED(pe_positions_mrope(&run, 1, 0, 4, out, NULL, e), SHAPE, "2^40");
    run = (pe_mrope_run){.t = 2, .time_step = 2};
    REFUSED(pe_positions_mrope(&run, 1, 0, 2, out, NULL, e), ARG, "0 for text");
    REFUSED(pe_positions_self_extend(ids, 2, 0, 8, 0, out, e), ARG, "group is 0");
    REFUSED(pe_positions_self_extend(ids, 2, 2, -1, 0, out, e), ARG, "window is -1");
    REFUSED(pe_positions_self_extend(ids, 2, 2, 8, 2, out, e), ARG, "is_query is 2");
    REFUSED(pe_positions_self_extend(ids, -1, 2, 8, 0, out, e), SHAPE, "count is -1");
    REFUSED(pe_positions_self_extend(NULL, 2, 2, 8, 0, out, e), ARG, "ids is NULL");
    REFUSED(pe_positions_self_extend(ids, 2, 2, 8, 0, NULL, e), ARG, "far_ids is NULL");
    REFUSED(pe_positions_streaming(-1, 2, 3, 0, out, NULL, e), SHAPE, "seq_len is -1");
    REFUSED(pe_positions_streaming(4, -1, 3, 0, out, NULL, e), ARG, "sinks is -1");
    REFUSED(pe_positions_streaming(4, 2, 0, 0, out, NULL, e), ARG, "window is 0");
    REFUSED(pe_positions_streaming(4, 2, INT64_MAX, 0, out, NULL, e), ARG,
            "window|sinks (2)");
    REFUSED(pe_positions_streaming(4, 2, 3, 0, NULL, NULL, e), ARG, "ids is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_mask),   cmocka_unit_test(test_packed),
        cmocka_unit_test(test_shards),      cmocka_unit_test(test_packed_shards),
        cmocka_unit_test(test_grid),        cmocka_unit_test(test_mrope),
        cmocka_unit_test(test_self_extend), cmocka_unit_test(test_streaming),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
