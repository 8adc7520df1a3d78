/* SPDX-License-Identifier: MIT
 *
 * sum.c - sums and ALiBi's biases: the bits of double arithmetic, on every table
 *
 * What must come out is computed here in double, an element at a time, so that no table
 * is judged by another.  Among the inputs are those on which a sum of floats, rounded
 * once, would differ from one in double that is rounded to float. */
#include "check.h"

#include "../support/bits16.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST = 160, TURNS = 4, STRIP = 4096 };

typedef struct {
    const pe_kernels *kernels;
    test_rng *r;
    strip x, y, given; /* given: a row, values or positions */
    int in, out;
    int64_t calls;
} bench;

/* Keeps a value from being fused with what follows. */
static volatile double kept;
static volatile float kept_float;

static double rounded(double x)
{
    kept = x;
    return kept;
}
static float rounded_float(double x)
{
    kept_float = (float)x;
    return kept_float;
}

static double get(int dtype, const void *p, int64_t i)
{
    if (dtype == PE_K_F32)
        return (double)((const float *)p)[i];
    const uint16_t h = ((const uint16_t *)p)[i];
    return dtype == PE_K_F16 ? test_f16_value(h) : test_bf16_value(h);
}

static void put(int dtype, void *p, int64_t i, float v)
{
    if (dtype == PE_K_F32)
        ((float *)p)[i] = v;
    else
        ((uint16_t *)p)[i] = dtype == PE_K_F16 ? test_f16_nearest((double)v)
                                               : test_bf16_nearest((double)v);
}

/* The same bits; or both are no numbers. */
static void expect(int dtype, const void *y, int64_t i, float want)
{
    uint32_t bits[2] = {0};
    const double got = get(dtype, y, i);
    put(dtype, bits, 0, want);
    if (isnan(got) && isnan(want))
        return;
    if (memcmp(bits, (const unsigned char *)y + (size_t)i * dtype_sizes[dtype],
               dtype_sizes[dtype]) != 0)
        fail_case("element %lld is %.9g, must be %.9g", (long long)i, got,
                  (double)want);
}

/* Numbers of every size, and some that are special. */
static float any_float(test_rng *r)
{
    static const float special[] = {0,       -0.0f,    INFINITY, -INFINITY, NAN,
                                    FLT_MAX, -FLT_MAX, FLT_MIN,  0x1p-149f, -1e9f};
    const int64_t kind = test_rng_int(r, 0, 15);
    if (kind == 0)
        return special[test_rng_int(r, 0, (int64_t)PE_COUNT(special) - 1)];
    if (kind < 4)
        return ldexpf(test_rng_float(r), (int)test_rng_int(r, -149, 127));
    return ldexpf(test_rng_float(r), (int)test_rng_int(r, -4, 4));
}

typedef struct {
    unsigned char *x, *y, *given;
    size_t x_size, y_size, given_size;
    int64_t n;
} memory;

/* Memory for n elements, against the guards in the first turns, then anywhere. */
static memory place_memory(bench *b, int64_t n, int turn, size_t given_size)
{
    const place_kind kind = turn < 2 ? (place_kind)turn : AT_OFFSET;
    const size_t offset = (size_t)test_rng_int(b->r, 0, 15);
    memory m = {.n = n};
    m.x_size = (size_t)n * dtype_sizes[b->in];
    m.y_size = (size_t)n * dtype_sizes[b->out];
    m.given_size = (size_t)n * given_size;
    m.x = strip_place(&b->x, m.x_size, kind, offset * dtype_sizes[b->in]);
    m.y = strip_place(&b->y, m.y_size, kind, (15 - offset) * dtype_sizes[b->out]);
    m.given = strip_place(&b->given, m.given_size, kind, offset * given_size);
    return m;
}

static void mark(bench *b, const memory *m)
{
    strip_mark(&b->x);
    strip_mark(&b->y);
    strip_mark(&b->given);
    strip_own(&b->y, m->y, m->y_size);
    b->calls++;
}

static void check_kept(bench *b)
{
    if (!strip_kept(&b->x) || !strip_kept(&b->given))
        fail_case("an input changed");
    if (!strip_kept(&b->y))
        fail_case("a byte outside changed");
}

