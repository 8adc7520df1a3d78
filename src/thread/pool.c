/* SPDX-License-Identifier: MIT
 *
 * pool.c - threads that share the pieces of one call at a time
 *
 * The caller publishes a job and works on it like everybody else.  A thread enters
 * through the gate, a counter of those inside, which the caller closes when no piece is
 * left; then it waits for those inside, and for nobody else. */
#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT */

#include "thread/pool.h"

#include "base/error.h"
#include "base/memory.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

enum {
    MAX_THREADS = 1024,
    SPINS = 2000,          /* 20 to 60 us of pauses */
    PIECES_PER_THREAD = 4, /* so that a thread that lost its CPU does not hold up all */
    LINE = 64
};

/* The gate: how many are inside, whether it is closed, and which job it leads to. */
#define GATE_INSIDE 0xffffu
#define GATE_CLOSED 0x10000u
#define GATE_NEXT   0x20000u

/* One worker's place, and its share of the job: pieces from next to end. */
typedef struct {
    pe_pool *pool;
    pthread_t thread;
    int32_t worker;
    int64_t end;
    _Alignas(LINE) atomic_int_fast64_t next;
    char end_of_line[LINE - sizeof(atomic_int_fast64_t)];
} seat;

struct pe_pool {
    pe_env env; /* its allocator */
    int32_t num_threads;
    int32_t num_started;
    seat *seats; /* [num_threads], the caller's first */
    pthread_mutex_t turn;

    /* The job: written before the gate opens, read inside it. */
    int64_t count, num_pieces;
    pe_work_fn work;
    void *arg;

    pthread_mutex_t lock;
    pthread_cond_t opened, left;
    int stop; /* under lock */

    _Alignas(LINE) atomic_uint_fast64_t gate;
    atomic_int sleepers;
    char end_of_line[LINE - sizeof(atomic_uint_fast64_t) - sizeof(atomic_int)];
};

/* Set while this thread is inside a piece of work, of any pool. */
static _Thread_local int at_work;

/* Pieces differ by one item at most. */
static int64_t begin_of(const pe_pool *pool, int64_t piece)
{
    const int64_t rest = pool->count % pool->num_pieces;
    return piece * (pool->count / pool->num_pieces) + (piece < rest ? piece : rest);
}

/* The next piece of a share, or -1. */
static int64_t take(seat *share)
{
    if (atomic_load_explicit(&share->next, memory_order_relaxed) >= share->end)
        return -1;
    const int64_t i = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);
    return i < share->end ? i : -1;
}

/* A worker's own share comes first, so that call after call finds the same data in the
 * cache of the same CPU; then what others have not begun. */
static void work_on(pe_pool *pool, int32_t worker)
{
    at_work = 1;
    for (int32_t k = 0; k < pool->num_threads; k++) {
        seat *share = &pool->seats[(worker + k) % pool->num_threads];
        for (int64_t i; (i = take(share)) >= 0;)
            pool->work(pool->arg, worker, begin_of(pool, i), begin_of(pool, i + 1));
    }
    at_work = 0;
}

static int is_news(uint_fast64_t gate, uint_fast64_t seen)
{
    return !(gate & GATE_CLOSED) && gate / GATE_NEXT != seen;
}

/* The gate of a job other than seen, or of none when the pool stops.  Either the opener
 * sees the sleeper, or the sleeper sees the gate: both write before they read. */
static uint_fast64_t await_job(pe_pool *pool, uint_fast64_t seen)
{
    uint_fast64_t gate;
    for (int i = 0; i < SPINS; i++) {
        gate = atomic_load_explicit(&pool->gate, memory_order_acquire);
        if (is_news(gate, seen))
            return gate;
        PE_PAUSE();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    while (gate = atomic_load(&pool->gate), !is_news(gate, seen) && !pool->stop)
        pthread_cond_wait(&pool->opened, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
    return gate;
}

static void leave(pe_pool *pool)
{
    const uint_fast64_t before = atomic_fetch_sub(&pool->gate, 1);
    if ((before & GATE_CLOSED) && (before & GATE_INSIDE) == 1) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_signal(&pool->left);
        pthread_mutex_unlock(&pool->lock);
    }
}

static void *serve(void *arg)
{
    const seat *own = arg;
    pe_pool *pool = own->pool;
    uint_fast64_t seen = 0;
    for (;;) {
        uint_fast64_t gate = await_job(pool, seen);
        if (!is_news(gate, seen))
            return NULL;
        if (!atomic_compare_exchange_strong(&pool->gate, &gate, gate + 1))
            continue;
        seen = gate / GATE_NEXT;
        work_on(pool, own->worker);
        leave(pool);
    }
}

static void open_gate(pe_pool *pool)
{
    const uint_fast64_t job = atomic_load(&pool->gate) / GATE_NEXT + 1;
    atomic_store(&pool->gate, job * GATE_NEXT);
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->opened);
        pthread_mutex_unlock(&pool->lock);
    }
}

