/* SPDX-License-Identifier: MIT
 *
 * test_lab_extend.c - trained models made ready for a greater length
 */
#include "lab/extend.h"
#include "lab/mode.h"
#include "lab/pass.h"

#include "support/refusal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH = 8, LONGER = 29 };

static lab_config small(lab_method method)
{
    lab_config config = lab_config_b;
    config.layers = 2;
    config.width = 16;
    config.heads = 2;
    config.length = LENGTH;
    config.seed = 3;
    lab_config_set_method(&config, method);
    return config;
}

/* All but the table is as it was, moments and step are new. */
static void weights_are_kept(void **state)
{
    (void)state;
    for (lab_method method = 0; method < LAB_NUM_METHODS; method++) {
        lab_config config = small(method);
        lab_state from, out;
        assert_int_equal(lab_state_create(&from, &config, NULL), PE_OK);
        for (int64_t i = 0; i < from.layout.size; i++)
            from.moment1[i] = from.moment2[i] = 1;
        from.step = 5;
        from.loss_average = 2;
        const char *mode = method == LAB_LEARNED                     ? "interp"
                           : method == LAB_ROPE || method == LAB_SIN ? "pi"
                                                                     : NULL;
        assert_int_equal(lab_extend_config(&config, LONGER, mode, NULL), PE_OK);
        assert_int_equal(lab_extend_state(&out, &from, &config, NULL), PE_OK);
        assert_int_equal(out.step, 0);
        assert_true(out.loss_average == 0);
        for (int32_t i = 0; i < out.layout.count; i++) {
            const lab_parameter *to = &out.layout.items[i];
            const lab_parameter *item = lab_layout_find(&from.layout, to->name);
            assert_non_null(item);
            if (to->offset != out.layout.p)
                assert_memory_equal(out.weights + to->offset,
                                    from.weights + item->offset,
                                    (size_t)lab_parameter_size(to) * sizeof(float));
        }
        for (int64_t i = 0; i < out.layout.size; i++)
            assert_true(out.moment1[i] == 0 && out.moment2[i] == 0);
        lab_state_release(&from);
        lab_state_release(&out);
    }
}

/* Row i of the longer table lies at i (L - 1) / (T - 1) between the rows of the first. */
static void tables_are_stretched_with_their_ends(void **state)
{
    lab_config config = small(LAB_LEARNED);
    lab_state from, out;
    (void)state;
    assert_int_equal(lab_state_create(&from, &config, NULL), PE_OK);
    assert_int_equal(lab_extend_config(&config, LONGER, "interp", NULL), PE_OK);
    assert_int_equal(lab_extend_state(&out, &from, &config, NULL), PE_OK);
    const float *p = from.weights + from.layout.p, *q = out.weights + out.layout.p;
    for (int i = 0; i < LONGER; i++)
        for (int d = 0; d < config.width; d++) {
            const double at = (double)i * (LENGTH - 1) / (LONGER - 1);
            const int low = (int)floor(at) < LENGTH - 2 ? (int)floor(at) : LENGTH - 2;
            const double part = at - low;
            const double expected = (1 - part) * (double)p[low * config.width + d] +
                                    part * (double)p[(low + 1) * config.width + d];
            assert_true(fabs((double)q[i * config.width + d] - expected) < 1e-6);
        }
    assert_memory_equal(q, p, (size_t)config.width * sizeof *q);
    assert_memory_equal(q + (LONGER - 1) * config.width,
                        p + (LENGTH - 1) * config.width,
                        (size_t)config.width * sizeof *q);
    lab_state_release(&from);
    lab_state_release(&out);
}

/* Logits of LONGER tokens, read by a mode. */
static float *logits_of(const lab_state *state, const char *mode)
{
    enum { SIZE = LONGER * LAB_VOCAB };
    lab_pass *pass;
    lab_pass_spec spec = {.config = &state->config,
                          .layout = &state->layout,
                          .rows = 1,
                          .tokens = LONGER};
    uint8_t ids[LONGER + 1];
    float *out = malloc(SIZE * sizeof *out);
    assert_non_null(out);
    for (int i = 0; i <= LONGER; i++)
        ids[i] = (uint8_t)(i * 37 + 11);
    assert_int_equal(lab_mode_parse(&spec.mode, mode, NULL), PE_OK);
    assert_int_equal(lab_pass_create(&pass, &spec, NULL), PE_OK);
    assert_int_equal(
        lab_pass_forward(pass, state->weights, ids, LONGER + 1, NULL, NULL), PE_OK);
    memcpy(out, lab_pass_logits(pass), SIZE * sizeof *out);
    lab_pass_destroy(pass);
    return out;
}

