/* SPDX-License-Identifier: MIT
 *
 * test_rope_rebase.c - however rows are come by, rebasing has the same bits
 *
 * A call with many tokens takes the difference of two plans once, and within one plan
 * only the way between two positions counts; a call with one token and two plans
 * subtracts phases.  That sum is checked against libm by test_rope_layouts.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "../support/rng.h"
#include "posenc/posenc.h"

enum { HEADS = 2, DIM = 96, TOKENS = 130, SIZE = TOKENS * HEADS * DIM, ROUNDS = 60 };

typedef struct {
    pe_rope *from, *to, *to_again; /* the last two alike */
    double inv_freq[2][DIM / 2];
    int64_t from_ids[3 * TOKENS], to_ids[3 * TOKENS];
    pe_positions from_at, to_at;
    int num_axes;
} task;

static pe_rope *create(const pe_rope_spec *spec)
{
    pe_rope *rope = NULL;
    pe_error error;
    if (pe_rope_create(&rope, spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    return rope;
}

/* Two ladders of frequencies: one below the other, the same in places, or neither; some
 * pairs never turn. */
static void draw_frequencies(test_rng *r, task *t, int pairs)
{
    const int kind = (int)test_rng_int(r, 0, 3);
    for (int i = 0; i < pairs; i++) {
        const double f = 1.0 / (double)test_rng_int(r, 1, 100000);
        const double g = f / (double)test_rng_int(r, 1, 3);
        t->inv_freq[0][i] = kind == 1 ? g : f;
        t->inv_freq[1][i] = kind == 1 ? f : kind == 2 && i % 2 ? f * 1.5 : g;
        for (int side = 0; side < 2; side++)
            if (test_rng_int(r, 0, 9) == 0)
                t->inv_freq[side][i] = 0;
    }
}

static void draw_positions(test_rng *r, task *t, int same)
{
    const int64_t far = test_rng_int(r, 0, 1) ? 3000 : (int64_t)1 << 38;
    const int64_t least = t->num_axes > 1 ? 0 : -far, delta = test_rng_int(r, 0, 50);
    for (int i = 0; i < t->num_axes * TOKENS; i++) {
        t->from_ids[i] = i % 7 ? t->from_ids[i - 1] + 1 : test_rng_int(r, least, far);
        t->to_ids[i] = same                    ? t->from_ids[i]
                       : test_rng_int(r, 0, 3) ? t->from_ids[i] + delta
                                               : test_rng_int(r, least, far);
    }
    t->from_at = (pe_positions){.ids = t->from_ids,
                                .axis_stride = TOKENS,
                                .num_axes = t->num_axes > 1 ? t->num_axes : 0};
    t->to_at = t->from_at;
    t->to_at.ids = t->to_ids;
}

static void draw_task(test_rng *r, task *t)
{
    const int pairs = (int)test_rng_int(r, 1, DIM / 2);
    pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = DIM,
        .freqs = {.rope_type = PE_ROPE_CUSTOM, .inv_freq = t->inv_freq[0]}};
    draw_frequencies(r, t, pairs);
    spec.pairs.pairing = (pe_pairing)test_rng_int(r, 1, 2);
    spec.pairs.rotary_dim = 2 * pairs;
    spec.pairs.reversed = (int32_t)test_rng_int(r, 0, 1);
    t->num_axes = pairs >= 3 && test_rng_int(r, 0, 1) ? 3 : 1;
    if (t->num_axes > 1)
        spec.axes =
            (pe_axes){.map = PE_AXIS_CHUNKED,
                      .section = {pairs - 2 * (pairs / 3), pairs / 3, pairs / 3}};
    t->from = create(&spec);
    spec.freqs.inv_freq = t->inv_freq[1];
    t->to = create(&spec);
    t->to_again = create(&spec);
    draw_positions(r, t, (int)test_rng_int(r, 0, 1));
}

static void close_task(task *t)
{
    pe_rope_destroy(t->from);
    pe_rope_destroy(t->to);
    pe_rope_destroy(t->to_again);
}

static void rebase(const pe_rope *from, const pe_positions *from_at, const pe_rope *to,
                   const pe_positions *to_at, float *x, float *y, int64_t tokens)
{
    pe_tensor x_t, y_t;
    pe_error error;
    pe_tensor_bshd(&x_t, PE_F32, x, 1, tokens, HEADS, DIM);
    pe_tensor_bshd(&y_t, PE_F32, y, 1, tokens, HEADS, DIM);
    if (pe_rope_rebase(from, from_at, to, to_at, &x_t, &y_t, &error) != PE_OK)
        fail_msg("%s", error.message);
}

static void rebase_one_by_one(const pe_rope *from, const pe_rope *to, const task *t,
                              float *x, float *y)
{
    for (int64_t i = 0; i < TOKENS; i++) {
        pe_positions a = t->from_at, b = t->to_at;
        a.ids += i;
        b.ids += i;
        rebase(from, &a, to, &b, x + i * HEADS * DIM, y + i * HEADS * DIM, 1);
    }
}

static void test_bits_of_many_tokens(void **state)
{
    static float x[SIZE], want[SIZE], got[SIZE];
    test_rng r = {20};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        task t;
        draw_task(&r, &t);
        for (int i = 0; i < SIZE; i++)
            x[i] = test_rng_float(&r);
        rebase_one_by_one(t.from, t.to, &t, x, want);
        rebase(t.from, &t.from_at, t.to, &t.to_at, x, got, TOKENS);
        assert_memory_equal(got, want, sizeof got);
        rebase_one_by_one(t.to_again, t.to, &t, x, want);
        rebase(t.to, &t.from_at, t.to, &t.to_at, x, got, TOKENS);
        assert_memory_equal(got, want, sizeof got);
        close_task(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits_of_many_tokens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
