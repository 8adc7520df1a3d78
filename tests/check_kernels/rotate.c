/* SPDX-License-Identifier: MIT
 *
 * rotate.c - rotations against exact products: every type, pairing, n and alignment
 *
 * The contract is that of pe_rotate_fn, with the given float row taken as exact.
 * Products of two floats are exact in double, and their sum is there to 2^-53, which is
 * as good as exact beside 2^-24. */
#include "check.h"

#include "../support/bits16.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_N = 160, MAX_HEADS = 3, MAX_GAP = 9, STRIP = 8192, ALIGNMENT = 64 };

typedef struct {
    const pe_kernels *kernels;
    int in, out, in_inter, out_inter;
    strip x, y, cosine, sine;
    int64_t calls;
} bench;

typedef struct {
    int64_t n, heads, x_stride, y_stride;
    place_kind kind;
    size_t offset; /* bytes; differs from tensor to tensor by what is made of it */
    double size;   /* of the elements */
} shape;

/* The value of every pattern, by the arithmetic of bits16.h. */
static double values16[PE_K_DTYPES][1 << 16];

static void set_values16(void)
{
    for (int i = 0; i < 1 << 16; i++) {
        values16[PE_K_F16][i] = test_f16_value((uint16_t)i);
        values16[PE_K_BF16][i] = test_bf16_value((uint16_t)i);
    }
}

static double get(int dtype, const void *p, int64_t i)
{
    return dtype == PE_K_F32 ? (double)((const float *)p)[i]
                             : values16[dtype][((const uint16_t *)p)[i]];
}

static void put(int dtype, void *p, int64_t i, double v)
{
    if (dtype == PE_K_F32)
        ((float *)p)[i] = (float)v;
    else
        ((uint16_t *)p)[i] =
            dtype == PE_K_F16 ? test_f16_nearest(v) : test_bf16_nearest(v);
}

/* Twice the unit roundoff, and half the smallest subnormal, of a type.  Vector kernels
 * round in float before the last product is added: among float's own subnormals that is
 * a second half. */
static const double two_u[] = {0x1p-23, 0x1p-10, 0x1p-7};
static const double half_least[] = {0x1p-150, 0x1p-25, 0x1p-134};

static double least(const bench *b)
{
    const int rounds_twice = b->out == PE_K_F32 && b->kernels->isa != PE_ISA_SCALAR;
    return half_least[b->out] * (rounds_twice ? 2 : 1);
}

static int64_t first_of(int inter, int64_t i)
{
    return inter ? 2 * i : i;
}
static int64_t second_of(int inter, int64_t i, int64_t n)
{
    return inter ? 2 * i + 1 : n + i;
}

/* Elements from the first of all heads to past the last: heads may go backwards. */
static int64_t extent(const shape *s, int64_t stride)
{
    const int64_t step = stride < 0 ? -stride : stride;
    return s->heads == 0 ? 0 : (s->heads - 1) * step + 2 * s->n;
}
static int64_t lead(const shape *s, int64_t stride)
{
    return stride < 0 ? (s->heads - 1) * -stride : 0;
}

static void check_head(const bench *b, const shape *s, const void *x, const void *y,
                       int64_t ex, int64_t ey, const float *cosine, const float *sine)
{
    for (int64_t i = 0; i < s->n; i++) {
        const double a = get(b->in, x, ex + first_of(b->in_inter, i));
        const double e = get(b->in, x, ex + second_of(b->in_inter, i, s->n));
        const double c = (double)cosine[i], d = (double)sine[i];
        const double want[2] = {a * c - e * d, a * d + e * c};
        const double size[2] = {fabs(a * c) + fabs(e * d), fabs(a * d) + fabs(e * c)};
        const int64_t at[2] = {first_of(b->out_inter, i),
                               second_of(b->out_inter, i, s->n)};
        for (int k = 0; k < 2; k++) {
            const double got = get(b->out, y, ey + at[k]);
            const double bound = two_u[b->out] * size[k] + least(b);
            if (!(fabs(got - want[k]) <= bound))
                fail_case("element %lld is %.9g, must be %.9g within %.3g",
                          (long long)at[k], got, want[k], bound);
        }
    }
}

static void own_elements(bench *b, const shape *s, const unsigned char *y,
                         int64_t first)
{
    const size_t size = dtype_sizes[b->out];
    for (int64_t h = 0; h < s->heads; h++)
        strip_own(&b->y, y + (size_t)(first + h * s->y_stride) * size,
                  (size_t)(2 * s->n) * size);
}

static void fill(test_rng *r, bench *b, const shape *s, void *x, float *cosine,
                 float *sine)
{
    for (int64_t i = 0; i < extent(s, s->x_stride); i++)
        put(b->in, x, i, s->size * (double)test_rng_float(r));
    for (int64_t i = 0; i < s->n; i++) {
        cosine[i] = test_rng_float(r);
        sine[i] = test_rng_float(r);
    }
}

