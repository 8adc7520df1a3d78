/* SPDX-License-Identifier: MIT
 *
 * convert.c - loads and stores of f16 and bf16: every pattern, every rounding boundary;
 * lines that are streamed
 *
 * Loads must give the scalar bits for all 65536 patterns, stores for the value of each
 * pattern, the middle to the next, and the floats on either side of both. */
#include "check.h"

#include "../support/bits16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERNS = 65536, PER_PATTERN = 6, RANDOM = 1 << 18, MAX_COUNT = 160 };

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double value_of(int dtype, uint16_t h)
{
    return dtype == PE_K_F16 ? test_f16_value(h) : test_bf16_value(h);
}

static int is_nan(int dtype, uint16_t h)
{
    return dtype == PE_K_F16 ? test_f16_is_nan(h) : test_bf16_is_nan(h);
}

static int64_t check_patterns(const pe_kernels *kernels, int dtype)
{
    static uint16_t all[PATTERNS], back[PATTERNS];
    static float values[PATTERNS], scalar[PATTERNS];
    for (int i = 0; i < PATTERNS; i++)
        all[i] = (uint16_t)i;
    say_case("%s load %s, all patterns", kernels->name, dtype_names[dtype]);
    kernels->load[dtype](all, values, PATTERNS);
    pe_kernels_scalar.load[dtype](all, scalar, PATTERNS);
    for (int i = 0; i < PATTERNS; i++) {
        if (bits_of(values[i]) != bits_of(scalar[i]))
            fail_case("%#06x gives %#010x, scalar %#010x", (unsigned)i,
                      bits_of(values[i]), bits_of(scalar[i]));
        if (is_nan(dtype, all[i]) ? !isnan(values[i])
                                  : (double)values[i] != value_of(dtype, all[i]))
            fail_case("%#06x gives %g", (unsigned)i, (double)values[i]);
    }
    say_case("%s store %s, all patterns", kernels->name, dtype_names[dtype]);
    kernels->store[dtype](values, back, PATTERNS);
    for (int i = 0; i < PATTERNS; i++)
        if (is_nan(dtype, all[i]) ? !is_nan(dtype, back[i]) : back[i] != all[i])
            fail_case("%#06x comes back as %#06x", (unsigned)i, (unsigned)back[i]);
    return 3;
}

/* The float at most v and the one above: v is exact in float here except for middles of
 * subnormals below float's own, which rounding covers just as well. */
static void add_boundary(float *out, double v)
{
    const float middle = (float)v;
    out[0] = middle;
    out[1] = nextafterf(middle, INFINITY);
    out[2] = nextafterf(middle, -INFINITY);
}

static void check_stores(const pe_kernels *kernels, int dtype, const float *values,
                         int64_t count)
{
    uint16_t *got = malloc((size_t)count * sizeof *got);
    uint16_t *scalar = malloc((size_t)count * sizeof *scalar);
    if (got == NULL || scalar == NULL)
        abort();
    kernels->store[dtype](values, got, count);
    pe_kernels_scalar.store[dtype](values, scalar, count);
    for (int64_t i = 0; i < count; i++) {
        const double v = (double)values[i];
        const uint16_t want =
            dtype == PE_K_F16 ? test_f16_nearest(v) : test_bf16_nearest(v);
        if (got[i] != scalar[i] ||
            (isnan(values[i]) ? !is_nan(dtype, got[i]) : got[i] != want))
            fail_case("%.9g (%#010x) gives %#06x, scalar %#06x, must be %#06x", v,
                      bits_of(values[i]), (unsigned)got[i], (unsigned)scalar[i],
                      (unsigned)want);
    }
    free(got);
    free(scalar);
}

static int64_t check_boundaries(const pe_kernels *kernels, int dtype, test_rng *r)
{
    const int64_t count = PATTERNS * PER_PATTERN + RANDOM;
    float *values = malloc((size_t)count * sizeof *values);
    int64_t used = 0;
    if (values == NULL)
        abort();
    for (int i = 0; i < PATTERNS; i++) {
        const uint16_t h = (uint16_t)i, next = (uint16_t)(i + 1);
        const double v = value_of(dtype, h);
        if (is_nan(dtype, h) || isinf(v))
            continue;
        /* Past the largest number lies the one that would come next. */
        const double above = !is_nan(dtype, next) && isfinite(value_of(dtype, next))
                                 ? value_of(dtype, next)
                                 : 2 * v - value_of(dtype, (uint16_t)(h - 1));
        add_boundary(values + used, v);
        add_boundary(values + used + 3, v + (above - v) / 2);
        used += PER_PATTERN;
    }
    for (; used < count; used++)
        values[used] = from_bits((uint32_t)test_rng_next(r));
    say_case("%s store %s, boundaries and random bits", kernels->name,
             dtype_names[dtype]);
    check_stores(kernels, dtype, values, count);
    free(values);
    return 2;
}

