/* SPDX-License-Identifier: MIT
 *
 * hf_axes.c - which axis each pair follows, where there are several
 */
#include "model/hf.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static pe_status find_section(pe_hf *hf, const pe_entry **section)
{
    *section = NULL;
    for (size_t i = 0; i < PE_COUNT(hf->dicts); i++) {
        char name[128];
        if (hf->dicts[i] == NULL)
            continue;
        snprintf(name, sizeof name, "%s.mrope_section", hf->dicts[i]);
        if (*section == NULL)
            *section = pe_hf_entry(hf, name);
    }
    if (*section == NULL)
        *section = pe_hf_entry(hf, "mrope_section");
    return PE_OK;
}

/* A tower that turns by row and column has no settings for it (model code). */
static pe_status vision_axes(pe_hf *hf, pe_rope_spec *spec, pe_draft *draft)
{
    const int32_t num_pairs = spec->pairs.rotary_dim / 2;
    const int is_pixtral = strcmp(hf->model_type, "pixtral") == 0;
    const pe_claim claim = {.setting = pe_hf_get(hf, "model_type"),
                            .source = PE_DERIVED,
                            .reason = "model code: half of the pairs follow the row, "
                                      "half the column"};
    if (num_pairs == 0 || num_pairs % 2 != 0)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "head_dim is %d, must be a multiple of 4 to turn by two axes",
                       spec->head_dim);
    spec->axes.map = PE_AXIS_SPLIT;
    spec->axes.section[0] = spec->axes.section[1] = num_pairs / 2;
    pe_draft_text(draft, "axis_map", "split", &claim);
    if (!is_pixtral) {
        pe_build_note(hf->model, PE_INFO, NULL,
                      "positions are 2 pi times patch centres in [-1, 1]; class and "
                      "register tokens do not turn");
        return PE_OK;
    }
    double *inv_freq =
        pe_arena_alloc(&hf->model->arena, (size_t)num_pairs * sizeof *inv_freq);
    if (inv_freq == NULL)
        return PE_E_NO_MEMORY;
    for (int32_t i = 0; i < num_pairs; i++) {
        const int32_t k = i < num_pairs / 2 ? 2 * i : 2 * (i - num_pairs / 2) + 1;
        inv_freq[i] = pow(spec->freqs.rope_theta, -(double)k / num_pairs);
    }
    spec->freqs.rope_type = PE_ROPE_CUSTOM;
    spec->freqs.inv_freq = inv_freq;
    pe_draft_text(draft, "inv_freq", "even ones for rows, odd ones for columns",
                  &claim);
    return PE_OK;
}

/* Ernie's class has sections of its own. */
static pe_status ernie_default(pe_hf *hf, pe_rope_spec *spec, pe_draft *draft)
{
    static const int32_t sections[3] = {22, 22, 20};
    const pe_claim claim = {
        .source = PE_DEFAULTED,
        .reason = "not stated: default of this model_type's configuration class"};
    if (spec->pairs.rotary_dim != 128)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "mrope_section is not stated, and its default is for rotary_dim "
                       "128, not %d",
                       spec->pairs.rotary_dim);
    spec->axes.map = PE_AXIS_ERNIE;
    memcpy(spec->axes.section, sections, sizeof sections);
    pe_draft_text(draft, "axis_map", "ernie", &claim);
    pe_draft_text(draft, "mrope_section", "[22, 22, 20]", &claim);
    pe_build_note(hf->model, PE_WARNING, NULL,
                  "mrope_section is not stated, [22, 22, 20] is the default of "
                  "model_type %s",
                  hf->model_type);
    return PE_OK;
}

pe_status pe_hf_axes(pe_hf *hf, pe_rope_spec *spec, pe_draft *draft)
{
    if ((hf->arch->flags & PE_HF_VISION) != 0)
        return vision_axes(hf, spec, draft);
    static const char *const interleaved[] = {"*mrope_interleaved", "mrope_interleaved",
                                              NULL};
    const pe_entry *entry = NULL;
    pe_pick pick;
    int32_t is_interleaved = 0;
    pe_status status = find_section(hf, &entry);
    if (status == PE_OK)
        status = pe_hf_bool(hf, interleaved, 0, &is_interleaved, &pick);
    if (status == PE_OK && entry == NULL && (hf->arch->flags & PE_HF_MROPE_ERNIE) != 0)
        return ernie_default(hf, spec, draft);
    if (status != PE_OK || entry == NULL)
        return status;
    const pe_setting *section = &entry->setting;
    const int32_t flags = hf->arch->flags;
    if (*hf->arch->model_type != '\0' &&
        (flags & (PE_HF_MROPE | PE_HF_MROPE_INTERLEAVED | PE_HF_MROPE_ERNIE)) == 0) {
        pe_build_note(hf->model, PE_WARNING, section,
                      "mrope_section is not read by model_type %s, which turns along "
                      "one axis",
                      hf->model_type);
        return PE_OK;
    }
    if (section->num_numbers < 2 || section->num_numbers > 4)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "%s is %.60s, must be an array of 2 to 4 counts", section->path,
                       section->text);
    double sum = 0;
    for (int64_t i = 0; i < section->num_numbers; i++) {
        const double count = section->numbers[i];
        if (!(count >= 0 && count <= 2048) || count != floor(count))
            return pe_fail(hf->error, PE_E_ARGUMENT,
                           "%s is %.60s, must be an array of counts in 0..2048",
                           section->path, section->text);
        spec->axes.section[i] = (int32_t)count;
        sum += count;
    }
    if (spec->head_dim != 0 && 2 * sum != spec->pairs.rotary_dim)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "%s sums to %g, must be rotary_dim / 2 (%d)", section->path, sum,
                       spec->pairs.rotary_dim / 2);
    const pe_claim claim = {.setting = section, .source = PE_STATED};
    spec->axes.map = is_interleaved || (flags & PE_HF_MROPE_INTERLEAVED) != 0
                         ? PE_AXIS_INTERLEAVED
                         : PE_AXIS_CHUNKED;
    if ((flags & PE_HF_MROPE_ERNIE) != 0)
        spec->axes.map = PE_AXIS_ERNIE;
    if (pick.claim.setting == NULL) {
        pick.claim.source = PE_DERIVED;
        pick.claim.setting = pe_hf_get(hf, "model_type");
        pick.claim.reason = "model code of this model_type";
        if (*hf->arch->model_type == '\0') {
            pick.claim.source = PE_DEFAULTED;
            pick.claim.reason = "model_type is not known: sections in runs";
            pe_build_note(hf->model, PE_WARNING, section,
                          "axis_map is a guess (chunked): model_type is not known");
        }
    }
    pe_draft_text(draft, "axis_map",
                  spec->axes.map == PE_AXIS_CHUNKED ? "chunked"
                  : spec->axes.map == PE_AXIS_ERNIE ? "ernie"
                                                    : "interleaved",
                  &pick.claim);
    pe_draft_text(draft, "mrope_section", section->text, &claim);
    return PE_OK;
}
