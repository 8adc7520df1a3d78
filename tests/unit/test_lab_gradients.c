/* SPDX-License-Identifier: MIT
 *
 * test_lab_gradients.c - losses and gradients against differences of a model in double
 *
 * Every method and a few mixtures, at sizes that fill no vector: single elements of
 * each tensor, and whole tensors along random directions. */
#include "../support/lab/lab_reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/rng.h"
#include "lab/pass.h"

enum { ROWS = 2, TOKENS = 21, COUNT = ROWS * TOKENS, ELEMENTS = 5 };

typedef struct {
    lab_config config;
    lab_layout layout;
    uint8_t ids[ROWS * (TOKENS + 1)];
    float *weights, *grads;
    double *moved; /* weights in double, of which some are displaced */
} trial;

static void start(trial *t, const char *input, const char *layers, int learn_slopes,
                  test_rng *rng)
{
    pe_error error;
    t->config = (lab_config){.width = 20,
                             .heads = 2,
                             .length = TOKENS,
                             .batch = ROWS,
                             .steps = 1,
                             .peak_rate = 1e-3,
                             .clip = 1,
                             .learn_slopes = learn_slopes,
                             .seed = 5};
    if (lab_config_set_layers(&t->config, layers, &error) != PE_OK)
        fail_msg("%s", error.message);
    assert_true(lab_method_find(input, &t->config.input));
    if (lab_config_check(&t->config, &error) != PE_OK)
        fail_msg("%s", error.message);
    lab_layout_make(&t->layout, &t->config);
    const size_t size = (size_t)t->layout.size;
    t->weights = aligned_alloc(64, size * sizeof *t->weights);
    t->grads = aligned_alloc(64, size * sizeof *t->grads);
    t->moved = malloc(size * sizeof *t->moved);
    assert_true(t->weights != NULL && t->grads != NULL && t->moved != NULL);
    if (lab_weights_init(t->weights, &t->layout, &t->config, &error) != PE_OK)
        fail_msg("%s", error.message);
    for (int32_t i = 0; i < t->layout.count; i++) /* gains and biases not all alike */
        for (int64_t j = 0; j < lab_parameter_size(&t->layout.items[i]); j++)
            t->weights[t->layout.items[i].offset + j] *= 1 + 0.3f * test_rng_float(rng);
    for (size_t i = 0; i < size; i++)
        t->moved[i] = (double)t->weights[i];
    for (size_t i = 0; i < sizeof t->ids; i++)
        t->ids[i] = (uint8_t)test_rng_int(rng, 0, 255);
}

static void stop(trial *t)
{
    free(t->weights);
    free(t->grads);
    free(t->moved);
}

static double loss_of(const trial *t)
{
    return lab_reference_loss(&t->config, &t->layout, t->moved, t->ids, ROWS, TOKENS);
}

static void differentiate(trial *t, pe_isa isa)
{
    const lab_pass_spec spec = {.config = &t->config,
                                .layout = &t->layout,
                                .mode = {.times = 1},
                                .rows = ROWS,
                                .tokens = TOKENS,
                                .has_backward = 1,
                                .isa = isa};
    lab_pass *pass;
    float nll[COUNT];
    double loss = 0;
    pe_error error;
    memset(t->grads, 0xff, (size_t)t->layout.size * sizeof *t->grads);
    if (lab_pass_create(&pass, &spec, &error) != PE_OK ||
        lab_pass_forward(pass, t->weights, t->ids, TOKENS + 1, nll, &error) != PE_OK ||
        lab_pass_backward(pass, t->weights, 1, t->grads, &error) != PE_OK)
        fail_msg("%s", error.message);
    for (int i = 0; i < COUNT; i++)
        loss += (double)nll[i];
    assert_true(fabs(loss - loss_of(t)) <= 1e-6 * loss);
    lab_pass_destroy(pass);
}

/* Central difference of the loss along direction, which is [count]. */
static double difference(trial *t, int64_t offset, const double *direction,
                         int64_t count)
{
    const double step = 1e-5;
    double loss[2];
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < count; i++)
            t->moved[offset + i] = (double)t->weights[offset + i] +
                                   (side == 0 ? step : -step) * direction[i];
        loss[side] = loss_of(t);
    }
    for (int64_t i = 0; i < count; i++)
        t->moved[offset + i] = (double)t->weights[offset + i];
    return (loss[0] - loss[1]) / (2 * step);
}

static void check_elements(trial *t, const lab_parameter *item, test_rng *rng)
{
    const double one = 1;
    const int64_t size = lab_parameter_size(item);
    double largest = 0;
    for (int64_t i = 0; i < size; i++)
        largest = fmax(largest, fabs((double)t->grads[item->offset + i]));
    assert_true(largest > 0);
    for (int n = 0; n < ELEMENTS; n++) {
        const int64_t at = item->offset + test_rng_int(rng, 0, size - 1);
        const double want = difference(t, at, &one, 1);
        if (!(fabs((double)t->grads[at] - want) <= 2e-5 * largest + 1e-8))
            fail_msg("%s: element %lld is %g, not %g", item->name,
                     (long long)(at - item->offset), (double)t->grads[at], want);
    }
}

static void check_direction(trial *t, const lab_parameter *item, test_rng *rng)
{
    const int64_t size = lab_parameter_size(item);
    double *direction = malloc((size_t)size * sizeof *direction);
    double got = 0, norm = 0;
    assert_non_null(direction);
    for (int64_t i = 0; i < size; i++) {
        const double g = (double)t->grads[item->offset + i];
        direction[i] = (double)test_rng_float(rng);
        got += g * direction[i];
        norm += g * g;
    }
    const double want = difference(t, item->offset, direction, size);
    if (!(fabs(got - want) <= 2e-5 * sqrt(norm) + 1e-7))
        fail_msg("%s: along a direction %g, not %g", item->name, got, want);
    free(direction);
}

static void check_gaps(const trial *t)
{
    int64_t end = 0;
    for (int32_t i = 0; i <= t->layout.count; i++) {
        const int64_t begin =
            i < t->layout.count ? t->layout.items[i].offset : t->layout.size;
        for (; end < begin; end++)
            assert_true(t->grads[end] == 0);
        if (i < t->layout.count)
            end += lab_parameter_size(&t->layout.items[i]);
    }
}

static void gradients_are_differences(void **state)
{
    static const struct {
        const char *input, *layers;
        int learn_slopes;
    } models[] = {{"none", "none,none", 0},
                  {"sin", "none", 0},
                  {"learned", "none", 0},
                  {"none", "rope,rope", 0},
                  {"none", "alibi,alibi", 0},
                  {"none", "alibi,rope,alibi", 1},
                  {"none", "t5,t5", 0},
                  {"none", "kerple,kerple", 0},
                  {"learned", "rope,kerple,none,t5,alibi", 0}};
    static const pe_isa sets[] = {PE_ISA_AUTO, PE_ISA_SCALAR, PE_ISA_AVX2};
    test_rng rng = {20};
    (void)state;
    for (size_t m = 0; m < LAB_COUNT(models); m++)
        for (size_t s = 0; s < LAB_COUNT(sets); s++) {
            trial t;
            if (!pe_isa_available(sets[s]))
                continue;
            start(&t, models[m].input, models[m].layers, models[m].learn_slopes, &rng);
            differentiate(&t, sets[s]);
            check_gaps(&t);
            for (int32_t i = 0; i < t.layout.count; i++) {
                check_elements(&t, &t.layout.items[i], &rng);
                check_direction(&t, &t.layout.items[i], &rng);
            }
            stop(&t);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