/* Lengths and alignments, against the guards and between canaries. */
static int64_t check_lengths(const pe_kernels *kernels, int dtype, test_rng *r)
{
    strip x = strip_new(4096), y = strip_new(4096);
    int64_t calls = 0;
    for (int64_t n = 0; n <= MAX_COUNT; n++)
        for (int turn = 0; turn < 2 + 16; turn++) {
            const place_kind kind = turn < 2 ? (place_kind)turn : AT_OFFSET;
            const size_t offset = (size_t)(turn < 2 ? 0 : turn - 2) * 4;
            const size_t small = (size_t)n * dtype_sizes[dtype],
                         large = (size_t)n * sizeof(float);
            float expected[MAX_COUNT];
            unsigned char *from =
                strip_place(&x, small, kind, offset / 4 * dtype_sizes[dtype]);
            float *to = strip_place(&y, large, kind, 60 - offset);
            for (size_t i = 0; i < small; i++)
                from[i] = (unsigned char)(test_rng_next(r) & 0x3b); /* finite */
            pe_kernels_scalar.load[dtype](from, expected, n);
            strip_mark(&x);
            strip_mark(&y);
            strip_own(&y, to, large);
            say_case("%s load %s, count %lld, place %d", kernels->name,
                     dtype_names[dtype], (long long)n, turn);
            kernels->load[dtype](from, to, n);
            if (!strip_kept(&x) || !strip_kept(&y))
                fail_case("a byte outside changed");
            if (memcmp(to, expected, large) != 0)
                fail_case("bits differ from scalar's");

            memset(from, 0xff, small);
            strip_mark(&x);
            strip_mark(&y);
            strip_own(&x, from, small);
            say_case("%s store %s, count %lld, place %d", kernels->name,
                     dtype_names[dtype], (long long)n, turn);
            kernels->store[dtype](to, from, n);
            if (!strip_kept(&y) || !strip_kept(&x))
                fail_case("a byte outside changed");
            pe_kernels_scalar.load[dtype](from, to, n);
            if (memcmp(to, expected, large) != 0)
                fail_case("does not come back");
            calls += 2;
        }
    strip_free(&x);
    strip_free(&y);
    return calls;
}

/* Lines past the caches, against the guards and between canaries; what is fetched ahead
 * may lie in a guard. */
static int64_t check_stream(const pe_kernels *kernels, test_rng *r)
{
    enum { LINE = 64, MAX_LINES = 9 };
    if (kernels->stream == NULL)
        return 0;
    strip x = strip_new(4096), y = strip_new(4096);
    int64_t calls = 0;
    for (int64_t lines = 0; lines <= MAX_LINES; lines++)
        for (int place = AT_BEGIN; place < NUM_PLACES; place++) {
            const size_t size = (size_t)lines * LINE;
            unsigned char *from = strip_place(&x, size, (place_kind)place, 0);
            unsigned char *to = strip_place(&y, size, (place_kind)place, LINE);
            for (size_t i = 0; i < size; i++)
                from[i] = (unsigned char)test_rng_next(r);
            strip_mark(&x);
            strip_mark(&y);
            strip_own(&y, to, size);
            say_case("%s stream, %lld lines, place %d", kernels->name, (long long)lines,
                     place);
            kernels->stream(from, to, (int64_t)size, y.begin - LINE);
            kernels->stream_end();
            if (!strip_kept(&x) || !strip_kept(&y))
                fail_case("a byte outside changed");
            if (memcmp(from, to, size) != 0)
                fail_case("is no copy");
            calls++;
        }
    strip_free(&x);
    strip_free(&y);
    return calls;
}

int64_t check_convert(const pe_kernels *kernels, test_rng *r)
{
    int64_t calls = 0;
    for (int dtype = 0; dtype < PE_K_DTYPES; dtype++) {
        if (dtype != PE_K_F32)
            calls +=
                check_patterns(kernels, dtype) + check_boundaries(kernels, dtype, r);
        calls += check_lengths(kernels, dtype, r);
    }
    return calls + check_stream(kernels, r);
}
