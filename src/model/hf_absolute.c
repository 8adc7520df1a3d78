/* SPDX-License-Identifier: MIT
 *
 * hf_absolute.c - learned tables and sinusoids: rows, offsets, orders
 *
 * config.json holds no table: the learned spec's weight stays NULL, and its rows and
 * width are fields. */
#include "model/hf.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

static int is_one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(*words, word) == 0)
            return 1;
    }
    return 0;
}

/* Position 0 stands in row pad_token_id + 1 (RoBERTa), so a table of 514 rows holds 512
 * tokens; OPT and BART add two rows to what they state. */
static pe_status read_offset(pe_hf *hf, pe_draft *draft, int64_t *offset,
                             int64_t *extra_rows)
{
    static const char *const pad[] = {"pad_token_id", NULL};
    pe_pick pick;
    memset(&pick, 0, sizeof pick);
    *offset = hf->arch->offset;
    *extra_rows = hf->arch->offset;
    pick.claim.source = PE_DERIVED;
    pick.claim.setting = pe_hf_get(hf, "model_type");
    pick.claim.reason = "model code of this model_type";
    if (hf->arch->offset < 0) {
        int64_t pad_id = 1;
        pe_status status = pe_hf_integer(hf, pad, 0, 1 << 30, &pad_id, &pick);
        if (status != PE_OK)
            return status;
        pick.claim.source = pick.claim.setting == NULL ? PE_DEFAULTED : PE_DERIVED;
        pick.claim.reason = pick.claim.setting == NULL
                                ? "pad_token_id is not stated, 1 is the class default"
                                : "pad_token_id + 1";
        *offset = pad_id + 1;
        *extra_rows = 0;
    }
    pe_draft_integer(draft, "position_offset", *offset, &pick.claim);
    return PE_OK;
}

/* Patches of an image, and the class token (and DeiT's second one) before them. */
static pe_status read_patches(pe_hf *hf, int64_t *rows, pe_claim *claim)
{
    static const char *const image[] = {"image_size", NULL};
    static const char *const patch[] = {"patch_size", NULL};
    int64_t image_size = 0, patch_size = 0;
    pe_pick pick;
    pe_status status = pe_hf_integer(hf, patch, 1, 1 << 16, &patch_size, &pick);
    if (status == PE_OK)
        status = pe_hf_integer(hf, image, 1, 1 << 16, &image_size, &pick);
    if (status != PE_OK)
        return status;
    if (image_size == 0 || patch_size == 0)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "image_size or patch_size is not stated: rows are unknown");
    const int64_t side = image_size / patch_size;
    *rows = side * side + (strcmp(hf->model_type, "deit") == 0 ? 2 : 1);
    *claim = pick.claim;
    claim->source = PE_DERIVED;
    claim->reason = "(image_size / patch_size)^2 and the tokens before the patches";
    return PE_OK;
}

/* The rows that are there beat those that the settings imply. */
static void use_table(pe_hf *hf, const char *name, int64_t table_rows, int64_t *rows,
                      pe_claim *claim)
{
    const int differs = *rows != 0 && *rows != table_rows;
    if (differs)
        pe_build_note(hf->model, PE_WARNING, claim->setting,
                      "the settings imply %lld rows of positions, but %.100s has %lld; "
                      "the table is used",
                      (long long)*rows, name, (long long)table_rows);
    claim->source = differs ? PE_CONFLICTING : PE_DERIVED;
    claim->reason = pe_arena_format(&hf->model->arena, "rows of the weight %s", name);
    *rows = table_rows;
}

