/* SPDX-License-Identifier: MIT
 *
 * hf_lint.c - what a scaling block leaves doubtful: lengths, lost blocks, unread keys
 */
#include "model/hf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Llama's checkpoints with theta 500000 were trained on 8192 tokens; longer ones came
 * with a llama3 block, which quantised and fine-tuned uploads tend to lose. */
static void lint_default(pe_hf *hf, const pe_rope_spec *spec, double longest)
{
    const int64_t context = hf->max_positions;
    if (strcmp(hf->model_type, "llama") == 0 && spec->freqs.rope_theta == 5e5 &&
        context > 8192)
        pe_build_note(
            hf->model, PE_WARNING, NULL,
            "context %lld without scaling: Llama 3 with rope_theta 500000 was "
            "trained on 8192, and longer contexts came with rope_type llama3; "
            "was the block lost?",
            (long long)context);
    else if (spec->head_dim != 0 && context != 0 && longest < (double)context)
        pe_build_note(
            hf->model, PE_WARNING, NULL,
            "context %lld with rope_theta %g and no scaling: the slowest pair "
            "turns once in %.1f tokens",
            (long long)context, spec->freqs.rope_theta, longest);
}

void pe_hf_lint(pe_hf *hf, const pe_hf_group *group, const pe_rope_spec *spec)
{
    const pe_freqs *freqs = &spec->freqs;
    const double d = spec->pairs.rotary_dim;
    if (group->is_sliding)
        return;
    const double longest =
        d < 2 ? 0 : 6.283185307179586 * pow(freqs->rope_theta, (d - 2) / d);
    const int64_t original = freqs->original_max_position_embeddings;
    if (freqs->rope_type == PE_ROPE_DEFAULT)
        lint_default(hf, spec, longest);
    else if (spec->head_dim != 0 && original != 0 && longest < (double)original)
        pe_build_note(hf->model, PE_WARNING, NULL,
                      "rope_theta is %g: the slowest pair turns once in %.1f tokens, "
                      "below original_max_position_embeddings (%lld)",
                      freqs->rope_theta, longest, (long long)original);
    if (freqs->factor != 0 && freqs->factor < 1)
        pe_build_note(hf->model, PE_WARNING, NULL,
                      "factor is %g, below 1: it shortens the context; is it the "
                      "reciprocal?",
                      freqs->factor);
}

void pe_hf_note_ignored(pe_hf *hf)
{
    static const char *const known[] = {"rope_type",
                                        "type",
                                        "rope_theta",
                                        "factor",
                                        "attention_factor",
                                        "beta_fast",
                                        "beta_slow",
                                        "mscale",
                                        "mscale_all_dim",
                                        "original_max_position_embeddings",
                                        "short_factor",
                                        "long_factor",
                                        "low_freq_factor",
                                        "high_freq_factor",
                                        "partial_rotary_factor",
                                        "mrope_section",
                                        "mrope_interleaved",
                                        "truncate",
                                        "alpha",
                                        "apply_yarn_scaling",
                                        "apply_scale",
                                        "llama_4_scaling_beta"};
    for (size_t d = 0; d < PE_COUNT(hf->dicts); d++) {
        char prefix[160];
        if (hf->dicts[d] == NULL)
            continue;
        snprintf(prefix, sizeof prefix, "%s%s.", hf->prefix, hf->dicts[d]);
        for (int64_t i = 0; i < hf->settings->num; i++) {
            const pe_setting *setting = &hf->settings->entries[i].setting;
            if (strncmp(setting->path, prefix, strlen(prefix)) != 0 ||
                setting->type == PE_SETTING_NULL)
                continue;
            const char *name = setting->path + strlen(prefix);
            size_t k = 0;
            while (k < PE_COUNT(known) && strcmp(known[k], name) != 0)
                k++;
            if (k == PE_COUNT(known))
                pe_build_note(hf->model, PE_WARNING, setting,
                              "%.120s is not read, so it has no effect", setting->path);
            else if (strcmp(name, "llama_4_scaling_beta") == 0 && setting->number != 0)
                pe_build_note(
                    hf->model, PE_INFO, setting,
                    "%.120s is %.20s: queries have a temperature by position, "
                    "which is no part of a rope",
                    setting->path, setting->text);
        }
    }
}

/* Which lengths the numbers speak of.  Some files hold the trained length in
 * max_position_embeddings, some the extended one. */
void pe_hf_resolve_lengths(pe_hf *hf, const pe_freqs *freqs)
{
    pe_model_info *info = &hf->model->info;
    const int64_t max = hf->max_positions;
    const int64_t original = freqs->original_max_position_embeddings;
    const double scaled = freqs->factor * (double)(original != 0 ? original : max);
    const int64_t stretched = scaled < 1e15 ? (int64_t)scaled : 0;
    info->trained_len = original != 0 ? original : max;
    info->extended_len = max;
    if (freqs->rope_type == PE_ROPE_YARN) {
        info->extended_len = stretched > max ? stretched : max;
        if (stretched > max && max != 0)
            pe_build_note(hf->model, PE_INFO, NULL,
                          "max_position_embeddings (%lld) is below factor * "
                          "original_max_position_embeddings (%lld): the second is the "
                          "length that can be served",
                          (long long)max, (long long)stretched);
    } else if (freqs->rope_type == PE_ROPE_DYNAMIC) {
        info->extended_len = stretched;
    } else if (freqs->rope_type == PE_ROPE_LINEAR && original == 0) {
        info->trained_len = 0;
        pe_build_note(hf->model, PE_INFO, NULL,
                      "linear scaling without original_max_position_embeddings: files "
                      "disagree whether max_position_embeddings (%lld) is before or "
                      "after scaling",
                      (long long)max);
    }
}
