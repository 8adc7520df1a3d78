/* SPDX-License-Identifier: MIT
 *
 * hf_scaling.c - rope_scaling and rope_parameters: the rule and its numbers
 *
 * Explicit numbers beat implied ones, null is absent, and a key that nobody here reads
 * is named in a warning. */
#include "model/hf.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct type_name {
    const char *name;
    pe_rope_type type;
} type_name;

static const type_name type_names[] = {
    {"default", PE_ROPE_DEFAULT},   {"linear", PE_ROPE_LINEAR},
    {"ntk", PE_ROPE_NTK},           {"dynamic", PE_ROPE_DYNAMIC},
    {"yarn", PE_ROPE_YARN},         {"deepseek_yarn", PE_ROPE_YARN},
    {"longrope", PE_ROPE_LONGROPE}, {"su", PE_ROPE_LONGROPE},
    {"llama3", PE_ROPE_LLAMA3},     {"proportional", PE_ROPE_PROPORTIONAL},
    {"mrope", PE_ROPE_DEFAULT},     {"none", PE_ROPE_DEFAULT},
};

static const char *canonical_name(pe_rope_type type)
{
    for (size_t i = 0; i < PE_COUNT(type_names); i++) {
        if (type_names[i].type == type && strcmp(type_names[i].name, "su") != 0)
            return type_names[i].name;
    }
    return "default";
}

static int is_unscaled(const pe_hf *hf, const pe_hf_group *group)
{
    return group->is_sliding && !hf->is_nested &&
           (hf->arch->flags & (PE_HF_LOCAL_BASE | PE_HF_SCALED_ON_FULL)) != 0;
}

static void note_spelling(pe_hf *hf, const pe_setting *setting)
{
    const size_t length = strlen(setting->path);
    if (length >= 5 && strcmp(setting->path + length - 5, ".type") == 0)
        pe_build_note(hf->model, PE_INFO, setting, "%s is the older name of rope_type",
                      setting->path);
    if (strcmp(setting->text, "su") == 0)
        pe_build_note(hf->model, PE_INFO, setting, "su is the older name of longrope");
    if (strcmp(setting->text, "mrope") == 0)
        pe_build_note(hf->model, PE_INFO, setting,
                      "mrope is not a scaling rule: the default rule over the axes of "
                      "mrope_section");
}

/* Hunyuan writes NTK's alpha under "dynamic". */
static pe_status apply_alpha(pe_hf *hf, pe_rope_spec *spec, pe_claim *claim)
{
    static const char *const names[] = {"*alpha", NULL};
    pe_pick alpha;
    pe_status status = pe_hf_number(hf, names, &alpha);
    if (status != PE_OK || alpha.claim.setting == NULL || alpha.number == 0)
        return status;
    if (spec->freqs.rope_type != PE_ROPE_DYNAMIC &&
        spec->freqs.rope_type != PE_ROPE_NTK)
        return PE_OK;
    if (spec->freqs.rope_type == PE_ROPE_DYNAMIC) {
        claim->reason = "dynamic with alpha is a fixed NTK base change (Hunyuan)";
        claim->source = PE_DERIVED;
    }
    spec->freqs.rope_type = PE_ROPE_NTK;
    return PE_OK;
}

