/* SPDX-License-Identifier: MIT
 *
 * rule_accuracy.c - every frequency rule against MPFR, |position| up to 2^40
 *
 * With --emit it prints the entries of tests/data/table_entries.txt instead, which the
 * plain tests compare: case, position, pair, bits of cos and of sin, from MPFR alone. */
#include "check_spec.h"

#include "support/rope_rules.h"

#include <string.h>

static unsigned bits_of(mpfr_t x)
{
    const float f = mpfr_zero_p(x) ? 0 : mpfr_get_flt(x, MPFR_RNDN); /* no -0 */
    unsigned bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static void emit(const rope_rule_case *test)
{
    const pe_rope_spec *spec = &test->spec;
    const int n = spec->head_dim / 2;
    mpfr_t a, f, c, s;
    mpfr_inits2(RULE_BITS, a, f, c, s, (mpfr_ptr)0);
    rule_attention_factor(a, &spec->freqs);
    for (int k = 0; k < 60; k++) {
        const double p = check_position(7 * k);
        const int i = k * 5 % n;
        rule_inv_freq(f, &spec->freqs, i, i, spec->head_dim);
        mpfr_mul_d(f, f, p, MPFR_RNDN);
        mpfr_sin_cos(s, c, f, MPFR_RNDN);
        mpfr_mul(s, s, a, MPFR_RNDN);
        mpfr_mul(c, c, a, MPFR_RNDN);
        printf("%s|%a|%d|%08x|%08x\n", test->name, p, i, bits_of(c), bits_of(s));
    }
    mpfr_clears(a, f, c, s, (mpfr_ptr)0);
}

int main(int argc, char **argv)
{
    int count;
    const rope_rule_case *cases = rope_rules(&count);
    check_result result = {0, 0, 0};
    const int emitting = argc > 1 && strcmp(argv[1], "--emit") == 0;
    for (int k = 0; k < count; k++)
        if (emitting)
            emit(&cases[k]);
        else
            check_spec(&result, &cases[k].spec, cases[k].name, 600);
    return emitting ? 0 : check_report("rules", &result);
}