/* One call with x and y apart; where the types allow it, the same in place, which must
 * give the same bits. */
static void check_call(bench *b, test_rng *r, const shape *s)
{
    static unsigned char apart[STRIP * 2];
    const size_t x_size = (size_t)extent(s, s->x_stride) * dtype_sizes[b->in];
    const size_t y_size = (size_t)extent(s, s->y_stride) * dtype_sizes[b->out];
    const size_t row_size = (size_t)s->n * sizeof(float);
    unsigned char *x = strip_place(&b->x, x_size, s->kind, s->offset);
    unsigned char *y =
        strip_place(&b->y, y_size, s->kind, (s->offset * 5 + 4) % ALIGNMENT);
    float *cosine = strip_place(&b->cosine, row_size, s->kind,
                                (s->offset * 3 + 8) % ALIGNMENT / 4 * 4);
    float *sine =
        strip_place(&b->sine, row_size, s->kind, (s->offset * 7) % ALIGNMENT / 4 * 4);
    const int64_t x0 = lead(s, s->x_stride), y0 = lead(s, s->y_stride);
    pe_rotate_fn *rotate = b->kernels->rotate[b->in][b->out][b->in_inter][b->out_inter];

    fill(r, b, s, x, cosine, sine);
    strip_mark(&b->x);
    strip_mark(&b->y);
    strip_mark(&b->cosine);
    strip_mark(&b->sine);
    own_elements(b, s, y, y0);
    b->calls++;
    rotate(x + (size_t)x0 * dtype_sizes[b->in], s->x_stride,
           y + (size_t)y0 * dtype_sizes[b->out], s->y_stride, s->heads, cosine, sine,
           s->n);
    if (!strip_kept(&b->x) || !strip_kept(&b->cosine) || !strip_kept(&b->sine))
        fail_case("an input changed");
    if (!strip_kept(&b->y))
        fail_case("a byte outside the heads changed");
    for (int64_t h = 0; h < s->heads; h++)
        check_head(b, s, x, y, x0 + h * s->x_stride, y0 + h * s->y_stride, cosine,
                   sine);
    if (b->in != b->out || s->x_stride != s->y_stride)
        return;

    memcpy(apart, y, y_size);
    memcpy(y, x, y_size);
    strip_mark(&b->y);
    own_elements(b, s, y, y0);
    b->calls++;
    rotate(y + (size_t)y0 * dtype_sizes[b->out], s->y_stride,
           y + (size_t)y0 * dtype_sizes[b->out], s->y_stride, s->heads, cosine, sine,
           s->n);
    if (!strip_kept(&b->y))
        fail_case("in place, a byte outside the heads changed");
    for (int64_t h = 0; h < s->heads; h++) {
        const size_t at = (size_t)(y0 + h * s->y_stride) * dtype_sizes[b->out];
        if (memcmp(y + at, apart + at, (size_t)(2 * s->n) * dtype_sizes[b->out]) != 0)
            fail_case("in place, head %lld has other bits than apart", (long long)h);
    }
}

static void name_call(const bench *b, const shape *s)
{
    static const char *const places[] = {"at the lower guard", "at the upper guard",
                                         "at offset"};
    say_case(
        "%s rotate %s%s to %s%s, n %lld, %lld heads, strides %lld and %lld, %s %zu",
        b->kernels->name, dtype_names[b->in], b->in_inter ? " interleaved" : "",
        dtype_names[b->out], b->out_inter ? " interleaved" : "", (long long)s->n,
        (long long)s->heads, (long long)s->x_stride, (long long)s->y_stride,
        places[s->kind], s->kind == AT_OFFSET ? s->offset : 0);
}

/* Sizes that stay inside every type, and ones among its subnormals. */
static double size_for(const bench *b, int64_t i)
{
    const double least = b->in == PE_K_F16 || b->out == PE_K_F16 ? 0x1p-20 : 0x1p-120;
    return i % 7 == 0 ? least : i % 7 == 1 ? 1000.0 : 1.0;
}

