/* SPDX-License-Identifier: MIT
 *
 * freq.h - part A: from a frequency rule to inverse frequencies
 *
 * A rule knows nothing of positions, pairing or rotation.  Everything is computed in the
 * 128-bit software float on the exact values of the spec's doubles, so floor and ceil
 * decide as real numbers would and nothing depends on a libm. */
#ifndef PE_FREQ_H
#define PE_FREQ_H

#include "angle/wide.h"
#include "rope/axes.h"

/* Ends of YaRN's ramp in pairs, for a ladder of dim elements. */
typedef struct {
    pe_wide low, high;
} pe_yarn_range;

/* The spec's numbers with defaults applied. */
typedef struct {
    pe_freqs spec; /* as given, except: */
    double factor; /* 1 for rules without one */
    double beta_fast, beta_slow, partial_rotary_factor;
    int64_t original; /* trained length; 0: unknown */
    int64_t seq_len;  /* length to serve; 0: as trained */
} pe_freq_rule;

typedef struct {
    pe_wide attention_factor; /* of cos and sin */
    pe_wide softmax_factor;
    pe_yarn_range ramp;               /* first ladder; zeros but for YaRN */
    int64_t seq_len_min, seq_len_max; /* lengths that these frequencies are for */
} pe_freq_result;

/* Checks every field that the rule reads, and that fields of other rules are unset. */
pe_status pe_freq_check(const pe_freqs *freqs, int32_t rotary_dim,
                        const pe_axis_layout *layout, pe_freq_rule *rule,
                        pe_error *error);

/* inv_freq[num_pairs], freq_factors applied; refuses frequencies at or above
 * PE_MAX_INV_FREQ. */
pe_status pe_freq_fill(const pe_freq_rule *rule, int32_t num_pairs,
                       const pe_axis_layout *layout, pe_wide *inv_freq,
                       pe_freq_result *result, pe_error *error);

pe_yarn_range pe_yarn_ramp(const pe_freq_rule *rule, int32_t dim);

/* theta of the NTK rules, which stretch the base: theta * alpha^(dim / (dim - 2)). */
pe_wide pe_ntk_alpha(const pe_freq_rule *rule);

/* The same frequencies in the float operations of Hugging Face's modeling_rope_utils.py
 * (transformers 5), which models were trained with.  *attention_factor as there. */
void pe_freq_fill_hf(const pe_freq_rule *rule, int32_t num_pairs,
                     const pe_axis_layout *layout, float *inv_freq);

/* Pairs that turn under PROPORTIONAL, of a ladder of dim elements. */
int32_t pe_proportional_pairs(const pe_freq_rule *rule, int32_t dim);

#endif /* PE_FREQ_H */
