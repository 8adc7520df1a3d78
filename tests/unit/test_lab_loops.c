/* SPDX-License-Identifier: MIT
 *
 * test_lab_loops.c - the lab's loops and products against the formulas in double
 *
 * Each instruction set, lengths that fill no vector, addresses off the line; gradients
 * against central differences of the formula. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/rng.h"
#include "lab/loops.h"
#include "lab/matmul.h"

enum { ROOM = 4096 };

static const pe_isa sets[] = {PE_ISA_SCALAR, PE_ISA_AVX2, PE_ISA_AVX512};
static test_rng rng = {3};

static void fill(float *x, int64_t count, double scale)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)scale * test_rng_float(&rng);
}

static void assert_near(const char *what, double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        fail_msg("%s is %.9g, must be within %g of %.9g", what, got, bound, want);
}

/* ------------------------------------------------------------------------- norm --- */

static double norm_at(const double *x, const float *gain, int64_t width, int64_t i)
{
    double sum = 0;
    for (int64_t j = 0; j < width; j++)
        sum += x[j] * x[j];
    return x[i] / sqrt(sum / (double)width + 1e-5) * (double)gain[i];
}

/* sum of dy y: what norm_back differentiates. */
static double norm_pull(const double *x, const float *gain, const float *dy,
                        int64_t width)
{
    double sum = 0;
    for (int64_t i = 0; i < width; i++)
        sum += (double)dy[i] * norm_at(x, gain, width, i);
    return sum;
}

static void check_norm(const lab_loops *loops, int64_t rows, int64_t width)
{
    float x[ROOM], y[ROOM], dy[ROOM], dx[ROOM], gain[512], dgain[512], root[64];
    double row[512], want_gain[512] = {0};
    fill(x, rows * width, 2);
    fill(dy, rows * width, 1);
    fill(gain, width, 1);
    fill(dx, rows * width, 1);
    memcpy(y, dx, sizeof y); /* dx is added to */
    float before[ROOM];
    memcpy(before, dx, sizeof before);
    memset(dgain, 0, sizeof dgain);
    loops->norm(rows, width, x, gain, y, root);
    loops->norm_back(rows, width, x, gain, root, dy, dx, dgain);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < width; i++)
            row[i] = (double)x[r * width + i];
        for (int64_t i = 0; i < width; i++) {
            const int64_t at = r * width + i;
            const double want = norm_at(row, gain, width, i), kept = row[i], h = 1e-5;
            assert_near("norm", (double)y[at], want, 3e-6);
            if (gain[i] != 0)
                want_gain[i] += (double)dy[at] * want / (double)gain[i];
            row[i] = kept + h;
            double slope = norm_pull(row, gain, dy + r * width, width);
            row[i] = kept - h;
            slope = (slope - norm_pull(row, gain, dy + r * width, width)) / (2 * h);
            row[i] = kept;
            assert_near("dx of norm", (double)(dx[at] - before[at]), slope,
                        1e-5 * (1 + fabs(slope)));
        }
    }
    for (int64_t i = 0; i < width; i++)
        assert_near("dgain", (double)dgain[i], want_gain[i], 2e-5);
}

/* ------------------------------------------------------------------------- GELU --- */

static double phi(double x)
{
    return erfc(-x / sqrt(2)) / 2;
}

/* x over [-14, 14], dense; the bound on Phi that the header states. */
static void check_gelu(const lab_loops *loops, const char *name)
{
    enum { POINTS = 1 << 20 };
    double worst = 0, worst_slope = 0;
    float x[1001], y[1001], slope[1001], again[1001];
    for (int64_t begin = 0; begin < POINTS; begin += 1001) {
        for (int i = 0; i < 1001; i++)
            x[i] = (float)((double)(begin + i) * 28 / POINTS - 14);
        loops->gelu(1001, x, y, slope);
        loops->gelu(1001, x, again, NULL);
        assert_memory_equal(y, again, sizeof y);
        for (int i = 0; i < 1001; i++) {
            const double v = (double)x[i], p = phi(v);
            const double error = fabs((double)y[i] - v * p) / fmax(1, fabs(v));
            const double density = exp(-v * v / 2) * 0.39894228040143268;
            worst = fmax(worst, error);
            worst_slope = fmax(worst_slope, fabs((double)slope[i] - p - v * density));
        }
    }
    printf("%s: Phi off by %.2g, the slope of GELU by %.2g\n", name, worst,
           worst_slope);
    assert_true(worst <= 3e-7 && worst_slope <= 6e-7);
    loops->gelu(1001, x, y, x); /* the slope in the place of x */
    assert_memory_equal(x, slope, sizeof slope);
    const float odd[4] = {INFINITY, -INFINITY, NAN, 0};
    loops->gelu(4, odd, y, NULL);
    assert_true(y[0] == INFINITY && isnan(y[2]) && y[3] == 0);
}

/* ------------------------------------------------------------------------- loss --- */