pe_status pe_hf_rope_type(pe_hf *hf, const pe_hf_group *group, pe_rope_spec *spec,
                          pe_draft *draft)
{
    static const char *const names[] = {"*rope_type", "*type", NULL};
    pe_pick pick;
    if (is_unscaled(hf, group)) {
        const pe_claim claim = {.source = PE_DERIVED,
                                .reason = "scaling is for full-attention layers only"};
        pe_draft_text(draft, "rope_type", "default", &claim);
        return PE_OK;
    }
    pe_status status = pe_hf_string(hf, names, &pick);
    if (status != PE_OK)
        return status;
    if (pick.claim.setting == NULL) {
        pick.claim.source = PE_DEFAULTED;
        pick.claim.reason = "no scaling is stated";
        pe_draft_text(draft, "rope_type", "default", &pick.claim);
        static const char *const factor[] = {"*factor", NULL};
        pe_pick stray;
        status = pe_hf_number(hf, factor, &stray);
        if (status == PE_OK && stray.claim.setting != NULL)
            return pe_fail(hf->error, PE_E_ARGUMENT,
                           "%s is %.40s, but there is no rope_type or type beside it",
                           stray.claim.setting->path, stray.claim.setting->text);
        return status;
    }
    const pe_setting *setting = pick.claim.setting;
    size_t i = 0;
    while (i < PE_COUNT(type_names) && strcmp(type_names[i].name, setting->text) != 0)
        i++;
    if (i == PE_COUNT(type_names))
        return pe_fail(hf->error, PE_E_UNSUPPORTED,
                       "%s is \"%.60s\", must be default, linear, ntk, dynamic, yarn, "
                       "longrope, su, llama3, proportional or mrope",
                       setting->path, setting->text);
    spec->freqs.rope_type = type_names[i].type;
    note_spelling(hf, setting);
    status = apply_alpha(hf, spec, &pick.claim);
    if (status == PE_OK)
        pe_draft_text(draft, "rope_type", canonical_name(spec->freqs.rope_type),
                      &pick.claim);
    return status;
}

/* An optional positive number of the scaling dict. */
static pe_status read_positive(pe_hf *hf, pe_draft *draft, const char *field,
                               double *out)
{
    char starred[64];
    const char *names[2] = {starred, NULL};
    pe_pick pick;
    snprintf(starred, sizeof starred, "*%s", field);
    pe_status status = pe_hf_number(hf, names, &pick);
    if (status != PE_OK || pick.claim.setting == NULL)
        return status;
    if (!(pick.number > 0))
        return pe_fail(hf->error, PE_E_ARGUMENT, "%s is %.40s, must be above 0",
                       pick.claim.setting->path, pick.claim.setting->text);
    *out = pick.number;
    pe_draft_number(draft, field, pick.number, &pick.claim);
    return PE_OK;
}

static pe_status need(pe_hf *hf, const char *field, double value, pe_rope_type type)
{
    if (value != 0)
        return PE_OK;
    return pe_fail(hf->error, PE_E_ARGUMENT, "%s%s.%s is not stated, %s needs it",
                   hf->prefix, hf->dicts[0] != NULL ? hf->dicts[0] : hf->dicts[1],
                   field, canonical_name(type));
}

/* The trained length: the top level wins (Phi-3), then the dict, then, as the library
 * does it, max_position_embeddings. */
static pe_status read_original(pe_hf *hf, pe_freqs *freqs, pe_draft *draft)
{
    static const char *const names[] = {"original_max_position_embeddings",
                                        "*original_max_position_embeddings", NULL};
    pe_pick pick;
    pe_status status = pe_hf_integer(hf, names, 1, INT64_C(1) << 40,
                                     &freqs->original_max_position_embeddings, &pick);
    if (status != PE_OK)
        return status;
    if (pick.claim.setting == NULL) {
        if (hf->max_positions == 0 || freqs->rope_type == PE_ROPE_LINEAR)
            return PE_OK;
        freqs->original_max_position_embeddings = hf->max_positions;
        pick.claim.source = PE_DEFAULTED;
        pick.claim.reason = "not stated: max_position_embeddings, as Hugging Face does";
        pe_build_note(hf->model, PE_WARNING, NULL,
                      "original_max_position_embeddings is not stated, "
                      "max_position_embeddings (%lld) is taken for it",
                      (long long)hf->max_positions);
    }
    pe_draft_integer(draft, "original_max_position_embeddings",
                     freqs->original_max_position_embeddings, &pick.claim);
    return PE_OK;
}