/* An extended model reads its new length as the first one does in that mode, before it
 * has learned anything. */
static void extended_models_read_by_their_mode(void **state)
{
    static const struct {
        lab_method method;
        const char *mode;
    } cases[] = {{LAB_ROPE, "pi"},        {LAB_ROPE, "ntk"},   {LAB_ROPE, "ntkx2"},
                 {LAB_ROPE, "yarn-b2"},   {LAB_ROPE, "yarn"},  {LAB_ROPE, "parts-b4"},
                 {LAB_SIN, "pi"},         {LAB_SIN, "base"},   {LAB_ROPE, "base"},
                 {LAB_LEARNED, "interp"}, {LAB_ALIBI, "base"}, {LAB_T5, "base"}};
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(cases); i++) {
        lab_config config = small(cases[i].method);
        lab_state from, out;
        assert_int_equal(lab_state_create(&from, &config, NULL), PE_OK);
        assert_int_equal(lab_extend_config(&config, LONGER, cases[i].mode, NULL),
                         PE_OK);
        assert_int_equal(lab_extend_state(&out, &from, &config, NULL), PE_OK);
        float *first = logits_of(&from, cases[i].mode), *then = logits_of(&out, "base");
        float *plain = cases[i].method != LAB_LEARNED ? logits_of(&from, "base") : NULL;
        assert_memory_equal(first, then, LONGER * LAB_VOCAB * sizeof *first);
        if (plain != NULL && strcmp(cases[i].mode, "base") != 0)
            assert_memory_not_equal(plain, then, LONGER * LAB_VOCAB * sizeof *first);
        free(first);
        free(then);
        free(plain);
        lab_state_release(&from);
        lab_state_release(&out);
    }
}

static void what_cannot_be_is_refused(void **state)
{
    static const struct {
        lab_method method;
        int64_t length;
        const char *mode, *words;
    } cases[] = {
        {LAB_ROPE, LENGTH, "pi", "length is 8, must be above the 8"},
        {LAB_ROPE, INT64_MAX, "pi", "length is 9223372036854775807"},
        {LAB_ROPE, INT32_MAX, "pi", "length is 2147483647, must be from 2 to 1048576"},
        {LAB_ROPE, LONGER, NULL, "the extension is missing: base, pi, ntk, yarn"},
        {LAB_SIN, LONGER, NULL, "the extension is missing: base or pi"},
        {LAB_LEARNED, LONGER, NULL, "the extension is missing: interp"},
        {LAB_LEARNED, LONGER, "base", "extension is base, must be interp"},
        {LAB_LEARNED, LONGER, "clamp", "extension is clamp, must be one of"},
        {LAB_ROPE, LONGER, "dyn", "extension is dyn, must be one of"},
        {LAB_ROPE, LONGER, "ntk@4", "extension is ntk@4, must be one of"},
        {LAB_ROPE, LONGER, "window", "extension is window, must be one of"},
        {LAB_ROPE, LONGER, "more", "mode more is none of"},
        {LAB_ROPE, LONGER, "interp", "mode interp is for a learned table"},
        {LAB_SIN, LONGER, "yarn", "mode yarn is for rope layers"},
        {LAB_ALIBI, LONGER, "pi", "mode pi is for rope layers or a sin input"}};
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(cases); i++) {
        lab_config config = small(cases[i].method);
        pe_error error;
        const pe_status status =
            lab_extend_config(&config, cases[i].length, cases[i].mode, &error);
        const char *wrong = test_refusal(&error, status, PE_E_ARGUMENT, cases[i].words);
        if (wrong != NULL)
            print_error("%s\n", wrong);
        assert_null(wrong);
        assert_int_equal(config.length, LENGTH);
        assert_int_equal(config.extension.type, LAB_MODE_BASE);
    }
    lab_config config = small(LAB_ROPE);
    pe_error error;
    assert_int_equal(lab_extend_config(&config, 16, "yarn-b8", NULL), PE_OK);
    const pe_status status = lab_extend_config(&config, 32, "yarn-b4", &error);
    assert_null(test_refusal(&error, status, PE_E_ARGUMENT,
                             "extension is yarn-b4, must be yarn-b8"));
    assert_int_equal(lab_extend_config(&config, 32, "yarn-b8", NULL), PE_OK);
    assert_int_equal(config.first_length, LENGTH);
    assert_int_equal(config.length, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_kept),
        cmocka_unit_test(tables_are_stretched_with_their_ends),
        cmocka_unit_test(extended_models_read_by_their_mode),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
