/* SPDX-License-Identifier: MIT
 *
 * check_spec.h - every table entry of a spec against MPFR
 */
#ifndef CHECK_SPEC_H
#define CHECK_SPEC_H

#include <stdint.h>

#include "mpfr_rule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHECK_MAX_PAIRS = 512 };

typedef struct {
    int64_t entries, misrounded;
    double worst_ulp; /* of the entries, in their own units in the last place */
} check_result;

/* Whole positions at every scale up to 2^40 and fractional ones, both signs. */
static double check_position(int k)
{
    static uint64_t state = 0x2545f4914f6cdd1du;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const double sign = k % 2 ? -1 : 1;
    if (k < 40)
        return k < 32 ? k : sign * ldexp(1, k);
    const double whole = (double)(state >> (24 + k % 40));
    if (k % 4 == 3) /* fractional, also far below one */
        return sign * (whole + (double)(state % 4096) / 4096) * ldexp(1, -(k % 29));
    return whole == 0 ? 0 : sign * whole;
}

static void check_entry(check_result *r, float got, mpfr_t exact, const char *name,
                        double position, int pair)
{
    const float want = mpfr_get_flt(exact, MPFR_RNDN);
    r->entries++;
    if (got != want) {
        r->misrounded++;
        printf("%s: position %.17g pair %d: got %a, want %a\n", name, position, pair,
               (double)got, (double)want);
    }
    if (want == 0)
        return;
    int exponent;
    frexpf(want, &exponent);
    mpfr_t error;
    mpfr_init2(error, RULE_BITS);
    mpfr_sub_d(error, exact, (double)got, MPFR_RNDN);
    const double ulps = fabs(mpfr_get_d(error, MPFR_RNDN)) / ldexp(1, exponent - 24);
    r->worst_ulp = ulps > r->worst_ulp ? ulps : r->worst_ulp;
    mpfr_clear(error);
}

/* Ladders of a plan: the pairs of an axis under PE_AXIS_SPLIT, else all pairs. */
static void check_ladder(const pe_rope_spec *spec, int num_pairs, int pair, int *rung,
                         int *dim)
{
    *rung = pair;
    *dim = 2 * num_pairs;
    if (spec->axes.map != PE_AXIS_SPLIT)
        return;
    int a = 0;
    while (*rung >= spec->axes.section[a])
        *rung -= spec->axes.section[a++];
    *dim = 2 * spec->axes.section[a];
}

static void check_spec(check_result *r, const pe_rope_spec *spec, const char *name,
                       int num_positions)
{
    static float cos[CHECK_MAX_PAIRS], sin[CHECK_MAX_PAIRS];
    static mpfr_t freq[CHECK_MAX_PAIRS];
    mpfr_t a, c, s, angle;
    pe_rope *rope;
    pe_error error;
    if (pe_rope_create(&rope, spec, NULL, &error) != PE_OK) {
        printf("%s: %s\n", name, error.message);
        exit(1);
    }
    const int n = pe_rope_get_info(rope)->num_pairs;
    mpfr_inits2(RULE_BITS, a, c, s, angle, (mpfr_ptr)0);
    rule_attention_factor(a, &spec->freqs);
    for (int i = 0; i < n; i++) {
        int rung, dim;
        check_ladder(spec, n, i, &rung, &dim);
        mpfr_init2(freq[i], RULE_BITS);
        rule_inv_freq(freq[i], &spec->freqs, i, rung, dim);
        if (pe_rope_get_info(rope)->inv_freq[i] != mpfr_get_d(freq[i], MPFR_RNDN)) {
            printf("%s: inv_freq[%d] misrounded\n", name, i);
            r->misrounded++;
        }
    }
    pe_tensor tc, ts;
    pe_tensor_bshd(&tc, PE_F32, cos, 1, 1, 1, n);
    pe_tensor_bshd(&ts, PE_F32, sin, 1, 1, 1, n);
    for (int k = 0; k < num_positions; k++) {
        const double p = check_position(k);
        pe_positions at = {.start = (int64_t)p};
        if (p != floor(p))
            at = (pe_positions){.values = &p};
        if (pe_rope_table(rope, &at, &tc, &ts, &error) != PE_OK) {
            printf("%s: %s\n", name, error.message);
            exit(1);
        }
        for (int i = 0; i < n; i++) {
            mpfr_mul_d(angle, freq[i], p, MPFR_RNDN);
            mpfr_sin_cos(s, c, angle, MPFR_RNDN);
            mpfr_mul(s, s, a, MPFR_RNDN);
            mpfr_mul(c, c, a, MPFR_RNDN);
            if (spec->pairs.reversed)
                mpfr_neg(s, s, MPFR_RNDN);
            check_entry(r, cos[i], c, name, p, i);
            check_entry(r, sin[i], s, name, p, i);
        }
    }
    for (int i = 0; i < n; i++)
        mpfr_clear(freq[i]);
    mpfr_clears(a, c, s, angle, (mpfr_ptr)0);
    pe_rope_destroy(rope);
}

/* Prints the line that docs/numerics.md quotes; returns main's exit code. */
static int check_report(const char *what, const check_result *r)
{
    printf("%s: %lld entries checked, %lld misrounded, worst %.5f ulp\n", what,
           (long long)r->entries, (long long)r->misrounded, r->worst_ulp);
    return r->misrounded != 0;
}

#endif /* CHECK_SPEC_H */
