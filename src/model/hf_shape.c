/* SPDX-License-Identifier: MIT
 *
 * hf_shape.c - layers, heads, widths and lengths, under their many names
 */
#include "model/hf.h"

#include "base/error.h"

#include <string.h>

enum { WIDTH_MAX = 1 << 24, LAYERS_MAX = 4096 };

static const pe_claim absent = {.source = PE_DEFAULTED};

/* One number of the model itself, with its field. */
static pe_status read_one(pe_hf *hf, pe_draft *draft, const char *field,
                          const char *const *names, int64_t max, int64_t *out)
{
    pe_pick pick;
    pe_status status = pe_hf_integer(hf, names, 1, max, out, &pick);
    if (status == PE_OK && pick.claim.setting != NULL)
        pe_draft_integer(draft, field, *out, &pick.claim);
    return status;
}

static pe_status read_kv_heads(pe_hf *hf, pe_draft *draft)
{
    static const char *const names[] = {"num_key_value_heads",
                                        "n_kv_heads",
                                        "num_kv_heads",
                                        "n_head_kv",
                                        "num_attention_groups",
                                        "multi_query_group_num",
                                        "decoder_num_key_value_heads",
                                        NULL};
    static const char *const multi_query[] = {"multi_query", NULL};
    static const char *const new_decoder[] = {"new_decoder_architecture", NULL};
    pe_pick pick, other;
    int32_t is_multi_query = 0, is_new_decoder = 0;
    pe_status status = pe_hf_bool(hf, multi_query, 0, &is_multi_query, &pick);
    if (status == PE_OK)
        status = pe_hf_bool(hf, new_decoder, 0, &is_new_decoder, &other);
    if (status != PE_OK)
        return status;
    if (is_multi_query && !is_new_decoder) { /* num_kv_heads is then inert */
        hf->num_kv_heads = 1;
        pick.claim.source = PE_DERIVED;
        pick.claim.reason = "multi_query shares one key head";
        pe_draft_integer(draft, "num_kv_heads", 1, &pick.claim);
        return PE_OK;
    }
    status = read_one(hf, draft, "num_kv_heads", names, 1 << 16, &hf->num_kv_heads);
    if (status != PE_OK || hf->num_kv_heads != 0 || hf->num_heads == 0)
        return status;
    hf->num_kv_heads = hf->num_heads;
    pe_claim claim = absent;
    claim.reason = "not stated: as many as query heads";
    pe_draft_integer(draft, "num_kv_heads", hf->num_heads, &claim);
    return PE_OK;
}

/* The first of the lists that states something; they do not speak of one thing, so
 * they cannot conflict. */
static pe_status read_max_positions(pe_hf *hf, pe_draft *draft)
{
    static const char *const lists[][3] = {
        {"max_position_embeddings", "n_positions", NULL},
        {"max_seq_len", "max_sequence_length", NULL},
        {"n_ctx", "seq_length", NULL},
        {"max_target_positions", NULL, NULL},
    };
    for (size_t i = 0; i < PE_COUNT(lists) && hf->max_positions == 0; i++) {
        pe_status status = read_one(hf, draft, "max_position_embeddings", lists[i],
                                    INT64_C(1) << 40, &hf->max_positions);
        if (status != PE_OK)
            return status;
    }
    if (hf->max_positions == 0 && hf->arch->context != 0) {
        hf->max_positions = hf->arch->context;
        pe_claim claim = absent;
        claim.reason = "not stated: default of this model_type's configuration class";
        pe_draft_integer(draft, "max_position_embeddings", hf->max_positions, &claim);
        pe_build_note(hf->model, PE_WARNING, NULL,
                      "max_position_embeddings is not stated, %lld is the default of "
                      "model_type %s",
                      (long long)hf->max_positions, hf->model_type);
    } else if (hf->max_positions == 0 && (hf->arch->flags & PE_HF_VISION) == 0) {
        pe_build_note(hf->model, PE_WARNING, NULL,
                      "max_position_embeddings is not stated: the context is unknown");
    }
    return PE_OK;
}

