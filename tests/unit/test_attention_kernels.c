/* SPDX-License-Identifier: MIT
 *
 * test_attention_kernels.c - the inner loops of every instruction set, against double
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../support/rng.h"
#include "base/dtype.h"
#include "kernels/attention_kernels.h"

static const pe_isa isas[] = {PE_ISA_SCALAR, PE_ISA_AVX2, PE_ISA_AVX512, PE_ISA_NEON,
                              PE_ISA_WASM128};

#define FOR_EACH_TABLE(k)                                             \
  for (size_t isa_index = 0; isa_index < PE_COUNT(isas); isa_index++) \
    for (const pe_attention_kernels *k =                              \
             pe_isa_available(isas[isa_index])                        \
                 ? pe_attention_kernels_get(isas[isa_index])          \
                 : NULL;                                              \
         k != NULL; k = NULL)

/* exp2 of 64 numbers, by way of a row whose log-sum-exp is 0. */
static void exp2_of(const pe_attention_kernels *k, float *x)
{
    float zero = 0;
    const pe_softmax_block block = {.s = x, .rows = 1, .max = &zero};

    k->weights(&block);
}

static void test_exp2(void **state)
{
    (void)state;
    FOR_EACH_TABLE(k)
    {
        double worst = 0;
        /* Every 61st float of [-126, -2^-30], then the ends. */
        uint32_t bits = pe_f32_bits(-0x1p-30f);
        const uint32_t end = pe_f32_bits(-126.0f);
        while (bits < end) {
            float x[PE_KEY_BLOCK], y[PE_KEY_BLOCK];
            for (int i = 0; i < PE_KEY_BLOCK; i++, bits += 61)
                x[i] = y[i] = pe_f32_from_bits(bits < end ? bits : end - 1);
            exp2_of(k, y);
            for (int i = 0; i < PE_KEY_BLOCK; i++) {
                const double exact = exp2((double)x[i]);
                worst = fmax(worst, fabs((double)y[i] - exact) / exact);
            }
        }
        print_message("%s: relative error of exp2 up to %.3g\n", pe_isa_name(k->isa),
                      worst);
        assert_true(worst < 1.3e-7); /* 2^-22.9: just over one unit in the last place */
        float ends[PE_KEY_BLOCK] = {0,           -0.0f,   -1,         -126.0f,
                                    -126.00001f, -127.0f, -1000.0f,   -1e30f,
                                    -INFINITY,   NAN,     -125.99999f};
        exp2_of(k, ends);
        assert_true(ends[0] == 1 && ends[1] == 1 && ends[2] == 0.5f);
        for (int i = 3; i <= 8; i++)
            assert_int_equal(pe_f32_bits(ends[i]), 0); /* +0, exactly */
        assert_true(isnan(ends[9]));
        assert_true(ends[10] > 0);
    }
}

static void test_cap(void **state)
{
    (void)state;
    FOR_EACH_TABLE(k)
    {
        double worst = 0, slope = 0;
        for (int n = 0; n < 2000; n++) {
            float x[PE_KEY_BLOCK], y[PE_KEY_BLOCK];
            for (int i = 0; i < PE_KEY_BLOCK; i++)
                x[i] = y[i] = (float)(n * PE_KEY_BLOCK + i - 64000) * 0x1p-12f;
            k->cap_slope(y, 1.5f, PE_KEY_BLOCK);
            for (int i = 0; i < PE_KEY_BLOCK; i++) {
                const double t = tanh((double)x[i] / 1.5);
                slope = fmax(slope, fabs((double)y[i] - (1 - t * t)));
            }
            /* cap_scale 1.5 in log2 units, less 1.5: weights are exp2 of it. */
            float top = 1.5f;
            memcpy(y, x, sizeof y);
            const pe_softmax_block block = {
                .s = y, .rows = 1, .cap = 1.5f, .cap_scale = 1.5f, .max = &top};
            k->weights(&block);
            for (int i = 0; i < PE_KEY_BLOCK; i++) {
                const double exact = exp2(1.5 * tanh((double)x[i] / 1.5) - 1.5);
                worst = fmax(worst, fabs((double)y[i] - exact) / exact);
            }
        }
        assert_true(worst < 6e-7);
        assert_true(slope < 5e-7);
    }
}

