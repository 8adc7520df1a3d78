/* SPDX-License-Identifier: MIT
 *
 * test_lab_trainer.c - steps: the same bits on any number of threads, and refusals
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/adamw.h"
#include "posenc/threads.h"

enum { STEPS = 4 };

static lab_corpus corpus;

static lab_config small(const char *layers, lab_method input, int learn_slopes)
{
    lab_config config = {.width = 24,
                         .heads = 2,
                         .length = 11,
                         .batch = 19, /* two chunks of eight and a rest */
                         .steps = 10,
                         .warmup = 2,
                         .peak_rate = 1e-2,
                         .weight_decay = 0.1,
                         .clip = 0.5,
                         .learn_slopes = learn_slopes,
                         .input = input,
                         .seed = 3};
    pe_error error;
    if (lab_config_set_layers(&config, layers, &error) != PE_OK)
        fail_msg("%s", error.message);
    return config;
}

static void train(lab_state *state, const lab_config *config, int32_t threads,
                  lab_step *steps)
{
    pe_env env = {.struct_size = sizeof env};
    pe_pool *pool = NULL;
    lab_trainer *trainer;
    pe_error error;
    if (threads > 0) {
        assert_int_equal(pe_pool_create(&pool, threads, &error), PE_OK);
        pe_pool_executor(pool, &env.executor);
    }
    if (lab_state_create(state, config, &error) != PE_OK ||
        lab_trainer_create(&trainer, state, &corpus, NULL, threads > 0 ? &env : NULL,
                           &error) != PE_OK)
        fail_msg("%s", error.message);
    for (int i = 0; i < STEPS; i++)
        if (lab_trainer_step(trainer, &steps[i], &error) != PE_OK)
            fail_msg("%s", error.message);
    assert_true(lab_trainer_memory(trainer) > (size_t)state->layout.size * 4 * 6);
    lab_trainer_destroy(trainer);
    pe_pool_destroy(pool);
}

static void assert_same(const lab_state *a, const lab_state *b)
{
    const size_t size = (size_t)a->layout.size * sizeof(float);
    assert_int_equal(a->step, b->step);
    assert_memory_equal(&a->loss_average, &b->loss_average, sizeof(double));
    assert_memory_equal(a->weights, b->weights, size);
    assert_memory_equal(a->moment1, b->moment1, size);
    assert_memory_equal(a->moment2, b->moment2, size);
}

static void threads_do_not_show(void **state)
{
    const lab_config configs[] = {small("rope,none", LAB_NONE, 0),
                                  small("alibi,rope", LAB_LEARNED, 1),
                                  small("t5,kerple,t5", LAB_SIN, 0)};
    (void)state;
    for (size_t c = 0; c < LAB_COUNT(configs); c++) {
        lab_state first;
        lab_step want[STEPS], got[STEPS];
        train(&first, &configs[c], 0, want);
        assert_true(want[STEPS - 1].loss < want[0].loss);
        for (int32_t threads = 1; threads <= 3; threads++) {
            lab_state other;
            train(&other, &configs[c], threads, got);
            assert_same(&first, &other);
            assert_memory_equal(want, got, sizeof got);
            lab_state_release(&other);
        }
        lab_state_release(&first);
    }
}

static void biases_learn(void **state)
{
    const lab_config config = small("kerple,alibi", LAB_NONE, 1);
    lab_state before, after;
    lab_step steps[STEPS];
    pe_error error;
    (void)state;
    assert_int_equal(lab_state_create(&before, &config, &error), PE_OK);
    train(&after, &config, 0, steps);
    for (int32_t i = 0; i < after.layout.count; i++) {
        const lab_parameter *item = &after.layout.items[i];
        assert_memory_not_equal(after.weights + item->offset,
                                before.weights + item->offset,
                                (size_t)lab_parameter_size(item) * sizeof(float));
    }
    lab_state_release(&before);
    lab_state_release(&after);
}

/* Below zero there is no such bias: a step that would go there stops before. */
static void kerple_stays_positive(void **state)
{
    const lab_config config = small("kerple", LAB_NONE, 0);
    lab_state s;
    lab_adamw *adamw;
    pe_error error;
    (void)state;
    assert_int_equal(lab_state_create(&s, &config, &error), PE_OK);
    assert_int_equal(lab_adamw_create(&adamw, &s.layout, NULL, &error), PE_OK);
    float *grads = calloc((size_t)s.layout.size, sizeof *grads);
    assert_non_null(grads);
    const lab_parameter *kerple = lab_layout_find(&s.layout, "b.0.kerple");
    float *w = s.weights + kerple->offset;
    for (int i = 0; i < 4; i++) {
        w[i] = i == 2 ? 1 : 0.0101f;
        grads[kerple->offset + i] = 1;
    }
    lab_adamw_step(adamw, &s, grads, 2, 0.5);
    for (int i = 0; i < 4; i++)
        assert_true(fabsf(w[i] - (i == 2 ? 0.5f : 0.01f)) < 1e-6f);
    lab_adamw_destroy(adamw);
    lab_state_release(&s);
    free(grads);
}

/* ---------------------------------------------------------------------- refusals --- */

