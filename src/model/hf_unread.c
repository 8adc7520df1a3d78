/* SPDX-License-Identifier: MIT
 *
 * hf_unread.c - keys that look like rope, stand beside the blocks, and are nobody's
 */
#include "model/hf.h"

#include <string.h>

void pe_hf_note_unread(pe_hf *hf)
{
    static const char *const known[] = {"rope_theta",
                                        "rope_base",
                                        "rope_pct",
                                        "rope_percent",
                                        "rope_interleave",
                                        "rope_local_base_freq",
                                        "rope_embedding_base",
                                        "rotary_dim",
                                        "rotary_pct",
                                        "rotary_percent",
                                        "rotary_base",
                                        "rotary_emb_base",
                                        "rotary_emb_fraction",
                                        "rotary_emb_interleaved",
                                        "rotary_embedding_base",
                                        "partial_rotary_factor",
                                        "qk_rope_head_dim",
                                        "use_hf_rope",
                                        "no_rope_layers",
                                        "no_rope_layer_interval",
                                        "global_rope_theta",
                                        "local_rope_theta",
                                        "mrope_section",
                                        "mrope_interleaved",
                                        "rope_ratio",
                                        "swa_rope_theta",
                                        "compress_rope_theta",
                                        "partial_rotary_factors",
                                        "use_rope_layers"};
    const size_t length = strlen(hf->prefix);
    for (int64_t i = 0; i < hf->settings->num; i++) {
        const pe_setting *setting = &hf->settings->entries[i].setting;
        const char *name = setting->path + length;
        if (strncmp(setting->path, hf->prefix, length) != 0 ||
            strpbrk(name, ".[") != NULL || setting->type == PE_SETTING_NULL ||
            (setting->type == PE_SETTING_BOOL && setting->integer == 0) ||
            (strstr(name, "rope") == NULL && strstr(name, "rotary") == NULL))
            continue;
        size_t k = 0;
        while (k < PE_COUNT(known) && strcmp(known[k], name) != 0)
            k++;
        if (k == PE_COUNT(known))
            pe_build_note(hf->model, PE_WARNING, setting,
                          "%.120s is not read, so it has no effect", setting->path);
    }
}