static void test_multiply(void **state)
{
    (void)state;
    enum { MAX = 100 };
    static float a[MAX * MAX], b[MAX * MAX], c[MAX * MAX], before[MAX * MAX];
    test_rng r = {1};

    FOR_EACH_TABLE(k)
    for (int n = 0; n < 120; n++) {
        const int64_t rows = test_rng_int(&r, 1, 80),
                      cols = 16 * test_rng_int(&r, 1, 6);
        const int64_t depth = test_rng_int(&r, 0, 96);
        const int is_turned = (int)test_rng_int(&r, 0, 1), adds = n & 1;
        const int64_t a_row = is_turned ? 1 : MAX, a_col = is_turned ? MAX : 1;
        for (int i = 0; i < MAX * MAX; i++) {
            a[i] = test_rng_float(&r);
            b[i] = test_rng_float(&r);
            c[i] = before[i] = test_rng_float(&r);
        }
        k->multiply(rows, cols, depth, a, a_row, a_col, b, MAX, c, MAX, adds);
        for (int64_t i = 0; i < MAX; i++)
            for (int64_t j = 0; j < MAX; j++) {
                double sum = adds ? (double)before[i * MAX + j] : 0;
                for (int64_t d = 0; d < depth; d++)
                    sum += (double)a[i * a_row + d * a_col] * (double)b[d * MAX + j];
                if (i < rows && j < cols)
                    assert_true(fabs((double)c[i * MAX + j] - sum) < 1e-5);
                else
                    assert_true(c[i * MAX + j] == before[i * MAX + j]);
            }
    }
}

static void test_transpose(void **state)
{
    (void)state;
    enum { ROW = 53 };
    static float in[PE_KEY_BLOCK * ROW + 16], out[48 * PE_KEY_BLOCK];

    for (int i = 0; i < PE_KEY_BLOCK * ROW + 16; i++)
        in[i] = (float)i;
    FOR_EACH_TABLE(k)
    {
        k->transpose(in, ROW, 48, out);
        for (int j = 0; j < PE_KEY_BLOCK; j++)
            for (int d = 0; d < 48; d++)
                assert_true(out[d * PE_KEY_BLOCK + j] == in[j * ROW + d]);
    }
}

static void store(pe_dtype dtype, void *to, int64_t i, float x)
{
    if (dtype == PE_F32)
        ((float *)to)[i] = x;
    else if (dtype == PE_I8)
        ((int8_t *)to)[i] = (int8_t)(x * 127);
    else
        ((uint16_t *)to)[i] =
            dtype == PE_F16 ? pe_f16_from_f32(x) : pe_bf16_from_f32(x);
}

static float load(pe_dtype dtype, const void *from, int64_t i)
{
    if (dtype == PE_F32)
        return ((const float *)from)[i];
    if (dtype == PE_I8)
        return ((const int8_t *)from)[i];
    return dtype == PE_F16 ? pe_f16_to_f32(((const uint16_t *)from)[i])
                           : pe_bf16_to_f32(((const uint16_t *)from)[i]);
}

static void check_stream(const pe_attention_kernels *k, test_rng *r, pe_dtype dtype)
{
    enum { DIM = 90, PAD = 96, ROWS = PE_STREAM_ROWS };
    static float data[PE_KEY_BLOCK][DIM], q[ROWS * PAD], s[ROWS * PE_KEY_BLOCK];
    static float out[ROWS * PAD], before[ROWS * PAD];
    const int64_t rows = test_rng_int(r, 1, ROWS), n = test_rng_int(r, 1, PE_KEY_BLOCK);
    const int64_t dim = test_rng_int(r, 1, DIM);
    const void *keys[PE_KEY_BLOCK];
    /* Backwards, by address or by step. */
    const pe_rows listed = {keys, NULL, 0};
    const pe_rows stepped = {NULL, data[n - 1], -(int64_t)sizeof data[0]};
    const pe_rows *given = test_rng_int(r, 0, 1) ? &listed : &stepped;
    const int64_t num_ahead = test_rng_int(r, 0, n);
    const double size = dtype == PE_I8 ? 127 : 1; /* of the largest element */

    for (int64_t j = 0; j < n; j++) {
        keys[j] = data[n - 1 - j];
        for (int64_t d = 0; d < dim; d++)
            store(dtype, data[n - 1 - j], d, test_rng_float(r));
    }
    for (int64_t i = 0; i < ROWS * PAD; i++) {
        q[i] = test_rng_float(r);
        out[i] = before[i] = test_rng_float(r);
    }
    k->touch(given, n);
    k->dots[dtype - 1](rows, q, PAD, given, n, dim, s, &stepped, num_ahead);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t d = 0; d < dim; d++)
                sum += (double)q[i * PAD + d] * (double)load(dtype, keys[j], d);
            assert_true(fabs((double)s[i * PE_KEY_BLOCK + j] - sum) < 1e-5 * size);
        }
    k->sums[dtype - 1](rows, s, given, n, dim, out, PAD, &listed, num_ahead);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t d = 0; d < PAD; d++) {
            double sum = (double)before[i * PAD + d];
            for (int64_t j = 0; j < n && i < rows && d < dim; j++)
                sum +=
                    (double)s[i * PE_KEY_BLOCK + j] * (double)load(dtype, keys[j], d);
            assert_true(fabs((double)out[i * PAD + d] - sum) < 1e-4 * size * size);
        }
}

static void test_streaming(void **state)
{
    (void)state;
    test_rng r = {2};

    FOR_EACH_TABLE(k)
    for (int n = 0; n < 200; n++)
        check_stream(k, &r, (pe_dtype)(1 + n % 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp2),      cmocka_unit_test(test_cap),
        cmocka_unit_test(test_multiply),  cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_streaming),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
