/* SPDX-License-Identifier: MIT
 *
 * test_rope_int8.c - rotating into int8 with scales is rotating into floats, then storing
 *
 * Bit for bit, on every instruction set: windows, pairings, groups, strides and pages.
 * Storing itself is that of plain C (base/int8.h), of rows of every kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "../support/rng.h"
#include "base/int8.h"
#include "posenc/env.h"
#include "posenc/posenc.h"

enum { TOKENS = 7, PAGE = 3, HEADS = 5, DIM = 96, ALL = TOKENS * HEADS * DIM };

static const pe_isa isas[] = {PE_ISA_SCALAR, PE_ISA_AVX2, PE_ISA_AVX512, PE_ISA_NEON,
                              PE_ISA_WASM128};

static void draw(test_rng *r, pe_dtype dtype, float *floats, uint16_t *halves)
{
    for (int64_t i = 0; i < ALL; i++) {
        const float x = ldexpf(test_rng_float(r), (int)(i / DIM % 9) - 4);
        floats[i] = x;
        halves[i] = dtype == PE_BF16 ? pe_bf16_from_f32(x) : pe_f16_from_f32(x);
    }
}

typedef struct {
    pe_dtype in;
    int64_t group;
    int32_t start, rotary;
    pe_pairing pairing, out_pairing;
    int paged;
} layout;

static void check(const layout *l, pe_isa isa, test_rng *r)
{
    static float floats[ALL], turned[ALL], scales[2 * ALL], want_scales[ALL];
    static uint16_t halves[ALL];
    static int8_t bytes[2 * ALL], want[ALL];
    static const int32_t table[] = {3, 0, 2};
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = DIM,
                               .pairs = {.pairing = l->pairing,
                                         .out_pairing = l->out_pairing,
                                         .rotary_start = l->start,
                                         .rotary_dim = l->rotary},
                               .freqs = {.rope_theta = 10000}};
    const pe_positions at = {.start = 12345};
    pe_tensor x, f, y;
    pe_rope *rope;
    pe_error error;

    draw(r, l->in, floats, halves);
    pe_tensor_bshd(&x, l->in, l->in == PE_F32 ? (void *)floats : halves, 1, TOKENS,
                   HEADS, DIM);
    pe_tensor_bshd(&f, PE_F32, turned, 1, TOKENS, HEADS, DIM);
    pe_tensor_bhsd(&y, PE_I8, bytes, 1, HEADS, TOKENS, DIM);
    if (l->paged)
        pe_tensor_paged(&y, PE_I8, bytes, 4, PAGE, HEADS, DIM, table, 1, 3);
    y.seq_len = TOKENS;
    y.scales = scales;
    y.scale_len = l->group;
    if (pe_rope_create(&rope, &spec, &env, &error) != PE_OK)
        fail_msg("%s", error.message);
    assert_int_equal(pe_rope_apply(rope, &at, &x, &f, NULL), PE_OK);
    assert_int_equal(pe_rope_apply(rope, &at, &x, &y, NULL), PE_OK);
    pe_i8_store(turned, l->group, want, want_scales, ALL);
    for (int64_t t = 0; t < TOKENS; t++)
        for (int64_t h = 0; h < HEADS; h++) {
            const int64_t from = (t * HEADS + h) * DIM;
            const int64_t to =
                l->paged ? ((table[t / PAGE] * PAGE + t % PAGE) * HEADS + h) * DIM
                         : (h * TOKENS + t) * DIM;
            assert_memory_equal(bytes + to, want + from, DIM);
            assert_memory_equal(scales + to / l->group, want_scales + from / l->group,
                                (size_t)(DIM / l->group) * sizeof *scales);
        }
    pe_rope_destroy(rope);
}

static void test_rotated(void **state)
{
    (void)state;
    static const int64_t groups[] = {DIM, DIM / 2, 32, 12, 1};
    test_rng r = {11};

    for (size_t i = 0; i < PE_COUNT(isas); i++)
        for (int n = 0; pe_isa_available(isas[i]) && n < 120; n++) {
            const layout l = {.in = (pe_dtype)(PE_F32 + n % 3),
                              .group = groups[n % 5],
                              .start = n / 5 % 2 ? 10 : 0,
                              .rotary = n / 10 % 2  ? 64
                                        : n / 5 % 2 ? DIM - 10
                                                    : DIM,
                              .pairing = n / 20 % 2 ? PE_INTERLEAVED : PE_HALF_SPLIT,
                              .out_pairing = n / 40 % 2 ? PE_HALF_SPLIT : 0,
                              .paged = n / 3 % 2};
            check(&l, isas[i], &r);
        }
}

/* -------------------------------------------------------------------- copies --- */