pe_status pe_hf_learned(pe_hf *hf)
{
    static const char *const vision[] = {"vit", "deit", NULL};
    static const char *const target[] = {"max_target_positions", NULL};
    pe_draft draft = {.model = hf->model};
    int64_t offset = 0, extra = 0, rows = 0;
    pe_claim claim = {.source = PE_DERIVED,
                      .reason =
                          "max_position_embeddings and the rows before position 0"};
    pe_status status = read_offset(hf, &draft, &offset, &extra);
    if (status != PE_OK)
        return status;
    if (is_one_of(hf->model_type, vision)) {
        status = read_patches(hf, &rows, &claim);
    } else if (strcmp(hf->model_type, "whisper") == 0) {
        pe_pick pick;
        status = pe_hf_integer(hf, target, 1, 1 << 30, &rows, &pick);
        claim = pick.claim;
    } else {
        rows = hf->max_positions == 0 ? 0 : hf->max_positions + extra;
    }
    if (status != PE_OK)
        return status;
    int64_t table_rows = 0, table_dim = 0;
    const char *table = NULL;
    const int32_t has_table = pe_hf_learned_table(hf, &table_rows, &table_dim, &table);
    if (has_table)
        use_table(hf, table, table_rows, &rows, &claim);
    if (rows != 0 && offset >= rows)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "position_offset is %lld, must be below the rows (%lld)",
                       (long long)offset, (long long)rows);
    if (rows != 0)
        pe_draft_integer(&draft, "rows", rows, &claim);
    const int64_t model_dim = has_table ? table_dim : hf->hidden_size;
    if (model_dim != 0) {
        claim = (pe_claim){.source = PE_DERIVED,
                           .reason = has_table ? "the table's width" : "hidden_size"};
        pe_draft_integer(&draft, "model_dim", model_dim, &claim);
    }
    if (hf->num_heads != 0 && hf->hidden_size % hf->num_heads != 0)
        pe_build_note(hf->model, PE_WARNING, NULL,
                      "hidden_size is %lld, no multiple of num_attention_heads (%lld)",
                      (long long)hf->hidden_size, (long long)hf->num_heads);
    hf->model->learned =
        (pe_learned_spec){.struct_size = sizeof(pe_learned_spec),
                          .position_offset = (int32_t)offset,
                          .weight = has_table ? &hf->model->learned_weight : NULL};
    pe_build_fields(hf->model, "learned.", &draft);
    if (hf->model->sinusoidal.struct_size == 0) {
        hf->model->info.trained_len = rows == 0 ? 0 : rows - offset;
        hf->model->info.extended_len = hf->model->info.trained_len;
        return pe_hf_plain_layers(hf, PE_SITE_SELF, -1);
    }
    return PE_OK;
}

typedef struct recipe {
    const char *model_type;
    pe_sinusoid_order order;
    const char *order_name;
    double shift; /* downscale_freq_shift */
    int32_t pads; /* the padding position encodes as zeroes */
    int32_t num_axes;
} recipe;

static const recipe recipes[] = {
    {"marian", PE_SIN_COS_HALVES, "sin-cos-halves", 0, 0, 1},
    {"pegasus", PE_SIN_COS_HALVES, "sin-cos-halves", 0, 0, 1},
    {"whisper", PE_SIN_COS_HALVES, "sin-cos-halves", 1, 0, 1},
    {"m2m_100", PE_SIN_COS_HALVES, "sin-cos-halves", 1, 1, 1},
    {"nllb-moe", PE_SIN_COS_HALVES, "sin-cos-halves", 1, 1, 1},
    {"xglm", PE_SIN_COS_HALVES, "sin-cos-halves", 1, 1, 1},
    {"distilbert", PE_SIN_COS_INTERLEAVED, "sin-cos-interleaved", 0, 0, 1},
    {"detr", PE_SIN_COS_INTERLEAVED, "sin-cos-interleaved", 0, 0, 2},
};

static pe_status read_scale(pe_hf *hf, pe_sinusoidal_spec *spec, pe_draft *draft)
{
    static const char *const scales[] = {"scale_embedding", NULL};
    pe_pick pick;
    int32_t is_scaled = 0;
    pe_status status = pe_hf_bool(hf, scales, 0, &is_scaled, &pick);
    if (status != PE_OK || !is_scaled)
        return status;
    spec->embed_scale = sqrt((double)hf->hidden_size);
    pick.claim.source = PE_DERIVED;
    pick.claim.reason = "sqrt(d_model)";
    pe_draft_number(draft, "embed_scale", spec->embed_scale, &pick.claim);
    return PE_OK;
}

