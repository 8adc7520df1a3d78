/* SPDX-License-Identifier: MIT
 *
 * hf_rope.c - the rope of one group of layers: width and pairing
 */
#include "model/hf.h"

#include "base/error.h"

#include <string.h>

static const char *pairing_name(pe_pairing pairing)
{
    return pairing == PE_INTERLEAVED ? "interleaved" : "half-split";
}

/* The table knows it, a key of another dialect states it (ExecuTorch's use_hf_rope), or
 * it is the rule that most of Hugging Face follows, and loudly marked. */
static pe_status read_pairing(pe_hf *hf, pe_rope_spec *spec, pe_draft *draft)
{
    static const char *const use_hf_rope[] = {"use_hf_rope", NULL};
    static const char *const rope_interleave[] = {"rope_interleave", NULL};
    static const char *const rotary_interleaved[] = {"rotary_emb_interleaved", NULL};
    pe_pick pick, interleave, stated;
    int32_t is_hf = 0, is_interleaved = 1, is_stated = 0;
    pe_status status = pe_hf_bool(hf, use_hf_rope, 0, &is_hf, &pick);
    if (status == PE_OK)
        status = pe_hf_bool(hf, rope_interleave, 1, &is_interleaved, &interleave);
    if (status == PE_OK)
        status = pe_hf_bool(hf, rotary_interleaved, 0, &is_stated, &stated);
    if (status != PE_OK)
        return status;
    if (stated.claim.setting != NULL) {
        spec->pairs.pairing = is_stated ? PE_INTERLEAVED : PE_HALF_SPLIT;
        pick.claim = stated.claim;
    } else if (pick.claim.setting != NULL) {
        spec->pairs.pairing = is_hf ? PE_HALF_SPLIT : PE_INTERLEAVED;
        pick.claim.reason = is_hf ? "rows in Hugging Face's order"
                                  : "rows in Meta's order: neighbours are a pair";
    } else if (hf->arch->out_pairing != 0 && !is_interleaved) {
        spec->pairs.pairing = PE_HALF_SPLIT;
        pick.claim = interleave.claim;
        pick.claim.source = PE_DERIVED;
        pick.claim.reason = "rope_interleave is false: the rows are split already";
    } else if (hf->arch->pairing != 0) {
        spec->pairs.pairing = hf->arch->pairing;
        spec->pairs.out_pairing = hf->arch->out_pairing;
        spec->pairs.reversed = (hf->arch->flags & PE_HF_REVERSED) != 0;
        pick.claim.setting = pe_hf_get(hf, "model_type");
        pick.claim.source = PE_DERIVED;
        pick.claim.reason = "model code of this model_type";
    } else {
        const int is_mla = pe_hf_get(hf, "qk_rope_head_dim") != NULL;
        spec->pairs.pairing = is_mla ? PE_INTERLEAVED : PE_HALF_SPLIT;
        pick.claim.source = PE_DEFAULTED;
        pick.claim.reason =
            is_mla ? "model_type is not known; models with qk_rope_head_dim mostly "
                     "interleave"
                   : "model_type is not known; most of Hugging Face's models split";
        pe_build_note(hf->model, PE_WARNING, pe_hf_get(hf, "model_type"),
                      "pairing is a guess (%s): model_type %s is not known, and "
                      "config.json never states it",
                      pairing_name(spec->pairs.pairing),
                      *hf->model_type == '\0' ? "is not stated and so"
                                              : hf->model_type);
    }
    pe_draft_text(draft, "pairing", pairing_name(spec->pairs.pairing), &pick.claim);
    if (spec->pairs.out_pairing != 0)
        pe_draft_text(draft, "out_pairing", pairing_name(spec->pairs.out_pairing),
                      &pick.claim);
    return PE_OK;
}

/* int(head_dim * factor), as the library computes it. */
static pe_status from_factor(pe_hf *hf, pe_rope_spec *spec, double factor,
                             pe_claim *claim)
{
    if (!(factor > 0 && factor <= 1))
        return pe_fail(hf->error, PE_E_ARGUMENT, "%s is %.40s, must be in (0, 1]",
                       claim->setting == NULL ? "partial_rotary_factor"
                                              : claim->setting->path,
                       claim->setting == NULL ? "?" : claim->setting->text);
    spec->pairs.rotary_dim = (int32_t)((double)spec->head_dim * factor);
    if (spec->head_dim != 0 &&
        (spec->pairs.rotary_dim < 2 || spec->pairs.rotary_dim % 2 != 0))
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "rotary_dim is %d (head_dim %d * partial_rotary_factor %.17g), "
                       "must be even and at least 2",
                       spec->pairs.rotary_dim, spec->head_dim, factor);
    char text[32];
    claim->reason =
        pe_arena_format(&hf->model->arena, "%sint(head_dim %d * %s)",
                        claim->source == PE_CONFLICTING ? "conflicting factors; " : "",
                        spec->head_dim, pe_number_text(factor, text));
    if (claim->source == PE_STATED)
        claim->source = PE_DERIVED;
    return PE_OK;
}

