/* SPDX-License-Identifier: MIT
 *
 * mpfr_rule.h - the frequency rules once more, in MPFR
 *
 * Written from the formulas, sharing no code with the library; 300 bits throughout. */
#ifndef MPFR_RULE_H
#define MPFR_RULE_H

#include "posenc/posenc.h"

#include <mpfr.h>

enum { RULE_BITS = 300 };

/* x = theta^(-2i/d) with theta = rope_theta * alpha^(d/(d-2)). */
static void rule_power(mpfr_t x, double theta, mpfr_t alpha, int i, int d)
{
    mpfr_t e, base;
    mpfr_inits2(RULE_BITS, e, base, (mpfr_ptr)0);
    mpfr_set_si(base, d, MPFR_RNDN);
    if (mpfr_cmp_ui(alpha, 1) != 0) {
        mpfr_div_si(base, base, d - 2, MPFR_RNDN);
        mpfr_pow(base, alpha, base, MPFR_RNDN);
        mpfr_mul_d(base, base, theta, MPFR_RNDN);
    } else {
        mpfr_set_d(base, theta, MPFR_RNDN);
    }
    mpfr_set_si(e, -2 * i, MPFR_RNDN);
    mpfr_div_si(e, e, d, MPFR_RNDN);
    mpfr_pow(x, base, e, MPFR_RNDN);
    mpfr_clears(e, base, (mpfr_ptr)0);
}

/* d ln(L / (2 pi beta)) / (2 ln theta) */
static void rule_yarn_end(mpfr_t x, const pe_freqs *f, int d, double beta)
{
    mpfr_t t;
    mpfr_init2(t, RULE_BITS);
    mpfr_const_pi(x, MPFR_RNDN);
    mpfr_mul_ui(x, x, 2, MPFR_RNDN);
    mpfr_mul_d(x, x, beta, MPFR_RNDN);
    mpfr_si_div(x, (long)f->original_max_position_embeddings, x, MPFR_RNDN);
    mpfr_log(x, x, MPFR_RNDN);
    mpfr_mul_si(x, x, d, MPFR_RNDN);
    mpfr_set_d(t, f->rope_theta, MPFR_RNDN);
    mpfr_log(t, t, MPFR_RNDN);
    mpfr_mul_ui(t, t, 2, MPFR_RNDN);
    mpfr_div(x, x, t, MPFR_RNDN);
    mpfr_clear(t);
}

static double rule_factor(const pe_freqs *f)
{
    if (f->factor != 0)
        return f->factor;
    if (f->rope_type == PE_ROPE_YARN || f->rope_type == PE_ROPE_LONGROPE)
        return (double)f->max_position_embeddings /
               (double)f->original_max_position_embeddings;
    return 1;
}

/* x is blended: ramp 0 keeps it, ramp 1 divides it by factor. */
static void rule_blend(mpfr_t x, mpfr_t ramp, double factor)
{
    mpfr_t slow;
    mpfr_init2(slow, RULE_BITS);
    if (mpfr_sgn(ramp) < 0)
        mpfr_set_ui(ramp, 0, MPFR_RNDN);
    if (mpfr_cmp_ui(ramp, 1) > 0)
        mpfr_set_ui(ramp, 1, MPFR_RNDN);
    mpfr_div_d(slow, x, factor, MPFR_RNDN);
    mpfr_mul(slow, slow, ramp, MPFR_RNDN);
    mpfr_ui_sub(ramp, 1, ramp, MPFR_RNDN);
    mpfr_mul(x, x, ramp, MPFR_RNDN);
    mpfr_add(x, x, slow, MPFR_RNDN);
    mpfr_clear(slow);
}

static void rule_yarn(mpfr_t x, const pe_freqs *f, int i, int d)
{
    mpfr_t low, high;
    mpfr_inits2(RULE_BITS, low, high, (mpfr_ptr)0);
    rule_yarn_end(low, f, d, f->beta_fast != 0 ? f->beta_fast : 32);
    rule_yarn_end(high, f, d, f->beta_slow != 0 ? f->beta_slow : 1);
    if (!f->no_truncate) {
        mpfr_floor(low, low);
        mpfr_ceil(high, high);
    }
    if (mpfr_sgn(low) < 0)
        mpfr_set_ui(low, 0, MPFR_RNDN);
    if (mpfr_cmp_si(high, d - 1) > 0)
        mpfr_set_si(high, d - 1, MPFR_RNDN);
    if (mpfr_equal_p(low, high))
        mpfr_add_d(high, high, 0.001, MPFR_RNDN);
    mpfr_sub(high, high, low, MPFR_RNDN);
    mpfr_si_sub(low, i, low, MPFR_RNDN);
    mpfr_div(low, low, high, MPFR_RNDN);
    rule_blend(x, low, rule_factor(f));
    mpfr_clears(low, high, (mpfr_ptr)0);
}

