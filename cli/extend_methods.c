/* SPDX-License-Identifier: MIT
 *
 * extend_methods.c - each way of extending a context, resolved to its frequencies
 *
 * Training showed pair i the angles from 0 to trained_len * f.  If that is a
 * turn, it saw all there are; if not, what lies beyond is new to the model. */
#include "extend.h"

#include <math.h>
#include <string.h>

static const double two_pi = 6.283185307179586;

const cli_choice cli_extend_names[] = {{"linear", CLI_EXTEND_LINEAR},
                                       {"ntk", CLI_EXTEND_NTK},
                                       {"dynamic", CLI_EXTEND_DYNAMIC},
                                       {"yarn", CLI_EXTEND_YARN},
                                       {"llama3", CLI_EXTEND_LLAMA3},
                                       {"longrope", CLI_EXTEND_LONGROPE},
                                       {NULL, 0}};

const int64_t cli_extend_distances[CLI_EXTEND_DISTANCES] = {1, 16, 128};

static void set_freqs(cli_extended *out, const cli_extend_base *base)
{
    static const pe_rope_type types[CLI_EXTEND_METHODS] = {
        PE_ROPE_LINEAR, PE_ROPE_NTK,    PE_ROPE_DYNAMIC,
        PE_ROPE_YARN,   PE_ROPE_LLAMA3, PE_ROPE_LONGROPE};
    out->freqs = (pe_freqs){.rope_type = types[out->method],
                            .rope_theta = base->rope_theta,
                            .factor = base->factor,
                            .max_position_embeddings = base->trained_len};
    if (out->method == CLI_EXTEND_DYNAMIC) {
        out->freqs.seq_len = base->length;
    } else if (out->method == CLI_EXTEND_YARN) {
        out->freqs.original_max_position_embeddings = base->trained_len;
    } else if (out->method == CLI_EXTEND_LLAMA3) {
        out->freqs.original_max_position_embeddings = base->trained_len;
        out->freqs.low_freq_factor = 1;
        out->freqs.high_freq_factor = 4;
    } else if (out->method == CLI_EXTEND_LONGROPE) {
        out->freqs.original_max_position_embeddings = base->trained_len;
        out->freqs.max_position_embeddings = base->length;
        out->freqs.seq_len = base->length;
        out->freqs.short_factor = out->short_factor;
        out->freqs.long_factor = out->long_factor;
    }
}

/* LongRoPE's lists come from a search over the model.  This is the shape that the search
 * starts from and that needs no model: from 1 to the factor, geometrically, as NTK. */
static void shape_lists(cli_extended *out, const cli_extend_base *base)
{
    const double last = base->num_pairs > 1 ? (double)(base->num_pairs - 1) : 1;
    for (int32_t i = 0; i < base->num_pairs; i++) {
        const double divisor = pow(base->factor, (double)i / last);
        out->short_factor[i] = 1;
        out->long_factor[i] = nearbyint(divisor * 1e6) / 1e6;
    }
}

static void measure_beyond(cli_extended *out, const cli_extend_base *base)
{
    double worst = 0;
    for (int32_t i = 0; i < base->num_pairs; i++) {
        const double seen = (double)base->trained_len * base->freqs[i];
        const double asked = (double)base->length * out->inv_freq[i];
        const double end = asked < two_pi ? asked : two_pi;
        out->beyond[i] = end > seen * (1 + 1e-12) ? end - seen : 0;
        out->num_beyond += out->beyond[i] > 0;
        if (out->beyond[i] > worst) {
            worst = out->beyond[i];
            out->worst_pair = i;
        }
    }
}

static void measure_changes(cli_extended *out, const cli_extend_base *base)
{
    for (int d = 0; d < CLI_EXTEND_DISTANCES; d++) {
        cli_extend_change *change = &out->changes[d];
        for (int32_t i = 0; i < base->num_pairs; i++) {
            const double radians = (double)cli_extend_distances[d] *
                                   fabs(base->freqs[i] - out->inv_freq[i]);
            if (radians > change->radians)
                *change = (cli_extend_change){radians, i};
        }
    }
}

/* theta * alpha^(d / (d - 2)), alpha as the rule has it at this length. */
static double resolved_theta(const cli_extended *way, const cli_extend_base *base)
{
    const double d = base->rotary_dim;
    double alpha = 1;
    if (way->method == CLI_EXTEND_NTK)
        alpha = base->factor;
    if (way->method == CLI_EXTEND_DYNAMIC)
        alpha = base->factor * (double)base->length / (double)base->trained_len -
                (base->factor - 1);
    return base->rope_theta * pow(alpha, d / (d - 2));
}

int cli_extend_resolve(cli_extended *out, cli_extend_method method,
                       const cli_extend_base *base)
{
    pe_rope_spec spec = base->spec;
    pe_rope *plan;
    pe_error error;
    memset(out, 0, sizeof *out);
    out->method = method;
    if (method == CLI_EXTEND_LONGROPE)
        shape_lists(out, base);
    set_freqs(out, base);
    spec.freqs = out->freqs;
    if (pe_rope_create(&plan, &spec, NULL, &error) != PE_OK)
        return cli_fail_with(cli_choice_name(cli_extend_names, method), &error);
    const pe_rope_info *info = pe_rope_get_info(plan);
    memcpy(out->inv_freq, info->inv_freq,
           (size_t)info->num_pairs * sizeof *out->inv_freq);
    out->attention_factor = info->attention_factor;
    out->ramp_low = info->ramp_low;
    out->ramp_high = info->ramp_high;
    const int status = cli_turns_read(&out->turns, &spec, info, base->trained_len);
    pe_rope_destroy(plan);
    out->rope_theta = resolved_theta(out, base);
    measure_beyond(out, base);
    measure_changes(out, base);
    return status;
}