/* YaRN and LongRoPE: an explicit factor beats max / original. */
static pe_status read_or_imply_factor(pe_hf *hf, pe_freqs *freqs, pe_draft *draft)
{
    const int64_t original = freqs->original_max_position_embeddings;
    pe_status status = read_positive(hf, draft, "factor", &freqs->factor);
    if (status != PE_OK)
        return status;
    const double implied = original == 0 || hf->max_positions == 0
                               ? 0
                               : (double)hf->max_positions / (double)original;
    if (freqs->factor == 0) {
        if (implied == 0)
            return need(hf, "factor", 0, freqs->rope_type);
        freqs->factor = implied;
        const pe_claim claim = {.source = PE_DERIVED,
                                .reason = "not stated: max_position_embeddings / "
                                          "original_max_position_embeddings"};
        pe_draft_number(draft, "factor", implied, &claim);
    } else if (implied != 0 && implied != 1 && implied != freqs->factor) {
        pe_build_note(
            hf->model, PE_WARNING, NULL,
            "factor is %g, but max_position_embeddings / "
            "original_max_position_embeddings is %lld / %lld = %g; the stated "
            "factor is used",
            freqs->factor, (long long)hf->max_positions, (long long)original, implied);
    }
    return PE_OK;
}

static pe_status read_apply_scale(pe_hf *hf, pe_freqs *freqs, pe_draft *draft)
{
    static const char *const names[] = {"*apply_yarn_scaling", "*apply_scale", NULL};
    pe_pick pick;
    int32_t applies = 1;
    pe_status status = pe_hf_bool(hf, names, 1, &applies, &pick);
    if (status != PE_OK || applies)
        return status;
    freqs->attention_factor = 1;
    freqs->mscale_rule = PE_MSCALE_HF;
    pick.claim.source = PE_DERIVED;
    pick.claim.reason = "switched off: cos, sin and softmax stay unscaled";
    pe_draft_number(draft, "attention_factor", 1, &pick.claim);
    return PE_OK;
}

static pe_status read_mscales(pe_hf *hf, pe_freqs *freqs, pe_draft *draft)
{
    static const char *const fields[2] = {"mscale", "mscale_all_dim"};
    static const char *const names[2][2] = {{"*mscale", NULL},
                                            {"*mscale_all_dim", NULL}};
    double *const out[2] = {&freqs->mscale, &freqs->mscale_all_dim};
    for (int i = 0; i < 2; i++) {
        pe_pick pick;
        pe_status status = pe_hf_number(hf, names[i], &pick);
        if (status != PE_OK)
            return status;
        if (pick.claim.setting == NULL)
            continue;
        if (pick.number < 0)
            return pe_fail(hf->error, PE_E_ARGUMENT, "%s is %.40s, must be at least 0",
                           pick.claim.setting->path, pick.claim.setting->text);
        *out[i] = pick.number;
        if (pick.number == 0)
            pick.claim.reason = "0 is as good as absent";
        pe_draft_number(draft, fields[i], pick.number, &pick.claim);
    }
    const int is_deepseek = (hf->arch->flags & PE_HF_DEEPSEEK_MSCALE) != 0;
    if (freqs->mscale == 0 && freqs->mscale_all_dim == 0)
        return PE_OK;
    pe_claim claim = {.setting = pe_hf_get(hf, "model_type"), .source = PE_DERIVED};
    freqs->mscale_rule = is_deepseek ? PE_MSCALE_DEEPSEEK : PE_MSCALE_HF;
    claim.reason = is_deepseek
                       ? "multi-head latent attention: the ratio goes to cos and sin, "
                         "m(mscale_all_dim)^2 to the softmax scale"
                       : "the ratio of both goes to cos and sin, nothing to softmax";
    pe_draft_text(draft, "mscale_rule", is_deepseek ? "deepseek" : "hf", &claim);
    if (!is_deepseek && freqs->mscale != 0 && freqs->mscale_all_dim != 0)
        pe_build_note(
            hf->model, PE_INFO, NULL,
            "mscale and mscale_all_dim are both set: Hugging Face takes their "
            "ratio as attention factor; some engines ignore them and use "
            "0.1 ln(factor) + 1");
    return PE_OK;
}

