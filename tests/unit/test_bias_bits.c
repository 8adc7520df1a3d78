/* SPDX-License-Identifier: MIT
 *
 * test_bias_bits.c - fill and add give the bits of double arithmetic, whichever way
 *
 * ALiBi is computed here in double, with scores beside which one rounding instead of two
 * would show; T5 and KERPLE, whose rows of a head share a line, are compared with one row
 * at a time over keys with ids, which has no line.  On every instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/rng.h"
#include "posenc/env.h"
#include "posenc/posenc.h"

enum { HEADS = 12, QUERIES = 9, KEYS = 600, MANY = 300, FEW_KEYS = 70, BUCKETS = 32 };

static void ok(pe_status status, const pe_error *error)
{
    if (status != PE_OK)
        fail_msg("%s", error->message);
}

static float nearest(double x)
{
    volatile float y = (float)x;
    return y;
}

static double product(double a, double b)
{
    volatile double p = a * b;
    return p;
}

/* Some of any size, some tiny beside a bias, some masked. */
static float any_score(test_rng *r)
{
    switch (test_rng_int(r, 0, 9)) {
    case 0:
        return (float)ldexp((double)test_rng_float(r), (int)test_rng_int(r, -70, -20));
    case 1:
        return (float)ldexp((double)test_rng_float(r), (int)test_rng_int(r, 20, 40));
    case 2:
        return test_rng_int(r, 0, 1) ? 0.0f : -INFINITY;
    default:
        return 8 * test_rng_float(r);
    }
}

static double alibi(pe_bias_form form, double q, double k)
{
    if (form == PE_BIAS_KEY_ONLY)
        return k;
    if (k <= q)
        return k - q;
    return form == PE_BIAS_CAUSAL ? 0 : q - k;
}

static const pe_isa isas[] = {PE_ISA_SCALAR, PE_ISA_AVX2, PE_ISA_AVX512, PE_ISA_NEON,
                              PE_ISA_WASM128};

static void check_alibi(test_rng *r, pe_isa isa, pe_bias_form form, int by_ids)
{
    static float x[HEADS][QUERIES][KEYS], y[HEADS][QUERIES][KEYS],
        f[HEADS][QUERIES][KEYS];
    /* Odd significands of 23 bits: three times one is the middle between two floats. */
    float slopes[HEADS];
    int64_t ids[KEYS];
    const int64_t key = test_rng_int(r, -700, 100), query = test_rng_int(r, -10, 700);
    pe_positions k_at = {.start = key};
    const pe_positions q_at = {.start = query};
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    pe_bias_spec spec = {.struct_size = sizeof spec,
                         .type = PE_BIAS_ALIBI,
                         .form = form,
                         .num_heads = HEADS,
                         .scale = test_rng_int(r, 0, 2) ? 1 : 0.1};
    pe_bias *bias = NULL;
    pe_tensor xt, yt, ft;
    pe_error error;

    for (int h = 0; h < HEADS; h++)
        slopes[h] = (float)(test_rng_int(r, 1 << 21, (1 << 22) - 1) * 2 + 1) * 0x1p-23f;
    if (test_rng_int(r, 0, 1))
        spec.slopes = slopes;
    for (int j = 0; j < KEYS; j++)
        ids[j] = by_ids ? key + test_rng_int(r, 0, 999) : key + j;
    if (by_ids)
        k_at = (pe_positions){.ids = ids};
    for (int i = 0; i < HEADS * QUERIES * KEYS; i++)
        (&x[0][0][0])[i] = any_score(r);
    pe_tensor_bhsd(&xt, PE_F32, x, 1, HEADS, QUERIES, KEYS);
    pe_tensor_bhsd(&yt, PE_F32, y, 1, HEADS, QUERIES, KEYS);
    pe_tensor_bhsd(&ft, PE_F32, f, 1, HEADS, QUERIES, KEYS);
    ok(pe_bias_create(&bias, &spec, &env, &error), &error);
    ok(pe_bias_add(bias, &q_at, &k_at, &xt, &yt, &error), &error);
    ok(pe_bias_fill(bias, &q_at, &k_at, &ft, &error), &error);
    for (int h = 0; h < HEADS; h++)
        for (int q = 0; q < QUERIES; q++)
            for (int j = 0; j < KEYS; j++) {
                const double factor =
                    product((double)pe_bias_slopes(bias)[h], spec.scale);
                const double b =
                    product(factor, alibi(form, (double)(query + q), (double)ids[j]));
                const float sum = nearest(b + (double)x[h][q][j]), alone = nearest(b);
                if (memcmp(&sum, &y[h][q][j], 4) != 0 ||
                    memcmp(&alone, &f[h][q][j], 4) != 0)
                    fail_msg("isa %d, form %d: %a + %a is %a, expected %a", isa, form,
                             b, (double)x[h][q][j], (double)y[h][q][j], (double)sum);
            }
    pe_bias_destroy(bias);
}

