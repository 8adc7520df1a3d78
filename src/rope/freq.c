/* SPDX-License-Identifier: MIT
 *
 * freq.c - the frequency rules, exactly
 *
 * Formulas in the letters of the papers: theta the base, d the ladder's dim, i the rung,
 * s the factor, L the original length. */
#include "rope/freq.h"

#include "angle/turns.h"
#include "base/error.h"

static pe_wide from_int(int64_t v)
{
    return pe_wide_from_int(v);
}
static pe_wide from_double(double x)
{
    return pe_wide_from_double(x);
}

/* theta^(-2i/d): Su et al. 2021, section 3.2.2. */
static pe_wide power(pe_wide log2_theta, int32_t i, int32_t d)
{
    const pe_wide exponent =
        pe_wide_div(pe_wide_mul(from_int(2 * (int64_t)i), log2_theta), from_int(d));
    return pe_wide_exp2(pe_wide_neg(exponent));
}

/* Dynamic NTK: s n / L - (s - 1) with n = max(length, L), 1 up to the trained length
 * (Hugging Face takes max_position_embeddings for L).  Static NTK: the factor itself. */
pe_wide pe_ntk_alpha(const pe_freq_rule *rule)
{
    const pe_wide s = from_double(rule->factor);
    if (rule->spec.rope_type == PE_ROPE_NTK)
        return s;
    const int64_t trained = rule->spec.max_position_embeddings;
    if (rule->seq_len <= trained)
        return from_int(1);
    const pe_wide ratio =
        pe_wide_div(pe_wide_mul(s, from_int(rule->seq_len)), from_int(trained));
    return pe_wide_sub(ratio, pe_wide_sub(s, from_int(1)));
}

/* log2 of theta alpha^(d/(d-2)), so that the slowest pair is slowed by alpha exactly. */
static pe_wide ntk_log2_theta(const pe_freq_rule *rule, pe_wide log2_theta, int32_t d)
{
    const pe_wide exponent = pe_wide_div(from_int(d), from_int(d - 2));
    return pe_wide_add(log2_theta,
                       pe_wide_mul(pe_wide_log2(pe_ntk_alpha(rule)), exponent));
}

/* The (real) rung that turns beta times over the original length:
 * d ln(L / (2 pi beta)) / (2 ln theta), Peng et al. 2023 section 3.2. */
static pe_wide yarn_rung(const pe_freq_rule *rule, int32_t d, double beta)
{
    const pe_wide turns = pe_wide_mul(
        pe_wide_div(from_int(rule->original), from_double(beta)), PE_WIDE_INV_2PI);
    const pe_wide log2_theta = pe_wide_log2(from_double(rule->spec.rope_theta));
    return pe_wide_div(pe_wide_mul(from_int(d), pe_wide_log2(turns)),
                       pe_wide_mul(from_int(2), log2_theta));
}

/* low and high count pairs, yet every reference clamps high to d - 1.  floor and ceil
 * never meet an integer: L / (2 pi beta) is transcendental, theta^(k/d) algebraic. */
pe_yarn_range pe_yarn_ramp(const pe_freq_rule *rule, int32_t d)
{
    pe_yarn_range r = {yarn_rung(rule, d, rule->beta_fast),
                       yarn_rung(rule, d, rule->beta_slow)};
    if (!rule->spec.no_truncate) {
        r.low = from_int(pe_wide_floor(r.low));
        r.high = from_int(pe_wide_ceil(r.high));
    }
    if (r.low.negative)
        r.low = from_int(0);
    if (pe_wide_less(from_int(d - 1), r.high))
        r.high = from_int(d - 1);
    if (pe_wide_is_zero(pe_wide_sub(r.low, r.high)))
        r.high = pe_wide_add(r.high, from_double(0.001));
    return r;
}

static pe_wide clamp01(pe_wide x)
{
    const pe_wide one = from_int(1);
    if (x.negative)
        return from_int(0);
    return pe_wide_less(one, x) ? one : x;
}

