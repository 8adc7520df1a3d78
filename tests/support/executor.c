/* SPDX-License-Identifier: MIT
 *
 * executor.c - an executor that does everything an executor may do
 */
#include "executor.h"

#include <pthread.h>
#include <stdlib.h>

static void run_backwards(void *ctx, int64_t count, int64_t grain, pe_work_fn work,
                          void *arg)
{
    (void)ctx;
    (void)grain;
    for (int64_t i = count - 1; i >= 0; i--)
        work(arg, (int32_t)(i % TEST_NUM_WORKERS), i, i + 1);
}

const pe_executor test_executor_backwards = {.run = run_backwards,
                                             .num_workers = TEST_NUM_WORKERS};

struct job {
    pthread_mutex_t lock;
    int64_t next, count, taken;
    pe_work_fn work;
    void *arg;
};

struct seat {
    struct job *job;
    int32_t worker;
};

static void *serve(void *arg)
{
    const struct seat *seat = arg;
    struct job *job = seat->job;

    for (;;) {
        pthread_mutex_lock(&job->lock);
        const int64_t begin = job->next;
        int64_t end = begin + 1 + job->taken++ % 3;
        if (end > job->count)
            end = job->count;
        job->next = end;
        pthread_mutex_unlock(&job->lock);
        if (begin >= end)
            return NULL;
        job->work(job->arg, seat->worker, begin, end);
    }
}

static void run_threads(void *ctx, int64_t count, int64_t grain, pe_work_fn work,
                        void *arg)
{
    struct job job = {.count = count, .work = work, .arg = arg};
    struct seat seats[TEST_NUM_WORKERS];
    pthread_t threads[TEST_NUM_WORKERS];

    (void)ctx;
    (void)grain;
    pthread_mutex_init(&job.lock, NULL);
    for (int32_t i = 0; i < TEST_NUM_WORKERS; i++) {
        seats[i] = (struct seat){&job, i};
        if (pthread_create(&threads[i], NULL, serve, &seats[i]) != 0)
            abort();
    }
    for (int32_t i = 0; i < TEST_NUM_WORKERS; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&job.lock);
}

const pe_executor test_executor_threads = {.run = run_threads,
                                           .num_workers = TEST_NUM_WORKERS};