pe_status pe_hf_read_shape(pe_hf *hf)
{
    static const char *const layers[] = {"num_hidden_layers",
                                         "n_layer",
                                         "n_layers",
                                         "num_layers",
                                         "encoder_layers",
                                         "decoder_num_hidden_layers",
                                         NULL};
    static const char *const hidden[] = {"hidden_size", "n_embd", "d_model", "dim",
                                         NULL};
    static const char *const heads[] = {"num_attention_heads",
                                        "n_head",
                                        "n_heads",
                                        "num_heads",
                                        "encoder_attention_heads",
                                        "decoder_num_attention_heads",
                                        NULL};
    pe_draft draft = {.model = hf->model};
    pe_status status =
        read_one(hf, &draft, "num_layers", layers, LAYERS_MAX, &hf->num_layers);
    if (status == PE_OK)
        status =
            read_one(hf, &draft, "hidden_size", hidden, WIDTH_MAX, &hf->hidden_size);
    if (status == PE_OK)
        status = read_one(hf, &draft, "num_heads", heads, 1 << 16, &hf->num_heads);
    if (status == PE_OK)
        status = read_kv_heads(hf, &draft);
    if (status == PE_OK)
        status = read_max_positions(hf, &draft);
    if (status != PE_OK)
        return status;
    pe_build_fields(hf->model, "", &draft);
    pe_model_info *info = &hf->model->info;
    info->num_layers = (int32_t)hf->num_layers;
    info->num_heads = (int32_t)hf->num_heads;
    info->num_kv_heads = (int32_t)hf->num_kv_heads;
    if (hf->num_layers == 0)
        pe_build_note(hf->model, PE_WARNING, NULL,
                      "num_hidden_layers is not stated: one site stands for all");
    return PE_OK;
}

static pe_status derive(pe_hf *hf, int32_t *head_dim, pe_claim *claim)
{
    if (hf->hidden_size == 0 || hf->num_heads == 0) {
        *head_dim = 0;
        claim->source = PE_DEFAULTED;
        claim->reason = "unknown: hidden_size and num_attention_heads are not stated";
        pe_build_note(hf->model, PE_WARNING, NULL,
                      "head_dim is unknown: neither it nor hidden_size and "
                      "num_attention_heads are stated");
        return PE_OK;
    }
    if (hf->hidden_size % hf->num_heads != 0)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "hidden_size is %lld, must be a multiple of "
                       "num_attention_heads (%lld) when head_dim is not stated",
                       (long long)hf->hidden_size, (long long)hf->num_heads);
    *head_dim = (int32_t)(hf->hidden_size / hf->num_heads);
    if (*head_dim % 2 != 0)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "head_dim is %d (hidden_size %lld / num_attention_heads %lld), "
                       "must be even",
                       *head_dim, (long long)hf->hidden_size, (long long)hf->num_heads);
    claim->source = PE_DERIVED;
    claim->reason = pe_arena_format(
        &hf->model->arena, "hidden_size %lld / num_attention_heads %lld",
        (long long)hf->hidden_size, (long long)hf->num_heads);
    return PE_OK;
}

pe_status pe_hf_head_dim(pe_hf *hf, const pe_hf_group *group, int32_t *head_dim,
                         pe_claim *claim)
{
    static const char *const nope[] = {"qk_nope_head_dim", NULL};
    static const char *const rope[] = {"qk_rope_head_dim", NULL};
    static const char *const global[] = {"global_head_dim", NULL};
    static const char *const swa[] = {"swa_head_dim", NULL};
    static const char *const names[] = {"head_dim", "kv_channels", "d_kv", NULL};
    int64_t nope_dim = 0, rope_dim = 0, dim = 0;
    pe_pick pick;
    memset(claim, 0, sizeof *claim);
    pe_status status = pe_hf_integer(hf, nope, 0, WIDTH_MAX, &nope_dim, &pick);
    if (status == PE_OK)
        status = pe_hf_integer(hf, rope, 2, WIDTH_MAX, &rope_dim, &pick);
    if (status != PE_OK)
        return status;
    if (nope_dim > 0 && rope_dim > 0) {
        *head_dim = (int32_t)(nope_dim + rope_dim);
        *claim = pick.claim;
        claim->source = PE_DERIVED;
        claim->reason = "qk_nope_head_dim + qk_rope_head_dim: a query is [nope | rope]";
        return PE_OK;
    }
    if (group->layer_type != NULL && group->is_sliding)
        status = pe_hf_integer(hf, swa, 2, WIDTH_MAX, &dim, &pick);
    if (status == PE_OK && group->layer_type != NULL && !group->is_sliding)
        status = pe_hf_integer(hf, global, 2, WIDTH_MAX, &dim, &pick);
    if (status == PE_OK && dim == 0)
        status = pe_hf_integer(hf, names, 1, WIDTH_MAX, &dim, &pick);
    if (status != PE_OK)
        return status;
    if (dim != 0) {
        *head_dim = (int32_t)dim;
        *claim = pick.claim;
        return PE_OK;
    }
    if (hf->arch->head_dim == 0)
        return derive(hf, head_dim, claim);
    *head_dim = hf->arch->head_dim;
    claim->source = PE_DEFAULTED;
    claim->reason = "not stated: default of this model_type's configuration class";
    pe_build_note(hf->model, PE_WARNING, NULL,
                  "head_dim is not stated, %d is the default of model_type %s",
                  *head_dim, hf->model_type);
    return PE_OK;
}