static void test_alibi(void **state)
{
    test_rng r = {11};

    (void)state;
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (int form = PE_BIAS_CAUSAL; form <= PE_BIAS_KEY_ONLY; form++)
            for (int round = 0; round < 6 && pe_isa_available(isas[i]); round++)
                check_alibi(&r, isas[i], (pe_bias_form)form, round & 1);
}

/* Rows of many queries in one call, and each alone. */
static void check_lines(test_rng *r, pe_isa isa, const pe_bias_spec *spec, int add,
                        pe_dtype dtype)
{
    static float x[2][MANY][FEW_KEYS], y[2][MANY][FEW_KEYS], one[FEW_KEYS];
    int64_t keys[FEW_KEYS], queries[MANY];
    const int64_t key = test_rng_int(r, -300, 300), query = test_rng_int(r, -300, 300);
    const int shuffled = (int)test_rng_int(r, 0, 1);
    const pe_positions k_at = {.start = key}, k_ids = {.ids = keys};
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    const size_t size = dtype == PE_F32 ? 4 : 2;
    pe_positions q_at = {.start = query};
    pe_bias *bias = NULL;
    pe_tensor xt, yt, row, out;
    pe_error error;

    for (int j = 0; j < FEW_KEYS; j++)
        keys[j] = key + j;
    for (int q = 0; q < MANY; q++)
        queries[q] = shuffled ? test_rng_int(r, -900, 900) : query + q;
    if (shuffled)
        q_at = (pe_positions){.ids = queries};
    for (size_t i = 0; i < sizeof x / 2; i++) {
        const uint16_t h = (uint16_t)(0x3c00 + test_rng_int(r, -0x200, 0x200));
        memcpy((unsigned char *)x + 2 * i, &h, 2);
    }
    ok(pe_bias_create(&bias, spec, &env, &error), &error);
    pe_tensor_bhsd(&xt, dtype, x, 1, 2, MANY, FEW_KEYS);
    pe_tensor_bhsd(&yt, dtype, y, 1, 2, MANY, FEW_KEYS);
    ok(add ? pe_bias_add(bias, &q_at, &k_at, &xt, &yt, &error)
           : pe_bias_fill(bias, &q_at, &k_at, &yt, &error),
       &error);
    for (int h = 0; h < 2; h++)
        for (int q = 0; q < MANY; q++) {
            const size_t at = (size_t)((h * MANY + q) * FEW_KEYS) * size;
            const pe_positions here = {.start = queries[q]};
            pe_bias *alone = NULL;
            pe_bias_spec of_head = *spec;
            of_head.head_start = h;
            ok(pe_bias_create(&alone, &of_head, &env, &error), &error);
            pe_tensor_bhsd(&row, dtype, (unsigned char *)x + at, 1, 1, 1, FEW_KEYS);
            pe_tensor_bhsd(&out, dtype, one, 1, 1, 1, FEW_KEYS);
            ok(add ? pe_bias_add(alone, &here, &k_ids, &row, &out, &error)
                   : pe_bias_fill(alone, &here, &k_ids, &out, &error),
               &error);
            pe_bias_destroy(alone);
            if (memcmp(one, (unsigned char *)y + at, FEW_KEYS * size) != 0)
                fail_msg(
                    "isa %d, type %d, form %d, head %d, query %d: other bits alone",
                    isa, spec->type, spec->form, h, q);
        }
    pe_bias_destroy(bias);
}

static void test_shared_lines(void **state)
{
    static float table[BUCKETS * 2], p[2] = {0.7f, 1.3f}, a[2] = {0.4f, 1.9f};
    const pe_bias_spec specs[] = {
        {.type = PE_BIAS_T5, .table = table},
        {.type = PE_BIAS_T5, .table = table, .scale = 0.3},
        {.type = PE_BIAS_KERPLE_LOG, .kerple_p = p, .kerple_a = a},
        {.type = PE_BIAS_KERPLE_POWER, .kerple_p = p, .kerple_a = a},
        {.type = PE_BIAS_ALIBI, .round_to = PE_BF16, .max_bias = 7},
        {.type = PE_BIAS_ALIBI, .round_to = PE_F16, .scale = 0.3}};
    test_rng r = {12};

    (void)state;
    for (int i = 0; i < BUCKETS * 2; i++)
        table[i] = 4 * test_rng_float(&r);
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++)
            for (int form = PE_BIAS_CAUSAL; form <= PE_BIAS_KEY_ONLY; form++) {
                pe_bias_spec spec = specs[s];
                if (!pe_isa_available(isas[i]) ||
                    (form == PE_BIAS_KEY_ONLY && spec.type != PE_BIAS_ALIBI))
                    continue;
                spec.struct_size = sizeof spec;
                spec.form = (pe_bias_form)form;
                spec.num_heads = 2;
                for (int round = 0; round < 2; round++)
                    check_lines(&r, isas[i], &spec, round,
                                (pe_dtype)test_rng_int(&r, PE_F32, PE_BF16));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alibi),
        cmocka_unit_test(test_shared_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
