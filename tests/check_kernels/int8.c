/* SPDX-License-Identifier: MIT
 *
 * int8.c - rows to and from int8 with scales: bits equal to scalar's, errors within half
 * a step
 *
 * Rows hold what rounding, range and special values are sensitive to: middles between
 * whole numbers, subnormals, the largest floats, zeroes, infinities and NaNs. */
#include "check.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MAX_COUNT = 160, PLACES = 2 + 8 }; /* and NUM_KINDS have no common divisor */

typedef enum {
    PLAIN,
    MIDDLES,   /* whole numbers and a half, with 127 among them: ties */
    SUBNORMAL, /* magnitudes down to the smallest, so that scales are subnormal, too */
    LARGE,     /* up to the largest float */
    ZEROES,
    SPECIAL, /* a NaN or an infinity somewhere */
    ANY_BITS,
    NUM_KINDS
} content;

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void fill(float *x, int64_t n, content kind, test_rng *r)
{
    static const float specials[] = {NAN, INFINITY, -INFINITY};
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)test_rng_next(r);
        switch (kind) {
        case MIDDLES:
            x[i] = (float)((int)(bits % 253) - 126) + (bits & 0x1000 ? 0.5f : 0);
            break;
        case SUBNORMAL:
            x[i] = from_bits((bits & 0x80000000u) | (bits % (1u << bits % 24)));
            break;
        case LARGE:
            x[i] = test_rng_float(r) * FLT_MAX;
            break;
        case ZEROES:
            x[i] = bits & 1 ? 0.0f : -0.0f;
            break;
        case ANY_BITS:
            x[i] = from_bits(bits);
            break;
        default:
            x[i] = test_rng_float(r);
        }
    }
    if (kind == MIDDLES)
        x[test_rng_int(r, 0, n - 1)] = test_rng_int(r, 0, 1) ? 127 : -127;
    if (kind == SPECIAL)
        x[test_rng_int(r, 0, n - 1)] = specials[test_rng_int(r, 0, 2)];
}

/* What docs/numerics.md says of a group, from the floats alone. */
static void check_group(const float *x, int64_t n, const int8_t *q, float scale)
{
    double top = 0;
    int largest = 0;
    for (int64_t i = 0; i < n; i++) {
        top = isnan(x[i]) ? NAN : fmax(top, fabs((double)x[i]));
        if (isnan(top))
            break;
    }
    if (!(top <= (double)FLT_MAX)) {
        if (!isnan(scale))
            fail_case("a group that is not finite has scale %g", (double)scale);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const double off = fabs((double)x[i] - (double)q[i] * (double)scale);
        const int size = q[i] < 0 ? -q[i] : q[i];
        largest = size > largest ? size : largest;
        if (!(off <= (double)scale * (0.5 + 0x1p-14)))
            fail_case("%g becomes %d times %g", (double)x[i], q[i], (double)scale);
    }
    if (top == 0 ? scale != 0 || largest != 0
                 : largest > 127 || (top >= 0x1p-118 && largest != 127))
        fail_case("the largest of a group, %g, becomes %d times %g", top, largest,
                  (double)scale);
}

/* n elements in groups; x, q and s lie where the caller has put them. */
static void check_row(const pe_kernels *kernels, const float *x, int64_t group,
                      int64_t n, strip *strips, int8_t *q, float *s, float *back)
{
    int8_t want_q[MAX_COUNT];
    float want_s[MAX_COUNT], want[MAX_COUNT];
    const size_t groups = (size_t)(n / group);
    pe_kernels_scalar.store_i8(x, group, n / group, want_q, group, want_s, 1);
    for (int i = 0; i < 3; i++)
        strip_mark(&strips[i]);
    strip_own(&strips[1], q, (size_t)n);
    strip_own(&strips[2], s, groups * sizeof *s);
    kernels->store_i8(x, group, n / group, q, group, s, 1);
    if (!strip_kept(&strips[0]) || !strip_kept(&strips[1]) || !strip_kept(&strips[2]))
        fail_case("a byte outside changed");
    if (memcmp(q, want_q, (size_t)n) != 0 || memcmp(s, want_s, groups * sizeof *s) != 0)
        fail_case("bits differ from scalar's");
    for (int64_t g = 0; g < n; g += group)
        check_group(x + g, group, q + g, s[g / group]);

    pe_kernels_scalar.load_i8(q, s, group, want, n);
    for (int i = 0; i < 4; i++)
        strip_mark(&strips[i]);
    strip_own(&strips[3], back, (size_t)n * sizeof *back);
    kernels->load_i8(q, s, group, back, n);
    for (int i = 0; i < 4; i++)
        if (!strip_kept(&strips[i]))
            fail_case("a byte outside changed in loading");
    if (memcmp(back, want, (size_t)n * sizeof *back) != 0)
        fail_case("floats differ from scalar's");
}

