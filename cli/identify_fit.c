/* SPDX-License-Identifier: MIT
 *
 * identify_fit.c - the sums over heads, and one rule against them
 *
 * For a rule the angles are known but for the first position.  It is found from the
 * slowest pair, which cannot have gone round unnoticed, and made sharper by each
 * faster one, as on a vernier. */
#include "identify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { START_MAX = 1 << 21, HYPOTHESES_MAX = 20000 };

/* Radians that a pair's angle may be off, all tokens together: far above bfloat16's
 * rounding, far below what tells neighbours of a ladder apart. */
#define ANGLE_NOISE 0.03

static const double two_pi = 6.283185307179586;

/* The places of pair i in a head. */
static void places(const cli_sums *s, pe_pairing pairing, int64_t i, int64_t *a,
                   int64_t *b)
{
    const int is_half = pairing == PE_HALF_SPLIT;
    *a = s->rotary_start + (is_half ? i : 2 * i);
    *b = s->rotary_start + (is_half ? i + s->num_pairs : 2 * i + 1);
}

static void sum_token(cli_sums *s, const double *x, const double *y, int64_t n,
                      int64_t heads, int64_t dim)
{
    for (int64_t h = 0; h < heads; h++, x += dim, y += dim) {
        for (int64_t i = 0; i < s->num_pairs; i++) {
            int64_t xa, xb, ya, yb;
            places(s, s->pairing, i, &xa, &xb);
            places(s, s->out_pairing, i, &ya, &yb);
            const int64_t at = i * s->num_tokens + n;
            s->a[at] += x[xa] * x[xa] + x[xb] * x[xb];
            s->b[at] += y[ya] * y[ya] + y[yb] * y[yb];
            s->re[at] += y[ya] * x[xa] + y[yb] * x[xb];
            s->im[at] += y[yb] * x[xa] - y[ya] * x[xb];
        }
        for (int64_t i = 0; i < dim; i++) {
            const int inside =
                i >= s->rotary_start && i < s->rotary_start + s->rotary_dim;
            s->power += y[i] * y[i];
            if (!inside)
                s->rest += (y[i] - x[i]) * (y[i] - x[i]);
        }
    }
}

