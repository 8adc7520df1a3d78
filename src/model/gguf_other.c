/* SPDX-License-Identifier: MIT
 *
 * gguf_other.c - learned tables, ALiBi, T5 buckets, and query temperature
 */
#include "model/gguf_dialect.h"

#include "base/error.h"

#include <string.h>

/* The table itself, as a tensor, where its dtype is one of ours. */
static void attach_table(pe_gguf *g, const pe_weight *weight)
{
    pe_model *model = g->model;
    if (weight->dtype == 0) {
        pe_build_note(model, PE_INFO, NULL,
                      "position_embd.weight is %s%s: its rows are not read",
                      weight->dtype_name, g->checkpoint->swapped ? ", big endian" : "");
        return;
    }
    pe_tensor *table = &model->learned_weight;
    memset(table, 0, sizeof *table);
    table->data = (void *)(uintptr_t)weight->data;
    table->batch = table->num_heads = 1;
    table->seq_len = weight->shape[0];
    table->dim = weight->shape[1];
    table->seq_stride = table->head_stride = table->dim;
    table->batch_stride = table->dim * table->seq_len;
    table->dtype = weight->dtype;
    model->learned.weight = table;
}

pe_status pe_gguf_learned(pe_gguf *g)
{
    pe_draft draft = {.model = g->model};
    const pe_weight_entry *entry =
        pe_weights_find(&g->checkpoint->weights, "position_embd.weight");
    g->model->info.method = "learned";
    g->model->learned.struct_size = sizeof g->model->learned;
    pe_claim claim = {.source = PE_DERIVED,
                      .reason = "the converter leaves out rows before position 0"};
    pe_draft_integer(&draft, "position_offset", 0, &claim);
    if (entry != NULL) {
        const pe_weight *weight = &entry->weight;
        if (weight->rank != 2 || weight->shape[0] < 1 || weight->shape[1] < 1)
            return pe_fail(g->error, PE_E_ARGUMENT,
                           "position_embd.weight has %d axes, must have rows and "
                           "columns",
                           weight->rank);
        claim = (pe_claim){.source = PE_STATED, .reason = "position_embd.weight"};
        pe_draft_integer(&draft, "rows", weight->shape[0], &claim);
        pe_draft_integer(&draft, "model_dim", weight->shape[1], &claim);
        if (g->context != 0 && weight->shape[0] < g->context)
            pe_build_note(g->model, PE_WARNING, NULL,
                          "context_length is %lld, but position_embd.weight has %lld "
                          "rows",
                          (long long)g->context, (long long)weight->shape[0]);
        g->model->info.trained_len = g->model->info.extended_len = weight->shape[0];
        attach_table(g, weight);
    } else {
        claim = (pe_claim){.source = PE_DERIVED, .reason = "context_length"};
        if (g->context != 0)
            pe_draft_integer(&draft, "rows", g->context, &claim);
        claim.reason = "embedding_length";
        if (g->width != 0)
            pe_draft_integer(&draft, "model_dim", g->width, &claim);
        pe_build_note(g->model, PE_WARNING, NULL,
                      "position_embd.weight is not in the file");
    }
    pe_build_fields(g->model, "learned.", &draft);
    return pe_gguf_plain_layers(g, -1);
}

static pe_status need_heads(const pe_gguf *g)
{
    if (g->num_heads != 0)
        return PE_OK;
    return pe_fail(g->error, PE_E_ARGUMENT,
                   "%s.attention.head_count is not stated, the bias needs it", g->name);
}

static int32_t add_bias(pe_gguf *g, pe_bias_spec *spec, pe_draft *draft,
                        const char *form)
{
    const pe_claim claim =
        pe_gguf_claim(g, PE_DERIVED, "llama.cpp: in the code of this architecture");
    const pe_claim heads = {.source = PE_DERIVED, .reason = "attention.head_count"};
    spec->num_heads = (int32_t)g->num_heads;
    pe_draft_text(draft, "form", form, &claim);
    pe_draft_integer(draft, "num_heads", g->num_heads, &heads);
    return pe_build_bias(g->model, spec, draft);
}

pe_status pe_gguf_alibi(pe_gguf *g, double max_bias, const pe_claim *claim)
{
    const int both = (g->arch->flags & PE_GGUF_BIDIRECTIONAL) != 0;
    pe_bias_spec spec = {.struct_size = sizeof spec,
                         .type = PE_BIAS_ALIBI,
                         .form = both ? PE_BIAS_BIDIRECTIONAL : PE_BIAS_CAUSAL,
                         .max_bias = max_bias};
    pe_draft draft = {.model = g->model};
    pe_status status = need_heads(g);
    if (status != PE_OK)
        return status;
    g->model->info.method = "alibi";
    pe_draft_number(&draft, "max_bias", max_bias, claim);
    return pe_gguf_plain_layers(
        g, add_bias(g, &spec, &draft, both ? "bidirectional" : "causal"));
}