static pe_status read_yarn(pe_hf *hf, pe_freqs *freqs, pe_draft *draft)
{
    static const char *const truncate[] = {"*truncate", NULL};
    pe_pick pick;
    int32_t truncates = 1;
    pe_status status = read_original(hf, freqs, draft);
    if (status == PE_OK && freqs->original_max_position_embeddings == 0)
        status = need(hf, "original_max_position_embeddings", 0, freqs->rope_type);
    if (status == PE_OK)
        status = read_or_imply_factor(hf, freqs, draft);
    if (status == PE_OK)
        status = read_positive(hf, draft, "attention_factor", &freqs->attention_factor);
    if (status == PE_OK)
        status = read_positive(hf, draft, "beta_fast", &freqs->beta_fast);
    if (status == PE_OK)
        status = read_positive(hf, draft, "beta_slow", &freqs->beta_slow);
    if (status == PE_OK)
        status = pe_hf_bool(hf, truncate, 1, &truncates, &pick);
    if (status != PE_OK)
        return status;
    if (pick.claim.setting != NULL) {
        freqs->no_truncate = !truncates;
        pe_draft_text(draft, "truncate", truncates ? "true" : "false", &pick.claim);
    }
    if (freqs->beta_fast != 0 && freqs->beta_slow != 0 &&
        freqs->beta_fast < freqs->beta_slow)
        pe_build_note(hf->model, PE_WARNING, NULL,
                      "beta_fast is %g, below beta_slow (%g): they look swapped",
                      freqs->beta_fast, freqs->beta_slow);
    status = read_mscales(hf, freqs, draft);
    return status == PE_OK ? read_apply_scale(hf, freqs, draft) : status;
}

static pe_status read_factors(pe_hf *hf, const char *field, const pe_rope_spec *spec,
                              pe_draft *draft, const double **out)
{
    const pe_entry *entry = NULL;
    for (size_t i = 0; entry == NULL && i < PE_COUNT(hf->dicts); i++) {
        char name[128];
        if (hf->dicts[i] == NULL)
            continue;
        snprintf(name, sizeof name, "%s.%s", hf->dicts[i], field);
        entry = pe_hf_entry(hf, name);
    }
    if (entry == NULL)
        return need(hf, field, 0, PE_ROPE_LONGROPE);
    const pe_setting *setting = &entry->setting;
    if (setting->numbers == NULL || setting->num_numbers == 0)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "%s is %.60s, must be an array of numbers", setting->path,
                       setting->text);
    if (spec->head_dim != 0 && setting->num_numbers != spec->pairs.rotary_dim / 2)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "%s has %lld numbers, must have %d (rotary_dim / 2)",
                       setting->path, (long long)setting->num_numbers,
                       spec->pairs.rotary_dim / 2);
    for (int64_t i = 0; i < setting->num_numbers; i++) {
        if (!(setting->numbers[i] > 0) || !isfinite(setting->numbers[i]))
            return pe_fail(hf->error, PE_E_ARGUMENT,
                           "%s[%lld] is %g, must be finite and above 0", setting->path,
                           (long long)i, setting->numbers[i]);
    }
    const pe_claim claim = {.setting = setting, .source = PE_STATED};
    *out = setting->numbers;
    pe_draft_text(draft, field, setting->text, &claim);
    return PE_OK;
}

static pe_status read_longrope(pe_hf *hf, pe_rope_spec *spec, pe_draft *draft)
{
    pe_freqs *freqs = &spec->freqs;
    pe_status status = read_original(hf, freqs, draft);
    if (status == PE_OK && freqs->original_max_position_embeddings == 0)
        status = need(hf, "original_max_position_embeddings", 0, freqs->rope_type);
    if (status == PE_OK)
        status = read_or_imply_factor(hf, freqs, draft);
    if (status == PE_OK)
        status = read_positive(hf, draft, "attention_factor", &freqs->attention_factor);
    if (status == PE_OK)
        status = read_factors(hf, "short_factor", spec, draft, &freqs->short_factor);
    if (status == PE_OK)
        status = read_factors(hf, "long_factor", spec, draft, &freqs->long_factor);
    freqs->seq_len = hf->seq_len;
    return status;
}

