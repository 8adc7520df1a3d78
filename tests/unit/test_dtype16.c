/* SPDX-License-Identifier: MIT
 *
 * test_dtype16.c - binary16 and bfloat16, every pattern and every rounding boundary
 *
 * Through pe_tensor_copy; the reference is arithmetic on doubles, not bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../support/bits16.h"
#include "../support/rng.h"
#include "posenc/posenc.h"

enum { PATTERNS = 65536 };

struct format {
    pe_dtype dtype;
    double (*value)(uint16_t bits);
    uint16_t (*nearest)(double value);
    int (*is_nan)(uint16_t bits);
};

static const struct format formats[] = {
    {PE_F16, test_f16_value, test_f16_nearest, test_f16_is_nan},
    {PE_BF16, test_bf16_value, test_bf16_nearest, test_bf16_is_nan},
};

static uint16_t patterns[PATTERNS], encoded[PATTERNS];
static float decoded[PATTERNS];

static void copy(pe_dtype from, const void *x, pe_dtype to, void *y, int64_t count)
{
    pe_tensor x_t, y_t;
    pe_error error;

    /* An odd head size, and a tail, so that every path of a kernel is taken. */
    const int64_t dim = 61, whole = count / dim * dim;
    const size_t x_size = from == PE_F32 ? 4 : 2, y_size = to == PE_F32 ? 4 : 2;
    pe_tensor_bshd(&x_t, from, x, 1, count / dim, 1, dim);
    pe_tensor_bshd(&y_t, to, y, 1, count / dim, 1, dim);
    if (pe_tensor_copy(&x_t, &y_t, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    if (whole == count)
        return;
    pe_tensor_bshd(&x_t, from, (const char *)x + (size_t)whole * x_size, 1, 1, 1,
                   count - whole);
    pe_tensor_bshd(&y_t, to, (char *)y + (size_t)whole * y_size, 1, 1, 1,
                   count - whole);
    if (pe_tensor_copy(&x_t, &y_t, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
}

static void check_round_trip(const struct format *f)
{
    for (int i = 0; i < PATTERNS; i++)
        patterns[i] = (uint16_t)i;
    copy(f->dtype, patterns, PE_F32, decoded, PATTERNS);
    copy(PE_F32, decoded, f->dtype, encoded, PATTERNS);
    for (int i = 0; i < PATTERNS; i++) {
        const uint16_t bits = (uint16_t)i;
        const double value = f->value(bits);
        if (f->is_nan(bits)) {
            assert_true(isnan(decoded[i]));
            assert_int_equal(signbit(decoded[i]) != 0, bits >> 15);
            assert_true(f->is_nan(encoded[i]));
            assert_int_equal(encoded[i] >> 15, bits >> 15);
            continue;
        }
        if ((double)decoded[i] != value ||
            (signbit(decoded[i]) != 0) != (signbit(value) != 0) || encoded[i] != bits)
            fail_msg("pattern 0x%04x: value %.9g, decoded %.9g, encoded 0x%04x", i,
                     value, (double)decoded[i], encoded[i]);
    }
}

/* Between neighbours lo and hi: both, the middle, and the floats next to each. */
static int around(double lo, double hi, float *out)
{
    const float points[] = {(float)lo, (float)((lo + hi) / 2), (float)hi};
    int count = 0;

    for (int i = 0; i < 3; i++) {
        out[count++] = points[i];
        out[count++] = nextafterf(points[i], -INFINITY);
        out[count++] = nextafterf(points[i], INFINITY);
    }
    return count;
}

static void check_boundary(const struct format *f, const float *points, int count)
{
    static uint16_t got[PATTERNS];

    copy(PE_F32, points, f->dtype, got, count);
    for (int i = 0; i < count; i++) {
        const uint16_t expected = f->nearest((double)points[i]);
        if (got[i] != expected)
            fail_msg("%.9g: encoded 0x%04x, nearest is 0x%04x", (double)points[i],
                     got[i], expected);
    }
}

static void check_boundaries(const struct format *f)
{
    static float points[PATTERNS];
    int count = 0;

    for (int bits = 0; bits < 0x8000; bits++) {
        const double lo = f->value((uint16_t)bits);
        double hi = f->value((uint16_t)(bits + 1));
        if (isnan(lo) || isinf(lo))
            break;
        if (isinf(hi)) /* where the next value would have been */
            hi = 2 * lo - f->value((uint16_t)(bits - 1));
        for (int sign = 0; sign < 2; sign++)
            count += sign ? around(-lo, -hi, points + count)
                          : around(lo, hi, points + count);
        if (count > PATTERNS - 32) {
            check_boundary(f, points, count);
            count = 0;
        }
    }
    check_boundary(f, points, count);
}

static void check_floats(const struct format *f)
{
    test_rng r = {7};
    static float points[PATTERNS];

    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < PATTERNS; i++) {
            uint32_t bits = (uint32_t)test_rng_next(&r);
            if ((bits & 0x7f800000u) == 0x7f800000u)
                bits &= 0xff800000u; /* infinities; NaNs are in the round trip */
            memcpy(&points[i], &bits, sizeof bits);
        }
        check_boundary(f, points, PATTERNS);
    }
}

static void test_every_pattern(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        check_round_trip(&formats[i]);
}

static void test_every_rounding_boundary(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        check_boundaries(&formats[i]);
}

static void test_random_floats(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        check_floats(&formats[i]);
}

/* A signalling or payload-only NaN must not round into an infinity. */
static void test_nan_stays_nan(void **state)
{
    const uint32_t nans[] = {0x7f800001u, 0xff800001u, 0x7fc00000u, 0xffffffffu,
                             0x7f80ffffu, 0x7fbfffffu, 0x7f801fffu};
    float x[7];
    uint16_t y[7];

    (void)state;
    memcpy(x, nans, sizeof x);
    for (int i = 0; i < 2; i++) {
        copy(PE_F32, x, formats[i].dtype, y, 7);
        for (int n = 0; n < 7; n++) {
            assert_true(formats[i].is_nan(y[n]));
            assert_int_equal(y[n] >> 15, nans[n] >> 31);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pattern),
        cmocka_unit_test(test_every_rounding_boundary),
        cmocka_unit_test(test_random_floats),
        cmocka_unit_test(test_nan_stays_nan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
