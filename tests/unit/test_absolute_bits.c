/* SPDX-License-Identifier: MIT
 *
 * test_absolute_bits.c - sums have the bits of their contract, rows those of a table
 *
 * The sum is computed here an element at a time, by each plan's rule; sinusoids that are
 * made for many tokens at once are compared with a table's.  On every instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/bits16.h"
#include "../support/rng.h"
#include "posenc/env.h"
#include "posenc/posenc.h"

enum { TOKENS = 9, ROWS = 20, MOST_DIM = 203, LAST = 400 };

static const pe_isa isas[] = {PE_ISA_SCALAR, PE_ISA_AVX2, PE_ISA_AVX512, PE_ISA_NEON,
                              PE_ISA_WASM128};

static void ok(pe_status status, const pe_error *error)
{
    if (status != PE_OK)
        fail_msg("%s", error->message);
}

static size_t size_of(pe_dtype dtype)
{
    return dtype == PE_F32 ? 4 : 2;
}

static double get(pe_dtype dtype, const void *p, int64_t i)
{
    if (dtype == PE_F32)
        return (double)((const float *)p)[i];
    const uint16_t h = ((const uint16_t *)p)[i];
    return dtype == PE_F16 ? test_f16_value(h) : test_bf16_value(h);
}

static void put(pe_dtype dtype, void *p, int64_t i, double v)
{
    if (dtype == PE_F32)
        ((float *)p)[i] = (float)v;
    else
        ((uint16_t *)p)[i] =
            dtype == PE_F16 ? test_f16_nearest(v) : test_bf16_nearest(v);
}

static double kept(double x)
{
    volatile double y = x;
    return y;
}

/* Tokens at positions that repeat, so that one row comes twice in a row. */
static void check_sum(test_rng *r, pe_isa isa, double scale, const pe_dtype types[3])
{
    static float weight[ROWS * MOST_DIM], x[TOKENS * MOST_DIM], y[TOKENS * MOST_DIM];
    const int64_t dim = test_rng_int(r, 1, MOST_DIM);
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    int64_t ids[TOKENS];
    const pe_positions at = {.ids = ids};
    pe_tensor table, xt, yt;
    pe_absolute *plan = NULL;
    pe_error error;

    for (int64_t i = 0; i < ROWS * dim; i++)
        put(types[0], weight, i, (double)test_rng_float(r) * 3);
    for (int64_t i = 0; i < TOKENS * dim; i++)
        put(types[1], x, i, i % 50 == 7 ? INFINITY : (double)test_rng_float(r));
    for (int t = 0; t < TOKENS; t++)
        ids[t] = t % 3 ? ids[t - 1] : test_rng_int(r, 0, ROWS - 1);
    pe_tensor_bshd(&table, types[0], weight, 1, ROWS, 1, dim);
    pe_tensor_bshd(&xt, types[1], x, 1, TOKENS, 1, dim);
    pe_tensor_bshd(&yt, types[2], y, 1, TOKENS, 1, dim);
    const pe_learned_spec spec = {
        .struct_size = sizeof spec, .weight = &table, .embed_scale = scale};
    ok(pe_learned_create(&plan, &spec, &env, &error), &error);
    ok(pe_absolute_add(plan, &at, &xt, &yt, &error), &error);
    pe_absolute_destroy(plan);
    for (int64_t i = 0; i < TOKENS * dim; i++) {
        const double row = get(types[0], weight, ids[i / dim] * dim + i % dim);
        const double sum = kept(kept(scale * get(types[1], x, i)) + row);
        float want = 0;
        put(types[2], &want, 0, (double)(float)sum);
        if (memcmp(&want, (const char *)y + (size_t)i * size_of(types[2]),
                   size_of(types[2])) != 0)
            fail_msg("isa %d, types %d %d %d, scale %g: %a + %a is %a", isa, types[0],
                     types[1], types[2], scale, get(types[1], x, i), row,
                     get(types[2], y, i));
    }
}

static void test_sums(void **state)
{
    static const double scales[] = {1, 32, 0.25, 27.712812921102035, -2};
    test_rng r = {21};

    (void)state;
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++)
            for (int k = 0; k < 27 && pe_isa_available(isas[i]); k++) {
                const pe_dtype types[3] = {(pe_dtype)(PE_F32 + k % 3),
                                           (pe_dtype)(PE_F32 + k / 3 % 3),
                                           (pe_dtype)(PE_F32 + k / 9)};
                check_sum(&r, isas[i], scales[s], types);
            }
}

/* Runs, scattered positions, some of them in a table, and one that is padding. */
static void check_rows(test_rng *r, pe_isa isa, pe_sinusoid_order order, int axes)
{
    static float whole[(LAST + 1) * MOST_DIM], some[LAST * MOST_DIM];
    const int32_t dim = axes * (int32_t)test_rng_int(r, 2, MOST_DIM / axes);
    const int64_t count = test_rng_int(r, 1, LAST), start = test_rng_int(r, 0, LAST);
    const int scattered = (int)test_rng_int(r, 0, 1);
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    int64_t ids[LAST];
    pe_positions at = {.ids = ids};
    pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                               .order = order,
                               .model_dim = dim,
                               .num_axes = axes,
                               .table_len = LAST + 1};
    pe_absolute *plan = NULL;
    pe_tensor all, yt;
    pe_error error;

    if (axes == 1) {
        spec.has_padding = 1;
        spec.padding_position = LAST / 2;
    }
    pe_tensor_bshd(&all, PE_F32, whole, 1, LAST + 1, 1, dim);
    pe_tensor_bshd(&yt, PE_F32, some, 1, count, 1, dim);
    ok(pe_sinusoidal_create(&plan, &spec, &env, &error), &error);
    ok(pe_absolute_fill(plan, &(pe_positions){.start = 0}, &all, &error), &error);
    pe_absolute_destroy(plan);
    spec.table_len = test_rng_int(r, 0, 1) * LAST / 4;
    for (int64_t t = 0; t < count; t++)
        ids[t] = scattered ? test_rng_int(r, 0, LAST) : (start + t) % (LAST + 1);
    ok(pe_sinusoidal_create(&plan, &spec, &env, &error), &error);
    ok(pe_absolute_fill(plan, &at, &yt, &error), &error);
    pe_absolute_destroy(plan);
    for (int64_t t = 0; t < count; t++)
        if (memcmp(some + t * dim, whole + ids[t] * dim, (size_t)dim * sizeof *some) !=
            0)
            fail_msg("isa %d, order %d, %d axes, dim %d: position %d has other bits",
                     isa, order, axes, dim, (int)ids[t]);
}

static void test_rows(void **state)
{
    test_rng r = {22};

    (void)state;
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (int order = PE_SIN_COS_INTERLEAVED; order <= PE_COS_SIN_HALVES; order++)
            for (int round = 0; round < 8 && pe_isa_available(isas[i]); round++)
                check_rows(&r, isas[i], (pe_sinusoid_order)order, 1 + round % 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