/* Bias tables of one side lie in its first layer: {num_buckets, num_heads}. */
static void attach_buckets(pe_gguf *g, const char *name, pe_bias_spec *spec)
{
    const pe_weight_entry *entry = pe_weights_find(&g->checkpoint->weights, name);
    if (entry == NULL || entry->weight.dtype != PE_F32 || entry->weight.rank != 2 ||
        entry->weight.shape[0] != spec->num_buckets ||
        entry->weight.shape[1] != g->num_heads ||
        (uintptr_t)entry->weight.data % sizeof(float) != 0) {
        pe_build_note(g->model, PE_INFO, NULL,
                      "%s is not an F32 table of %d buckets by %lld heads in this file",
                      name, spec->num_buckets, (long long)g->num_heads);
        return;
    }
    spec->table = entry->weight.data;
}

pe_status pe_gguf_t5(pe_gguf *g)
{
    const pe_setting *setting = NULL;
    int64_t num_buckets = 32;
    const int is_encoder = (g->arch->flags & PE_GGUF_BIDIRECTIONAL) != 0;
    pe_status status = need_heads(g);
    if (status == PE_OK)
        status = pe_gguf_integer(g, "attention.relative_buckets_count", 2, 1 << 16,
                                 &num_buckets, &setting);
    if (status != PE_OK)
        return status;
    g->model->info.method = "t5";
    pe_build_note(
        g->model, PE_INFO, NULL,
        "GGUF cannot say the largest distance of the buckets; llama.cpp takes "
        "128");
    for (int side = 0; side < (is_encoder ? 1 : 2); side++) {
        pe_bias_spec spec = {.struct_size = sizeof spec,
                             .type = PE_BIAS_T5,
                             .form = side ? PE_BIAS_CAUSAL : PE_BIAS_BIDIRECTIONAL,
                             .num_buckets = (int32_t)num_buckets,
                             .max_distance = 128};
        pe_draft draft = {.model = g->model};
        pe_claim claim = pe_gguf_stated(setting);
        if (setting == NULL)
            claim = (pe_claim){.source = PE_DEFAULTED, .reason = "not stated: 32"};
        pe_draft_integer(&draft, "num_buckets", num_buckets, &claim);
        claim = (pe_claim){.source = PE_DEFAULTED, .reason = "not in GGUF: 128"};
        pe_draft_integer(&draft, "max_distance", 128, &claim);
        attach_buckets(
            g, side ? "dec.blk.0.attn_rel_b.weight" : "enc.blk.0.attn_rel_b.weight",
            &spec);
        const int32_t bias =
            add_bias(g, &spec, &draft, side ? "causal" : "bidirectional");
        for (int64_t layer = 0; layer < (g->num_layers == 0 ? 1 : g->num_layers);
             layer++)
            pe_build_site(g->model, (int32_t)layer,
                          side ? PE_SITE_SELF : PE_SITE_ENCODER, -1, bias);
    }
    return PE_OK;
}

pe_status pe_gguf_temperature(pe_gguf *g)
{
    const pe_setting *scale_setting = NULL, *length_setting = NULL;
    double scale = 0, length = 0;
    pe_draft draft = {.model = g->model};
    const int in_code = (g->arch->flags & PE_GGUF_TEMPERATURE) != 0;
    pe_status status =
        pe_gguf_number(g, "attention.temperature_scale", &scale, &scale_setting);
    if (status == PE_OK)
        status =
            pe_gguf_number(g, "attention.temperature_length", &length, &length_setting);
    if (status != PE_OK || (scale == 0 && length == 0 && !in_code))
        return status;
    pe_claim claim = pe_gguf_stated(scale_setting);
    if (scale_setting == NULL && in_code) {
        claim = pe_gguf_claim(g, PE_DERIVED, "llama.cpp: in the code of llama4");
        scale = 0.1;
        length = 8192;
    }
    if (scale_setting != NULL || in_code)
        pe_draft_number(&draft, "scale", scale, &claim);
    if (length_setting != NULL)
        claim = pe_gguf_stated(length_setting);
    if (length != 0)
        pe_draft_number(&draft, "length", length, &claim);
    pe_build_fields(g->model, "query_temperature.", &draft);
    pe_build_note(
        g->model, PE_WARNING, scale_setting != NULL ? scale_setting : length_setting,
        "queries have a temperature that grows with position%s: no rope spec has it, "
        "see pe_temperature",
        in_code ? ", on layers without rotation" : "");
    return PE_OK;
}