static pe_status read_padding(pe_hf *hf, pe_sinusoidal_spec *spec, pe_draft *draft)
{
    static const char *const pad[] = {"pad_token_id", NULL};
    pe_pick pick;
    int64_t id = 1;
    pe_status status = pe_hf_integer(hf, pad, 0, 1 << 30, &id, &pick);
    if (status != PE_OK)
        return status;
    spec->has_padding = 1;
    spec->padding_position = id;
    if (pick.claim.setting == NULL)
        pick.claim.source = PE_DEFAULTED;
    pick.claim.reason = "the padding position encodes as zeroes";
    pe_draft_integer(draft, "padding_position", id, &pick.claim);
    pe_build_note(hf->model, PE_INFO, pick.claim.setting,
                  "the first token stands at position %lld (pad_token_id + 1)",
                  (long long)(id + 1));
    return PE_OK;
}

pe_status pe_hf_sinusoidal(pe_hf *hf)
{
    static const char *const source[] = {"max_source_positions", NULL};
    const recipe *r = recipes;
    while (r < recipes + PE_COUNT(recipes) &&
           strcmp(r->model_type, hf->model_type) != 0)
        r++;
    if (r == recipes + PE_COUNT(recipes))
        return pe_fail(hf->error, PE_E_UNSUPPORTED,
                       "model_type %.60s: its sinusoids are not known", hf->model_type);
    if (hf->hidden_size == 0)
        return pe_fail(hf->error, PE_E_ARGUMENT, "d_model is not stated");
    pe_draft draft = {.model = hf->model};
    pe_sinusoidal_spec *spec = &hf->model->sinusoidal;
    pe_claim claim = {.setting = pe_hf_get(hf, "model_type"),
                      .source = PE_DERIVED,
                      .reason = "model code of this model_type"};
    *spec = (pe_sinusoidal_spec){.struct_size = sizeof *spec,
                                 .order = r->order,
                                 .model_dim = (int32_t)hf->hidden_size,
                                 .num_axes = r->num_axes,
                                 .downscale_freq_shift = r->shift};
    pe_draft_text(&draft, "order", r->order_name, &claim);
    pe_draft_integer(&draft, "num_axes", r->num_axes, &claim);
    pe_draft_number(&draft, "downscale_freq_shift", r->shift, &claim);
    claim = (pe_claim){.source = PE_DERIVED, .reason = "the model's width"};
    pe_draft_integer(&draft, "model_dim", hf->hidden_size, &claim);
    pe_status status = read_scale(hf, spec, &draft);
    if (status == PE_OK && r->pads)
        status = read_padding(hf, spec, &draft);
    if (status != PE_OK)
        return status;
    pe_build_fields(hf->model, "sinusoidal.", &draft);
    int64_t length = hf->max_positions;
    if (strcmp(hf->model_type, "whisper") == 0) {
        pe_pick pick;
        status = pe_hf_integer(hf, source, 1, 1 << 30, &length, &pick);
        if (status == PE_OK)
            status = pe_hf_learned(hf);
        if (status != PE_OK)
            return status;
        pe_build_note(hf->model, PE_INFO, NULL,
                      "sinusoids are the encoder's; the decoder has a learned table");
    }
    if (r->num_axes == 2)
        pe_build_note(hf->model, PE_INFO, NULL,
                      "positions are normalised rows and columns of the image times "
                      "2 pi, not counts");
    hf->model->info.trained_len = length;
    hf->model->info.extended_len = length;
    return pe_hf_plain_layers(hf,
                              r->pads || r->num_axes == 2 ||
                                      strcmp(hf->model_type, "whisper") == 0
                                  ? PE_SITE_ENCODER
                                  : PE_SITE_SELF,
                              -1);
}