int cli_sums_make(cli_sums *out, const double *x, const double *y, int64_t tokens,
                  int64_t heads, int64_t dim, const cli_sums *window)
{
    *out = *window;
    out->num_pairs = window->rotary_dim / 2;
    out->num_tokens = tokens;
    out->count = tokens * heads * dim;
    const size_t size = (size_t)(out->num_pairs * tokens);
    out->a = calloc(4 * size + 1, sizeof *out->a);
    if (out->a == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    out->b = out->a + size;
    out->re = out->b + size;
    out->im = out->re + size;
    for (int64_t n = 0; n < tokens; n++)
        sum_token(out, x + n * heads * dim, y + n * heads * dim, n, heads, dim);
    /* The best angle of each pair and token alone, with one factor for all. */
    double a = 0, b = 0, c = 0;
    for (size_t k = 0; k < size; k++) {
        a += out->a[k];
        b += out->b[k];
        c += hypot(out->re[k], out->im[k]);
    }
    out->least = b - (a > 0 ? c * c / a : 0);
    out->least = (out->least > 0 ? out->least : 0) + out->rest;
    return CLI_DONE;
}

void cli_sums_free(cli_sums *sums)
{
    free(sums->a);
    *sums = (cli_sums){0};
}

static double round_bf16(double value)
{
    int exponent;
    const double mantissa = frexp(value, &exponent); /* in [0.5, 1) */
    return ldexp(nearbyint(ldexp(mantissa, 8)), exponent - 8);
}

static double frequency(const cli_fit *fit, int64_t i)
{
    const double f = fit->rule->inv_freq[i];
    return fit->times * (fit->rounding == CLI_ROUND_FREQS ? round_bf16(f) : f);
}

static double position(const cli_fit *fit, int64_t id, int64_t start)
{
    const double p = (double)(id + start);
    return fit->rounding == CLI_ROUND_POSITIONS ? round_bf16(p) : p;
}

/* Sum over pairs and tokens of Re(c e^(-i angle)): large where the angles are right. */
static double agreement(const cli_fit *fit, const int64_t *positions, int64_t start)
{
    const cli_sums *s = fit->sums;
    double sum = 0;
    for (int64_t i = 0; i < s->num_pairs; i++) {
        const double f = frequency(fit, i);
        for (int64_t n = 0; n < s->num_tokens; n++) {
            const double angle = f * position(fit, positions[n], start);
            const int64_t at = i * s->num_tokens + n;
            sum += s->re[at] * cos(angle) + s->im[at] * sin(angle);
        }
    }
    return sum;
}

/* What is left when the pattern of the positions is taken off each pair: one number,
 * whose angle is frequency * start. */
typedef struct pair_angle {
    double f, re, im, angle;
} pair_angle;

static int by_speed(const void *a, const void *b)
{
    const double x = fabs(((const pair_angle *)a)->f);
    const double y = fabs(((const pair_angle *)b)->f);
    return x < y ? -1 : x > y;
}

static int64_t fold(const cli_fit *fit, const int64_t *positions, pair_angle *out)
{
    const cli_sums *s = fit->sums;
    int64_t count = 0;
    for (int64_t i = 0; i < s->num_pairs; i++) {
        pair_angle *p = &out[count];
        *p = (pair_angle){.f = frequency(fit, i)};
        for (int64_t n = 0; n < s->num_tokens; n++) {
            const double angle = p->f * (double)positions[n];
            const double c = cos(angle), t = sin(angle);
            const int64_t at = i * s->num_tokens + n;
            p->re += s->re[at] * c + s->im[at] * t;
            p->im += s->im[at] * c - s->re[at] * t;
        }
        p->angle = atan2(p->im, p->re);
        if (fabs(p->f) > 1e-12 && p->re * p->re + p->im * p->im > 0)
            count++;
    }
    qsort(out, (size_t)count, sizeof *out, by_speed);
    return count;
}

/* From a start that the slowest pair allows to the one that all others sharpen. */
static double sharpen(const pair_angle *pairs, int64_t count, double start)
{
    double bound = ANGLE_NOISE / fabs(pairs[0].f);
    for (int64_t i = 1; i < count; i++) {
        const double f = pairs[i].f;
        if (bound * fabs(f) > 2.5) /* could have gone round: leave it to the others */
            continue;
        const double off = remainder(pairs[i].angle - f * start, two_pi);
        start += off / f;
        bound = ANGLE_NOISE / fabs(f);
    }
    return start;
}

static double folded_agreement(const pair_angle *pairs, int64_t count, double start)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double angle = pairs[i].f * start;
        sum += pairs[i].re * cos(angle) + pairs[i].im * sin(angle);
    }
    return sum;
}

static int64_t find_start(const cli_fit *fit, const int64_t *positions,
                          pair_angle *pairs)
{
    const int64_t count = fold(fit, positions, pairs);
    if (count == 0)
        return 0;
    const double turn = two_pi / fabs(pairs[0].f);
    const double base = pairs[0].angle / pairs[0].f;
    int64_t most = (int64_t)(START_MAX / turn);
    most = most > HYPOTHESES_MAX ? HYPOTHESES_MAX : most;
    double best = -INFINITY;
    int64_t found = 0;
    for (int64_t k = 0; k <= 2 * most; k++) {
        const int64_t turns = k % 2 ? (k + 1) / 2 : -k / 2; /* 0, 1, -1, 2, ... */
        const double start = sharpen(pairs, count, base + (double)turns * turn);
        if (!(fabs(start) <= START_MAX))
            continue;
        for (int64_t step = -1; step <= 1; step++) {
            const double whole = nearbyint(start) + (double)step;
            const double sum = folded_agreement(pairs, count, whole);
            if (sum > best * (best > 0 ? 1 + 1e-12 : 1)) {
                best = sum;
                found = (int64_t)whole;
            }
        }
    }
    return found;
}

