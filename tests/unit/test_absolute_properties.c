/* SPDX-License-Identifier: MIT
 *
 * test_absolute_properties.c - what the papers promise of absolute encodings
 *
 * PE(i + k) is a linear function of PE(i); wavelengths run from 2 pi to 10000 * 2 pi; the
 * table's gradient is the one that differences show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../support/bits16.h"
#include "../support/rng.h"
#include "posenc/posenc.h"

static const double PI = 3.14159265358979323846;

static pe_absolute *create(const pe_sinusoidal_spec *spec)
{
    pe_absolute *plan = NULL;
    pe_error error;

    if (pe_sinusoidal_create(&plan, spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    return plan;
}

static void fill(const pe_absolute *plan, const pe_positions *at, int64_t n, int64_t d,
                 float *out)
{
    pe_tensor y;
    pe_error error;

    pe_tensor_bshd(&y, PE_F32, out, 1, n, 1, d);
    if (pe_absolute_fill(plan, at, &y, &error) != PE_OK)
        fail_msg("%s", error.message);
}

static void row_at(const pe_absolute *plan, int64_t position, int64_t d, float *out)
{
    const pe_positions at = {.start = position};
    fill(plan, &at, 1, d, out);
}

enum { WIDTH = 24 };

/* Solves m x = y (n equations each, columns of several y at once) by elimination. */
static void solve(double m[WIDTH][2 * WIDTH])
{
    for (int i = 0; i < WIDTH; i++) {
        int pivot = i;
        for (int r = i + 1; r < WIDTH; r++)
            if (fabs(m[r][i]) > fabs(m[pivot][i]))
                pivot = r;
        assert_true(fabs(m[pivot][i]) > 1e-6);
        for (int j = 0; j < 2 * WIDTH; j++) {
            const double swap = m[i][j];
            m[i][j] = m[pivot][j];
            m[pivot][j] = swap;
        }
        for (int r = 0; r < WIDTH; r++) {
            const double factor = r == i ? 0 : m[r][i] / m[i][i];
            for (int j = i; j < 2 * WIDTH; j++)
                m[r][j] -= factor * m[i][j];
        }
    }
    for (int i = 0; i < WIDTH; i++)
        for (int j = WIDTH; j < 2 * WIDTH; j++)
            m[i][j] /= m[i][i];
}

/* The matrix is found from WIDTH positions, without being told what it looks like, and
 * must then hold for all others. */
static void check_linear(const pe_sinusoidal_spec *spec, int64_t k)
{
    /* Spread over the slowest wavelength, so that the equations are independent. */
    static const int64_t known[WIDTH] = {0,   1,   2,   3,    5,    7,    11,   16,
                                         23,  37,  53,  71,   100,  142,  198,  280,
                                         395, 560, 790, 1120, 1580, 2230, 3160, 4470};
    double m[WIDTH][2 * WIDTH];
    float from[WIDTH], to[WIDTH];
    pe_absolute *plan = create(spec);
    test_rng r = {(uint64_t)k + 5};

    for (int n = 0; n < WIDTH; n++) {
        row_at(plan, known[n], WIDTH, from);
        row_at(plan, known[n] + k, WIDTH, to);
        for (int j = 0; j < WIDTH; j++) {
            m[n][j] = (double)from[j];
            m[n][WIDTH + j] = (double)to[j];
        }
    }
    solve(m);
    for (int n = 0; n < 500; n++) {
        const int64_t reach = n % 2 ? 100000 : (int64_t)1 << 39;
        const int64_t position = test_rng_int(&r, -reach, reach);
        row_at(plan, position, WIDTH, from);
        row_at(plan, position + k, WIDTH, to);
        for (int j = 0; j < WIDTH; j++) {
            double sum = 0;
            for (int i = 0; i < WIDTH; i++)
                sum += (double)from[i] * m[i][WIDTH + j];
            if (!(fabs(sum - (double)to[j]) < 2e-3))
                fail_msg("k %lld, position %lld, column %d: %.9g, the matrix says %.9g",
                         (long long)k, (long long)position, j, (double)to[j], sum);
        }
    }
    pe_absolute_destroy(plan);
}

