/* SPDX-License-Identifier: MIT
 *
 * test_rope_lines.c - however an executor cuts, no cache line is written by two pieces
 *
 * Layouts whose tokens begin in the middle of a line, but every few tokens at the beginning
 * of one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../support/lines.h"
#include "../support/rng.h"
#include "posenc/env.h"
#include "posenc/posenc.h"

typedef struct {
    pe_dtype dtype;
    int by_head;
    int64_t batch, tokens, heads, dim;
} layout;

/* Large enough to be cut. */
static const layout layouts[] = {
    {PE_F16, 0, 1, 200, 5, 40},  /* tokens of 400 bytes */
    {PE_F32, 0, 3, 192, 3, 20},  /* of 240 */
    {PE_BF16, 0, 2, 512, 1, 34}, /* of 68 */
    {PE_F32, 1, 1, 480, 3, 24},  /* 96 bytes a vector, 720 lines a head */
    {PE_F16, 1, 2, 192, 4, 24},  /* of 48 */
    {PE_F32, 0, 1, 600, 2, 32},  /* every token begins a line */
    {PE_F16, 0, 200, 1, 5, 40},  /* a token of each sequence */
    {PE_F32, 0, 480, 1, 1, 20},
};

static void describe(pe_tensor *t, const layout *l, const void *data)
{
    if (l->by_head)
        pe_tensor_bhsd(t, l->dtype, data, l->batch, l->heads, l->tokens, l->dim);
    else
        pe_tensor_bshd(t, l->dtype, data, l->batch, l->tokens, l->heads, l->dim);
    lines_spoil_unused(t);
}

static void fill(test_rng *r, pe_dtype dtype, unsigned char *data)
{
    for (int i = 0; i < LINES_ROOM / 4; i++) {
        const float x = 1 + test_rng_float(r);
        const uint16_t h =
            (uint16_t)(dtype == PE_F16 ? 0x3c00 + i % 512 : 0x3f80 + i % 64);
        if (dtype == PE_F32)
            memcpy(data + 4 * i, &x, 4);
        else
            for (int k = 0; k < 2; k++)
                memcpy(data + 4 * i + 2 * k, &h, 2);
    }
}

static void ok(pe_status status, const pe_error *error)
{
    if (status != PE_OK)
        fail_msg("%s", error->message);
}

static void check_layout(test_rng *r, const layout *l, int call)
{
    static line_watch c;
    static _Alignas(LINES_SIZE) unsigned char x_data[LINES_ROOM], y_data[LINES_ROOM];
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = (int32_t)l->dim,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .freqs = {.rope_theta = 10000}};
    pe_env env = {.struct_size = sizeof env,
                  .executor = {.run = line_watch_run, .ctx = &c, .num_workers = 1}};
    const pe_positions at = {.start = 3}, to = {.start = 77};
    pe_tensor x, y;
    pe_rope *rope = NULL;
    pe_error error;

    c.r = r;
    c.data = y_data;
    c.size = sizeof y_data;
    fill(r, l->dtype, x_data);
    memset(y_data, 0, sizeof y_data);
    describe(&x, l, x_data);
    describe(&y, l, y_data);
    ok(pe_rope_create(&rope, &spec, &env, &error), &error);
    if (call == 0)
        ok(pe_rope_apply(rope, &at, &x, &y, &error), &error);
    else if (call == 1)
        ok(pe_rope_shift(rope, 5, &x, &y, &error), &error);
    else if (call == 2)
        ok(pe_rope_rebase(rope, &at, rope, &to, &x, &y, &error), &error);
    else
        ok(pe_tensor_copy(&x, &y, &env, &error), &error);
    pe_rope_destroy(rope);
    if (c.shared != 0)
        fail_msg("layout %d, call %d: %d lines written by two pieces",
                 (int)(l - layouts), call, c.shared);
    assert_true(c.at_work > 1);
}

static void test_lines(void **state)
{
    test_rng r = {31};

    (void)state;
    for (int round = 0; round < 8; round++)
        for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
            for (int call = 0; call < 4; call++)
                check_layout(&r, &layouts[i], call);
}

/* Every vector in the middle of lines: no cut is clean, and all work is done. */
static void test_askew(void **state)
{
    static line_watch c;
    static _Alignas(LINES_SIZE) unsigned char x_data[LINES_ROOM], y_data[LINES_ROOM];
    test_rng r = {32};
    const pe_env env = {
        .struct_size = sizeof env,
        .executor = {.run = line_watch_run, .ctx = &c, .num_workers = 1}};
    pe_tensor x, y;
    pe_error error;

    (void)state;
    c.r = &r;
    c.data = y_data;
    c.size = sizeof y_data;
    fill(&r, PE_F32, x_data);
    pe_tensor_bshd(&x, PE_F32, x_data + 4, 2, 40, 1, 32);
    pe_tensor_bshd(&y, PE_F32, y_data + 4, 2, 40, 1, 32);
    ok(pe_tensor_copy(&x, &y, &env, &error), &error);
    assert_true(c.at_work > 1);
    assert_memory_equal(y_data + 4, x_data + 4, 2 * 40 * 32 * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_askew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
