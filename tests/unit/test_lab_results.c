/* SPDX-License-Identifier: MIT
 *
 * test_lab_results.c - runs brought together, means over seeds, and what is refused
 */
#define _GNU_SOURCE /* mkdtemp */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/refusal.h"
#include "lab/results.h"

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/posenc-results-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static void remove_all(const char *path)
{
    char command[256];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

static int tear_down(void **state)
{
    (void)state;
    remove_all(folder);
    return 0;
}

/* folder/name/results.json with a width, and one result and timing. */
static void write_run(const char *name, int width, const char *method, int seed,
                      const char *nll)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof path, "%s/%s/results.json", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(
        file,
        "{\"schema\": \"posenc.lab/1\", \"settings\": {\"layers\": 2, \"width\": %d, "
        "\"heads\": 4, \"length\": 64, \"first_length\": 0, \"batch\": 32, "
        "\"steps\": 600, \"warmup\": 100, \"peak_rate\": 0.003, "
        "\"weight_decay\": 0.1, \"clip\": 1, \"text\": \"kjv\", \"text_sha256\": "
        "\"abc\", \"eval_tokens\": 32768, \"slide_tokens\": 4096, \"slide_from\": 16, "
        "\"version\": \"0.1.0\"}, \"results\": [{\"method\": \"%s\", \"seed\": %d, "
        "\"mode\": \"base\", \"multiple\": 2, \"windows\": \"nonoverlap\", \"nll\": "
        "%s, \"by_position\": [1.5, 2]}], \"timing\": [{\"method\": \"%s\", \"seed\": "
        "%d, \"what\": \"train\", \"multiple\": 1, \"tokens\": 10, \"seconds\": 0.5, "
        "\"memory\": 7, \"threads\": 1, \"isa\": \"avx2\", \"blas\": \"x\"}]}",
        width, method, seed, nll, method, seed);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof path, "%s/%s/results.json", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_merge(void **state)
{
    lab_results results = {.count = 0};
    lab_mean mean;
    pe_error error;
    double blocks[3];
    (void)state;
    write_run("rope-s0", 64, "rope", 0, "1.25");
    write_run("rope-s1", 64, "rope", 1, "1.5");
    write_run("rope-s2", 64, "rope", 2, "2");
    write_run("none-s0", 64, "none", 0, "3");
    if (lab_results_read(&results, folder, &error) != PE_OK)
        fail_msg("%s", error.message);
    assert_int_equal(results.count, 4);
    assert_int_equal(results.num_timings, 4);
    assert_int_equal(results.settings.width, 64);
    assert_string_equal(results.settings.text, "kjv");
    lab_results_mean(&results, "rope", "base", 2, 0, &mean);
    assert_int_equal(mean.count, 3);
    assert_true(fabs(mean.mean - 4.75 / 3) < 1e-15);
    assert_true(fabs(mean.sd - 0.38188130791298669) < 1e-15); /* of the sample: n - 1 */
    assert_true(mean.min == 1.25 && mean.max == 2);
    lab_results_mean(&results, "rope", "base", 4, 0, &mean);
    assert_int_equal(mean.count, 0);
    lab_results_mean(&results, "rope", "base", 2, 1, &mean);
    assert_int_equal(mean.count, 0);
    lab_results_mean(&results, "none", "base", 2, 0, &mean);
    assert_true(mean.count == 1 && mean.mean == 3 && mean.sd == 0);
    assert_int_equal(lab_results_by_position(&results, "rope", "base", 2, 2, blocks),
                     3);
    assert_true(blocks[0] == 1.5 && blocks[1] == 2);
    assert_int_equal(lab_results_by_position(&results, "rope", "base", 2, 3, blocks),
                     0);
    assert_string_equal(lab_results_method(&results, 0), "none");
    assert_string_equal(lab_results_method(&results, 1), "rope");
    assert_null(lab_results_method(&results, 2));
    assert_true(lab_results_multiple(&results, 0) == 2);
    assert_true(lab_results_multiple(&results, 1) == 0);
    lab_results_release(&results);
}

static void test_the_same_twice(void **state)
{
    lab_results results = {.count = 0};
    pe_error error;
    char path[128];
    (void)state;
    write_run("a", 64, "rope", 0, "1.25");
    write_run("b", 64, "rope", 0, "1.25");
    write_run("c", 64, "rope", 0, "1.26");
    for (const char *c = "ab"; *c != '\0'; c++) {
        (void)snprintf(path, sizeof path, "%s/%c", folder, *c);
        assert_int_equal(lab_results_read(&results, path, &error), PE_OK);
    }
    assert_int_equal(results.count, 1);
    (void)snprintf(path, sizeof path, "%s/c", folder);
    assert_null(test_refusal(&error, lab_results_read(&results, path, &error),
                             PE_E_INCOMPATIBLE,
                             "nll of rope, seed 0, base at 2x|1.26|1.25 before|c/res"));
    lab_results_release(&results);
}

static void test_mixtures_are_refused(void **state)
{
    lab_results results = {.count = 0};
    pe_error error;
    (void)state;
    write_run("a", 64, "rope", 0, "1.25");
    write_run("b", 96, "rope", 1, "1.25");
    assert_null(test_refusal(&error, lab_results_read(&results, folder, &error),
                             PE_E_INCOMPATIBLE, "width is 64 in |96 in "));
    lab_results_release(&results);
}

/* Every field tells two settings apart. */
static void test_every_field_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < lab_num_fields; i++) {
        lab_settings a, b;
        pe_error error;
        lab_settings_make(&a, &lab_config_a, "kjv", "abc", 32768, 4096, 16);
        b = a;
        assert_int_equal(lab_settings_match(&a, "x", &b, "y", &error), PE_OK);
        ((char *)&b)[lab_fields[i].offset] ^= 1;
        const pe_status status = lab_settings_match(&a, "x", &b, "y", &error);
        const char *wrong =
            test_refusal(&error, status, PE_E_INCOMPATIBLE, lab_fields[i].name);
        if (wrong != NULL)
            fail_msg("%s: %s", lab_fields[i].name, wrong);
    }
}

