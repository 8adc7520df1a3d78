/* SPDX-License-Identifier: MIT
 *
 * table.c - rows of a table: scalar's bits, near libm's values, nothing outside
 *
 * Rows go through pe_angle_rows(), which supplies the redoing of unsure entries. */
#include "check.h"

#include "angle/turns.h"

#include <math.h>
#include <string.h>

enum { MAX_N = 160, MAX_ROWS = 41, MAX_STRIDE = MAX_N + 7, STRIP = 16384 };

typedef struct {
    const pe_kernels *kernels;
    strip cosine, sine, hi, lo;
    strip head, tail;
    pe_wide exact[MAX_N];
    int64_t calls;
} bench;

/* inv_freq of pair i = theta^(-i/n): the ladder of a rotation, or random. */
static void set_turns(pe_turns *turns, double theta, test_rng *r)
{
    for (int64_t i = 0; i < turns->n; i++) {
        const double f = theta > 0     ? pow(theta, -(double)i / (double)turns->n)
                         : i % 11 == 4 ? 0 /* never turns */
                                       : fabs((double)test_rng_float(r)) * 3;
        pe_turns_set(turns, i, pe_wide_from_double(f));
    }
}

static int near_libm(const pe_turns *turns, int64_t i, int64_t position, double factor,
                     float cosine, float sine)
{
    const long double pi = 3.14159265358979323846264338327950288L;
    const long double turn =
        pe_wide_is_zero(turns->exact[i])
            ? 0
            : ((long double)turns->hi[i] + (long double)turns->lo[i] * 0x1p-32L) *
                  0x1p-64L;
    const long double angle = 2 * pi * fmodl((long double)position * turn, 1);
    const long double f = (long double)factor;
    /* Half a unit of a float below 2, and long double's share at |position| < 2^12. */
    const long double bound = 0x1.01p-24L * fmaxl(1, f);
    return fabsl((long double)cosine - f * cosl(angle)) <= bound &&
           fabsl((long double)sine - f * sinl(angle)) <= bound;
}

/* ids NULL: rows of consecutive positions from the first; else rows of those. */
static void check_call(bench *b, const pe_turns *turns, int64_t position,
                       const int64_t *ids, int64_t rows, int64_t stride, double factor,
                       int turn)
{
    static float cos_want[MAX_ROWS * MAX_STRIDE], sin_want[MAX_ROWS * MAX_STRIDE];
    const place_kind kind = (place_kind)(turn % 3);
    const pe_factor full = pe_factor_make(pe_wide_from_double(factor));
    const int64_t n = turns->n;
    const size_t size = (size_t)((rows - 1) * stride + n) * sizeof(float);
    const size_t offset = (size_t)(turn % 16) * 4;
    float *cosine = strip_place(&b->cosine, size, kind, offset);
    float *sine = strip_place(&b->sine, size, kind, 60 - offset);
    strip_mark(&b->cosine);
    strip_mark(&b->sine);
    say_case("%s table, n %lld, %lld rows %s %lld, stride %lld", b->kernels->name,
             (long long)n, (long long)rows, ids != NULL ? "at" : "from",
             (long long)(ids != NULL ? ids[0] : position), (long long)stride);
    if (ids != NULL)
        pe_angle_rows_at(b->kernels, turns, ids, rows, &full, cosine, sine, stride);
    else
        pe_angle_rows(b->kernels, turns, position, rows, &full, cosine, sine, stride);
    for (int64_t row = 0; row < rows; row++) {
        const uint64_t next = (uint64_t)position + (uint64_t)row;
        pe_angle_rows(&pe_kernels_scalar, turns, ids != NULL ? ids[row] : (int64_t)next,
                      1, &full, cos_want + row * stride, sin_want + row * stride,
                      stride);
    }
    for (int which = 0; which < 2; which++) {
        strip *s = which ? &b->sine : &b->cosine;
        const float *got = which ? sine : cosine, *want = which ? sin_want : cos_want;
        for (int64_t row = 0; row < rows; row++) {
            strip_own(s, got + row * stride, (size_t)n * sizeof(float));
            if (memcmp(got + row * stride, want + row * stride,
                       (size_t)n * sizeof(float)) != 0)
                fail_case("%s of row %lld has other bits than scalar's",
                          which ? "sin" : "cos", (long long)row);
        }
        if (!strip_kept(s))
            fail_case("a byte outside the rows changed");
    }
    if (ids == NULL && position > -4000 && position < 4000)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t i = 0; i < n; i++)
                if (!near_libm(turns, i, position + row, factor,
                               cosine[row * stride + i], sine[row * stride + i]))
                    fail_case("pair %lld of row %lld is far from libm's", (long long)i,
                              (long long)row);
    b->calls++;
}

