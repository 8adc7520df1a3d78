/* SPDX-License-Identifier: MIT
 *
 * test_lab_config.c - the built-in runs, names of mixtures, bounds and learning rates
 */
#include "lab/config.h"
#include "lab/mode.h"

#include "support/refusal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void built_in_runs_are_in_range(void **state)
{
    (void)state;
    for (lab_method method = 0; method < LAB_NUM_METHODS; method++) {
        lab_config a = lab_config_a, b = lab_config_b;
        lab_config_set_method(&a, method);
        lab_config_set_method(&b, method);
        assert_int_equal(lab_config_check(&a, NULL), PE_OK);
        assert_int_equal(lab_config_check(&b, NULL), PE_OK);
    }
}

static void names_find_their_methods(void **state)
{
    lab_method found;
    (void)state;
    for (lab_method method = 0; method < LAB_NUM_METHODS; method++) {
        assert_true(lab_method_find(lab_method_name(method), &found));
        assert_int_equal(found, method);
    }
    assert_false(lab_method_find("Rope", &found));
    assert_false(lab_method_find("", &found));
    assert_null(lab_method_name(-1));
    assert_null(lab_method_name(LAB_NUM_METHODS));
}

static void check_name(const lab_config *config, const char *expected)
{
    char name[320];
    lab_config_name(config, name, sizeof name);
    assert_string_equal(name, expected);
}

static void runs_are_named_by_what_differs(void **state)
{
    (void)state;
    lab_config c = lab_config_a;
    for (lab_method method = 0; method < LAB_NUM_METHODS; method++) {
        lab_config_set_method(&c, method);
        check_name(&c, lab_method_name(method));
    }
    assert_int_equal(lab_config_set_layers(&c, "rope,none,rope", NULL), PE_OK);
    check_name(&c, "rope,none,rope");
    c.input = LAB_LEARNED;
    check_name(&c, "learned+rope,none,rope");
    assert_int_equal(lab_config_set_layers(&c, "rope", NULL), PE_OK);
    assert_int_equal(c.layers, 1);
    check_name(&c, "learned+rope");
    lab_config_set_method(&c, LAB_ALIBI);
    c.learn_slopes = 1;
    check_name(&c, "alibi-slopes");
    lab_config_set_method(&c, LAB_ROPE);
    c.learn_slopes = 0;
    assert_int_equal(lab_mode_parse(&c.extension, "yarn-b8", NULL), PE_OK);
    check_name(&c, "rope-yarn-b8");
}

/* The longest name there is fits the 320 bytes that the header asks for. */
static void the_longest_name_fits(void **state)
{
    char list[LAB_MAX_LAYERS * 8] = "none", name[320];
    lab_config c = lab_config_a;
    (void)state;
    for (int i = 1; i < LAB_MAX_LAYERS; i++)
        strcat(list, ",kerple");
    assert_int_equal(lab_config_set_layers(&c, list, NULL), PE_OK);
    c.input = LAB_LEARNED;
    assert_int_equal(lab_mode_parse(&c.extension, "parts-b1.0000000001", NULL), PE_OK);
    lab_config_name(&c, name, sizeof name);
    assert_true(strlen(name) < sizeof name - 30);
    assert_non_null(strstr(name, "-parts-b1.0000000001"));
}

static void bad_lists_leave_the_layers(void **state)
{
    static const char *const lists[] = {"",         "rope,",     ",rope",
                                        "rope,sin", "rope;none", "rope, none"};
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(lists); i++) {
        lab_config c = lab_config_b;
        pe_error error;
        const pe_status status = lab_config_set_layers(&c, lists[i], &error);
        assert_null(
            test_refusal(&error, status, PE_E_ARGUMENT,
                         "layer |must be one of none, rope, alibi, t5, kerple"));
        assert_memory_equal(&c, &lab_config_b, sizeof c);
    }
    char list[5 * (LAB_MAX_LAYERS + 1)] = "rope";
    for (int i = 0; i < LAB_MAX_LAYERS; i++)
        strcat(list, ",rope");
    lab_config c = lab_config_b;
    pe_error error;
    const pe_status status = lab_config_set_layers(&c, list, &error);
    assert_null(test_refusal(&error, status, PE_E_ARGUMENT, "more than 32"));
}

