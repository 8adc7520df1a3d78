/* SPDX-License-Identifier: MIT
 *
 * test_temperature.c - query temperature: steps, strides and bad input
 *
 * The golden cases hold the numbers; here the steps are checked token by token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "../support/refusal.h"
#include "posenc/positions.h"

enum { TOKENS = 64 };

static double expected(const pe_temperature *t, int64_t p)
{
    switch (t->type) {
    case PE_TEMPERATURE_LLAMA4:
        return 1 + t->scale * log(1 + floor((double)(p + 1) / t->length));
    case PE_TEMPERATURE_MINISTRAL:
        return 1 + t->scale * log(1 + floor((double)p / t->length));
    case PE_TEMPERATURE_LOG_N:
        return fmax(1, log((double)(p + 1)) / log(t->length));
    default:
        return 1;
    }
}

static void test_every_step(void **state)
{
    static const int64_t starts[] = {0, 8160, 16360, 1000000, (int64_t)1 << 40};

    (void)state;
    for (pe_temperature_type type = PE_TEMPERATURE_NONE; type <= PE_TEMPERATURE_LOG_N;
         type++)
        for (int n = 0; n < 5; n++) {
            pe_temperature t = {.type = type, .length = 8192, .scale = 0.1};
            const pe_positions at = {.starts = starts}, one = {.start = starts[n]};
            float rows[5][TOKENS][2], line[TOKENS];
            pe_tensor rows_t, line_t;
            pe_error error;

            if (type == PE_TEMPERATURE_LOG_N)
                t.scale = 0;
            pe_tensor_bshd(&line_t, PE_F32, line, 1, TOKENS, 1, 1);
            if (pe_temperature_fill(&t, &one, &line_t, &error) != PE_OK)
                fail_msg("%s", error.message);
            for (int64_t i = 0; i < TOKENS; i++) {
                const double want = expected(&t, starts[n] + i);
                assert_true(fabs((double)line[i] - want) <= 6e-8 * want);
            }
            /* All rows at once, every second float. */
            for (int b = 0; b < 5; b++)
                for (int i = 0; i < TOKENS; i++)
                    rows[b][i][0] = rows[b][i][1] = -3;
            pe_tensor_bshd(&rows_t, PE_F32, rows, 5, TOKENS, 1, 1);
            rows_t.seq_stride = 2;
            rows_t.batch_stride = 2 * TOKENS;
            if (pe_temperature_fill(&t, &at, &rows_t, &error) != PE_OK)
                fail_msg("%s", error.message);
            for (int i = 0; i < TOKENS; i++) {
                assert_true(rows[n][i][0] == line[i]);
                assert_true(rows[n][i][1] == -3);
            }
        }
}

static const pe_temperature good = {
    .type = PE_TEMPERATURE_LLAMA4, .length = 8192, .scale = 0.1};

static void refused(const pe_temperature *t, const pe_positions *at,
                    const pe_tensor *out, pe_status status, const char *words)
{
    pe_error error;
    const pe_status got = pe_temperature_fill(t, at, out, &error);
    const char *complaint = test_refusal(&error, got, status, words);

    if (complaint != NULL)
        fail_msg("%s", complaint);
}

static void test_refusals(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, -1};
    const double values[4] = {0.5};
    const int64_t negative[4] = {0, 1, -2, 3};
    float factors[4] = {7, 7, 7, 7};
    const pe_positions at = {.start = 0};
    pe_positions wrong;
    pe_temperature t = good;
    pe_tensor out;

    (void)state;
    pe_tensor_bshd(&out, PE_F32, factors, 1, 4, 1, 1);
    refused(NULL, &at, &out, PE_E_ARGUMENT, "temperature");
    refused(&t, NULL, &out, PE_E_ARGUMENT, "at");
    refused(&t, &at, NULL, PE_E_ARGUMENT, "factors");
    for (int i = 0; i < 4; i++) {
        t = good;
        t.length = bad[i];
        refused(&t, &at, &out, PE_E_ARGUMENT, "length");
        t = good;
        t.scale = bad[i];
        refused(&t, &at, &out, PE_E_ARGUMENT, "scale");
    }
    t = good;
    t.length = 0;
    refused(&t, &at, &out, PE_E_ARGUMENT, "length|0");
    t = (pe_temperature){.type = PE_TEMPERATURE_LOG_N, .length = 1};
    refused(&t, &at, &out, PE_E_ARGUMENT, "length|1|2");
    t = good;
    t.type = 4;
    refused(&t, &at, &out, PE_E_ARGUMENT, "type|4|3");
    t = good;
    t.reserved = 1;
    refused(&t, &at, &out, PE_E_ARGUMENT, "reserved|1");
    wrong = (pe_positions){.ids = negative};
    refused(&good, &wrong, &out, PE_E_POSITION, "token 2|-2");
    wrong = (pe_positions){.start = INT64_MAX};
    refused(&good, &wrong, &out, PE_E_POSITION, "start");
    wrong = (pe_positions){.values = values};
    refused(&good, &wrong, &out, PE_E_ARGUMENT, "values");
    out.num_heads = 2;
    refused(&good, &at, &out, PE_E_SHAPE, "factors");
    out.num_heads = 1;
    out.dtype = PE_F16;
    refused(&good, &at, &out, PE_E_DTYPE, "dtype|2");
    for (int i = 0; i < 4; i++)
        assert_true(factors[i] == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_step),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
