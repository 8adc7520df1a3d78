/* SPDX-License-Identifier: MIT
 *
 * hf_bias.c - ALiBi and T5 buckets
 */
#include "model/hf.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

typedef struct alibi_rule {
    const char *model_type;
    pe_bias_form form;
    int32_t before_scale; /* added before 1 / sqrt(head_dim), slopes kept in bfloat16 */
} alibi_rule;

static const alibi_rule alibi_rules[] = {
    {"bloom", PE_BIAS_KEY_ONLY, 0},      {"falcon", PE_BIAS_KEY_ONLY, 1},
    {"RefinedWeb", PE_BIAS_KEY_ONLY, 1}, {"RefinedWebModel", PE_BIAS_KEY_ONLY, 1},
    {"mpt", PE_BIAS_CAUSAL, 0},          {"baichuan", PE_BIAS_CAUSAL, 0},
    {"jais", PE_BIAS_CAUSAL, 0},         {"bert", PE_BIAS_BIDIRECTIONAL, 0},
};

static const char *form_name(pe_bias_form form)
{
    static const char *const names[] = {"", "causal", "bidirectional", "key-only"};
    return names[form];
}

static pe_status need_heads(pe_hf *hf)
{
    if (hf->num_heads != 0)
        return PE_OK;
    return pe_fail(hf->error, PE_E_ARGUMENT,
                   "num_attention_heads is not stated, the bias needs it");
}

pe_status pe_hf_alibi(pe_hf *hf)
{
    static const char *const max_bias[] = {"attn_config.alibi_bias_max",
                                           "alibi_bias_max", NULL};
    pe_bias_spec spec = {.struct_size = sizeof spec, .type = PE_BIAS_ALIBI};
    pe_draft draft = {.model = hf->model};
    pe_pick pick;
    const alibi_rule *rule = alibi_rules;
    while (rule < alibi_rules + PE_COUNT(alibi_rules) &&
           strcmp(rule->model_type, hf->model_type) != 0)
        rule++;
    const int is_known = rule < alibi_rules + PE_COUNT(alibi_rules);
    pe_status status = need_heads(hf);
    if (status == PE_OK)
        status = pe_hf_number(hf, max_bias, &pick);
    if (status != PE_OK)
        return status;
    pe_claim claim = {.setting = pe_hf_get(hf, "model_type"),
                      .source = is_known ? PE_DERIVED : PE_DEFAULTED,
                      .reason = is_known ? "model code of this model_type"
                                         : "model_type is not known: causal"};
    spec.form = is_known ? rule->form : PE_BIAS_CAUSAL;
    if (!is_known)
        pe_build_note(hf->model, PE_WARNING, claim.setting,
                      "the bias form is a guess (causal): model_type is not known");
    pe_draft_text(&draft, "form", form_name(spec.form), &claim);
    spec.num_heads = (int32_t)hf->num_heads;
    pe_draft_integer(&draft, "num_heads", hf->num_heads,
                     &(pe_claim){.source = PE_DERIVED, .reason = "num_heads"});
    spec.max_bias = pick.claim.setting == NULL ? 8 : pick.number;
    if (!(spec.max_bias > 0))
        return pe_fail(hf->error, PE_E_ARGUMENT, "%s is %.40s, must be above 0",
                       pick.claim.setting->path, pick.claim.setting->text);
    if (pick.claim.setting == NULL) {
        pick.claim.source = PE_DEFAULTED;
        pick.claim.reason = "not stated: 8, Press et al. 2022";
    }
    pe_draft_number(&draft, "max_bias", spec.max_bias, &pick.claim);
    if (is_known && rule->before_scale) {
        const pe_hf_group whole = {.layer_type = NULL};
        int32_t head_dim = 0;
        status = pe_hf_head_dim(hf, &whole, &head_dim, &claim);
        if (status != PE_OK)
            return status;
        if (head_dim == 0)
            return pe_fail(hf->error, PE_E_ARGUMENT,
                           "head_dim is unknown, the bias is divided by its root");
        spec.scale = 1 / sqrt((double)head_dim);
        spec.round_to = PE_BF16;
        claim.source = PE_DERIVED;
        claim.reason = "added before the scores are divided by sqrt(head_dim)";
        pe_draft_number(&draft, "scale", spec.scale, &claim);
        claim.reason = "the model code keeps slopes in bfloat16";
        pe_draft_text(&draft, "round_to", "bf16", &claim);
    }
    hf->model->info.trained_len = hf->max_positions;
    hf->model->info.extended_len = hf->max_positions;
    return pe_hf_plain_layers(hf, PE_SITE_SELF,
                              pe_build_bias(hf->model, &spec, &draft));
}

