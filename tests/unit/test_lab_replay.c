/* SPDX-License-Identifier: MIT
 *
 * test_lab_replay.c - whole trainings, from PyTorch's weights on PyTorch's rows
 *
 * Configuration B, 600 steps on the King James text: weights drift apart by rounding,
 * yet the averaged losses and the evaluations have to be PyTorch's.  Its methods started
 * from the same weights and saw the same rows, so one file holds them for all. */
#include "../support/lab/lab_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "lab/evaluate.h"
#include "posenc/threads.h"

enum { STEPS = 600, SKIPPED = 77 };

/* Side run B of the reference, seed 0: the averaged loss after every 100 steps, and nats
 * at 1, 2, 4, 8 and 16 times the trained length.  Four decimals were kept. */
static const struct {
    const char *method, *mode;
    double averages[6], nll[5];
} runs[] = {
    {"none",
     "base",
     {3.1989, 2.3731, 2.2138, 2.1512, 2.1093, 2.0879},
     {2.0752, 2.1407, 2.1962, 2.2398, 2.2694}},
    {"sin",
     "base",
     {3.2184, 2.3246, 2.0299, 1.8611, 1.7709, 1.7213},
     {1.6756, 2.3071, 2.6276, 2.7826, 2.9114}},
    {"learned",
     "clamp",
     {3.2352, 2.3870, 2.2004, 2.0720, 1.9702, 1.9112},
     {1.8768, 2.2485, 2.3826, 2.4330, 2.4659}},
    {"rope",
     "base",
     {3.1442, 2.0784, 1.7740, 1.6416, 1.5717, 1.5359},
     {1.4995, 1.6070, 2.4416, 2.9961, 3.3305}},
    {"alibi",
     "base",
     {3.1540, 2.2059, 1.9377, 1.8078, 1.7336, 1.6955},
     {1.6530, 1.6458, 1.6426, 1.6414, 1.6403}},
};
static const double bound = 1e-3 + 5e-5; /* nats, and half of the last decimal */

static lab_corpus corpus;
static pe_pool *pool;
static pe_env env = {.struct_size = sizeof(pe_env)};

static void train(lab_fixture *f, const double *averages)
{
    const int64_t *offsets =
        lab_fixture_data(f, "batch_offsets", (int64_t)STEPS * f->state.config.batch);
    lab_trainer *trainer;
    lab_step step;
    pe_error error;
    if (lab_trainer_create(&trainer, &f->state, &corpus, offsets, &env, &error) !=
        PE_OK)
        fail_msg("%s", error.message);
    for (int i = 0; i < STEPS; i++) {
        if (lab_trainer_step(trainer, &step, &error) != PE_OK)
            fail_msg("%s", error.message);
        if (i % 100 == 99) {
            const double off = fabs(f->state.loss_average - averages[i / 100]);
            printf("  step %d: average %.4f, off by %.5f\n", i + 1,
                   f->state.loss_average, off);
            assert_true(off <= bound);
        }
    }
    lab_trainer_destroy(trainer);
}

static void evaluate(const lab_fixture *f, const char *mode, const double *want)
{
    lab_eval_spec spec = {.config = &f->state.config,
                          .layout = &f->state.layout,
                          .weights = f->state.weights,
                          .corpus = &corpus,
                          .eval_tokens = 32768,
                          .executor = &env.executor};
    pe_error error;
    if (lab_mode_parse(&spec.mode, mode, &error) != PE_OK)
        fail_msg("%s", error.message);
    for (int i = 0; i < 5; i++) {
        lab_eval eval = {0};
        spec.multiple = (int64_t)1 << i;
        if (lab_evaluate(&spec, &eval, &error) != PE_OK)
            fail_msg("%s", error.message);
        printf("  %2d L: %.4f, off by %.5f\n", 1 << i, eval.nll,
               fabs(eval.nll - want[i]));
        assert_true(fabs(eval.nll - want[i]) <= bound);
    }
}

static void trainings_repeat(void **state)
{
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(runs); i++) {
        lab_fixture f;
        lab_fixture_open(&f, "tests/data/lab/B_replay.safetensors", runs[i].method,
                         &lab_config_b);
        printf("%s\n", runs[i].method);
        train(&f, runs[i].averages);
        evaluate(&f, runs[i].mode, runs[i].nll);
        lab_fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trainings_repeat)};
    pe_error error;
    const pe_status status = lab_corpus_kjv(&corpus, &error);
    if (status == PE_E_NOT_FOUND) {
        printf("SKIPPED, no training was repeated: %s\n", error.message);
        return SKIPPED;
    }
    if (status != PE_OK || pe_pool_create(&pool, 0, &error) != PE_OK) {
        printf("%s\n", error.message);
        return 1;
    }
    pe_pool_executor(pool, &env.executor);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pe_pool_destroy(pool);
    lab_corpus_release(&corpus);
    return failed;
}
