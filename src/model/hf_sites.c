/* SPDX-License-Identifier: MIT
 *
 * hf_sites.c - sites that need no plan of layers: encoders beside decoders, all alike
 */
#include "model/hf.h"

#include "base/error.h"

#include <string.h>

/* Moonshine's encoder turns as its decoder does, when its heads are as wide. */
pe_status pe_hf_encoder_layers(pe_hf *hf, int32_t rope)
{
    static const char *const layers[] = {"encoder_num_hidden_layers", NULL};
    static const char *const heads[] = {"encoder_num_attention_heads", NULL};
    int64_t num_layers = 0, num_heads = hf->num_heads;
    pe_pick pick;
    pe_status status = pe_hf_integer(hf, layers, 1, 4096, &num_layers, &pick);
    if (status == PE_OK)
        status = pe_hf_integer(hf, heads, 1, 1 << 16, &num_heads, &pick);
    if (status != PE_OK)
        return status;
    if (num_heads != hf->num_heads)
        return pe_fail(hf->error, PE_E_UNSUPPORTED,
                       "%s is %lld, but the decoder has %lld heads: two widths of head "
                       "are not read",
                       pick.claim.setting->path, (long long)num_heads,
                       (long long)hf->num_heads);
    for (int32_t layer = 0; layer < num_layers; layer++)
        pe_build_site(hf->model, layer, PE_SITE_ENCODER, rope, -1);
    return PE_OK;
}

/* DeepSeek's sparse attention picks keys with heads of their own, [rope | nope], which
 * turn as fast as the others do.  V3.2 splits them where its main heads interleave. */
pe_status pe_hf_indexer(pe_hf *hf, int32_t rope, int32_t *indexer)
{
    static const char *const width[] = {"index_head_dim", NULL};
    static const char *const interleave[] = {"indexer_rope_interleave", NULL};
    int64_t head_dim = 0;
    int32_t is_interleaved = strcmp(hf->model_type, "glm_moe_dsa") == 0;
    pe_pick dim, pick;
    *indexer = -1;
    pe_status status = pe_hf_integer(hf, width, 2, 4096, &head_dim, &dim);
    if (status != PE_OK || head_dim == 0 || (hf->arch->flags & PE_HF_COMPRESS) != 0 ||
        rope >= hf->model->info.num_ropes)
        return status;
    status = pe_hf_bool(hf, interleave, is_interleaved, &is_interleaved, &pick);
    if (status != PE_OK)
        return status;
    pe_rope_spec spec = hf->model->ropes[rope];
    if (head_dim < spec.pairs.rotary_dim || head_dim % 2 != 0)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "%s is %lld, must be even and at least rotary_dim (%d)",
                       dim.claim.setting->path, (long long)head_dim,
                       spec.pairs.rotary_dim);
    if (pick.claim.setting == NULL) {
        pick.claim.setting = pe_hf_get(hf, "model_type");
        pick.claim.source = PE_DERIVED;
        pick.claim.reason = "model code of this model_type's indexer";
    }
    const pe_claim same = {.source = PE_DERIVED,
                           .reason = "the indexer turns as fast as the main heads"};
    const pe_claim first = {.source = PE_DERIVED,
                            .reason = "an indexer's query is [rope | nope]"};
    pe_draft draft = {.model = hf->model};
    spec.head_dim = (int32_t)head_dim;
    spec.pairs.rotary_start = 0;
    spec.pairs.pairing = is_interleaved ? PE_INTERLEAVED : PE_HALF_SPLIT;
    spec.pairs.out_pairing = 0;
    spec.freqs.mscale_rule = PE_MSCALE_HF; /* its softmax has a scale of its own */
    pe_draft_integer(&draft, "head_dim", head_dim, &dim.claim);
    pe_draft_text(&draft, "pairing", is_interleaved ? "interleaved" : "half-split",
                  &pick.claim);
    pe_draft_integer(&draft, "rotary_dim", spec.pairs.rotary_dim, &same);
    pe_draft_integer(&draft, "rotary_start", 0, &first);
    pe_draft_text(&draft, "rope_type", pe_hf_type_name(spec.freqs.rope_type), &same);
    pe_draft_number(&draft, "rope_theta", spec.freqs.rope_theta, &same);
    *indexer = pe_build_rope(hf->model, &spec, &draft);
    return PE_OK;
}

void pe_hf_note_sites(const pe_hf *hf)
{
    if ((hf->arch->flags & PE_HF_COMPRESS) != 0)
        pe_build_note(hf->model, PE_INFO, NULL,
                      "values share the turned keys, so the output is turned back by "
                      "the query's position; the indexer's own head is not read");
}

pe_status pe_hf_plain_layers(pe_hf *hf, pe_site_role role, int32_t bias)
{
    const int64_t num = hf->num_layers == 0 ? 1 : hf->num_layers;
    for (int64_t layer = 0; layer < num; layer++)
        pe_build_site(hf->model, (int32_t)layer, role, -1, bias);
    return PE_OK;
}
