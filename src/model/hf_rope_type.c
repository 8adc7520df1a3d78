/* SPDX-License-Identifier: MIT
 *
 * hf_rope_type.c - the names of frequency rules, old and new
 */
#include "model/hf.h"

#include "base/error.h"

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

const char *pe_hf_type_name(pe_rope_type type)
{
    for (size_t i = 0; i < PE_COUNT(type_names); i++) {
        if (type_names[i].type == type && strcmp(type_names[i].name, "su") != 0)
            return type_names[i].name;
    }
    return "default";
}

int pe_hf_is_unscaled(const pe_hf *hf, const pe_hf_group *group)
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
    if (pe_hf_is_unscaled(hf, group)) {
        const pe_claim claim = {.source = PE_DERIVED,
                                .reason =
                                    (hf->arch->flags & PE_HF_COMPRESS) != 0
                                        ? "scaling is for layers that compress keys"
                                        : "scaling is for full-attention layers only"};
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
        pe_draft_text(draft, "rope_type", pe_hf_type_name(spec->freqs.rope_type),
                      &pick.claim);
    return status;
}
