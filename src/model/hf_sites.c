/* SPDX-License-Identifier: MIT
 *
 * hf_sites.c - sites that need no plan of layers: encoders beside decoders, all alike
 */
#include "model/hf.h"

#include "base/error.h"

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