static int32_t t5_side(pe_hf *hf, const pe_bias_spec *common, const pe_draft *draft,
                       pe_bias_form form)
{
    pe_bias_spec spec = *common;
    pe_draft side = *draft;
    spec.form = form;
    pe_draft_text(&side, "form", form_name(form),
                  &(pe_claim){.source = PE_DERIVED,
                              .reason = form == PE_BIAS_CAUSAL
                                            ? "decoder: buckets for the past only"
                                            : "encoder: buckets for both sides"});
    return pe_build_bias(hf->model, &spec, &side);
}

pe_status pe_hf_t5(pe_hf *hf)
{
    static const char *const buckets[] = {"relative_attention_num_buckets", NULL};
    static const char *const distance[] = {"relative_attention_max_distance", NULL};
    static const char *const decoder[] = {"num_decoder_layers", NULL};
    pe_bias_spec spec = {.struct_size = sizeof spec, .type = PE_BIAS_T5};
    pe_draft draft = {.model = hf->model};
    pe_pick pick;
    int64_t num_buckets = 32, max_distance = 128, layers = hf->num_layers;
    pe_status status = need_heads(hf);
    if (status == PE_OK)
        status = pe_hf_integer(hf, buckets, 2, 1 << 16, &num_buckets, &pick);
    if (status != PE_OK)
        return status;
    if (pick.claim.setting == NULL)
        pick.claim = (pe_claim){.source = PE_DEFAULTED, .reason = "not stated: 32"};
    pe_draft_integer(&draft, "num_buckets", num_buckets, &pick.claim);
    status = pe_hf_integer(hf, distance, 2, 1 << 30, &max_distance, &pick);
    if (status != PE_OK)
        return status;
    if (pick.claim.setting == NULL)
        pick.claim = (pe_claim){.source = PE_DEFAULTED, .reason = "not stated: 128"};
    pe_draft_integer(&draft, "max_distance", max_distance, &pick.claim);
    status = pe_hf_integer(hf, decoder, 1, 4096, &layers, &pick);
    if (status != PE_OK)
        return status;
    spec.num_heads = (int32_t)hf->num_heads;
    spec.num_buckets = (int32_t)num_buckets;
    spec.max_distance = max_distance;
    pe_draft_integer(&draft, "num_heads", hf->num_heads,
                     &(pe_claim){.source = PE_DERIVED, .reason = "num_heads"});
    const int32_t encoder = t5_side(hf, &spec, &draft, PE_BIAS_BIDIRECTIONAL);
    const int32_t causal = t5_side(hf, &spec, &draft, PE_BIAS_CAUSAL);
    pe_build_note(
        hf->model, PE_INFO, NULL,
        "scores are not divided by sqrt(head_dim); the bias table is a weight, "
        "which config.json does not hold");
    hf->model->info.trained_len = hf->max_positions;
    hf->model->info.extended_len = hf->max_positions;
    pe_hf_plain_layers(hf, PE_SITE_ENCODER, encoder);
    hf->num_layers = layers;
    return pe_hf_plain_layers(hf, PE_SITE_SELF, causal);
}
