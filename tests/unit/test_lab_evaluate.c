/* SPDX-License-Identifier: MIT
 *
 * test_lab_evaluate.c - windows, their means, threads, and memory at 256 times the length
 *
 * Expected losses come from passes of one row each over windows cut here, by the
 * definition.  Weights are those that a seed makes: small, odd sizes on purpose. */
#define _GNU_SOURCE /* getrusage */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../support/refusal.h"
#include "../support/rng.h"
#include "lab/evaluate.h"
#include "lab/matmul.h"
#include "posenc/threads.h"

enum { LENGTH = 10, CHUNK = 700, CHUNKS = 3 };

typedef struct model {
    lab_config config;
    lab_layout layout;
    lab_corpus corpus;
    float *weights;
} model;

static void make(model *m, lab_method method, int64_t chunk_size, int64_t chunks)
{
    test_rng rng = {7};
    pe_error error;
    if (lab_matmul_load(&error) != PE_OK)
        fail_msg("%s", error.message);
    *m = (model){.config = lab_config_a};
    m->config.layers = 2;
    m->config.width = 24;
    m->config.heads = 3;
    m->config.length = LENGTH;
    m->config.seed = 5;
    lab_config_set_method(&m->config, method);
    lab_layout_make(&m->layout, &m->config);
    m->weights = aligned_alloc(64, ((size_t)m->layout.size * 4 + 63) / 64 * 64);
    assert_non_null(m->weights);
    assert_int_equal(lab_weights_init(m->weights, &m->layout, &m->config, &error),
                     PE_OK);
    m->corpus.validation_size = chunk_size * chunks;
    m->corpus.chunk_size = chunk_size;
    (void)strcpy(m->corpus.name, "noise");
    m->corpus.validation = malloc((size_t)(chunk_size * chunks));
    assert_non_null(m->corpus.validation);
    for (int64_t i = 0; i < chunk_size * chunks; i++)
        m->corpus.validation[i] = (uint8_t)(test_rng_next(&rng) >> 33);
}

static void release(model *m)
{
    free(m->weights);
    free(m->corpus.validation);
}

static lab_eval_spec spec_of(const model *m, const char *mode, int64_t multiple)
{
    pe_error error;
    lab_eval_spec spec = {.config = &m->config,
                          .layout = &m->layout,
                          .weights = m->weights,
                          .corpus = &m->corpus,
                          .multiple = multiple,
                          .max_multiple = 8,
                          .eval_tokens = 500 * CHUNKS + 2};
    assert_int_equal(lab_mode_parse(&spec.mode, mode, &error), PE_OK);
    return spec;
}

/* The nll of each token of one window. */
static void read_window(const lab_eval_spec *spec, int64_t start, int64_t tokens,
                        float *nll)
{
    const lab_pass_spec about = {.config = spec->config,
                                 .layout = spec->layout,
                                 .mode = spec->mode,
                                 .rows = 1,
                                 .tokens = tokens};
    lab_pass *pass;
    pe_error error;
    if (lab_pass_create(&pass, &about, &error) != PE_OK ||
        lab_pass_forward(pass, spec->weights, spec->corpus->validation + start,
                         tokens + 1, nll, &error) != PE_OK)
        fail_msg("%s", error.message);
    lab_pass_destroy(pass);
}

static double plain_by_definition(const lab_eval_spec *spec, int64_t *count)
{
    const int64_t tokens = spec->multiple * LENGTH, share = 500;
    double sum = 0;
    *count = 0;
    for (int64_t chunk = 0; chunk < CHUNKS; chunk++)
        for (int64_t at = 0; at + tokens <= share; at += tokens) {
            float nll[8 * LENGTH];
            read_window(spec, chunk * CHUNK + at, tokens, nll);
            for (int64_t t = 0; t < tokens; t++, (*count)++)
                sum += (double)nll[t];
        }
    return sum / (double)*count;
}

/* Ends at 8 L + L, 8 L + 2 L, ...; the last L tokens count. */
static double slide_by_definition(const lab_eval_spec *spec, int64_t *count)
{
    const int64_t tokens = spec->multiple * LENGTH, share = 500;
    double sum = 0;
    *count = 0;
    for (int64_t chunk = 0; chunk < CHUNKS; chunk++)
        for (int64_t j = 0; j < share / LENGTH; j++) {
            float nll[8 * LENGTH];
            read_window(spec, chunk * CHUNK + 8 * LENGTH + LENGTH * (j + 1) - tokens,
                        tokens, nll);
            for (int64_t t = tokens - LENGTH; t < tokens; t++, (*count)++)
                sum += (double)nll[t];
        }
    return sum / (double)*count;
}

