/* SPDX-License-Identifier: MIT
 *
 * freq_check.c - what a frequency rule needs, and what it must not be given
 *
 * A field that the chosen rule does not read is refused where it would mean another rule
 * had been meant: a forgotten rope_type is the field's costliest silent miss. */
#include "base/error.h"
#include "rope/freq.h"

static const char *const type_names[] = {"default", "linear",       "ntk",
                                         "dynamic", "yarn",         "longrope",
                                         "llama3",  "proportional", "custom"};

typedef struct {
    const char *name;
    double value;
    double min; /* value must be at least this, and finite, unless it is 0 (unset) */
} bound;

static pe_status check_numbers(const pe_freqs *f, pe_error *error)
{
    const bound bounds[] = {
        {"factor", f->factor, 1},
        {"attention_factor", f->attention_factor, 0x1p-20},
        {"beta_fast", f->beta_fast, 0},
        {"beta_slow", f->beta_slow, 0},
        {"mscale", f->mscale, 0},
        {"mscale_all_dim", f->mscale_all_dim, 0},
        {"low_freq_factor", f->low_freq_factor, 0},
        {"high_freq_factor", f->high_freq_factor, 0},
        {"rope_theta", f->rope_theta, 0},
        {"partial_rotary_factor", f->partial_rotary_factor, 0},
    };
    for (size_t i = 0; i < PE_COUNT(bounds); i++)
        if (bounds[i].value != 0 &&
            !(bounds[i].value >= bounds[i].min && bounds[i].value <= 0x1p1000))
            return pe_fail(error, PE_E_ARGUMENT, "%s is %g, must be finite and %s %g",
                           bounds[i].name, bounds[i].value,
                           bounds[i].min > 0 ? "at least" : "above", bounds[i].min);
    if (f->attention_factor > 0x1p20)
        return pe_fail(error, PE_E_ARGUMENT,
                       "attention_factor is %g, must be at most 2^20",
                       f->attention_factor);
    if (f->partial_rotary_factor > 1)
        return pe_fail(error, PE_E_ARGUMENT,
                       "partial_rotary_factor is %g, must be at most 1",
                       f->partial_rotary_factor);
    const struct {
        const char *name;
        int64_t value;
    } lengths[] = {
        {"max_position_embeddings", f->max_position_embeddings},
        {"original_max_position_embeddings", f->original_max_position_embeddings},
        {"seq_len", f->seq_len},
    };
    for (size_t i = 0; i < PE_COUNT(lengths); i++)
        if (lengths[i].value < 0 || lengths[i].value > (int64_t)1 << 53)
            return pe_fail(error, PE_E_ARGUMENT, "%s is %lld, must be in 0 .. 2^53",
                           lengths[i].name, (long long)lengths[i].value);
    if (f->reserved != 0 || (f->no_truncate != 0 && f->no_truncate != 1))
        return pe_fail(error, PE_E_ARGUMENT,
                       "freqs.reserved is %d and no_truncate %d, must be 0 and 0 or 1",
                       f->reserved, f->no_truncate);
    if (f->mscale_rule < PE_MSCALE_HF || f->mscale_rule > PE_MSCALE_IGNORE)
        return pe_fail(error, PE_E_ARGUMENT,
                       "mscale_rule is %d, must be PE_MSCALE_HF (0), _DEEPSEEK (1) or "
                       "_IGNORE (2)",
                       f->mscale_rule);
    return PE_OK;
}

/* Fields that belong to other rules. */
static pe_status check_strays(const pe_freqs *f, pe_error *error)
{
    const pe_rope_type type = f->rope_type;
    const struct {
        const char *name;
        int set, allowed;
    } strays[] = {
        {"factor", f->factor != 0 && f->factor != 1,
         type != PE_ROPE_DEFAULT && type != PE_ROPE_CUSTOM},
        {"low_freq_factor", f->low_freq_factor != 0, type == PE_ROPE_LLAMA3},
        {"high_freq_factor", f->high_freq_factor != 0, type == PE_ROPE_LLAMA3},
        {"short_factor", f->short_factor != NULL, type == PE_ROPE_LONGROPE},
        {"long_factor", f->long_factor != NULL, type == PE_ROPE_LONGROPE},
        {"inv_freq", f->inv_freq != NULL, type == PE_ROPE_CUSTOM},
        {"beta_fast", f->beta_fast != 0, type == PE_ROPE_YARN},
        {"beta_slow", f->beta_slow != 0, type == PE_ROPE_YARN},
        {"no_truncate", f->no_truncate != 0, type == PE_ROPE_YARN},
        {"mscale", f->mscale != 0, type == PE_ROPE_YARN},
        {"mscale_all_dim", f->mscale_all_dim != 0, type == PE_ROPE_YARN},
        {"partial_rotary_factor", f->partial_rotary_factor != 0,
         type == PE_ROPE_PROPORTIONAL},
    };
    for (size_t i = 0; i < PE_COUNT(strays); i++)
        if (strays[i].set && !strays[i].allowed)
            return pe_fail(error, PE_E_ARGUMENT,
                           "%s is set, but rope_type is %s, which does not use it",
                           strays[i].name, type_names[type]);
    return PE_OK;
}