static int64_t position_for(test_rng *r, int turn)
{
    switch (turn % 8) {
    case 0:
        return 0;
    case 1:
        return -3; /* the run crosses 0 */
    case 2:
        return test_rng_int(r, -3000, 3000);
    case 3:
        return ((int64_t)1 << 32) - 2; /* the low word carries */
    case 4:
        return -((int64_t)1 << 32) - 2;
    case 5:
        return INT64_MAX - MAX_ROWS;
    case 6:
        return INT64_MIN;
    default:
        return test_rng_int(r, -((int64_t)1 << 40), (int64_t)1 << 40);
    }
}

/* Positions of any size, in no order, with a run among them. */
static void draw_ids(test_rng *r, int64_t *ids, int64_t rows)
{
    const int64_t run = test_rng_int(r, 0, rows), from = test_rng_int(r, 0, rows - run);
    for (int64_t row = 0; row < rows; row++)
        ids[row] = position_for(r, (int)test_rng_int(r, 0, 7));
    for (int64_t row = from; row < from + run; row++)
        ids[row] = ids[from] + (ids[from] <= INT64_MAX - MAX_ROWS ? row - from : 0);
}

static void own_row(bench *b, const float *cosine, const float *sine, size_t size)
{
    strip_own(&b->cosine, cosine, size);
    strip_own(&b->sine, sine, size);
    if (!strip_kept(&b->cosine) || !strip_kept(&b->sine))
        fail_case("a byte outside the row changed");
}

/* Pairs that follow axes of their own: each entry must be that of a row at its position. */
static void check_axes(bench *b, const pe_turns *turns, test_rng *r, double factor,
                       int turn)
{
    static float cos_want[MAX_N], sin_want[MAX_N];
    const pe_factor full = pe_factor_make(pe_wide_from_double(factor));
    const int64_t n = turns->n;
    const size_t size = (size_t)n * sizeof(float);
    const int64_t far = turn % 4 ? 3000 : 0xffffffff;
    const int64_t ids[3] = {test_rng_int(r, 0, far), test_rng_int(r, 0, far), 0};
    uint8_t axis[MAX_N];
    float *cosine = strip_place(&b->cosine, size, (place_kind)(turn % 3), 0);
    float *sine = strip_place(&b->sine, size, (place_kind)(turn % 3), 0);
    strip_mark(&b->cosine);
    strip_mark(&b->sine);
    for (int64_t i = 0; i < n; i++)
        axis[i] = (uint8_t)test_rng_int(r, 0, 2);
    const pe_angle_term term = {.turns = turns, .pair_axis = axis, .ids = ids};
    say_case("%s table, n %lld, axes at %lld, %lld, 0", b->kernels->name, (long long)n,
             (long long)ids[0], (long long)ids[1]);
    pe_angle_row(b->kernels, &term, 1, &full, cosine, sine);
    for (int a = 0; a < 3; a++) {
        pe_angle_rows(&pe_kernels_scalar, turns, ids[a], 1, &full, cos_want, sin_want,
                      n);
        for (int64_t i = 0; i < n; i++)
            if (axis[i] == a &&
                (memcmp(cosine + i, cos_want + i, sizeof *cosine) != 0 ||
                 memcmp(sine + i, sin_want + i, sizeof *sine) != 0))
                fail_case("pair %lld has other bits than scalar's", (long long)i);
    }
    own_row(b, cosine, sine, size);
    b->calls++;
}

static void compare_row(bench *b, const float *cosine, const float *sine,
                        const float *cos_want, const float *sin_want, int64_t n,
                        const char *whose)
{
    const size_t size = (size_t)n * sizeof(float);
    if (memcmp(cosine, cos_want, size) != 0 || memcmp(sine, sin_want, size) != 0)
        fail_case("other bits than %s", whose);
    own_row(b, cosine, sine, size);
}

/* Rows of summed phases: from q to p within one plan is the way p - q; of two plans,
 * and at broken positions, scalar's bits; at whole positions given as values, those of
 * the position. */