/* Groups that lie apart, as the heads of a cache do: nothing between them changes. */
static void check_apart(const pe_kernels *kernels, const float *x, int64_t group,
                        int64_t n)
{
    enum { GAP = 3, CANARY = 77 };
    int8_t want[MAX_COUNT], got[(1 + GAP) * MAX_COUNT];
    float want_scales[MAX_COUNT], scales[2 * MAX_COUNT];
    memset(got, CANARY, sizeof got);
    for (int i = 0; i < 2 * MAX_COUNT; i++)
        scales[i] = CANARY;
    pe_kernels_scalar.store_i8(x, group, n / group, want, group, want_scales, 1);
    kernels->store_i8(x, group, n / group, got, group + GAP, scales, 2);
    for (int64_t g = 0; g < n / group; g++) {
        const int8_t *at = got + g * (group + GAP);
        if (memcmp(at, want + g * group, (size_t)group) != 0 ||
            memcmp(scales + 2 * g, want_scales + g, sizeof *scales) != 0)
            fail_case("groups that lie apart differ");
        for (int64_t i = group; i < group + GAP; i++)
            if (at[i] != CANARY || scales[2 * g + 1] != CANARY)
                fail_case("what lies between groups changed");
    }
}

/* Sums of squares of any order, against plain ones. */
static void check_distance(const pe_kernels *kernels, const float *x, const float *back,
                           int64_t n)
{
    double square = 0, length = 0, got, got_length;
    for (int64_t i = 0; i < n; i++) {
        const double off = (double)back[i] - (double)x[i];
        square += off * off;
        length += (double)back[i] * (double)back[i];
    }
    kernels->distance(back, x, n, &got, &got_length);
    if (isfinite(square) && isfinite(length)
            ? !(fabs(got - square) <= square * 0x1p-40) ||
                  !(fabs(got_length - length) <= length * 0x1p-40)
            : isfinite(got) && isfinite(got_length))
        fail_case("distance is %g and length %g, must be %g and %g", got, got_length,
                  square, length);
}

int64_t check_int8(const pe_kernels *kernels, test_rng *r)
{
    strip strips[4]; /* of floats, int8, scales, floats again */
    int64_t calls = 0;
    for (int i = 0; i < 4; i++)
        strips[i] = strip_new(4096);
    for (int64_t n = 1; n <= MAX_COUNT; n++)
        for (int64_t group = 1; group <= n; group++)
            for (int turn = 0;
                 n % group == 0 && turn < (group == n ? PLACES * NUM_KINDS : PLACES);
                 turn++) {
                const int place = turn % PLACES;
                const content kind = (content)(turn % NUM_KINDS);
                const place_kind at = place < 2 ? (place_kind)place : AT_OFFSET;
                const size_t count = (size_t)n, offset = place < 2 ? 0 : (size_t)place;
                float *x = strip_place(&strips[0], count * sizeof *x, at, offset * 4);
                int8_t *q = strip_place(&strips[1], count, at, offset * 7);
                float *s = strip_place(&strips[2], count / (size_t)group * sizeof *s,
                                       at, offset * 12);
                float *back =
                    strip_place(&strips[3], count * sizeof *back, at, offset * 8);
                for (int64_t g = 0; g < n; g += group)
                    fill(x + g, group, kind, r);
                say_case("%s int8, %lld in groups of %lld, contents %d, place %d",
                         kernels->name, (long long)n, (long long)group, (int)kind,
                         place);
                check_row(kernels, x, group, n, strips, q, s, back);
                check_apart(kernels, x, group, n);
                check_distance(kernels, x, back, n);
                calls += 4;
            }
    for (int i = 0; i < 4; i++)
        strip_free(&strips[i]);
    return calls;
}