static pe_status need(int present, const char *field, pe_rope_type type,
                      pe_error *error)
{
    return present ? PE_OK
                   : pe_fail(error, PE_E_ARGUMENT,
                             "%s is not set, must be for rope_type %s", field,
                             type_names[type]);
}

/* Each of n values is finite and above 0 (or at least 0, for frequencies). */
static pe_status check_list(const double *list, int32_t n, const char *name,
                            int zero_allowed, pe_error *error)
{
    for (int32_t i = 0; i < n; i++)
        if (!(list[i] > 0 || (zero_allowed && list[i] == 0)) || list[i] > 0x1p1000)
            return pe_fail(error, PE_E_ARGUMENT,
                           "%s[%d] is %g, must be finite and %s 0", name, i, list[i],
                           zero_allowed ? "at least" : "above");
    return PE_OK;
}

static pe_status check_lists(const pe_freqs *f, int32_t n, pe_error *error)
{
    pe_status status = PE_OK;
    if (f->rope_type == PE_ROPE_LONGROPE) {
        if ((status = need(f->short_factor != NULL, "short_factor", f->rope_type,
                           error)) != PE_OK ||
            (status = need(f->long_factor != NULL, "long_factor", f->rope_type,
                           error)) != PE_OK ||
            (status = check_list(f->short_factor, n, "short_factor", 0, error)) !=
                PE_OK ||
            (status = check_list(f->long_factor, n, "long_factor", 0, error)) != PE_OK)
            return status;
    }
    if (f->rope_type == PE_ROPE_CUSTOM) {
        if ((status = need(f->inv_freq != NULL, "inv_freq", f->rope_type, error)) !=
                PE_OK ||
            (status = check_list(f->inv_freq, n, "inv_freq", 1, error)) != PE_OK)
            return status;
    }
    if (f->freq_factors != NULL)
        status = check_list(f->freq_factors, n, "freq_factors", 0, error);
    return status;
}

/* Where a factor comes from: stated, or max / original for the rules that allow it. */
static pe_status resolve_factor(const pe_freqs *f, pe_freq_rule *rule, pe_error *error)
{
    const pe_rope_type type = f->rope_type;
    rule->factor = f->factor != 0 ? f->factor : 1;
    if (type == PE_ROPE_YARN || type == PE_ROPE_LONGROPE || type == PE_ROPE_LLAMA3) {
        const pe_status status = need(f->original_max_position_embeddings != 0,
                                      "original_max_position_embeddings", type, error);
        if (status != PE_OK)
            return status;
    }
    if (type == PE_ROPE_YARN || type == PE_ROPE_LONGROPE) {
        if (f->factor != 0)
            return PE_OK;
        if (f->max_position_embeddings == 0)
            return pe_fail(
                error, PE_E_ARGUMENT,
                "factor is not set, must be (or max_position_embeddings, for "
                "max / original) for rope_type %s",
                type_names[type]);
        rule->factor = (double)f->max_position_embeddings /
                       (double)f->original_max_position_embeddings;
        if (type == PE_ROPE_YARN && rule->factor < 1)
            return pe_fail(error, PE_E_ARGUMENT,
                           "factor comes to %g, max_position_embeddings / "
                           "original_max_position_embeddings (%lld / %lld), must be at "
                           "least 1",
                           rule->factor, (long long)f->max_position_embeddings,
                           (long long)f->original_max_position_embeddings);
        return PE_OK;
    }
    if (type == PE_ROPE_LINEAR || type == PE_ROPE_NTK || type == PE_ROPE_DYNAMIC ||
        type == PE_ROPE_LLAMA3)
        return need(f->factor != 0, "factor", type, error);
    return PE_OK;
}