static pe_status read_llama3(pe_hf *hf, pe_freqs *freqs, pe_draft *draft)
{
    pe_status status = read_positive(hf, draft, "factor", &freqs->factor);
    if (status == PE_OK)
        status = need(hf, "factor", freqs->factor, freqs->rope_type);
    if (status == PE_OK)
        status = read_positive(hf, draft, "low_freq_factor", &freqs->low_freq_factor);
    if (status == PE_OK)
        status = need(hf, "low_freq_factor", freqs->low_freq_factor, freqs->rope_type);
    if (status == PE_OK)
        status = read_positive(hf, draft, "high_freq_factor", &freqs->high_freq_factor);
    if (status == PE_OK)
        status =
            need(hf, "high_freq_factor", freqs->high_freq_factor, freqs->rope_type);
    if (status == PE_OK)
        status = read_original(hf, freqs, draft);
    if (status == PE_OK)
        status =
            need(hf, "original_max_position_embeddings",
                 (double)freqs->original_max_position_embeddings, freqs->rope_type);
    return status;
}

static pe_status read_ntk(pe_hf *hf, pe_freqs *freqs, pe_draft *draft)
{
    static const char *const alpha[] = {"*alpha", NULL};
    pe_pick pick;
    pe_status status = pe_hf_number(hf, alpha, &pick);
    if (status != PE_OK)
        return status;
    if (pick.claim.setting != NULL && pick.number != 0) {
        if (!(pick.number > 0))
            return pe_fail(hf->error, PE_E_ARGUMENT, "%s is %.40s, must be above 0",
                           pick.claim.setting->path, pick.claim.setting->text);
        freqs->factor = pick.number;
        pick.claim.reason = "alpha: theta is multiplied by alpha^(d / (d - 2))";
        pe_draft_number(draft, "factor", pick.number, &pick.claim);
        return PE_OK;
    }
    pe_build_note(hf->model, PE_WARNING, NULL,
                  "rope_type ntk is not Hugging Face's: read as theta * "
                  "factor^(d / (d - 2)); vLLM's fixed variant differs");
    status = read_positive(hf, draft, "factor", &freqs->factor);
    return status == PE_OK ? need(hf, "factor", freqs->factor, freqs->rope_type)
                           : status;
}

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

static void note_ignored(pe_hf *hf)
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
static void resolve_lengths(pe_hf *hf, const pe_freqs *freqs)
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

pe_status pe_hf_scaling(pe_hf *hf, const pe_hf_group *group, pe_rope_spec *spec,
                        pe_draft *draft)
{
    pe_freqs *freqs = &spec->freqs;
    pe_status status = PE_OK;
    freqs->max_position_embeddings = hf->max_positions;
    switch (freqs->rope_type) {
    case PE_ROPE_LINEAR:
        status = read_positive(hf, draft, "factor", &freqs->factor);
        if (status == PE_OK)
            status = need(hf, "factor", freqs->factor, freqs->rope_type);
        if (status == PE_OK)
            status = read_original(hf, freqs, draft);
        break;
    case PE_ROPE_PROPORTIONAL:
        status = read_positive(hf, draft, "factor", &freqs->factor);
        break;
    case PE_ROPE_NTK:
        status = read_ntk(hf, freqs, draft);
        break;
    case PE_ROPE_DYNAMIC:
        status = read_positive(hf, draft, "factor", &freqs->factor);
        if (status == PE_OK)
            status = need(hf, "factor", freqs->factor, freqs->rope_type);
        if (status == PE_OK)
            status = need(hf, "max_position_embeddings", (double)hf->max_positions,
                          freqs->rope_type);
        freqs->seq_len = hf->seq_len;
        break;
    case PE_ROPE_YARN:
        status = read_yarn(hf, freqs, draft);
        break;
    case PE_ROPE_LONGROPE:
        status = read_longrope(hf, spec, draft);
        break;
    case PE_ROPE_LLAMA3:
        status = read_llama3(hf, freqs, draft);
        break;
    default:
        break;
    }
    if (status != PE_OK)
        return status;
    note_ignored(hf);
    if (!is_unscaled(hf, group))
        resolve_lengths(hf, freqs);
    return PE_OK;
}