/* What a kernel made of x apart must be what it makes in place. */
typedef void apply_fn(const bench *b, const void *how, const void *x, const void *given,
                      void *y, int64_t n);

static void check_call(bench *b, const memory *m, apply_fn *apply, const void *how,
                       const float *want)
{
    unsigned char apart[MOST * sizeof(float)];
    mark(b, m);
    apply(b, how, m->x, m->given, m->y, m->n);
    check_kept(b);
    for (int64_t i = 0; i < m->n; i++)
        expect(b->out, m->y, i, want[i]);
    if (b->in != b->out)
        return;
    memcpy(apart, m->y, m->y_size);
    memcpy(m->y, m->x, m->y_size);
    mark(b, m);
    apply(b, how, m->y, m->given, m->y, m->n);
    check_kept(b);
    if (memcmp(apart, m->y, m->y_size) != 0)
        fail_case("in place, the bits are others than apart");
}

/* ---------------------------------------------------------------------- rows --- */

typedef struct {
    pe_sum sum;
    int own;
} row_rule;

static void apply_rows(const bench *b, const void *how, const void *x,
                       const void *given, void *y, int64_t n)
{
    const row_rule *rule = how;
    (rule->own ? b->kernels->sum_own : b->kernels->sum)[b->in][b->out](&rule->sum, x,
                                                                       given, y, n);
}

static float row_sum(const pe_sum *how, double x, double row)
{
    if (how->rule == PE_SUM_FLOATS)
        return rounded_float((double)rounded_float(how->scale * x) + row);
    return rounded_float(rounded(rounded(how->scale * x) + row));
}

static void check_rows(bench *b, const row_rule *rule)
{
    const int row_type = rule->own ? b->in : PE_K_F32;
    for (int64_t n = 0; n <= MOST; n++)
        for (int turn = 0; turn < TURNS; turn++) {
            const memory m = place_memory(b, n, turn, dtype_sizes[row_type]);
            float want[MOST];
            for (int64_t i = 0; i < n; i++) {
                put(b->in, m.x, i, any_float(b->r));
                put(row_type, m.given, i, any_float(b->r));
                want[i] =
                    row_sum(&rule->sum, get(b->in, m.x, i), get(row_type, m.given, i));
            }
            say_case("%s sum%s %s to %s, rule %d, scale %g, n %lld", b->kernels->name,
                     rule->own ? " own" : "", dtype_names[b->in], dtype_names[b->out],
                     rule->sum.rule, rule->sum.scale, (long long)n);
            check_call(b, &m, apply_rows, rule, want);
        }
}

/* ------------------------------------------------------------------- doubles --- */

static void apply_doubles(const bench *b, const void *how, const void *x,
                          const void *given, void *y, int64_t n)
{
    (void)how;
    b->kernels->sum_doubles[b->in][b->out](given, x, y, n);
}

/* Half of them so that value + x lies at the middle between two floats or just beside. */
static double any_double(test_rng *r, double x)
{
    const double v = (double)any_float(r);
    if (test_rng_int(r, 0, 1) || !isfinite(x) || !isfinite(v))
        return v;
    const double middle = v + ldexp(v, -25);
    return nextafter(middle, test_rng_int(r, 0, 1) ? INFINITY : -INFINITY) - x;
}

static void check_doubles(bench *b)
{
    for (int64_t n = 0; n <= MOST; n++)
        for (int turn = 0; turn < TURNS; turn++) {
            const memory m = place_memory(b, n, turn, sizeof(double));
            double *values = (double *)(void *)m.given;
            float want[MOST];
            for (int64_t i = 0; i < n; i++) {
                put(b->in, m.x, i, any_float(b->r));
                values[i] = any_double(b->r, get(b->in, m.x, i));
                want[i] = rounded_float(rounded(values[i] + get(b->in, m.x, i)));
            }
            say_case("%s sum_doubles %s to %s, n %lld", b->kernels->name,
                     dtype_names[b->in], dtype_names[b->out], (long long)n);
            check_call(b, &m, apply_doubles, NULL, want);
            if (b->in != PE_K_F32 || b->out != PE_K_F32)
                continue;
            say_case("%s narrow, n %lld", b->kernels->name, (long long)n);
            mark(b, &m);
            b->kernels->narrow(values, (float *)(void *)m.y, n);
            check_kept(b);
            for (int64_t i = 0; i < n; i++)
                expect(PE_K_F32, m.y, i, rounded_float(values[i]));
        }
}

