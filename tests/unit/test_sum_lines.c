/* SPDX-License-Identifier: MIT
 *
 * test_sum_lines.c - encodings and biases: no cache line is written by two pieces
 *
 * Layouts whose rows begin in the middle of a line, but every few of them at the beginning
 * of one, tokens or heads outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <string.h>

#include "../support/lines.h"
#include "../support/rng.h"
#include "posenc/env.h"
#include "posenc/posenc.h"

typedef struct {
    pe_dtype dtype;
    int by_head;
    int64_t batch, rows, heads, dim;
} layout;

static const layout encodings[] = {
    {PE_F32, 0, 1, 512, 1, 100},  /* rows of 400 bytes */
    {PE_F16, 0, 3, 300, 1, 40},   /* of 80 */
    {PE_BF16, 0, 2, 1024, 1, 34}, /* of 68 */
    {PE_F32, 0, 1, 600, 1, 64},   /* every row begins a line */
    {PE_F16, 0, 512, 1, 1, 72},   /* a row of each sequence */
};

static const layout scores[] = {
    {PE_F32, 1, 1, 48, 5, 100}, {PE_F16, 1, 2, 32, 3, 72},  {PE_BF16, 0, 1, 50, 8, 34},
    {PE_F32, 0, 2, 64, 4, 20},  {PE_F32, 1, 1, 1, 64, 200}, {PE_F16, 1, 1, 1, 96, 136},
    {PE_F32, 0, 96, 1, 1, 100}, {PE_BF16, 0, 40, 1, 5, 34},
};

static _Alignas(LINES_SIZE) unsigned char x_data[LINES_ROOM], y_data[LINES_ROOM];
static line_watch lines;

static void ok(pe_status status, const pe_error *error)
{
    if (status != PE_OK)
        fail_msg("%s", error->message);
}

static void describe(pe_tensor *t, const layout *l, const void *data)
{
    if (l->by_head)
        pe_tensor_bhsd(t, l->dtype, data, l->batch, l->heads, l->rows, l->dim);
    else
        pe_tensor_bshd(t, l->dtype, data, l->batch, l->rows, l->heads, l->dim);
    lines_spoil_unused(t);
}

/* Everything that is written differs from what was there: patterns of 1.something. */
static pe_env begin(test_rng *r)
{
    for (size_t i = 0; i < sizeof x_data; i += 2) {
        const uint16_t h = (uint16_t)(0x3c00 + test_rng_int(r, 0, 0x3f));
        memcpy(x_data + i, &h, 2);
    }
    memset(y_data, 0xee, sizeof y_data);
    lines.r = r;
    lines.data = y_data;
    lines.size = sizeof y_data;
    return (pe_env){
        .struct_size = sizeof(pe_env),
        .executor = {.run = line_watch_run, .ctx = &lines, .num_workers = 1}};
}

static void check(const char *call, size_t i)
{
    if (lines.shared != 0)
        fail_msg("%s, layout %d: %d lines written by two pieces", call, (int)i,
                 lines.shared);
    assert_true(lines.at_work > 1);
}

static void check_encoding(test_rng *r, size_t i, int learned, int add)
{
    static float weight[1024 * 100];
    const layout *l = &encodings[i];
    const pe_env env = begin(r);
    const pe_positions at = {.start = 0};
    pe_tensor x, y, table;
    pe_absolute *plan = NULL;
    pe_error error;

    for (size_t k = 0; k < sizeof weight / sizeof weight[0]; k++)
        weight[k] = test_rng_float(r);
    pe_tensor_bshd(&table, PE_F32, weight, 1, 1024, 1, l->dim);
    const pe_learned_spec rows = {.struct_size = sizeof rows, .weight = &table};
    const pe_sinusoidal_spec waves = {.struct_size = sizeof waves,
                                      .order = PE_SIN_COS_HALVES,
                                      .model_dim = (int32_t)l->dim,
                                      .table_len = 20};
    ok(learned ? pe_learned_create(&plan, &rows, &env, &error)
               : pe_sinusoidal_create(&plan, &waves, &env, &error),
       &error);
    describe(&x, l, x_data);
    describe(&y, l, y_data);
    ok(add ? pe_absolute_add(plan, &at, &x, &y, &error)
           : pe_absolute_fill(plan, &at, &y, &error),
       &error);
    pe_absolute_destroy(plan);
    check(add ? "pe_absolute_add" : "pe_absolute_fill", i);
}

static void check_scores(test_rng *r, size_t i, int call)
{
    static const char *const calls[] = {"pe_bias_fill", "pe_bias_add",
                                        "pe_bias_softmax"};
    const layout *l = &scores[i];
    const pe_env env = begin(r);
    const pe_positions q_at = {.start = l->dim}, k_at = {.start = 0};
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = PE_BIAS_ALIBI,
                               .form = PE_BIAS_CAUSAL,
                               .num_heads = (int32_t)l->heads};
    pe_tensor x, y;
    pe_bias *bias = NULL;
    pe_error error;

    ok(pe_bias_create(&bias, &spec, &env, &error), &error);
    describe(&x, l, x_data);
    describe(&y, l, y_data);
    if (call == 0)
        ok(pe_bias_fill(bias, &q_at, &k_at, &y, &error), &error);
    else if (call == 1)
        ok(pe_bias_add(bias, &q_at, &k_at, &x, &y, &error), &error);
    else
        ok(pe_bias_softmax(bias, 1, PE_MASK_NONE, &q_at, &k_at, &x, &y, &error),
           &error);
    pe_bias_destroy(bias);
    check(calls[call], i);
}

static void test_encodings(void **state)
{
    test_rng r = {7};

    (void)state;
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++)
            for (int kind = 0; kind < 4; kind++)
                check_encoding(&r, i, kind & 1, kind >> 1);
}

static void test_scores(void **state)
{
    test_rng r = {8};

    (void)state;
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < sizeof scores / sizeof scores[0]; i++)
            for (int call = 0; call < 3; call++)
                check_scores(&r, i, call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