typedef void change(lab_config *config);
static void no_layers(lab_config *c)
{
    c->layers = 0;
}
static void many_layers(lab_config *c)
{
    c->layers = 33;
}
static void no_heads(lab_config *c)
{
    c->heads = 0;
}
static void odd_width(lab_config *c)
{
    c->width = 66;
}
static void no_width(lab_config *c)
{
    c->width = 0;
}
static void short_rows(lab_config *c)
{
    c->length = 1;
}
static void no_batch(lab_config *c)
{
    c->batch = 0;
}
static void no_steps(lab_config *c)
{
    c->steps = 0;
}
static void early_warmup(lab_config *c)
{
    c->warmup = -1;
}
static void no_rate(lab_config *c)
{
    c->peak_rate = 0;
}
static void nan_rate(lab_config *c)
{
    c->peak_rate = NAN;
}
static void infinite_decay(lab_config *c)
{
    c->weight_decay = INFINITY;
}
static void negative_clip(lab_config *c)
{
    c->clip = -1;
}
static void rope_input(lab_config *c)
{
    c->input = LAB_ROPE;
}
static void sin_layer(lab_config *c)
{
    c->layer[1] = LAB_SIN;
}
static void unknown_layer(lab_config *c)
{
    c->layer[0] = 99;
}
static void no_slopes(lab_config *c)
{
    c->learn_slopes = 1;
}
static void many_slopes(lab_config *c)
{
    c->learn_slopes = 2;
}
static void stray_first(lab_config *c)
{
    c->first_length = 32;
}
static void extended_nothing(lab_config *c)
{
    c->extension.type = LAB_MODE_PI;
}
static void extend(lab_config *c, const char *mode)
{
    lab_config_set_method(c, LAB_ROPE);
    assert_int_equal(lab_mode_parse(&c->extension, mode, NULL), PE_OK);
    c->first_length = 32;
}
static void extended_by_window(lab_config *c)
{
    extend(c, "window");
}
static void extended_table(lab_config *c)
{
    extend(c, "interp");
}
static void extended_fixed(lab_config *c)
{
    extend(c, "ntk@4");
}
static void extended_shorter(lab_config *c)
{
    extend(c, "pi");
    c->first_length = 128;
}
static void extended_without_beta(lab_config *c)
{
    extend(c, "yarn");
    c->extension.beta = NAN;
}
static void extended_no_times(lab_config *c)
{
    extend(c, "ntk");
    c->extension.times = 0;
}

static void fields_out_of_range_are_named(void **state)
{
    static const struct {
        change *change;
        const char *words;
    } cases[] = {{no_layers, "layers is 0, must be from 1 to 32"},
                 {many_layers, "layers is 33, must be from 1 to 32"},
                 {no_heads, "heads is 0, must be from 1 to 64"},
                 {odd_width, "width is 66, must be a multiple of twice the heads (8)"},
                 {no_width, "width is 0, must be from 2 to "},
                 {short_rows, "length is 1, must be from 2 to "},
                 {no_batch, "batch is 0, must be from 1 to "},
                 {no_steps, "steps is 0, must be from 1 to "},
                 {early_warmup, "warmup is -1, must be from 0 to "},
                 {no_rate, "peak_rate is 0, must be from 1e-12 to 10"},
                 {nan_rate, "peak_rate is |nan"},
                 {infinite_decay, "weight_decay is inf, must be from 0 to 1"},
                 {negative_clip, "clip is -1, must be from "},
                 {rope_input, "input is 3, must be none (0), sin (1) or learned (2)"},
                 {sin_layer, "method of layer 1 is 1, must be 0 or from 3 to 6"},
                 {unknown_layer, "method of layer 0 is 99"},
                 {no_slopes, "learn_slopes is 1, but no layer's method is alibi"},
                 {many_slopes, "learn_slopes is 2, must be 0 or 1"},
                 {stray_first, "first_length is 32, must be 0 without an extension"},
                 {extended_nothing, "extension is of type 2"},
                 {extended_by_window, "extension is of type 1"},
                 {extended_table, "extension is of type 8"},
                 {extended_fixed, "extension's s is 4, must be 0"},
                 {extended_shorter, "first_length is 128, must be from 2 to 64"},
                 {extended_without_beta, "extension's beta is |nan"},
                 {extended_no_times, "extension's multiple of s is 0"}};
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(cases); i++) {
        lab_config c = lab_config_b;
        pe_error error;
        cases[i].change(&c);
        const pe_status status = lab_config_check(&c, &error);
        assert_null(test_refusal(&error, status, PE_E_ARGUMENT, cases[i].words));
    }
}

static void rates_rise_and_fall(void **state)
{
    const lab_config *c = &lab_config_b;
    (void)state;
    assert_true(fabs(lab_config_rate(c, 0) - 3e-5) < 1e-18);
    assert_true(fabs(lab_config_rate(c, 99) - 3e-3) < 1e-18);
    assert_true(fabs(lab_config_rate(c, 100) - 3e-3) < 1e-18);
    /* Half way down: the mean of the peak and its tenth. */
    assert_true(fabs(lab_config_rate(c, 350) - 3e-3 * 0.55) < 1e-15);
    assert_true(fabs(lab_config_rate(c, 600) - 3e-4) < 1e-15);
    for (int64_t step = 100; step < 600; step++)
        assert_true(lab_config_rate(c, step + 1) < lab_config_rate(c, step));
    lab_config all_warmup = *c;
    all_warmup.steps = 10;
    assert_true(fabs(lab_config_rate(&all_warmup, 9) - 3e-4) < 1e-18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_runs_are_in_range),
        cmocka_unit_test(names_find_their_methods),
        cmocka_unit_test(runs_are_named_by_what_differs),
        cmocka_unit_test(the_longest_name_fits),
        cmocka_unit_test(bad_lists_leave_the_layers),
        cmocka_unit_test(fields_out_of_range_are_named),
        cmocka_unit_test(rates_rise_and_fall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