/* --------------------------------------------------------------------- ramps --- */

static void apply_ramp(const bench *b, const void *how, const void *x,
                       const void *given, void *y, int64_t n)
{
    (void)given;
    b->kernels->sum_ramp[b->in][b->out](how, x, y, n);
}

/* Slopes: powers of two, those between, short and long significands, not floats. */
static double any_factor(test_rng *r)
{
    const double float_like = (double)ldexpf(1 + test_rng_float(r) / 4, 0);
    const double sign = test_rng_int(r, 0, 7) == 0 ? -1 : 1;
    switch (test_rng_int(r, 0, 4)) {
    case 0:
        return sign * ldexp(1, (int)test_rng_int(r, -12, 3));
    case 1:
        return sign * (double)(float)exp2(-(double)test_rng_int(r, 1, 64) / 4);
    case 2:
        return sign * (double)(test_rng_int(r, 1 << 21, (1 << 22) - 1) * 2 + 1) *
               0x1p-24;
    case 3:
        return sign * float_like;
    default:
        return sign * exp2(-(double)test_rng_int(r, 1, 64) / 4);
    }
}

/* The condition of pe_ramp for floats, by trial: |x| of any size from least to most. */
static pe_ramp any_ramp(test_rng *r)
{
    pe_ramp ramp = {.factor = any_factor(r), .step = (int)test_rng_int(r, -1, 1)};
    const int far = test_rng_int(r, 0, 7) == 0;
    ramp.first = test_rng_int(r, far ? -((int64_t)1 << 52) : -4000,
                              far ? ((int64_t)1 << 52) : 4000);
    int exponent;
    const double factor = fabs(ramp.factor), size = fabs((double)ramp.first) + MOST;
    ramp.in_floats = (double)(float)factor == factor && size <= 0x1p24;
    double unit = frexp(factor, &exponent);
    for (unit = ldexp(1, exponent); fmod(factor, unit) != 0;)
        unit /= 2;
    if (!ramp.in_floats)
        return ramp;
    if (factor / unit * size <= 0x1p24) {
        ramp.fused = PE_FUSED_ALL;
        return ramp;
    }
    const float least = (float)(factor * size * 0x1p-27), most = (float)(unit * 0x1p52);
    uint32_t low, high;
    memcpy(&low, &least, sizeof low);
    memcpy(&high, &most, sizeof high);
    ramp.fused = PE_FUSED_SOME;
    ramp.least = 2 * low;
    ramp.span = 2 * (high - low);
    return ramp;
}

/* Some so small beside the bias that only one rounding shows them. */
static float any_score(test_rng *r, double bias, int special)
{
    if (!special || test_rng_int(r, 0, 3))
        return ldexpf(test_rng_float(r), (int)test_rng_int(r, -2, 4));
    if (test_rng_int(r, 0, 1))
        return any_float(r);
    return (float)ldexp(bias * (double)test_rng_float(r),
                        (int)test_rng_int(r, -60, -20));
}

static void check_ramp(bench *b, const pe_ramp *ramp, int64_t n, int turn)
{
    const memory m = place_memory(b, n, turn, 1);
    const int special = (int)test_rng_int(b->r, 0, 1);
    float want[MOST], alone[MOST];
    for (int64_t i = 0; i < n; i++) {
        const double bias =
            rounded(ramp->factor * (double)(ramp->first + ramp->step * i));
        put(b->in, m.x, i, any_score(b->r, bias, special));
        want[i] = rounded_float(rounded(bias + get(b->in, m.x, i)));
        alone[i] = rounded_float(bias);
    }
    say_case("%s sum_ramp %s to %s, factor %a, from %lld by %d, fused %d, n %lld",
             b->kernels->name, dtype_names[b->in], dtype_names[b->out], ramp->factor,
             (long long)ramp->first, ramp->step, ramp->fused, (long long)n);
    check_call(b, &m, apply_ramp, ramp, want);
    say_case("%s ramp %s, factor %a, from %lld by %d, in floats %d, n %lld",
             b->kernels->name, dtype_names[b->out], ramp->factor,
             (long long)ramp->first, ramp->step, ramp->in_floats, (long long)n);
    mark(b, &m);
    b->kernels->ramp[b->out](ramp, m.y, n);
    check_kept(b);
    for (int64_t i = 0; i < n; i++)
        expect(b->out, m.y, i, alone[i]);
}