static void test_shift_is_linear(void **state)
{
    pe_sinusoidal_spec spec = {
        .struct_size = sizeof spec, .model_dim = WIDTH, .base = 1000};

    (void)state;
    for (spec.order = 1; spec.order <= 3; spec.order++)
        for (int64_t k = 1; k < 2000; k = 3 * k + 1) {
            spec.downscale_freq_shift = spec.order == PE_COS_SIN_HALVES;
            check_linear(&spec, k);
            check_linear(&spec, -k);
        }
}

/* Every pair comes back after its wavelength and is negated after half of it. */
static void check_wavelengths(double shift, double longest)
{
    enum { D = 64, HALF = D / 2 };
    const pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                                     .order = PE_SIN_COS_HALVES,
                                     .model_dim = D,
                                     .downscale_freq_shift = shift};
    pe_absolute *plan = create(&spec);
    float row[3 * D];

    for (int i = 0; i < HALF; i++) {
        const double wavelength = 2 * PI * pow(longest / (2 * PI), i / (HALF - 1.0));
        const double values[3] = {17.25, 17.25 + wavelength, 17.25 + wavelength / 2};
        const pe_positions at = {.values = values};
        fill(plan, &at, 3, D, row);
        for (int k = i; k < D; k += HALF) {
            const double here = (double)row[k];
            assert_true(fabs((double)row[D + k] - here) < 1.5e-7);
            assert_true(fabs((double)row[2 * D + k] + here) < 1.5e-7);
        }
    }
    pe_absolute_destroy(plan);
}

static void test_wavelengths(void **state)
{
    (void)state;
    check_wavelengths(1, 10000 * 2 * PI);
    check_wavelengths(0, pow(10000, 31.0 / 32) * 2 * PI);
}

/* An f16 or bf16 encoding is the f32 one, rounded to nearest even. */
static void test_narrow_outputs(void **state)
{
    enum { D = 37, N = 300 };
    static float single[N * D];
    static uint16_t narrow[N * D];
    const pe_sinusoidal_spec spec = {
        .struct_size = sizeof spec, .order = PE_SIN_COS_HALVES, .model_dim = D};
    const pe_positions at = {.start = -50};
    pe_absolute *plan = create(&spec);
    pe_tensor y;

    (void)state;
    fill(plan, &at, N, D, single);
    for (pe_dtype dtype = PE_F16; dtype <= PE_BF16; dtype++) {
        pe_tensor_bshd(&y, dtype, narrow, 1, N, 1, D);
        assert_int_equal(pe_absolute_fill(plan, &at, &y, NULL), PE_OK);
        for (int i = 0; i < N * D; i++)
            assert_int_equal(narrow[i], dtype == PE_F16
                                            ? test_f16_nearest((double)single[i])
                                            : test_bf16_nearest((double)single[i]));
    }
    pe_absolute_destroy(plan);
}

/* A single pair has frequency 1 under shift 1, where half - 1 is 0. */
static void test_single_pair(void **state)
{
    const pe_positions at = {.start = 3};
    float row[3];

    (void)state;
    for (int32_t d = 2; d <= 3; d++) {
        const pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                                         .order = PE_SIN_COS_HALVES,
                                         .model_dim = d,
                                         .downscale_freq_shift = 1};
        pe_absolute *plan = create(&spec);
        fill(plan, &at, 1, d, row);
        assert_true(row[0] == (float)sin(3) && row[1] == (float)cos(3));
        assert_true(d == 2 || row[2] == 0);
        assert_true(pe_absolute_capacity(plan) == INT64_MAX);
        pe_absolute_destroy(plan);
    }
}

