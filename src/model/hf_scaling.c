/* SPDX-License-Identifier: MIT
 *
 * hf_scaling.c - rope_scaling and rope_parameters: the rule and its numbers
 *
 * Explicit numbers beat implied ones, and null is absent. */
#include "model/hf.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
                   field, pe_hf_type_name(type));
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
    if (status == PE_OK && (hf->arch->flags & PE_HF_COMPRESS) != 0) {
        const pe_claim claim = {.setting = pe_hf_get(hf, "model_type"),
                                .source = PE_DERIVED,
                                .reason = "model code: cos and sin stay unscaled"};
        if (freqs->attention_factor == 0)
            pe_draft_number(draft, "attention_factor", 1, &claim);
        freqs->attention_factor = 1;
    }
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
    pe_hf_note_ignored(hf);
    if (!pe_hf_is_unscaled(hf, group))
        pe_hf_resolve_lengths(hf, freqs);
    return PE_OK;
}
