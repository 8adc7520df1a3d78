/* SPDX-License-Identifier: MIT
 *
 * test_lab_fixtures.c - the lab's model beside the same model in PyTorch
 *
 * Logits, every gradient, five steps of AdamW, and logits at four times the length in
 * each mode. */
#include "../support/lab/lab_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/adamw.h"
#include "lab/matmul.h"

enum { ROWS = 3, LENGTH = 8, LONG = 32, COUNT = ROWS * LENGTH };

static const char *const methods[] = {"none", "sin", "learned", "rope", "alibi"};
static const pe_isa sets[] = {PE_ISA_AUTO, PE_ISA_SCALAR, PE_ISA_AVX2};

static void open_small(lab_fixture *f, const char *method)
{
    const lab_config config = {.layers = 2,
                               .width = 16,
                               .heads = 2,
                               .length = LENGTH,
                               .batch = ROWS,
                               .steps = 5,
                               .peak_rate = 1e-3,
                               .weight_decay = 0.1,
                               .clip = 1};
    char path[80];
    snprintf(path, sizeof path, "tests/data/lab/%s.safetensors", method);
    lab_fixture_open(f, path, method, &config);
}

static void to_bytes(const int64_t *tokens, uint8_t *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)tokens[i];
}

static lab_pass *make_pass(const lab_fixture *f, const char *mode, int64_t rows,
                           int64_t tokens, int backward, pe_isa isa)
{
    lab_pass_spec spec = {.config = &f->state.config,
                          .layout = &f->state.layout,
                          .rows = rows,
                          .tokens = tokens,
                          .has_backward = backward,
                          .isa = isa};
    lab_pass *pass = NULL;
    pe_error error;
    if (lab_mode_parse(&spec.mode, mode, &error) != PE_OK ||
        lab_pass_create(&pass, &spec, &error) != PE_OK)
        fail_msg("%s", error.message);
    return pass;
}

static void check_logits(lab_fixture *f, const char *name, const char *mode,
                         int64_t rows, int64_t tokens, int backward, pe_isa isa,
                         const char *method)
{
    const char *ids_name = tokens == LONG ? "tokens_long" : "tokens";
    const int64_t inputs = rows * tokens;
    uint8_t ids[ROWS * (LENGTH + 1) + LONG + 1] = {0};
    lab_pass *pass = make_pass(f, mode, rows, tokens, backward, isa);
    pe_error error;
    if (tokens == LONG) /* inputs alone; the target of the last is anything */
        to_bytes(lab_fixture_data(f, ids_name, LONG), ids, LONG);
    else
        to_bytes(lab_fixture_data(f, ids_name, rows * (tokens + 1)), ids,
                 rows * (tokens + 1));
    if (lab_pass_forward(pass, f->state.weights, ids, tokens + 1, NULL, &error) !=
        PE_OK)
        fail_msg("%s", error.message);
    const double off =
        lab_relative(lab_pass_logits(pass),
                     lab_fixture_data(f, name, inputs * LAB_VOCAB), inputs * LAB_VOCAB);
    printf("%-8s %-20s %s off by %.2g\n", method, name, pe_isa_name(isa), off);
    assert_true(off <= 1e-5);
    lab_pass_destroy(pass);
}

static void logits_agree(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAB_COUNT(methods); m++)
        for (size_t s = 0; s < LAB_COUNT(sets); s++) {
            lab_fixture f;
            if (!pe_isa_available(sets[s]))
                continue;
            open_small(&f, methods[m]);
            check_logits(&f, "logits", "base", ROWS, LENGTH, 0, sets[s], methods[m]);
            check_logits(&f, "logits", "base", ROWS, LENGTH, 1, sets[s], methods[m]);
            lab_fixture_close(&f);
        }
}

static void long_logits_agree(void **state)
{
    static const char *const modes[] = {"base", "window", "pi",
                                        "ntk",  "dyn",    "yarn-b8"};
    int checked = 0;
    (void)state;
    for (size_t m = 0; m < LAB_COUNT(methods); m++) {
        lab_fixture f;
        open_small(&f, methods[m]);
        for (size_t i = 0; i < LAB_COUNT(modes); i++) {
            char name[40];
            snprintf(name, sizeof name, "logits_long.%s", modes[i]);
            if (pe_checkpoint_find_weight(f.file, name) == NULL)
                continue;
            check_logits(&f, name, modes[i], 1, LONG, 0, PE_ISA_AUTO, methods[m]);
            checked++;
        }
        lab_fixture_close(&f);
    }
    assert_int_equal(checked, 3 * 2 + 6); /* none, sin, alibi; rope */
}

