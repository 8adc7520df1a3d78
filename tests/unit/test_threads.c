/* SPDX-License-Identifier: MIT
 *
 * test_threads.c - the pool: every item once, one worker in one place, the same bits
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../support/rng.h"
#include "posenc/positions.h"
#include "posenc/threads.h"

enum { MAX_COUNT = 5000, MAX_WORKERS = 8 };

struct tally {
    const pe_executor *executor;
    int64_t count;
    int32_t num_workers;
    atomic_int seen[MAX_COUNT];
    atomic_int busy[MAX_WORKERS];
    atomic_int failures, pieces;
    int64_t inner; /* items of a nested call from every piece; 0: none */
};

static void count_inner(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    int64_t *total = arg;

    (void)worker;
    *total += end - begin; /* no atomic: it must all be on one thread */
}

static void tally_piece(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    struct tally *t = arg;

    if (worker < 0 || worker >= t->num_workers || begin >= end || begin < 0 ||
        end > t->count) {
        atomic_fetch_add(&t->failures, 1);
        return;
    }
    atomic_fetch_add(&t->failures, atomic_fetch_add(&t->busy[worker], 1) != 0);
    atomic_fetch_add(&t->pieces, 1);
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add(&t->seen[i], 1);
    if (t->inner > 0) {
        int64_t total = 0;
        t->executor->run(t->executor->ctx, t->inner, 1, count_inner, &total);
        atomic_fetch_add(&t->failures, total != t->inner);
    }
    if (begin % 3 == 0)
        sched_yield();
    atomic_fetch_sub(&t->busy[worker], 1);
}

static struct tally *tally_new(const pe_executor *executor)
{
    struct tally *t = calloc(1, sizeof *t);

    assert_non_null(t);
    t->executor = executor;
    t->num_workers = executor->num_workers;
    return t;
}

static int run_tally(struct tally *t, int64_t count, int64_t grain)
{
    int bad = 0;

    t->count = count;
    for (int64_t i = 0; i < MAX_COUNT; i++)
        atomic_store(&t->seen[i], 0);
    t->executor->run(t->executor->ctx, count, grain, tally_piece, t);
    for (int64_t i = 0; i < MAX_COUNT; i++)
        bad |= atomic_load(&t->seen[i]) != (i < count);
    return bad || atomic_load(&t->failures) != 0;
}

static void test_every_item_once(void **state)
{
    static const int64_t counts[] = {0, 1, 2, 3, 7, 64, 101, 997, 4999};
    static const int64_t grains[] = {1, 2, 13, 100, 6000};

    (void)state;
    for (int32_t n = 1; n <= MAX_WORKERS; n++) {
        pe_pool *pool;
        pe_executor executor;
        assert_int_equal(pe_pool_create(&pool, n, NULL), PE_OK);
        pe_pool_executor(pool, &executor);
        assert_int_equal(executor.num_workers, n);
        assert_int_equal(executor.reserved, 0);
        struct tally *t = tally_new(&executor);
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
            for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++)
                assert_false(run_tally(t, counts[c], grains[g]));
        free(t);
        pe_pool_destroy(pool);
    }
}

/* With as many pieces as threads waiting on each other, all of them must come. */
struct meeting {
    atomic_int arrived;
    int wanted;
};

static void meet(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    struct meeting *m = arg;

    (void)worker;
    (void)begin;
    (void)end;
    atomic_fetch_add(&m->arrived, 1);
    while (atomic_load(&m->arrived) < m->wanted)
        sched_yield();
}

static void test_all_threads_work(void **state)
{
    (void)state;
    for (int32_t n = 2; n <= MAX_WORKERS; n += 3) {
        pe_pool *pool;
        pe_executor executor;
        assert_int_equal(pe_pool_create(&pool, n, NULL), PE_OK);
        pe_pool_executor(pool, &executor);
        for (int round = 0; round < 20; round++) {
            struct meeting m = {0, n};
            executor.run(executor.ctx, n, 1, meet, &m);
            assert_int_equal(atomic_load(&m.arrived), n);
        }
        pe_pool_destroy(pool);
    }
}

static void test_nested(void **state)
{
    pe_pool *pool, *other;
    pe_executor executor, other_executor;

    (void)state;
    assert_int_equal(pe_pool_create(&pool, 4, NULL), PE_OK);
    assert_int_equal(pe_pool_create(&other, 3, NULL), PE_OK);
    pe_pool_executor(pool, &executor);
    pe_pool_executor(other, &other_executor);
    struct tally *t = tally_new(&executor);
    t->inner = 37;
    for (int i = 0; i < 50; i++)
        assert_false(run_tally(t, 101, 2));
    /* From one pool into another and back would wait for itself if pools took turns. */
    t->executor = &other_executor;
    t->num_workers = 4;
    t->count = 101;
    executor.run(executor.ctx, 101, 2, tally_piece, t);
    assert_int_equal(atomic_load(&t->failures), 0);
    free(t);
    pe_pool_destroy(other);
    pe_pool_destroy(pool);
}

static void *call_often(void *arg)
{
    struct tally *t = arg;
    int bad = 0;

    for (int i = 0; i < 60; i++)
        bad |= run_tally(t, 500 + i, 3);
    atomic_fetch_add(&t->failures, bad);
    return NULL;
}