/* A row of one column, or a group of one, is the sine of frequency 1. */
static void test_single_column(void **state)
{
    const pe_positions at = {.start = 3};
    float row[3];

    (void)state;
    for (int n = 0; n < 4; n++) {
        const int32_t d = n < 2 ? 1 : 3;
        const pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                                         .order = n % 2 ? PE_SIN_COS_HALVES
                                                        : PE_SIN_COS_INTERLEAVED,
                                         .model_dim = d,
                                         .num_axes = d};
        pe_absolute *plan = create(&spec);
        fill(plan, &at, 1, d, row);
        for (int i = 0; i < d; i++)
            assert_true(row[i] == (float)sin(3));
        pe_absolute_destroy(plan);
    }
}

/* Float angles drift where exact ones do not; both agree near 0. */
static void test_float_angles_drift(void **state)
{
    enum { D = 64 };
    pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                               .order = PE_SIN_COS_HALVES,
                               .model_dim = D,
                               .downscale_freq_shift = 1};
    double apart[2] = {0, 0};
    pe_absolute *exact = create(&spec);
    spec.angles = PE_ANGLES_HF_F32;
    pe_absolute *imitated = create(&spec);
    float a[D], b[D];

    (void)state;
    for (int far = 0; far < 2; far++) {
        row_at(exact, far ? 1000003 : 5, D, a);
        row_at(imitated, far ? 1000003 : 5, D, b);
        for (int i = 0; i < D; i++)
            apart[far] = fmax(apart[far], fabs((double)a[i] - (double)b[i]));
    }
    assert_true(apart[0] < 1e-6);
    assert_true(apart[1] > 1e-3);
    pe_absolute_destroy(exact);
    pe_absolute_destroy(imitated);
}

/* The float steps of PyTorch code, written out: frequency, product, sine, scale and sum
 * are floats; exp, sin and cos are rounded from doubles. */
static void check_float_steps(const pe_sinusoidal_spec *spec)
{
    enum { D = 20, HALF = D / 2, N = 50 };
    static const float x = 0.7f;
    const int by_two = spec->order == PE_SIN_COS_INTERLEAVED;
    const double count =
        by_two ? D - 2 * spec->downscale_freq_shift : HALF - spec->downscale_freq_shift;
    const float step = (float)-(log(spec->base) / count);
    const float scale = (float)spec->value_scale, embed = (float)spec->embed_scale;
    pe_absolute *plan = create(spec);
    float in[N * D], got[N * D], sum[N * D];
    const pe_positions at = {.start = 990};
    pe_tensor in_t, sum_t;

    for (int i = 0; i < N * D; i++)
        in[i] = x;
    fill(plan, &at, N, D, got);
    pe_tensor_bshd(&in_t, PE_F32, in, 1, N, 1, D);
    pe_tensor_bshd(&sum_t, PE_F32, sum, 1, N, 1, D);
    assert_int_equal(pe_absolute_add(plan, &at, &in_t, &sum_t, NULL), PE_OK);
    for (int n = 0; n < N * D; n++) {
        const int k = n % D;
        const int pair = by_two ? k / 2 : k % HALF;
        const int is_sine =
            by_two ? k % 2 == 0 : (k < HALF) == (spec->order == PE_SIN_COS_HALVES);
        const float exponent = (float)(by_two ? 2 * pair : pair) * step;
        const float freq = (float)exp((double)exponent);
        const float angle = (float)(990 + n / D) * freq;
        const float wave =
            (float)(is_sine ? sin((double)angle) : cos((double)angle)) * scale;
        const float product = embed * x;
        if (got[n] != wave || sum[n] != product + wave)
            fail_msg("order %d, %d: %.9g and %.9g, expected %.9g and %.9g", spec->order,
                     n, (double)got[n], (double)sum[n], (double)wave,
                     (double)(product + wave));
    }
    pe_absolute_destroy(plan);
}

static void test_float_steps(void **state)
{
    pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                               .model_dim = 20,
                               .base = 10000,
                               .value_scale = 0.31,
                               .embed_scale = 4.4721359549995796,
                               .angles = PE_ANGLES_HF_F32};

    (void)state;
    for (spec.order = 1; spec.order <= 3; spec.order++)
        for (int shift = 0; shift < 2; shift++) {
            spec.downscale_freq_shift = shift;
            check_float_steps(&spec);
        }
}