/* YaRN (Peng et al. 2023): fast pairs keep f, slow ones get f / s, a ramp joins them. */
static pe_wide yarn(pe_wide f, int32_t i, pe_yarn_range r, double s)
{
    const pe_wide ramp = clamp01(
        pe_wide_div(pe_wide_sub(from_int(i), r.low), pe_wide_sub(r.high, r.low)));
    const pe_wide slow = pe_wide_div(f, from_double(s));
    return pe_wide_add(pe_wide_mul(slow, ramp),
                       pe_wide_mul(f, pe_wide_sub(from_int(1), ramp)));
}

/* Llama 3.1: by turns over the original length, above high f, below low f / s, between
 * them a blend.  With low == high (Llama 4 Scout) nothing lies between. */
static pe_wide llama3(const pe_freq_rule *rule, pe_wide f)
{
    const pe_wide low = from_double(rule->spec.low_freq_factor);
    const pe_wide high = from_double(rule->spec.high_freq_factor);
    const pe_wide turns =
        pe_wide_mul(pe_wide_mul(from_int(rule->original), f), PE_WIDE_INV_2PI);
    const pe_wide slow = pe_wide_div(f, from_double(rule->factor));
    const pe_wide width = pe_wide_sub(high, low);
    if (pe_wide_less(high, turns))
        return f;
    if (pe_wide_less(turns, low) || pe_wide_is_zero(width))
        return slow;
    const pe_wide smooth = pe_wide_div(pe_wide_sub(turns, low), width);
    return pe_wide_add(pe_wide_mul(pe_wide_sub(from_int(1), smooth), slow),
                       pe_wide_mul(smooth, f));
}

int32_t pe_proportional_pairs(const pe_freq_rule *rule, int32_t dim)
{
    return (int32_t)(rule->partial_rotary_factor * dim / 2);
}

/* What all pairs of a ladder share. */
typedef struct {
    int32_t dim;
    pe_wide log2_theta; /* stretched, for the NTK rules */
    pe_yarn_range ramp;
} ladder;

static ladder ladder_of(const pe_freq_rule *rule, int32_t dim)
{
    const pe_rope_type type = rule->spec.rope_type;
    ladder l = {.dim = dim};
    if (type == PE_ROPE_CUSTOM)
        return l;
    l.log2_theta = pe_wide_log2(from_double(rule->spec.rope_theta));
    if (type == PE_ROPE_NTK || type == PE_ROPE_DYNAMIC)
        l.log2_theta = ntk_log2_theta(rule, l.log2_theta, dim);
    if (type == PE_ROPE_YARN)
        l.ramp = pe_yarn_ramp(rule, dim);
    return l;
}

static pe_wide rule_entry(const pe_freq_rule *rule, const ladder *l, int32_t pair,
                          int32_t i)
{
    const pe_wide f = rule->spec.rope_type == PE_ROPE_CUSTOM
                          ? from_double(rule->spec.inv_freq[pair])
                          : power(l->log2_theta, i, l->dim);
    switch (rule->spec.rope_type) {
    case PE_ROPE_LINEAR: /* position interpolation: Chen et al. 2023 */
        return pe_wide_div(f, from_double(rule->factor));
    case PE_ROPE_YARN:
        return yarn(f, i, l->ramp, rule->factor);
    case PE_ROPE_LONGROPE: {
        const double *list = rule->seq_len > rule->original ? rule->spec.long_factor
                                                            : rule->spec.short_factor;
        return pe_wide_div(f, from_double(list[pair]));
    }
    case PE_ROPE_LLAMA3:
        return llama3(rule, f);
    case PE_ROPE_PROPORTIONAL: /* Gemma 4: the first pairs turn, the rest stand still */
        return i < pe_proportional_pairs(rule, l->dim)
                   ? pe_wide_div(f, from_double(rule->factor))
                   : from_int(0);
    default:
        return f;
    }
}

