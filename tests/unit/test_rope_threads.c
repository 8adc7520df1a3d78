/* SPDX-License-Identifier: MIT
 *
 * test_rope_threads.c - one plan, four threads, every call; made for ThreadSanitizer
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "../support/rng.h"
#include "posenc/posenc.h"

enum { THREADS = 4, ROUNDS = 25, TOKENS = 13, HEADS = 3, DIM = 24 };
enum { SIZE = TOKENS * HEADS * DIM };

struct work {
    const pe_rope *rope;
    int64_t start;
    float x[SIZE], y[SIZE], back[SIZE], shifted[SIZE], table[2][TOKENS * DIM];
    int failed;
};

static void step(struct work *w)
{
    const pe_positions at = {.start = w->start};
    pe_tensor x, y, back, shifted, cos_t, sin_t;
    pe_error error;

    pe_tensor_bshd(&x, PE_F32, w->x, 1, TOKENS, HEADS, DIM);
    pe_tensor_bshd(&y, PE_F32, w->y, 1, TOKENS, HEADS, DIM);
    pe_tensor_bshd(&back, PE_F32, w->back, 1, TOKENS, HEADS, DIM);
    pe_tensor_bshd(&shifted, PE_F32, w->shifted, 1, TOKENS, HEADS, DIM);
    pe_tensor_bshd(&cos_t, PE_F32, w->table[0], 1, TOKENS, 1, DIM);
    pe_tensor_bshd(&sin_t, PE_F32, w->table[1], 1, TOKENS, 1, DIM);
    w->failed |= pe_rope_apply(w->rope, &at, &x, &y, &error) != PE_OK;
    w->failed |= pe_rope_inverse(w->rope, &at, &y, &back, &error) != PE_OK;
    w->failed |= pe_rope_shift(w->rope, -5, &y, &shifted, &error) != PE_OK;
    w->failed |= pe_rope_table(w->rope, &at, &cos_t, &sin_t, &error) != PE_OK;
    w->failed |= pe_rope_get_info(w->rope)->head_dim != DIM;
    /* A refused call must not touch anything shared either. */
    y.dim = 1;
    w->failed |= pe_rope_apply(w->rope, &at, &x, &y, &error) == PE_OK;
}

static void *run(void *arg)
{
    for (int i = 0; i < ROUNDS; i++)
        step(arg);
    return NULL;
}

static void test_shared_plan(void **state)
{
    static struct work alone[THREADS], shared[THREADS];
    test_rng r = {21};

    (void)state;
    for (int kind = 0; kind < 6; kind++) {
        const pe_rope_spec spec = {.struct_size = sizeof spec,
                                   .head_dim = DIM,
                                   .table_len = kind % 2 ? 64 : 0,
                                   .angles = kind / 2,
                                   .pairs = {.pairing = PE_HALF_SPLIT},
                                   .freqs = {.rope_theta = 10000}};
        pthread_t threads[THREADS];
        pe_rope *rope = NULL;

        assert_int_equal(pe_rope_create(&rope, &spec, NULL, NULL), PE_OK);
        for (int i = 0; i < THREADS; i++) {
            memset(&shared[i], 0, sizeof shared[i]);
            shared[i].rope = rope;
            shared[i].start = 55 + i; /* half in the table, half past it */
            for (int n = 0; n < SIZE; n++)
                shared[i].x[n] = test_rng_float(&r);
            alone[i] = shared[i];
            step(&alone[i]);
        }
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, run, &shared[i]), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++) {
            assert_false(alone[i].failed);
            assert_false(shared[i].failed);
            assert_memory_equal(alone[i].y, shared[i].y, sizeof shared[i].y);
            assert_memory_equal(alone[i].back, shared[i].back, sizeof shared[i].back);
            assert_memory_equal(alone[i].shifted, shared[i].shifted,
                                sizeof shared[i].shifted);
            assert_memory_equal(alone[i].table, shared[i].table,
                                sizeof shared[i].table);
        }
        pe_rope_destroy(rope);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared_plan)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