static void close_gate(pe_pool *pool)
{
    uint_fast64_t gate = atomic_fetch_or(&pool->gate, GATE_CLOSED);
    for (int i = 0; i < SPINS && (gate & GATE_INSIDE); i++) {
        PE_PAUSE();
        gate = atomic_load_explicit(&pool->gate, memory_order_acquire);
    }
    if (!(gate & GATE_INSIDE))
        return;
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&pool->gate) & GATE_INSIDE)
        pthread_cond_wait(&pool->left, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void run(void *ctx, int64_t count, int64_t grain, pe_work_fn work, void *arg)
{
    pe_pool *pool = ctx;
    if (grain < 1)
        grain = 1;
    if (at_work || pool->num_started == 0 || count <= grain) {
        if (count > 0)
            work(arg, 0, 0, count);
        return;
    }
    /* As many for each thread, where there is a grain for each. */
    const int64_t threads = pool->num_threads, most = threads * PIECES_PER_THREAD;
    int64_t pieces = (count - 1) / grain + 1;
    if (pieces > threads)
        pieces = pieces > most ? most : (pieces + threads - 1) / threads * threads;
    pieces = pieces > count ? count : pieces;
    pthread_mutex_lock(&pool->turn);
    pool->count = count;
    pool->num_pieces = pieces;
    for (int64_t i = 0; i < threads; i++) {
        atomic_store_explicit(&pool->seats[i].next, pieces * i / threads,
                              memory_order_relaxed);
        pool->seats[i].end = pieces * (i + 1) / threads;
    }
    pool->work = work;
    pool->arg = arg;
    open_gate(pool);
    work_on(pool, 0);
    close_gate(pool);
    pthread_mutex_unlock(&pool->turn);
}

static int32_t usable_cpus(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    const int count = CPU_COUNT(&set);
    return count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : count;
}

/* New threads inherit the mask: signals stay with the program's own. */
static int start_threads(pe_pool *pool)
{
    sigset_t all, before;
    int failure = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int32_t i = 1; i < pool->num_threads && failure == 0; i++) {
        pool->seats[i].pool = pool;
        pool->seats[i].worker = i;
        failure = pthread_create(&pool->seats[i].thread, NULL, serve, &pool->seats[i]);
        pool->num_started += failure == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}

static size_t seats_size(const pe_pool *pool)
{
    return (size_t)pool->num_threads * sizeof *pool->seats;
}

pe_status pe_pool_create(pe_pool **out, int32_t num_threads, pe_error *error)
{
    pe_env env;
    if (out == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "out is NULL");
    *out = NULL;
    if (num_threads < 0 || num_threads > MAX_THREADS)
        return pe_fail(error, PE_E_ARGUMENT,
                       "num_threads is %d, must be 0 (one for each CPU) to %d",
                       num_threads, MAX_THREADS);
    const pe_status status = pe_env_resolve(&env, NULL, error);
    if (status != PE_OK)
        return status;
    pe_pool *pool = pe_alloc(&env, sizeof *pool);
    if (pool == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for the pool");
    pool->env = env;
    pool->num_threads = num_threads == 0 ? usable_cpus() : num_threads;
    pthread_mutex_init(&pool->turn, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->opened, NULL);
    pthread_cond_init(&pool->left, NULL);
    atomic_init(&pool->gate, GATE_CLOSED);
    atomic_init(&pool->sleepers, 0);
    if (pool->num_threads > 1) {
        pool->seats = pe_alloc(&env, seats_size(pool));
        if (pool->seats == NULL || start_threads(pool) != 0) {
            const int32_t started = pool->num_started + 1, wanted = pool->num_threads;
            pe_pool_destroy(pool);
            return pe_fail(error, PE_E_NO_MEMORY,
                           "the system gave %d of num_threads (%d)", started, wanted);
        }
    }
    *out = pool;
    return PE_OK;
}

void pe_pool_destroy(pe_pool *pool)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = 1;
    pthread_cond_broadcast(&pool->opened);
    pthread_mutex_unlock(&pool->lock);
    for (int32_t i = 0; i < pool->num_started; i++)
        pthread_join(pool->seats[i + 1].thread, NULL);
    pthread_cond_destroy(&pool->left);
    pthread_cond_destroy(&pool->opened);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->turn);
    const pe_env env = pool->env;
    if (pool->num_threads > 1)
        pe_release(&env, pool->seats, seats_size(pool));
    pe_release(&env, pool, sizeof *pool);
}

void pe_pool_executor(pe_pool *pool, pe_executor *out)
{
    *out = (pe_executor){.run = run, .ctx = pool, .num_workers = pool->num_threads};
}