/* --------------------------------------------------------------------- alibi --- */

static double distance_of(pe_past past, int64_t d)
{
    if (d <= 0 || past == PE_PAST_SAME)
        return (double)d;
    return past == PE_PAST_ZERO ? 0 : (double)-d;
}

static void check_alibi(bench *b, pe_past past)
{
    strip out = strip_new(STRIP), keys = strip_new(STRIP);
    for (int64_t n = 0; n <= MOST; n++)
        for (int turn = 0; turn < TURNS; turn++) {
            const place_kind kind = turn < 2 ? (place_kind)turn : AT_OFFSET;
            const size_t offset = (size_t)test_rng_int(b->r, 0, 7) * 8;
            const size_t size = (size_t)n * sizeof(double);
            const double factor = any_factor(b->r);
            const int64_t far = test_rng_int(b->r, 0, 1) ? 500 : (int64_t)1 << 52;
            const int64_t q = test_rng_int(b->r, -far, far);
            int64_t *k = strip_place(&keys, size, kind, 56 - offset);
            double *values = strip_place(&out, size, kind, offset);
            for (int64_t i = 0; i < n; i++)
                k[i] = i % 7 == 3 ? q : test_rng_int(b->r, -far, far);
            strip_mark(&keys);
            strip_mark(&out);
            strip_own(&out, values, size);
            say_case("%s alibi, past %d, n %lld", b->kernels->name, past, (long long)n);
            b->kernels->alibi(factor, past, q, k, values, n);
            b->calls++;
            if (!strip_kept(&keys) || !strip_kept(&out))
                fail_case("a byte outside changed");
            for (int64_t i = 0; i < n; i++) {
                const double want = rounded(factor * distance_of(past, k[i] - q));
                if (memcmp(&want, values + i, sizeof want) != 0)
                    fail_case("key %lld is %.17g, must be %.17g", (long long)i,
                              values[i], want);
            }
        }
    strip_free(&out);
    strip_free(&keys);
}

int64_t check_sum(const pe_kernels *kernels, test_rng *r)
{
    static const row_rule rules[] = {{{PE_SUM_PLAIN, 1}, 0},
                                     {{PE_SUM_FLOATS, 0x1.bb67aep4}, 0},
                                     {{PE_SUM_FUSED, 32}, 0},
                                     {{PE_SUM_FUSED, 0x1p-3}, 0},
                                     {{PE_SUM_DOUBLES, 0x1.6a09e667f3bcdp4}, 0},
                                     {{PE_SUM_PLAIN, 1}, 1},
                                     {{PE_SUM_FLOATS, -0x1.8p2}, 1},
                                     {{PE_SUM_FUSED, -2}, 1},
                                     {{PE_SUM_DOUBLES, 0x1.bb67ae8584caap4}, 1}};
    bench b = {.kernels = kernels, .r = r};
    b.x = strip_new(STRIP);
    b.y = strip_new(STRIP);
    b.given = strip_new(STRIP);
    for (b.in = 0; b.in < PE_K_DTYPES; b.in++)
        for (b.out = 0; b.out < PE_K_DTYPES; b.out++) {
            for (size_t i = 0; i < PE_COUNT(rules); i++)
                check_rows(&b, &rules[i]);
            check_doubles(&b);
            for (int64_t n = 0; n <= MOST; n++)
                for (int turn = 0; turn < 4 * TURNS; turn++) {
                    const pe_ramp ramp = any_ramp(r);
                    check_ramp(&b, &ramp, n, turn % TURNS);
                }
        }
    for (pe_past past = PE_PAST_ZERO; past <= PE_PAST_SAME; past++)
        check_alibi(&b, past);
    strip_free(&b.x);
    strip_free(&b.y);
    strip_free(&b.given);
    return b.calls;
}