static void test_copied(void **state)
{
    (void)state;
    static float x[ALL], back[ALL];
    static int8_t bytes[ALL], want[ALL];
    static float scales[ALL], want_scales[ALL];
    static const int64_t groups[] = {DIM, 48, 24, 3};
    test_rng r = {12};

    for (size_t i = 0; i < PE_COUNT(isas); i++)
        for (int n = 0; pe_isa_available(isas[i]) && n < 40; n++) {
            const pe_env env = {.struct_size = sizeof env, .isa = isas[i]};
            const int64_t group = groups[n % 4];
            pe_tensor x_t, y_t, back_t;
            for (int64_t j = 0; j < ALL; j++)
                x[j] = n % 2 ? pe_f32_from_bits((uint32_t)test_rng_next(&r))
                             : test_rng_float(&r);
            pe_tensor_bshd(&x_t, PE_F32, x, 1, TOKENS, HEADS, DIM);
            pe_tensor_bshd(&y_t, PE_I8, bytes, 1, TOKENS, HEADS, DIM);
            pe_tensor_bshd(&back_t, PE_F32, back, 1, TOKENS, HEADS, DIM);
            y_t.scales = scales;
            y_t.scale_len = group;
            assert_int_equal(pe_tensor_copy(&x_t, &y_t, &env, NULL), PE_OK);
            assert_int_equal(pe_tensor_copy(&y_t, &back_t, &env, NULL), PE_OK);
            pe_i8_store(x, group, want, want_scales, ALL);
            assert_memory_equal(bytes, want, sizeof want);
            assert_memory_equal(scales, want_scales,
                                (size_t)(ALL / group) * sizeof *scales);
            for (int64_t j = 0; j < ALL; j++) {
                const float exact = (float)want[j] * want_scales[j / group];
                if (isnan(exact))
                    assert_true(isnan(back[j]));
                else
                    assert_int_equal(pe_f32_bits(back[j]), pe_f32_bits(exact));
            }
        }
}

/* ---------------------------------------------------------- what one group keeps --- */

static float store_one(const float *x, int64_t n, int8_t *q)
{
    float scale;
    pe_i8_store(x, n, q, &scale, n);
    return scale;
}

static void test_special(void **state)
{
    (void)state;
    int8_t q[4];
    const float zeroes[] = {0, -0.0f, 0, 0}, nan[] = {1, NAN, 2, 0};
    const float infinite[] = {1, 2, -INFINITY, 0}, plain[] = {-254, 127, 1, -1};

    assert_true(store_one(zeroes, 4, q) == 0 && q[0] == 0 && q[3] == 0);
    assert_true(isnan(store_one(nan, 4, q)) && q[0] == 0);
    assert_true(isnan(store_one(infinite, 4, q)) && q[1] == 0);
    assert_true(store_one(plain, 4, q) == 2);
    assert_true(q[0] == -127 && q[1] == 64 && q[2] == 0 && q[3] == 0); /* to even */
}

/* Where the scale itself is subnormal it is coarse, and rounds up rather than let the
 * largest value pass 127: no value is off by more than half a scale. */
static void test_subnormal_scales(void **state)
{
    (void)state;
    for (uint32_t top = 1; top < 1u << 23; top += 1 + top / 64) {
        const uint32_t bits[] = {top, 0x80000000u | top, top / 2, top - top / 3};
        float x[4];
        int8_t q[4];
        memcpy(x, bits, sizeof x);
        const double scale = (double)store_one(x, 4, q);
        for (int i = 0; i < 4; i++)
            assert_true(fabs((double)x[i] - q[i] * scale) <= scale * (0.5 + 0x1p-14));
        assert_true(q[0] == -q[1] && q[0] > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rotated),
        cmocka_unit_test(test_copied),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_subnormal_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