static void check_sums(bench *b, const pe_turns *turns, test_rng *r, double factor,
                       int turn)
{
    static const char *const whose[] = {"the row of the way", "scalar's", "scalar's",
                                        "the whole position's"};
    static float cos_want[MAX_N], sin_want[MAX_N];
    static uint64_t hi[MAX_N], lo[MAX_N];
    static double head[MAX_N], tail[MAX_N];
    static pe_wide exact[MAX_N];
    const pe_factor full = pe_factor_make(pe_wide_from_double(factor));
    const int64_t n = turns->n;
    const size_t size = (size_t)n * sizeof(float);
    pe_turns other = {
        .n = n, .hi = hi, .lo = lo, .exact = exact, .head = head, .tail = tail};
    set_turns(&other, 20000, r);
    const int64_t far = turn % 4 ? 3000 : (int64_t)1 << 39;
    const int64_t p = test_rng_int(r, -far, far), q = test_rng_int(r, -far, far);
    const double broken = (double)p + (double)test_rng_int(r, 1, 1023) * 0x1p-10,
                 small = 0x1.8p-13, whole = (double)p;
    for (int kind = 0; kind < 4; kind++) {
        float *cosine = strip_place(&b->cosine, size, (place_kind)(turn % 3), 0);
        float *sine = strip_place(&b->sine, size, (place_kind)(turn % 3), 0);
        strip_mark(&b->cosine);
        strip_mark(&b->sine);
        pe_angle_term terms[2] = {{.turns = turns, .ids = &p},
                                  {.turns = turns, .ids = &q, .negative = 1}};
        if (kind == 1)
            terms[1].turns = &other;
        if (kind >= 2) {
            terms[0].ids = NULL;
            terms[0].values = kind == 3 ? &whole : turn % 5 ? &broken : &small;
        }
        const int count = kind < 2 ? 2 : 1;
        say_case("%s table, n %lld, sum %d of %lld and %lld", b->kernels->name,
                 (long long)n, kind, (long long)p, (long long)q);
        pe_angle_row(b->kernels, terms, count, &full, cosine, sine);
        if (kind == 0)
            pe_angle_rows(&pe_kernels_scalar, turns, p - q, 1, &full, cos_want,
                          sin_want, n);
        else if (kind == 3)
            pe_angle_rows(&pe_kernels_scalar, turns, p, 1, &full, cos_want, sin_want,
                          n);
        else
            pe_angle_row(&pe_kernels_scalar, terms, count, &full, cos_want, sin_want);
        compare_row(b, cosine, sine, cos_want, sin_want, n, whose[kind]);
        b->calls++;
    }
}

int64_t check_table(const pe_kernels *kernels, test_rng *r)
{
    static const double thetas[] = {10000, 500000, 0};
    static const double factors[] = {1, 1.4158883083359672, 0.25};
    bench b = {.kernels = kernels,
               .cosine = strip_new(STRIP),
               .sine = strip_new(STRIP),
               .hi = strip_new(MAX_N * sizeof(uint64_t)),
               .lo = strip_new(MAX_N * sizeof(uint64_t)),
               .head = strip_new(MAX_N * sizeof(double)),
               .tail = strip_new(MAX_N * sizeof(double))};
    for (int64_t n = 1; n <= MAX_N; n++)
        for (int turn = 0; turn < 24; turn++) {
            const size_t size = (size_t)n * sizeof(uint64_t);
            const place_kind kind = turn % 2 ? AT_END : AT_BEGIN;
            pe_turns turns = {.n = n,
                              .hi = strip_place(&b.hi, size, kind, 0),
                              .lo = strip_place(&b.lo, size, kind, 0),
                              .head = strip_place(&b.head, size, kind, 0),
                              .tail = strip_place(&b.tail, size, kind, 0),
                              .exact = b.exact};
            set_turns(&turns, thetas[turn % 3], r);
            const int64_t room = STRIP / 4 / (n + 7) - 1;
            const int64_t most = room < MAX_ROWS ? room : MAX_ROWS;
            const int64_t rows = test_rng_int(r, 1, test_rng_int(r, 0, 3) ? 4 : most);
            const int64_t stride = n + (turn % 4 ? test_rng_int(r, 0, 7) : 0);
            int64_t ids[MAX_ROWS];
            draw_ids(r, ids, rows);
            check_call(&b, &turns, position_for(r, turn), NULL, rows, stride,
                       factors[turn % 3], turn);
            check_call(&b, &turns, 0, ids, rows, stride, factors[turn % 3], turn);
            check_axes(&b, &turns, r, factors[turn % 3], turn);
            check_sums(&b, &turns, r, factors[turn % 3], turn);
        }
    strip_free(&b.cosine);
    strip_free(&b.sine);
    strip_free(&b.hi);
    strip_free(&b.lo);
    strip_free(&b.head);
    strip_free(&b.tail);
    return b.calls;
}
