/* SPDX-License-Identifier: MIT
 *
 * hf_theta.c - the base of a rotation, under its many names
 */
#include "model/hf.h"

#include "base/error.h"

/* ChatGLM writes how many times 10000 its base is. */
static pe_status read_ratio(pe_hf *hf, pe_rope_spec *spec, pe_draft *draft)
{
    static const char *const names[] = {"rope_ratio", NULL};
    pe_pick pick;
    pe_status status = pe_hf_number(hf, names, &pick);
    if (status != PE_OK)
        return status;
    const double ratio = pick.claim.setting != NULL ? pick.number : 1;
    if (!(ratio > 0))
        return pe_fail(hf->error, PE_E_ARGUMENT, "%s is %.40s, must be above 0",
                       pick.claim.setting->path, pick.claim.setting->text);
    spec->freqs.rope_theta = 10000 * ratio;
    pick.claim.source = pick.claim.setting != NULL ? PE_DERIVED : PE_DEFAULTED;
    pick.claim.reason = "10000 * rope_ratio; the ratio is 1 unless stated";
    pe_draft_number(draft, "rope_theta", spec->freqs.rope_theta, &pick.claim);
    if (ratio != 1)
        pe_build_note(hf->model, PE_WARNING, pick.claim.setting,
                      "rope_ratio multiplies theta, as ChatGLM3 and GLM-4 do; the code "
                      "of ChatGLM2 with 32k tokens divided positions by it");
    return PE_OK;
}

/* One number of a list that has one for each layer. */
static void take_from_list(const pe_hf *hf, const pe_hf_group *group,
                           pe_rope_spec *spec, pe_draft *draft)
{
    const pe_claim claim = {
        .setting = pe_hf_get(hf, "rope_theta"),
        .source = PE_DERIVED,
        .reason =
            pe_arena_format(&hf->model->arena, "element %d of the list", group->layer)};
    spec->freqs.rope_theta = group->theta;
    pe_draft_number(draft, "rope_theta", group->theta, &claim);
}

pe_status pe_hf_theta(pe_hf *hf, const pe_hf_group *group, pe_rope_spec *spec,
                      pe_draft *draft)
{
    static const char *const names[] = {
        "*rope_theta",         "rope_theta",        "rotary_emb_base",
        "rope_base",           "rotary_base",       "rotary_embedding_base",
        "rope_embedding_base", "global_rope_theta", NULL};
    static const char *const local_names[] = {
        "rope_local_base_freq", "local_rope_theta", "swa_rope_theta", NULL};
    static const char *const compress_names[] = {"compress_rope_theta", NULL};
    const int is_compress =
        !group->is_sliding && !hf->is_nested && (hf->arch->flags & PE_HF_COMPRESS) != 0;
    const int is_local = group->is_sliding && !hf->is_nested &&
                         (hf->arch->flags & PE_HF_LOCAL_BASE) != 0;
    pe_pick pick;
    if ((hf->arch->flags & PE_HF_THETA_RATIO) != 0)
        return read_ratio(hf, spec, draft);
    if (group->theta != 0) {
        take_from_list(hf, group, spec, draft);
        return PE_OK;
    }
    pe_status status = pe_hf_number(hf,
                                    is_local      ? local_names
                                    : is_compress ? compress_names
                                                  : names,
                                    &pick);
    if (status != PE_OK)
        return status;
    if (pick.claim.setting != NULL) {
        if (!(pick.number > 1))
            return pe_fail(hf->error, PE_E_ARGUMENT, "%s is %.40s, must be above 1",
                           pick.claim.setting->path, pick.claim.setting->text);
        spec->freqs.rope_theta = pick.number;
        pe_draft_number(draft, "rope_theta", pick.number, &pick.claim);
        return PE_OK;
    }
    const double own = is_local ? 0 : is_compress ? 160000 : hf->arch->theta;
    spec->freqs.rope_theta = own != 0 ? own : 10000;
    pick.claim.source = PE_DEFAULTED;
    pick.claim.reason = own != 0 ? "not stated: default of this model_type"
                                 : "not stated: Hugging Face's general default";
    pe_draft_number(draft, "rope_theta", spec->freqs.rope_theta, &pick.claim);
    pe_build_note(hf->model,
                  (hf->arch->flags & PE_HF_THETA_IN_CODE) != 0 ? PE_INFO : PE_WARNING,
                  NULL, "rope_theta is not stated%s, %.17g is %s",
                  is_local      ? " for local layers"
                  : is_compress ? " for layers that compress keys"
                                : "",
                  spec->freqs.rope_theta,
                  own != 0 || (hf->arch->flags & PE_HF_THETA_IN_CODE) != 0
                      ? "what the code of this model_type has"
                      : "Hugging Face's general default, not a fact about this model");
    return PE_OK;
}
