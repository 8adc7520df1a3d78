/* SPDX-License-Identifier: MIT
 *
 * lab_steps.c - our side of the training comparison: steps of configuration A, timed
 *
 * A library of flat calls for ctypes.  The text is the copy language: what a step costs
 * does not depend on it. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "lab/trainer.h"
#include "posenc/threads.h"

#include <stdlib.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct lab_bench {
    lab_state state;
    lab_corpus corpus;
    lab_trainer *trainer;
    pe_pool *pool;
} lab_bench;

void lab_bench_destroy(lab_bench *bench);
lab_bench *lab_bench_create(const char *method, int32_t num_threads);
double lab_bench_run(lab_bench *bench, int64_t steps);

EXPORT void lab_bench_destroy(lab_bench *bench)
{
    if (bench == NULL)
        return;
    lab_trainer_destroy(bench->trainer);
    lab_state_release(&bench->state);
    lab_corpus_release(&bench->corpus);
    pe_pool_destroy(bench->pool);
    free(bench);
}

/* NULL: refused. */
EXPORT lab_bench *lab_bench_create(const char *method, int32_t num_threads)
{
    lab_bench *bench = calloc(1, sizeof *bench);
    lab_config config = lab_config_a;
    pe_env env = {.struct_size = sizeof env};
    lab_method number;
    if (bench == NULL || !lab_method_find(method, &number)) {
        free(bench);
        return NULL;
    }
    lab_config_set_method(&config, number);
    config.steps = 1000000; /* never used up */
    if (pe_pool_create(&bench->pool, num_threads, NULL) == PE_OK &&
        lab_corpus_copy(&bench->corpus, 16, NULL) == PE_OK &&
        lab_state_create(&bench->state, &config, NULL) == PE_OK) {
        pe_pool_executor(bench->pool, &env.executor);
        if (lab_trainer_create(&bench->trainer, &bench->state, &bench->corpus, NULL,
                               &env, NULL) == PE_OK)
            return bench;
    }
    lab_bench_destroy(bench);
    return NULL;
}

/* Nanoseconds of a step; negative: one failed. */
EXPORT double lab_bench_run(lab_bench *bench, int64_t steps)
{
    struct timespec begin, end;
    lab_step step;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int64_t i = 0; i < steps; i++)
        if (lab_trainer_step(bench->trainer, &step, NULL) != PE_OK)
            return -1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 +
            (double)(end.tv_nsec - begin.tv_nsec)) /
           (double)steps;
}