/* Rounded positions stand still and jump: the start is near the one that fits best if
 * all tokens stood at one place. */
static int64_t find_rounded_start(const cli_fit *fit, const int64_t *positions,
                                  pair_angle *pairs)
{
    cli_fit still = *fit;
    still.rounding = CLI_ROUND_NONE;
    int64_t *zeroes = calloc((size_t)fit->sums->num_tokens, sizeof *zeroes);
    if (zeroes == NULL)
        return 0;
    const int64_t around = find_start(&still, zeroes, pairs);
    const int64_t reach = around < 0 ? -around / 128 + 16 : around / 128 + 16;
    double best = -INFINITY;
    int64_t found = around;
    for (int64_t p = around - reach; p <= around + reach && reach < 20000; p++) {
        const double sum = agreement(fit, positions, p);
        if (sum > best) {
            best = sum;
            found = p;
        }
    }
    free(zeroes);
    return found;
}

static double used_factor(const cli_fit *fit)
{
    const double one = fit->rule->attention_factor;
    return fit->own_factor ? fit->factor : fit->times == 2 ? one * one : one;
}

void cli_fit_run(cli_fit *fit, const int64_t *positions, int is_start_known)
{
    const cli_sums *s = fit->sums;
    double a = 0, b = 0;
    fit->start = 0;
    if (!is_start_known && fit->times != 0) {
        pair_angle *pairs = calloc((size_t)s->num_pairs, sizeof *pairs);
        if (pairs != NULL)
            fit->start = fit->rounding == CLI_ROUND_POSITIONS
                             ? find_rounded_start(fit, positions, pairs)
                             : find_start(fit, positions, pairs);
        free(pairs);
    }
    for (int64_t k = 0; k < s->num_pairs * s->num_tokens; k++) {
        a += s->a[k];
        b += s->b[k];
    }
    fit->slack = 0;
    for (int64_t i = 0; i < s->num_pairs; i++)
        for (int64_t n = 0; n < s->num_tokens; n++) {
            const double angle =
                frequency(fit, i) * (double)(positions[n] + fit->start) * 0x1p-22;
            fit->slack += s->a[i * s->num_tokens + n] * angle * angle;
        }
    const double c = agreement(fit, positions, fit->start);
    fit->factor = a > 0 ? c / a : 0;
    const double expected =
        fit->times == 0   ? 1
        : fit->times == 2 ? fit->rule->attention_factor * fit->rule->attention_factor
                          : fit->rule->attention_factor;
    const double used = fit->own_factor ? fit->factor : expected;
    const double left = b - 2 * used * c + used * used * a + s->rest;
    fit->error = left > 0 ? left : 0;
    fit->residual = s->power > 0 ? sqrt(fit->error / s->power) : 0;
}

double cli_fit_excess(const cli_fit *fit, const cli_fit *best, const int64_t *positions,
                      double hidden)
{
    const cli_sums *s = fit->sums;
    const double u = used_factor(fit), v = used_factor(best);
    double excess = 0;
    if (s != best->sums)
        return fit->error - best->error;
    for (int64_t i = 0; i < s->num_pairs; i++) {
        const double f = frequency(fit, i), g = frequency(best, i);
        for (int64_t n = 0; n < s->num_tokens; n++) {
            const double a = f * position(fit, positions[n], fit->start);
            const double b = g * position(best, positions[n], best->start);
            const int64_t at = i * s->num_tokens + n;
            if (fabs(remainder(a - b, two_pi)) <= hidden)
                continue;
            excess += (u * u - v * v) * s->a[at];
            excess -= 2 * u * (s->re[at] * cos(a) + s->im[at] * sin(a));
            excess += 2 * v * (s->re[at] * cos(b) + s->im[at] * sin(b));
        }
    }
    return excess;
}

double cli_fit_gap(const cli_fit *a, const cli_fit *b)
{
    double most = 0;
    for (int64_t i = 0; i < a->sums->num_pairs && i < b->sums->num_pairs; i++) {
        const double gap = fabs(frequency(a, i) - frequency(b, i));
        most = gap > most ? gap : most;
    }
    return most;
}