static void test_several_callers(void **state)
{
    enum { CALLERS = 4 };
    pe_pool *pool;
    pe_executor executor;
    pthread_t threads[CALLERS];
    struct tally *tallies[CALLERS];

    (void)state;
    assert_int_equal(pe_pool_create(&pool, 3, NULL), PE_OK);
    pe_pool_executor(pool, &executor);
    for (int i = 0; i < CALLERS; i++) {
        tallies[i] = tally_new(&executor);
        tallies[i]->inner = i % 2 ? 5 : 0;
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, tallies[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(atomic_load(&tallies[i]->failures), 0);
        free(tallies[i]);
    }
    pe_pool_destroy(pool);
}

/* Asleep, spinning, or never used. */
static void test_destroy_while_idle(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        pe_pool *pool;
        pe_executor executor;
        assert_int_equal(pe_pool_create(&pool, 1 + i % MAX_WORKERS, NULL), PE_OK);
        pe_pool_executor(pool, &executor);
        struct tally *t = tally_new(&executor);
        if (i % 3 != 0)
            assert_false(run_tally(t, 400, 1));
        if (i % 4 == 0) {
            const struct timespec pause = {0, 2000000};
            nanosleep(&pause, NULL);
        }
        free(t);
        pe_pool_destroy(pool);
    }
    pe_pool_destroy(NULL);
}

static void test_refusals(void **state)
{
    pe_pool *pool = NULL;
    pe_error error;

    (void)state;
    assert_int_equal(pe_pool_create(&pool, -1, &error), PE_E_ARGUMENT);
    assert_null(pool);
    assert_string_equal(error.message,
                        "num_threads is -1, must be 0 (one for each CPU) to 1024");
    assert_int_equal(pe_pool_create(&pool, 1025, &error), PE_E_ARGUMENT);
    assert_int_equal(pe_pool_create(NULL, 1, &error), PE_E_ARGUMENT);
    assert_string_equal(error.message, "out is NULL");
    assert_int_equal(pe_pool_create(&pool, 0, &error), PE_OK);
    pe_pool_destroy(pool);
}

/* A rotation, a table and a bias, alone and with 1 to 8 threads. */
enum { TOKENS = 211, HEADS = 5, DIM = 36, SIZE = TOKENS * HEADS * DIM };

struct results {
    float x[SIZE], table[2][TOKENS * DIM], scores[HEADS * TOKENS * TOKENS];
};

static void compute(struct results *r, const pe_env *env)
{
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = DIM,
                               .pairs = {.pairing = PE_INTERLEAVED},
                               .freqs = {.rope_theta = 10000}};
    const pe_bias_spec alibi = {.struct_size = sizeof alibi,
                                .type = PE_BIAS_ALIBI,
                                .form = PE_BIAS_CAUSAL,
                                .num_heads = HEADS};
    const pe_positions at = {.start = 1000003};
    pe_tensor x, cosine, sine, scores;
    pe_rope *rope;
    pe_bias *bias;
    test_rng rng = {7};

    for (int i = 0; i < SIZE; i++)
        r->x[i] = test_rng_float(&rng);
    for (int i = 0; i < HEADS * TOKENS * TOKENS; i++)
        r->scores[i] = test_rng_float(&rng);
    pe_tensor_bshd(&x, PE_F32, r->x, 1, TOKENS, HEADS, DIM);
    pe_tensor_bshd(&cosine, PE_F32, r->table[0], 1, TOKENS, 1, DIM);
    pe_tensor_bshd(&sine, PE_F32, r->table[1], 1, TOKENS, 1, DIM);
    pe_tensor_bhsd(&scores, PE_F32, r->scores, 1, HEADS, TOKENS, TOKENS);
    assert_int_equal(pe_rope_create(&rope, &spec, env, NULL), PE_OK);
    assert_int_equal(pe_bias_create(&bias, &alibi, env, NULL), PE_OK);
    assert_int_equal(pe_rope_apply(rope, &at, &x, &x, NULL), PE_OK);
    assert_int_equal(pe_rope_table(rope, &at, &cosine, &sine, NULL), PE_OK);
    assert_int_equal(
        pe_bias_softmax(bias, 0.5, PE_MASK_CAUSAL, &at, &at, &scores, &scores, NULL),
        PE_OK);
    pe_rope_destroy(rope);
    pe_bias_destroy(bias);
}

static void test_same_bits(void **state)
{
    struct results *alone = calloc(1, sizeof *alone), *many = calloc(1, sizeof *many);

    (void)state;
    assert_non_null(alone);
    assert_non_null(many);
    compute(alone, NULL);
    for (int32_t n = 1; n <= MAX_WORKERS; n++) {
        pe_pool *pool;
        pe_env env = {.struct_size = sizeof env};
        assert_int_equal(pe_pool_create(&pool, n, NULL), PE_OK);
        pe_pool_executor(pool, &env.executor);
        memset(many, 0, sizeof *many);
        compute(many, &env);
        assert_memory_equal(alone, many, sizeof *alone);
        pe_pool_destroy(pool);
    }
    free(alone);
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_item_once),
                                       cmocka_unit_test(test_all_threads_work),
                                       cmocka_unit_test(test_nested),
                                       cmocka_unit_test(test_several_callers),
                                       cmocka_unit_test(test_destroy_while_idle),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_same_bits)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