/* Three bands by turns over the original length. */
static void rule_llama3(mpfr_t x, const pe_freqs *f)
{
    mpfr_t turns;
    mpfr_init2(turns, RULE_BITS);
    mpfr_const_pi(turns, MPFR_RNDN);
    mpfr_mul_ui(turns, turns, 2, MPFR_RNDN);
    mpfr_div(turns, x, turns, MPFR_RNDN);
    mpfr_mul_si(turns, turns, (long)f->original_max_position_embeddings, MPFR_RNDN);
    if (mpfr_cmp_d(turns, f->high_freq_factor) > 0) {
        mpfr_set_ui(turns, 0, MPFR_RNDN);
    } else if (mpfr_cmp_d(turns, f->low_freq_factor) < 0) {
        mpfr_set_ui(turns, 1, MPFR_RNDN);
    } else { /* ramp = (high - turns) / (high - low) */
        mpfr_d_sub(turns, f->high_freq_factor, turns, MPFR_RNDN);
        mpfr_t width;
        mpfr_init2(width, RULE_BITS);
        mpfr_set_d(width, f->high_freq_factor, MPFR_RNDN);
        mpfr_sub_d(width, width, f->low_freq_factor, MPFR_RNDN);
        mpfr_div(turns, turns, width, MPFR_RNDN);
        mpfr_clear(width);
    }
    rule_blend(x, turns, f->factor);
    mpfr_clear(turns);
}

/* inv_freq of pair i, the i-th of a ladder of d elements. */
static void rule_inv_freq(mpfr_t x, const pe_freqs *f, int pair, int i, int d)
{
    mpfr_t alpha;
    mpfr_init2(alpha, RULE_BITS);
    mpfr_set_ui(alpha, 1, MPFR_RNDN);
    if (f->rope_type == PE_ROPE_NTK)
        mpfr_set_d(alpha, f->factor, MPFR_RNDN);
    if (f->rope_type == PE_ROPE_DYNAMIC && f->seq_len > f->max_position_embeddings) {
        mpfr_set_d(alpha, f->factor, MPFR_RNDN);
        mpfr_mul_si(alpha, alpha, (long)f->seq_len, MPFR_RNDN);
        mpfr_div_si(alpha, alpha, (long)f->max_position_embeddings, MPFR_RNDN);
        mpfr_sub_d(alpha, alpha, f->factor, MPFR_RNDN);
        mpfr_add_ui(alpha, alpha, 1, MPFR_RNDN);
    }
    if (f->rope_type == PE_ROPE_CUSTOM)
        mpfr_set_d(x, f->inv_freq[pair], MPFR_RNDN);
    else
        rule_power(x, f->rope_theta, alpha, i, d);
    mpfr_clear(alpha);
    switch (f->rope_type) {
    case PE_ROPE_LINEAR:
        mpfr_div_d(x, x, f->factor, MPFR_RNDN);
        break;
    case PE_ROPE_YARN:
        rule_yarn(x, f, i, d);
        break;
    case PE_ROPE_LLAMA3:
        rule_llama3(x, f);
        break;
    case PE_ROPE_LONGROPE:
        mpfr_div_d(x, x,
                   f->seq_len > f->original_max_position_embeddings
                       ? f->long_factor[pair]
                       : f->short_factor[pair],
                   MPFR_RNDN);
        break;
    case PE_ROPE_PROPORTIONAL: {
        const double part =
            f->partial_rotary_factor != 0 ? f->partial_rotary_factor : 1;
        if (i >= (int)(part * d / 2))
            mpfr_set_ui(x, 0, MPFR_RNDN);
        mpfr_div_d(x, x, rule_factor(f), MPFR_RNDN);
        break;
    }
    default:
        break;
    }
    if (f->freq_factors != NULL)
        mpfr_div_d(x, x, f->freq_factors[pair], MPFR_RNDN);
}

/* 0.1 k ln s + 1 */
static void rule_magnitude(mpfr_t x, double s, double k)
{
    mpfr_set_d(x, s > 1 ? s : 1, MPFR_RNDN);
    mpfr_log(x, x, MPFR_RNDN);
    mpfr_mul_d(x, x, k, MPFR_RNDN);
    mpfr_div_ui(x, x, 10, MPFR_RNDN);
    mpfr_add_ui(x, x, 1, MPFR_RNDN);
}

static void rule_attention_factor(mpfr_t x, const pe_freqs *f)
{
    const double s = rule_factor(f);
    mpfr_t t;
    mpfr_init2(t, RULE_BITS);
    mpfr_set_ui(x, 1, MPFR_RNDN);
    if (f->attention_factor != 0) {
        mpfr_set_d(x, f->attention_factor, MPFR_RNDN);
    } else if (f->rope_type == PE_ROPE_YARN) {
        const int ratio = f->mscale != 0 && f->mscale_all_dim != 0 &&
                          f->mscale_rule != PE_MSCALE_IGNORE;
        rule_magnitude(x, s, ratio ? f->mscale : 1);
        if (ratio) {
            rule_magnitude(t, s, f->mscale_all_dim);
            mpfr_div(x, x, t, MPFR_RNDN);
        }
    } else if (f->rope_type == PE_ROPE_LONGROPE && s > 1) {
        mpfr_set_d(x, s, MPFR_RNDN);
        mpfr_log(x, x, MPFR_RNDN);
        mpfr_set_si(t, (long)f->original_max_position_embeddings, MPFR_RNDN);
        mpfr_log(t, t, MPFR_RNDN);
        mpfr_div(x, x, t, MPFR_RNDN);
        mpfr_add_ui(x, x, 1, MPFR_RNDN);
        mpfr_sqrt(x, x, MPFR_RNDN);
    }
    mpfr_clear(t);
}

#endif /* MPFR_RULE_H */
