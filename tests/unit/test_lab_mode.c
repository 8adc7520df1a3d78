/* SPDX-License-Identifier: MIT
 *
 * test_lab_mode.c - names of modes, their rotations, and where they do not apply
 *
 * Frequencies were computed from the formulas of the papers in Python doubles, for heads
 * of 24 and a trained length of 64: pairs 0, 1, 2, 5 and 11. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../support/refusal.h"
#include "lab/mode.h"

typedef struct expected {
    const char *mode;
    int64_t tokens;
    double inv_freq[5], factor;
} expected;

static const expected golden[] = {
    {"base",
     1024,
     {1, 0.464158883361278, 0.215443469003188, 0.0215443469003188,
      0.000215443469003188},
     1},
    {"window",
     1024,
     {1, 0.464158883361278, 0.215443469003188, 0.0215443469003188,
      0.000215443469003188},
     1},
    {"pi",
     64,
     {1, 0.464158883361278, 0.215443469003188, 0.0215443469003188,
      0.000215443469003188},
     1},
    {"pi",
     128,
     {0.5, 0.232079441680639, 0.107721734501594, 0.0107721734501594,
      0.000107721734501594},
     1},
    {"pi",
     1024,
     {0.0625, 0.0290099302100799, 0.0134652168126993, 0.00134652168126993,
      1.34652168126993e-05},
     1},
    {"ntk",
     128,
     {1, 0.435813123046125, 0.189933078219217, 0.0157217728454575,
      0.000107721734501594},
     1},
    {"ntk",
     1024,
     {1, 0.360745742018273, 0.130137490384314, 0.00610950561788866,
      1.34652168126993e-05},
     1},
    {"ntkx4",
     64,
     {1, 0.464158883361278, 0.215443469003188, 0.0215443469003188,
      0.000215443469003188},
     1},
    {"ntkx4",
     128,
     {1, 0.384209038089969, 0.147616584950019, 0.00837216703962686,
      2.69304336253986e-05},
     1},
    {"ntk@16",
     64,
     {1, 0.360745742018273, 0.130137490384314, 0.00610950561788866,
      1.34652168126993e-05},
     1},
    {"ntk@16",
     1024,
     {1, 0.360745742018273, 0.130137490384314, 0.00610950561788866,
      1.34652168126993e-05},
     1},
    {"dyn",
     128,
     {1, 0.435813123046125, 0.189933078219217, 0.0157217728454575,
      0.000107721734501594},
     1},
    {"yarn",
     64,
     {1, 0.464158883361278, 0.215443469003188, 0.0215443469003188,
      0.000215443469003188},
     1},
    {"yarn",
     128,
     {0.64815994125615, 0.259987994450913, 0.111872458489745, 0.0107721734501594,
      0.000107721734501594},
     1.0693147180559945},
    {"yarn",
     1024,
     {0.340299889855281, 0.0813384666543437, 0.0212478242904826, 0.00134652168126993,
      1.34652168126993e-05},
     1.2772588722239782},
    {"yarn-b8",
     1024,
     {1, 0.260750591606106, 0.0479310499285967, 0.00134652168126993,
      1.34652168126993e-05},
     1.2772588722239782},
    {"yarn-b2",
     128,
     {1, 0.464158883361278, 0.215443469003188, 0.0107721734501594,
      0.000107721734501594},
     1.0693147180559945},
    {"parts-b2",
     1024,
     {1, 0.464158883361278, 0.215443469003188, 0.00134652168126993,
      1.34652168126993e-05},
     1},
};

static lab_config config_of(lab_method method)
{
    lab_config config = lab_config_a;
    lab_config_set_method(&config, method);
    return config;
}

static void test_frequencies(void **state)
{
    static const int pairs[] = {0, 1, 2, 5, 11};
    const lab_config config = config_of(LAB_ROPE);
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(golden); i++) {
        const expected *want = &golden[i];
        lab_mode mode;
        pe_rope_spec spec;
        pe_rope *rope;
        pe_error error;
        double room[12];
        assert_int_equal(lab_mode_parse(&mode, want->mode, &error), PE_OK);
        lab_mode_rope(&mode, &config, want->tokens, room, &spec);
        if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK)
            fail_msg("%s", error.message);
        const pe_rope_info *info = pe_rope_get_info(rope);
        assert_int_equal(info->num_pairs, 12);
        for (size_t k = 0; k < LAB_COUNT(pairs); k++)
            if (fabs(info->inv_freq[pairs[k]] / want->inv_freq[k] - 1) > 2e-14)
                fail_msg("%s, pair %d: %.17g, not %.17g", want->mode, pairs[k],
                         info->inv_freq[pairs[k]], want->inv_freq[k]);
        assert_true(fabs(info->attention_factor - want->factor) < 1e-15);
        pe_rope_destroy(rope);
    }
}

static void test_names(void **state)
{
    static const char *const names[] = {
        "base",      "window", "pi",   "ntk",     "ntkx2",   "ntkx2.5",
        "ntk@16",    "dyn",    "yarn", "yarn-b8", "yarn-b2", "parts-b8",
        "parts-b32", "clamp",  "wrap", "interp",  "ntk@1.5"};
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(names); i++) {
        lab_mode mode;
        pe_error error;
        char name[40] = "";
        assert_int_equal(lab_mode_parse(&mode, names[i], &error), PE_OK);
        lab_mode_name(&mode, name, sizeof name);
        assert_string_equal(name, names[i]);
    }
}

static void test_no_names(void **state)
{
    static const char *const names[] = {"",        "Base",      "yarn-b",
                                        "yarn-b1", "yarn-bnan", "yarn-b8x",
                                        "parts",   "ntkx",      "ntkx0",
                                        "ntkx0.9", "ntk@1",     "ntk@-3",
                                        "ntkx1e9", "ntkx0x10",  "ntk@inf",
                                        "pi ",     "windows",   "parts-b0.5",
                                        "ntk@.",   "yarn-b8..", "yarn-b99999999999999"};
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(names); i++) {
        lab_mode mode;
        pe_error error;
        const pe_status status = lab_mode_parse(&mode, names[i], &error);
        const char *wrong = test_refusal(&error, status, PE_E_ARGUMENT,
                                         "none of base, window, pi, ntk, ntkxM");
        if (wrong != NULL)
            fail_msg("'%s': %s", names[i], wrong);
    }
}

static void test_where_modes_apply(void **state)
{
    /* A letter for each of none, sin, learned, rope, alibi: y where the mode applies. */
    static const struct {
        const char *mode, *applies;
    } cases[] = {{"base", "yyyyy"}, {"window", "yynyy"},   {"pi", "nynyn"},
                 {"ntk", "nnnyn"},  {"ntkx4", "nnnyn"},    {"dyn", "nnnyn"},
                 {"yarn", "nnnyn"}, {"parts-b8", "nnnyn"}, {"clamp", "nnynn"},
                 {"wrap", "nnynn"}, {"interp", "nnynn"}};
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(cases); i++)
        for (lab_method method = LAB_NONE; method <= LAB_ALIBI; method++) {
            const lab_config config = config_of(method);
            lab_mode mode;
            pe_error error;
            assert_int_equal(lab_mode_parse(&mode, cases[i].mode, &error), PE_OK);
            const pe_status status = lab_mode_check(&mode, &config, &error);
            if (cases[i].applies[method] == 'y') {
                assert_int_equal(status, PE_OK);
                continue;
            }
            const char *wrong =
                test_refusal(&error, status, PE_E_ARGUMENT, cases[i].mode);
            if (wrong == NULL)
                wrong = test_refusal(&error, status, PE_E_ARGUMENT,
                                     lab_method_name(method));
            if (wrong != NULL)
                fail_msg("%s of %s: %s", cases[i].mode, lab_method_name(method), wrong);
        }
}

static void test_mixtures(void **state)
{
    lab_config config = config_of(LAB_LEARNED);
    lab_mode mode;
    pe_error error;
    (void)state;
    assert_int_equal(lab_config_set_layers(&config, "rope,none,rope", &error), PE_OK);
    assert_int_equal(lab_mode_parse(&mode, "ntk", &error), PE_OK);
    const pe_status status = lab_mode_check(&mode, &config, &error);
    assert_null(test_refusal(&error, status, PE_E_ARGUMENT,
                             "mode ntk|learned table|learned+rope,none,rope"));
    config.input = LAB_NONE;
    assert_int_equal(lab_mode_check(&mode, &config, &error), PE_OK);
    config.width = 2 * config.heads;
    assert_null(test_refusal(&error, lab_mode_check(&mode, &config, &error),
                             PE_E_ARGUMENT, "width / heads is 2|at least 4|ntk"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frequencies), cmocka_unit_test(test_names),
        cmocka_unit_test(test_no_names),    cmocka_unit_test(test_where_modes_apply),
        cmocka_unit_test(test_mixtures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