static void check_n(bench *b, test_rng *r, int64_t n)
{
    const size_t step = dtype_sizes[b->in] < dtype_sizes[b->out] ? dtype_sizes[b->in]
                                                                 : dtype_sizes[b->out];
    /* All addresses are whole elements of the wider type. */
    const size_t align = dtype_sizes[b->in] + dtype_sizes[b->out] - step;
    for (int kind = 0; kind < NUM_PLACES; kind++)
        for (size_t offset = 0; offset < (kind == AT_OFFSET ? ALIGNMENT : 1);
             offset += align) {
            const int64_t turn = (int64_t)(offset / align) + n + kind;
            const int64_t gap = turn % 3 == 0 ? 0 : test_rng_int(r, 1, MAX_GAP);
            shape s = {.n = n,
                       .heads = kind == AT_OFFSET ? 1 + turn % 2 : MAX_HEADS,
                       .x_stride = 2 * n + gap,
                       .y_stride = 2 * n + (turn % 2 ? gap : 0),
                       .kind = (place_kind)kind,
                       .offset = offset,
                       .size = size_for(b, turn)};
            if (turn % 5 == 0)
                s.x_stride = s.y_stride = -s.x_stride;
            name_call(b, &s);
            check_call(b, r, &s);
        }
}

static const uint32_t nans[] = {0x7fffffff, 0xffffffff, 0x7fc00000,
                                0x7fff8000, 0x7f80ffff, 0xff800001};

/* A NaN among the elements or in the row, of any payload: both elements of its pair
 * become NaN, the others stay what they are. */
static void check_nan(bench *b, test_rng *r, int64_t n)
{
    const shape s = {
        .n = n, .heads = 2, .x_stride = 2 * n, .y_stride = 2 * n, .size = 1};
    pe_rotate_fn *rotate = b->kernels->rotate[b->in][b->out][b->in_inter][b->out_inter];
    float *cosine = strip_place(&b->cosine, (size_t)n * 4, AT_OFFSET, 0);
    float *sine = strip_place(&b->sine, (size_t)n * 4, AT_OFFSET, 0);
    void *x = strip_place(&b->x, (size_t)(4 * n) * dtype_sizes[b->in], AT_OFFSET, 0);
    void *y = strip_place(&b->y, (size_t)(4 * n) * dtype_sizes[b->out], AT_OFFSET, 0);
    name_call(b, &s);
    for (int k = 0; k < 3 * (int)(sizeof nans / sizeof nans[0]); k++) {
        const int64_t i = test_rng_int(r, 0, n - 1);
        const int64_t at =
            2 * n + (k % 2 ? first_of(b->in_inter, i) : second_of(b->in_inter, i, n));
        const uint32_t bits = nans[k / 3];
        float nan;
        memcpy(&nan, &bits, sizeof nan);
        fill(r, b, &s, x, cosine, sine);
        if (k % 3 == 0)
            cosine[i] = nan;
        else if (k % 3 == 1)
            sine[i] = nan;
        else if (b->in == PE_K_F32)
            ((float *)x)[at] = nan;
        else
            ((uint16_t *)x)[at] =
                (uint16_t)(b->in == PE_K_BF16 ? bits >> 16 | 1 : bits >> 16 | 0x7c01);
        b->calls++;
        rotate(x, 2 * n, y, 2 * n, 2, cosine, sine, n);
        for (int64_t h = 0; h < 2; h++)
            for (int64_t j = 0; j < n; j++) {
                const double got[2] = {
                    get(b->out, y, 2 * n * h + first_of(b->out_inter, j)),
                    get(b->out, y, 2 * n * h + second_of(b->out_inter, j, n))};
                const int want = j == i && (h == 1 || k % 3 != 2);
                if (isnan(got[0]) != want || isnan(got[1]) != want)
                    fail_case("NaN %08x at pair %lld: pair %lld of head %lld is %g, %g",
                              (unsigned)bits, (long long)i, (long long)j, (long long)h,
                              got[0], got[1]);
            }
    }
}

static void check_no_heads(bench *b, test_rng *r)
{
    shape s = {.n = 16, .x_stride = 32, .y_stride = 32, .size = 1};
    name_call(b, &s);
    check_call(b, r, &s);
}

int64_t check_rotate(const pe_kernels *kernels, test_rng *r)
{
    bench b = {.kernels = kernels,
               .x = strip_new(STRIP),
               .y = strip_new(STRIP),
               .cosine = strip_new(STRIP / 4),
               .sine = strip_new(STRIP / 4)};
    set_values16();
    for (int kind = 0; kind < PE_K_DTYPES * PE_K_DTYPES * 4; kind++) {
        b.in = kind / 4 / PE_K_DTYPES;
        b.out = kind / 4 % PE_K_DTYPES;
        b.in_inter = kind / 2 % 2;
        b.out_inter = kind % 2;
        check_no_heads(&b, r);
        for (int64_t n = 3; n <= MAX_N; n = n * 3 / 2 + 1)
            check_nan(&b, r, n);
        check_nan(&b, r, 64);
        for (int64_t n = 1; n <= MAX_N; n++)
            check_n(&b, r, n);
    }
    strip_free(&b.x);
    strip_free(&b.y);
    strip_free(&b.cosine);
    strip_free(&b.sine);
    return b.calls;
}