enum { ROWS = 9, DIM = 5, TOKENS = 12 };

static double loss(const float *weight, const pe_positions *at, const float *upstream)
{
    float out[TOKENS * DIM];
    pe_tensor table, y;
    pe_absolute *plan = NULL;
    double sum = 0;

    pe_tensor_bshd(&table, PE_F32, weight, 1, ROWS, 1, DIM);
    pe_tensor_bshd(&y, PE_F32, out, 2, TOKENS / 2, 1, DIM);
    const pe_learned_spec spec = {
        .struct_size = sizeof spec, .weight = &table, .position_offset = 2};
    assert_int_equal(pe_learned_create(&plan, &spec, NULL, NULL), PE_OK);
    assert_int_equal(pe_absolute_fill(plan, at, &y, NULL), PE_OK);
    pe_absolute_destroy(plan);
    for (int i = 0; i < TOKENS * DIM; i++)
        sum += (double)out[i] * (double)upstream[i];
    return sum;
}

/* The encoding is linear in the table, so central differences are the derivative; what
 * was in dweight stays under it, and rows that no token reads keep their bits. */
static void test_gradient(void **state)
{
    float weight[ROWS * DIM], upstream[TOKENS * DIM], got[ROWS * DIM];
    int64_t ids[TOKENS];
    pe_tensor table, dy, dweight;
    pe_absolute *plan = NULL;
    test_rng r = {77};

    (void)state;
    for (int i = 0; i < ROWS * DIM; i++)
        weight[i] = test_rng_float(&r);
    for (int i = 0; i < TOKENS * DIM; i++)
        upstream[i] = test_rng_float(&r);
    for (int i = 0; i < TOKENS; i++) /* row 4 is never read, row 1 is padding's */
        ids[i] = i % 4 == 0 ? -1 : test_rng_int(&r, 0, 1) ? 3 + i % 4 : 0;
    const pe_positions at = {.ids = ids, .batch_stride = TOKENS / 2};
    for (int i = 0; i < ROWS * DIM; i++)
        got[i] = (float)(i % 3);
    pe_tensor_bshd(&table, PE_F32, weight, 1, ROWS, 1, DIM);
    pe_tensor_bshd(&dweight, PE_F32, got, 1, ROWS, 1, DIM);
    pe_tensor_bshd(&dy, PE_F32, upstream, 2, TOKENS / 2, 1, DIM);
    const pe_learned_spec spec = {
        .struct_size = sizeof spec, .weight = &table, .position_offset = 2};
    assert_int_equal(pe_learned_create(&plan, &spec, NULL, NULL), PE_OK);
    assert_int_equal(pe_absolute_backward(plan, &at, &dy, &dweight, NULL), PE_OK);
    pe_absolute_destroy(plan);

    for (int i = 0; i < ROWS * DIM; i++) {
        const float h = 0x1p-4f, kept = weight[i];
        weight[i] = kept + h;
        const double up = loss(weight, &at, upstream);
        weight[i] = kept - h;
        const double down = loss(weight, &at, upstream);
        weight[i] = kept;
        const double slope = (up - down) / (2 * (double)h);
        if (!(fabs((double)got[i] - (i % 3) - slope) < 1e-5))
            fail_msg("dweight[%d] is %.9g, differences say %.9g", i,
                     (double)got[i] - (i % 3), slope);
        if (i / DIM == 4)
            assert_true(got[i] == (float)(i % 3));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shift_is_linear),
        cmocka_unit_test(test_wavelengths),
        cmocka_unit_test(test_narrow_outputs),
        cmocka_unit_test(test_single_pair),
        cmocka_unit_test(test_single_column),
        cmocka_unit_test(test_float_angles_drift),
        cmocka_unit_test(test_float_steps),
        cmocka_unit_test(test_gradient),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