static pe_status check_rule(const pe_freqs *f, const pe_axis_layout *layout,
                            int32_t rotary_dim, const pe_freq_rule *rule,
                            pe_error *error)
{
    pe_status status = PE_OK;
    switch (f->rope_type) {
    case PE_ROPE_DYNAMIC:
        if ((status = need(f->max_position_embeddings != 0, "max_position_embeddings",
                           f->rope_type, error)) != PE_OK)
            return status;
        /* fall through */
    case PE_ROPE_NTK:
        for (int32_t i = 0; i < rotary_dim / 2; i++)
            if (layout->ladder_dim[i] < 4)
                return pe_fail(error, PE_E_ARGUMENT,
                               "rotary_dim is %d on one axis, must be at least 4 for "
                               "rope_type %s, whose exponent is d / (d - 2)",
                               layout->ladder_dim[i], type_names[f->rope_type]);
        return PE_OK;
    case PE_ROPE_YARN:
        if (f->rope_theta <= 1)
            return pe_fail(error, PE_E_ARGUMENT,
                           "rope_theta is %g, must be above 1 for rope_type yarn",
                           f->rope_theta);
        if (rule->beta_fast < rule->beta_slow)
            return pe_fail(error, PE_E_ARGUMENT,
                           "beta_fast is %g, must be at least beta_slow (%g)",
                           rule->beta_fast, rule->beta_slow);
        return PE_OK;
    case PE_ROPE_LONGROPE:
        if (rule->original == 1 && rule->factor > 1 && f->attention_factor == 0)
            return pe_fail(
                error, PE_E_ARGUMENT,
                "original_max_position_embeddings is 1, must be at least 2 to "
                "derive attention_factor");
        return PE_OK;
    case PE_ROPE_LLAMA3:
        if ((status = need(f->low_freq_factor != 0, "low_freq_factor", f->rope_type,
                           error)) != PE_OK ||
            (status = need(f->high_freq_factor != 0, "high_freq_factor", f->rope_type,
                           error)) != PE_OK)
            return status;
        if (f->high_freq_factor < f->low_freq_factor)
            return pe_fail(
                error, PE_E_ARGUMENT,
                "high_freq_factor is %g, must be at least low_freq_factor (%g)",
                f->high_freq_factor, f->low_freq_factor);
        return PE_OK;
    case PE_ROPE_PROPORTIONAL:
        if (layout->num_ladders > 1)
            return pe_fail(error, PE_E_ARGUMENT,
                           "axes.map is PE_AXIS_SPLIT, rope_type proportional has one "
                           "ladder");
        return PE_OK;
    default:
        return PE_OK;
    }
}

pe_status pe_freq_check(const pe_freqs *f, int32_t rotary_dim,
                        const pe_axis_layout *layout, pe_freq_rule *rule,
                        pe_error *error)
{
    pe_status status;
    if (f->rope_type < PE_ROPE_DEFAULT || f->rope_type > PE_ROPE_CUSTOM)
        return pe_fail(error, PE_E_ARGUMENT,
                       "rope_type is %d, must be PE_ROPE_DEFAULT (0) to PE_ROPE_CUSTOM "
                       "(8)",
                       f->rope_type);
    if ((status = check_numbers(f, error)) != PE_OK ||
        (status = check_strays(f, error)) != PE_OK)
        return status;
    if (f->rope_theta == 0 && f->rope_type != PE_ROPE_CUSTOM)
        return pe_fail(error, PE_E_ARGUMENT,
                       "rope_theta is not set, must be: it has no default");
    rule->spec = *f;
    rule->beta_fast = f->beta_fast != 0 ? f->beta_fast : 32;
    rule->beta_slow = f->beta_slow != 0 ? f->beta_slow : 1;
    rule->partial_rotary_factor =
        f->partial_rotary_factor != 0 ? f->partial_rotary_factor : 1;
    rule->original = f->original_max_position_embeddings;
    rule->seq_len = f->seq_len;
    if ((status = resolve_factor(f, rule, error)) != PE_OK ||
        (status = check_lists(f, rotary_dim / 2, error)) != PE_OK)
        return status;
    return check_rule(f, layout, rotary_dim, rule, error);
}