static void test_windows(void **state)
{
    static const struct {
        lab_method method;
        const char *mode;
    } cases[] = {{LAB_NONE, "base"},     {LAB_SIN, "pi"},       {LAB_LEARNED, "wrap"},
                 {LAB_LEARNED, "clamp"}, {LAB_ROPE, "yarn-b8"}, {LAB_ROPE, "dyn"},
                 {LAB_ALIBI, "window"}};
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(cases); i++) {
        model m;
        make(&m, cases[i].method, CHUNK, CHUNKS);
        for (int64_t multiple = 1; multiple <= 8; multiple += multiple == 1 ? 2 : 5)
            for (int slide = 0; slide < 2; slide++) {
                lab_eval_spec spec = spec_of(&m, cases[i].mode, multiple);
                double blocks[8], mean = 0;
                lab_eval got = {.by_position = blocks};
                pe_error error;
                int64_t count;
                spec.slide = slide;
                if (lab_evaluate(&spec, &got, &error) != PE_OK)
                    fail_msg("%s", error.message);
                const double want = slide ? slide_by_definition(&spec, &count)
                                          : plain_by_definition(&spec, &count);
                assert_int_equal(got.count, count);
                if (!(fabs(got.nll - want) < 2e-6 * want))
                    fail_msg("%s, %dx, slide %d: %.9g, not %.9g", cases[i].mode,
                             (int)multiple, slide, got.nll, want);
                for (int64_t b = 0; b < multiple; b++)
                    mean += blocks[b] / (double)multiple;
                if (!slide)
                    assert_true(fabs(mean - got.nll) < 1e-12);
                else
                    assert_true(fabs(blocks[multiple - 1] - got.nll) < 1e-12);
            }
        release(&m);
    }
}

static void test_threads(void **state)
{
    model m;
    (void)state;
    make(&m, LAB_ROPE, CHUNK, CHUNKS);
    for (int64_t multiple = 1; multiple <= 8; multiple *= 2) {
        lab_eval_spec spec = spec_of(&m, "base", multiple);
        lab_eval alone = {.by_position = NULL};
        pe_error error;
        assert_int_equal(lab_evaluate(&spec, &alone, &error), PE_OK);
        for (int32_t threads = 2; threads <= 5; threads++) {
            pe_pool *pool;
            pe_executor executor;
            lab_eval together = {.by_position = NULL};
            assert_int_equal(pe_pool_create(&pool, threads, &error), PE_OK);
            pe_pool_executor(pool, &executor);
            spec.executor = &executor;
            assert_int_equal(lab_evaluate(&spec, &together, &error), PE_OK);
            assert_true(together.nll == alone.nll);
            pe_pool_destroy(pool);
        }
    }
    release(&m);
}

static void refuse(const lab_eval_spec *spec, pe_status expected, const char *words)
{
    pe_error error;
    lab_eval out = {.by_position = NULL};
    const pe_status status = lab_evaluate(spec, &out, &error);
    const char *wrong = test_refusal(&error, status, expected, words);
    if (wrong != NULL)
        fail_msg("%s: %s", words, wrong);
}

static void test_refusals(void **state)
{
    model m;
    (void)state;
    make(&m, LAB_LEARNED, CHUNK, CHUNKS);
    lab_eval_spec spec = spec_of(&m, "base", 2);
    refuse(&spec, PE_E_ARGUMENT, "20|10");
    spec.multiple = 0;
    refuse(&spec, PE_E_ARGUMENT, "multiple is 0|1 .. ");
    spec.multiple = 1;
    spec.eval_tokens = 29;
    refuse(&spec, PE_E_ARGUMENT, "eval_tokens is 29|at least 30");
    spec.eval_tokens = 30;
    spec.slide = 1;
    spec.max_multiple = 0;
    refuse(&spec, PE_E_ARGUMENT, "max_multiple is 0|1 .. ");
    spec.max_multiple = 69;
    refuse(&spec, PE_E_LIMIT, "701|noise|700");
    spec = spec_of(&m, "clamp", 70);
    refuse(&spec, PE_E_LIMIT, "whole windows of 700 tokens|701 bytes|700");
    spec = spec_of(&m, "ntk", 2);
    refuse(&spec, PE_E_ARGUMENT, "ntk|learned");
    release(&m);
}

static int64_t peak_kib(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* 64 * 256 tokens: one array of tokens by tokens would be 1 GiB.  The process keeps below
 * that by what a sanitizer adds. */
static void test_memory(void **state)
{
    static const lab_method methods[] = {LAB_ALIBI, LAB_ROPE, LAB_NONE};
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(methods); i++) {
        model m;
        pe_error error;
        size_t memory[2];
        make(&m, methods[i], 16386, 1);
        m.config.length = 64;
        lab_layout_make(&m.layout, &m.config);
        for (int half = 1; half >= 0; half--) {
            lab_eval_spec spec = spec_of(&m, "base", half ? 128 : 256);
            lab_eval out = {.by_position = NULL};
            spec.eval_tokens = 16384;
            if (lab_evaluate(&spec, &out, &error) != PE_OK)
                fail_msg("%s", error.message);
            memory[half] = out.memory;
        }
        assert_true((double)memory[0] < 2.1 * (double)memory[1]);
        assert_true((double)memory[0] > 1.5 * (double)memory[1]);
        assert_true(memory[0] < (size_t)100 << 20);
        release(&m);
    }
    assert_true(peak_kib() < 600 << 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