static void test_bad_files(void **state)
{
    static const struct {
        const char *text, *words;
        pe_status status;
    } cases[] = {
        {"", "cut off at byte 0", PE_E_FORMAT},
        {"{\"schema\": \"posenc.lab/1\"", "cut off", PE_E_FORMAT},
        {"{} x", "malformed", PE_E_FORMAT},
        {"[]", "must be an object", PE_E_FORMAT},
        {"{}", "schema must be", PE_E_FORMAT},
        {"{\"schema\": \"posenc.bench/1\"}", "schema must be posenc.lab/1",
         PE_E_FORMAT},
        {"{\"schema\": \"posenc.lab/1\"}", "settings must be an object", PE_E_FORMAT},
        {"{\"schema\": \"posenc.lab/1\", \"settings\": {\"layers\": 2.5}}",
         "layers is 2.5, must be a whole number", PE_E_FORMAT},
        {"{\"schema\": \"posenc.lab/1\", \"settings\": {\"layers\": -1}}",
         "layers is -1, must be a whole number", PE_E_FORMAT},
        {"{\"schema\": \"posenc.lab/1\", \"settings\": {\"layers\": 2147483648}}",
         "layers is 2147483648, must be a whole number from 0 to 2147483647",
         PE_E_FORMAT},
    };
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(cases); i++) {
        lab_results results = {.count = 0};
        pe_error error;
        write_text("bad", cases[i].text);
        const pe_status status = lab_results_read(&results, folder, &error);
        const char *wrong =
            test_refusal(&error, status, cases[i].status, cases[i].words);
        if (wrong != NULL)
            fail_msg("case %d: %s", (int)i, wrong);
        lab_results_release(&results);
    }
}

static void test_nothing_there(void **state)
{
    lab_results results = {.count = 0};
    pe_error error;
    (void)state;
    assert_null(test_refusal(&error, lab_results_read(&results, folder, &error),
                             PE_E_NOT_FOUND, "no results.json"));
    assert_null(test_refusal(&error, lab_results_read(&results, "/nowhere", &error),
                             PE_E_IO, "/nowhere|No such file"));
    assert_int_equal(results.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_merge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_same_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mixtures_are_refused, set_up, tear_down),
        cmocka_unit_test(test_every_field_counts),
        cmocka_unit_test_setup_teardown(test_bad_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_there, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