/* m(k) = 0.1 k ln s + 1, and 1 when s <= 1. */
static pe_wide magnitude(const pe_freq_rule *rule, double k)
{
    if (rule->factor <= 1)
        return from_int(1);
    const pe_wide scaled =
        pe_wide_mul(from_double(k), pe_wide_ln(from_double(rule->factor)));
    return pe_wide_add(pe_wide_div(scaled, from_int(10)), from_int(1));
}

static pe_wide derived_attention_factor(const pe_freq_rule *rule)
{
    const pe_freqs *f = &rule->spec;
    if (f->rope_type == PE_ROPE_YARN) {
        if (f->mscale_rule != PE_MSCALE_IGNORE && f->mscale != 0 &&
            f->mscale_all_dim != 0)
            return pe_wide_div(magnitude(rule, f->mscale),
                               magnitude(rule, f->mscale_all_dim));
        return magnitude(rule, 1);
    }
    if (f->rope_type == PE_ROPE_LONGROPE && rule->factor > 1) {
        /* sqrt(1 + ln s / ln L): Ding et al. 2024 */
        const pe_wide ratio = pe_wide_div(pe_wide_log2(from_double(rule->factor)),
                                          pe_wide_log2(from_int(rule->original)));
        return pe_wide_sqrt(pe_wide_add(from_int(1), ratio));
    }
    return from_int(1);
}

static pe_wide softmax_factor(const pe_freq_rule *rule)
{
    const pe_freqs *f = &rule->spec;
    if (f->rope_type != PE_ROPE_YARN || f->mscale_rule != PE_MSCALE_DEEPSEEK ||
        f->mscale_all_dim == 0)
        return from_int(1);
    const pe_wide m = magnitude(rule, f->mscale_all_dim);
    return pe_wide_mul(m, m);
}

static void served_lengths(const pe_freq_rule *rule, pe_freq_result *result)
{
    result->seq_len_min = 0;
    result->seq_len_max = INT64_MAX;
    if (rule->spec.rope_type == PE_ROPE_DYNAMIC) {
        const int64_t trained = rule->spec.max_position_embeddings;
        result->seq_len_min = rule->seq_len > trained ? rule->seq_len : 0;
        result->seq_len_max = rule->seq_len > trained ? rule->seq_len : trained;
    } else if (rule->spec.rope_type == PE_ROPE_LONGROPE) {
        if (rule->seq_len > rule->original)
            result->seq_len_min = rule->original + 1;
        else
            result->seq_len_max = rule->original;
    }
}

pe_status pe_freq_fill(const pe_freq_rule *rule, int32_t num_pairs,
                       const pe_axis_layout *layout, pe_wide *inv_freq,
                       pe_freq_result *result, pe_error *error)
{
    const pe_freqs *f = &rule->spec;
    const pe_wide limit = from_double(PE_MAX_INV_FREQ);
    const ladder first = ladder_of(rule, layout->ladder_dim[0]);
    ladder l = first;
    for (int32_t i = 0; i < num_pairs; i++) {
        if (layout->ladder_dim[i] != l.dim)
            l = ladder_of(rule, layout->ladder_dim[i]);
        inv_freq[i] = rule_entry(rule, &l, i, layout->rung[i]);
        if (f->freq_factors != NULL)
            inv_freq[i] = pe_wide_div(inv_freq[i], from_double(f->freq_factors[i]));
        if (!pe_wide_less(inv_freq[i], limit))
            return pe_fail(
                error, PE_E_ARGUMENT,
                "inv_freq[%d] comes to %g radians a token, must be below 2^40", i,
                pe_wide_to_double(inv_freq[i]));
    }
    result->attention_factor = f->attention_factor != 0
                                   ? from_double(f->attention_factor)
                                   : derived_attention_factor(rule);
    result->softmax_factor = softmax_factor(rule);
    result->ramp = first.ramp;
    served_lengths(rule, result);
    return PE_OK;
}