static void what_is_not_finite_is_named(void **state)
{
    static const struct {
        float value;
        const char *parameter, *words[3];
    } cases[] = {
        {NAN,
         "b.1.f1",
         {
             "the loss of step 3 is",
             "nan",
             "weight",
         }},
        {INFINITY, "b.0.o", {"step 3", "weight", "element 5 of b.0.o"}},
        {3e38f, "u", {"step 3", "gradient", "of e"}},
    };
    const lab_config config = small("rope,alibi", LAB_NONE, 0);
    (void)state;
    for (size_t c = 0; c < LAB_COUNT(cases); c++) {
        lab_state s;
        lab_trainer *trainer;
        lab_step step = {0};
        pe_error error;
        assert_int_equal(lab_state_create(&s, &config, &error), PE_OK);
        assert_int_equal(lab_trainer_create(&trainer, &s, &corpus, NULL, NULL, &error),
                         PE_OK);
        for (int i = 0; i < 2; i++)
            assert_int_equal(lab_trainer_step(trainer, &step, &error), PE_OK);
        const lab_parameter *item = lab_layout_find(&s.layout, cases[c].parameter);
        s.weights[item->offset + 5] = cases[c].value;
        const size_t size = (size_t)s.layout.size * sizeof(float);
        float *kept = malloc(3 * size);
        assert_non_null(kept);
        memcpy(kept, s.weights, size);
        memcpy(kept + s.layout.size, s.moment1, size);
        memcpy(kept + 2 * s.layout.size, s.moment2, size);
        const double average = s.loss_average;
        assert_int_equal(lab_trainer_step(trainer, &step, &error), PE_E_ARGUMENT);
        for (int i = 0; i < 3; i++)
            if (strstr(error.message, cases[c].words[i]) == NULL)
                fail_msg("'%s' does not say %s", error.message, cases[c].words[i]);
        assert_memory_equal(kept, s.weights, size);
        assert_memory_equal(kept + s.layout.size, s.moment1, size);
        assert_memory_equal(kept + 2 * s.layout.size, s.moment2, size);
        assert_true(s.step == 2 && s.loss_average == average);
        free(kept);
        lab_trainer_destroy(trainer);
        lab_state_release(&s);
    }
}

static void bad_rows_are_refused(void **state)
{
    const lab_config config = small("none", LAB_NONE, 0);
    int64_t offsets[2 * 19] = {0};
    lab_state s;
    lab_trainer *trainer;
    lab_step step;
    pe_error error;
    (void)state;
    offsets[19 + 4] = corpus.train_size - config.length;
    assert_int_equal(lab_state_create(&s, &config, &error), PE_OK);
    assert_int_equal(lab_trainer_create(&trainer, &s, &corpus, offsets, NULL, &error),
                     PE_OK);
    assert_int_equal(lab_trainer_step(trainer, &step, &error), PE_OK);
    assert_int_equal(lab_trainer_step(trainer, &step, &error), PE_E_ARGUMENT);
    assert_non_null(strstr(error.message, "step 1, row 4"));
    assert_int_equal(s.step, 1);
    lab_trainer_destroy(trainer);

    lab_corpus tiny = corpus;
    tiny.train_size = config.length;
    assert_int_equal(lab_trainer_create(&trainer, &s, &tiny, NULL, NULL, &error),
                     PE_E_ARGUMENT);
    assert_null(trainer);
    s.config.heads = 5;
    assert_int_equal(lab_trainer_create(&trainer, &s, &corpus, NULL, NULL, &error),
                     PE_E_ARGUMENT);
    lab_state_release(&s);
}

static void passes_refuse_what_has_no_meaning(void **state)
{
    const lab_config config = small("none", LAB_LEARNED, 0);
    lab_layout layout;
    lab_pass *pass;
    pe_error error;
    (void)state;
    lab_layout_make(&layout, &config);
    lab_pass_spec spec = {.config = &config,
                          .layout = &layout,
                          .mode = {.times = 1},
                          .rows = 1,
                          .tokens = config.length + 1};
    assert_int_equal(lab_pass_create(&pass, &spec, &error), PE_E_ARGUMENT);
    assert_null(pass);
    assert_non_null(
        strstr(error.message, "tokens is 12, the learned table ends at 11"));
    spec.mode.type = LAB_MODE_CLAMP;
    assert_int_equal(lab_pass_create(&pass, &spec, &error), PE_OK);
    lab_pass_destroy(pass);
    spec.has_backward = 1;
    assert_int_equal(lab_pass_create(&pass, &spec, &error), PE_E_ARGUMENT);
    assert_non_null(strstr(error.message, "mode"));
    spec.has_backward = 0;
    spec.tokens = 0;
    assert_int_equal(lab_pass_create(&pass, &spec, &error), PE_E_ARGUMENT);
    spec.tokens = INT64_MAX;
    assert_int_equal(lab_pass_create(&pass, &spec, &error), PE_E_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_not_show),
        cmocka_unit_test(biases_learn),
        cmocka_unit_test(kerple_stays_positive),
        cmocka_unit_test(what_is_not_finite_is_named),
        cmocka_unit_test(bad_rows_are_refused),
        cmocka_unit_test(passes_refuse_what_has_no_meaning)};
    pe_error error;
    if (lab_corpus_copy(&corpus, 3, &error) != PE_OK) {
        printf("%s\n", error.message);
        return 1;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lab_corpus_release(&corpus);
    return failed;
}