static pe_status read_window(pe_hf *hf, const pe_hf_group *group, pe_rope_spec *spec,
                             pe_draft *draft)
{
    static const char *const rope_part[] = {"qk_rope_head_dim", NULL};
    static const char *const dims[] = {"rotary_dim", NULL};
    static const char *const factors[] = {
        "*partial_rotary_factor", "partial_rotary_factor", "rotary_pct", "rope_pct",
        "rope_percent",           "rotary_percent",        NULL};
    pe_pick part, dim, factor;
    int64_t width = 0;
    pe_status status = pe_hf_integer(hf, rope_part, 2, 4096, &width, &part);
    if (status != PE_OK)
        return status;
    if (width != 0) { /* a split head: factors speak of other layers */
        spec->pairs.rotary_dim = (int32_t)width;
        spec->pairs.rotary_start =
            spec->head_dim > width ? spec->head_dim - (int32_t)width : 0;
        if (spec->head_dim == 0)
            spec->head_dim = (int32_t)width;
        pe_draft_integer(draft, "rotary_dim", width, &part.claim);
        part.claim.source = PE_DERIVED;
        part.claim.reason = "a query is [nope | rope]: the last part turns";
        pe_draft_integer(draft, "rotary_start", spec->pairs.rotary_start, &part.claim);
        return PE_OK;
    }
    status = pe_hf_integer(hf, dims, 2, 4096, &width, &dim);
    if (status == PE_OK)
        status = pe_hf_number(hf, factors, &factor);
    if (status != PE_OK)
        return status;
    if (group->partial != 0) {
        factor.number = group->partial;
        factor.claim.setting = pe_hf_get(hf, "partial_rotary_factors");
        factor.claim.source = PE_DERIVED;
    }
    if (spec->freqs.rope_type == PE_ROPE_PROPORTIONAL) {
        spec->pairs.rotary_dim = spec->head_dim;
        spec->freqs.partial_rotary_factor =
            factor.claim.setting == NULL ? 1 : factor.number;
        factor.claim.source =
            factor.claim.setting == NULL ? PE_DEFAULTED : factor.claim.source;
        pe_draft_number(draft, "partial_rotary_factor",
                        spec->freqs.partial_rotary_factor, &factor.claim);
        return PE_OK;
    }
    if (factor.claim.setting != NULL) {
        status = from_factor(hf, spec, factor.number, &factor.claim);
        if (status != PE_OK)
            return status;
    }
    if (width != 0) {
        if (factor.claim.setting != NULL && spec->head_dim != 0 &&
            spec->pairs.rotary_dim != width) {
            dim.claim.source = PE_CONFLICTING;
            dim.claim.reason = pe_arena_format(
                &hf->model->arena, "rotary_dim wins over %s (%s), which gives %d",
                factor.claim.setting->path, factor.claim.setting->text,
                spec->pairs.rotary_dim);
            pe_build_note(hf->model, PE_WARNING, dim.claim.setting,
                          "rotary_dim is %lld, but %s %s gives %d; the first is used",
                          (long long)width, factor.claim.setting->path,
                          factor.claim.setting->text, spec->pairs.rotary_dim);
        }
        spec->pairs.rotary_dim = (int32_t)width;
        if (width % 2 != 0 || (spec->head_dim != 0 && width > spec->head_dim))
            return pe_fail(hf->error, PE_E_ARGUMENT,
                           "rotary_dim is %lld, must be even and at most head_dim (%d)",
                           (long long)width, spec->head_dim);
        pe_draft_integer(draft, "rotary_dim", width, &dim.claim);
        return PE_OK;
    }
    if (factor.claim.setting == NULL) {
        const double partial = hf->arch->partial;
        if (partial != 0) {
            status = from_factor(hf, spec, partial, &factor.claim);
            if (status != PE_OK)
                return status;
            pe_build_note(hf->model,
                          (hf->arch->flags & PE_HF_THETA_IN_CODE) != 0 ? PE_INFO
                                                                       : PE_WARNING,
                          NULL,
                          "partial_rotary_factor is not stated, %g is the default of "
                          "model_type %s",
                          partial, hf->model_type);
        } else {
            spec->pairs.rotary_dim = spec->head_dim;
            factor.claim.reason = "not stated: the whole head turns";
        }
        factor.claim.source = PE_DEFAULTED;
    }
    if (spec->head_dim != 0)
        pe_draft_integer(draft, "rotary_dim", spec->pairs.rotary_dim, &factor.claim);
    return PE_OK;
}

pe_status pe_hf_rope(pe_hf *hf, const pe_hf_group *group, int32_t *rope)
{
    pe_rope_spec spec = {.struct_size = sizeof spec};
    pe_draft draft = {.model = hf->model};
    pe_claim claim;
    pe_status status = pe_hf_head_dim(hf, group, &spec.head_dim, &claim);
    if (status != PE_OK)
        return status;
    if (spec.head_dim % 2 != 0 || spec.head_dim > 4096)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "head_dim is %d, must be even and at most 4096", spec.head_dim);
    if (spec.head_dim != 0)
        pe_draft_integer(&draft, "head_dim", spec.head_dim, &claim);
    status = read_pairing(hf, &spec, &draft);
    if (status == PE_OK)
        status = pe_hf_rope_type(hf, group, &spec, &draft);
    if (status == PE_OK)
        status = read_window(hf, group, &spec, &draft);
    if (status == PE_OK)
        status = pe_hf_theta(hf, group, &spec, &draft);
    if (status == PE_OK)
        status = pe_hf_scaling(hf, group, &spec, &draft);
    if (status == PE_OK)
        status = pe_hf_axes(hf, &spec, &draft);
    if (status != PE_OK)
        return status;
    pe_hf_lint(hf, group, &spec);
    *rope = pe_build_rope(hf->model, &spec, &draft);
    return PE_OK;
}