static void check_loss(const lab_loops *loops, double size)
{
    enum { ROWS = 5 };
    static float logits[ROWS * LAB_VOCAB], dlogits[ROWS * LAB_VOCAB];
    float nll[ROWS], log_sum[ROWS];
    uint8_t targets[ROWS];
    const float scale = 0.37f;
    fill(logits, ROWS * LAB_VOCAB, size);
    for (int r = 0; r < ROWS; r++)
        targets[r] = (uint8_t)test_rng_int(&rng, 0, 255);
    loops->loss(ROWS, logits, targets, nll, log_sum);
    loops->loss_back(ROWS, logits, targets, log_sum, scale, dlogits);
    for (int r = 0; r < ROWS; r++) {
        const float *row = logits + r * LAB_VOCAB;
        double max = -INFINITY, sum = 0;
        for (int i = 0; i < LAB_VOCAB; i++)
            max = fmax(max, (double)row[i]);
        for (int i = 0; i < LAB_VOCAB; i++)
            sum += exp((double)row[i] - max);
        const double total = max + log(sum);
        assert_near("nll", (double)nll[r], total - (double)row[targets[r]],
                    1e-6 * (1 + size));
        for (int i = 0; i < LAB_VOCAB; i++)
            assert_near("dlogits", (double)dlogits[r * LAB_VOCAB + i],
                        0.37 * (exp((double)row[i] - total) - (i == targets[r])),
                        1e-6 * (1 + size / 10));
    }
    logits[3] = NAN;
    loops->loss(1, logits, targets, nll, log_sum);
    assert_true(isnan(nll[0]));
}

/* ------------------------------------------------------------------------ AdamW --- */

static void check_adamw(const lab_loops *loops, int64_t count)
{
    float w[ROOM] = {0}, m[ROOM] = {0}, v[ROOM] = {0}, g[ROOM] = {0};
    float old_w[ROOM], old_m[ROOM], old_v[ROOM];
    const lab_adamw_rates k = {0.5f, 0.99f, 0.003f, 1.7f, 0.9f, 0.95f, 1e-8f};
    fill(w, count, 1);
    fill(m, count, 0.1);
    fill(g, count, 1);
    for (int64_t i = 0; i < count; i++)
        v[i] = 0.01f * (1 + test_rng_float(&rng));
    memcpy(old_w, w, sizeof w);
    memcpy(old_m, m, sizeof m);
    memcpy(old_v, v, sizeof v);
    loops->adamw(&k, count, w, m, v, g);
    double squares = 0;
    for (int64_t i = 0; i < count; i++) {
        const double slope = 0.5 * (double)g[i];
        const double want_m = 0.9 * (double)old_m[i] + 0.1 * slope;
        const double want_v = 0.95 * (double)old_v[i] + 0.05 * slope * slope;
        const double want_w =
            (double)0.99f * (double)old_w[i] -
            (double)0.003f * want_m / (sqrt(want_v) * (double)1.7f + 1e-8);
        assert_near("moment 1", (double)m[i], want_m, 1e-7);
        assert_near("moment 2", (double)v[i], want_v, 1e-7);
        assert_near("weight", (double)w[i], want_w, 3e-7);
        squares += (double)g[i] * (double)g[i];
    }
    assert_near("squares", loops->sum_of_squares(count, g), squares, 1e-12 * squares);
    memcpy(old_w, w, sizeof w);
    loops->add(count, w, g);
    loops->multiply(count, m, g);
    for (int64_t i = 0; i < count; i++)
        assert_true(w[i] == old_w[i] + g[i]);
}

static void loops_follow_the_formulas(void **state)
{
    static const int64_t widths[] = {1, 7, 16, 20, 96, 257};
    (void)state;
    for (size_t s = 0; s < LAB_COUNT(sets); s++) {
        if (!pe_isa_available(sets[s]))
            continue;
        const lab_loops *loops = lab_loops_get(sets[s]);
        check_gelu(loops, pe_isa_name(sets[s]));
        for (size_t i = 0; i < LAB_COUNT(widths); i++) {
            check_norm(loops, 3, widths[i]);
            check_adamw(loops, widths[i]);
        }
        check_loss(loops, 0.01);
        check_loss(loops, 5);
        check_loss(loops, 60);
    }
}

/* --------------------------------------------------------------------- products --- */

static void check_product(int form, int64_t m, int64_t n, int64_t k, int add)
{
    static float a[ROOM], b[ROOM], c[ROOM], old[ROOM];
    fill(a, m * k, 1);
    fill(b, n * k, 1);
    fill(old, m * n, 1);
    memcpy(c, old, sizeof c);
    if (!add)
        c[0] = NAN; /* not read */
    (form == 0   ? lab_matmul_nt
     : form == 1 ? lab_matmul_nn
                 : lab_matmul_tn)(m, n, k, a, b, c, add);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double want = add ? (double)old[i * n + j] : 0;
            for (int64_t l = 0; l < k; l++)
                want += (double)(form == 2 ? a[l * m + i] : a[i * k + l]) *
                        (double)(form == 0 ? b[j * k + l] : b[l * n + j]);
            assert_near("product", (double)c[i * n + j], want, 1e-6 * (double)(k + 4));
        }
}

static void products_follow_the_formula(void **state)
{
    pe_error error;
    (void)state;
    if (lab_matmul_load(&error) != PE_OK)
        fail_msg("%s", error.message);
    assert_int_equal(lab_matmul_load(&error), PE_OK);
    printf("%s\n", lab_matmul_name());
    assert_non_null(strstr(lab_matmul_name(), "OpenBLAS"));
    for (int trial = 0; trial < 60; trial++)
        check_product(trial % 3, test_rng_int(&rng, 1, 40), test_rng_int(&rng, 1, 40),
                      test_rng_int(&rng, 1, 90), trial & 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(loops_follow_the_formulas),
                                       cmocka_unit_test(products_follow_the_formula)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