/* Loss and gradients of the fixture's rows; returns the mean loss. */
static double differentiate(lab_fixture *f, lab_pass *pass, float *grads)
{
    uint8_t ids[ROWS * (LENGTH + 1)];
    float nll[COUNT];
    double loss = 0;
    pe_error error;
    to_bytes(lab_fixture_data(f, "tokens", sizeof ids), ids, sizeof ids);
    if (lab_pass_forward(pass, f->state.weights, ids, LENGTH + 1, nll, &error) !=
            PE_OK ||
        lab_pass_backward(pass, f->state.weights, 1.0 / COUNT, grads, &error) != PE_OK)
        fail_msg("%s", error.message);
    for (int i = 0; i < COUNT; i++)
        loss += (double)nll[i] / COUNT;
    return loss;
}

static float *room(const lab_fixture *f)
{
    float *x = aligned_alloc(64, (size_t)f->state.layout.size * sizeof *x);
    assert_non_null(x);
    return x;
}

static void check_gradients(const char *method, pe_isa isa)
{
    lab_fixture f;
    open_small(&f, method);
    float *grads = room(&f);
    double worst = 0;
    lab_pass *pass = make_pass(&f, "base", ROWS, LENGTH, 1, isa);
    const double loss = differentiate(&f, pass, grads);
    const double want = (double)*(const float *)lab_fixture_data(&f, "loss", 1);
    assert_true(fabs(loss - want) <= 1e-5 * want);
    for (int32_t i = 0; i < f.state.layout.count; i++) {
        const lab_parameter *item = &f.state.layout.items[i];
        const int64_t size = lab_parameter_size(item);
        char name[32];
        snprintf(name, sizeof name, "g.%s", item->name);
        const double off =
            lab_relative(grads + item->offset, lab_fixture_data(&f, name, size), size);
        worst = fmax(worst, off);
        if (!(off <= 1e-4))
            fail_msg("%s %s: off by %g", method, name, off);
    }
    printf("%-8s gradients %s off by %.2g\n", method, pe_isa_name(isa), worst);
    lab_pass_destroy(pass);
    lab_fixture_close(&f);
    free(grads);
}

static void gradients_agree(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAB_COUNT(methods); m++)
        for (size_t s = 0; s < LAB_COUNT(sets); s++)
            if (pe_isa_available(sets[s]))
                check_gradients(methods[m], sets[s]);
}

static void steps_agree(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAB_COUNT(methods); m++) {
        lab_fixture f;
        lab_adamw *adamw;
        pe_error error;
        open_small(&f, methods[m]);
        float *grads = room(&f);
        lab_pass *pass = make_pass(&f, "base", ROWS, LENGTH, 1, PE_ISA_AUTO);
        const float *want = lab_fixture_data(&f, "adamw_losses", 10);
        assert_int_equal(lab_adamw_create(&adamw, &f.state.layout, NULL, &error),
                         PE_OK);
        for (int step = 0; step < 5; step++) {
            const double loss = differentiate(&f, pass, grads);
            const double norm = lab_adamw_sum(adamw, &grads, 1);
            const double wanted = (double)want[2 * step],
                         wanted_norm = (double)want[2 * step + 1];
            printf("%-8s step %d: loss off by %.2g, norm by %.2g\n", methods[m], step,
                   fabs(loss - wanted) / wanted,
                   fabs(norm - wanted_norm) / wanted_norm);
            assert_true(fabs(loss - wanted) <= 1e-5 * wanted);
            assert_true(fabs(norm - wanted_norm) <= 1e-5 * wanted_norm);
            lab_adamw_step(adamw, &f.state, grads, norm, 1e-3);
            assert_int_equal(f.state.step, step + 1);
        }
        lab_adamw_destroy(adamw);
        lab_pass_destroy(pass);
        lab_fixture_close(&f);
        free(grads);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_agree), cmocka_unit_test(long_logits_agree),
        cmocka_unit_test(gradients_agree), cmocka_unit_test(steps_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
