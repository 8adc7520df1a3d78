/* SPDX-License-Identifier: MIT
 *
 * gguf_dialect.c - a GGUF file's settings and weights into a model
 *
 * Shape first, then whatever the architecture's kind of positions needs. */
#include "model/gguf_dialect.h"

#include "base/error.h"

#include <string.h>

enum { WIDTH_MAX = 1 << 24, LAYERS_MAX = 4096, HEADS_MAX = 1 << 16 };

static pe_status read_count(pe_gguf *g, pe_draft *draft, const char *name,
                            const char *field, int64_t max, int64_t *out)
{
    const pe_setting *setting = NULL;
    pe_status status = pe_gguf_integer(g, name, 1, max, out, &setting);
    if (status == PE_OK && setting != NULL) {
        const pe_claim claim = pe_gguf_stated(setting);
        pe_draft_integer(draft, field, *out, &claim);
    }
    return status;
}

/* One for all layers, or one for each: then the largest, since recurrent layers have
 * none. */
static pe_status read_heads(pe_gguf *g, pe_draft *draft, const char *name,
                            const char *field, int64_t *out)
{
    const pe_setting *setting = pe_gguf_get(g, name);
    if (setting == NULL || setting->type != PE_SETTING_ARRAY)
        return read_count(g, draft, name, field, HEADS_MAX, out);
    int is_mixed = 0;
    for (int64_t i = 0; i < setting->num_numbers; i++) {
        const double count = setting->numbers[i];
        if (!(count >= 0 && count <= HEADS_MAX) || count != (double)(int64_t)count)
            return pe_fail(g->error, PE_E_ARGUMENT,
                           "%s is %.60s, must be counts in 0..%d", setting->path,
                           setting->text, HEADS_MAX);
        is_mixed = is_mixed || (count != 0 && *out != 0 && count != (double)*out);
        if (count > (double)*out)
            *out = (int64_t)count;
    }
    if (*out == 0)
        return pe_fail(g->error, PE_E_ARGUMENT,
                       "%s is %.60s, must have a count for each layer", setting->path,
                       setting->text);
    const pe_claim claim = {.setting = setting,
                            .source = PE_DERIVED,
                            .reason = "the largest of all layers"};
    pe_draft_integer(draft, field, *out, &claim);
    if (is_mixed)
        pe_build_note(g->model, PE_INFO, setting, "layers differ in %s", field);
    return PE_OK;
}

static pe_status read_shape(pe_gguf *g)
{
    pe_draft draft = {.model = g->model};
    pe_status status =
        read_count(g, &draft, "block_count", "num_layers", LAYERS_MAX, &g->num_layers);
    if (status == PE_OK)
        status = read_count(g, &draft, "embedding_length", "hidden_size", WIDTH_MAX,
                            &g->width);
    if (status == PE_OK)
        status =
            read_heads(g, &draft, "attention.head_count", "num_heads", &g->num_heads);
    if (status == PE_OK)
        status = read_heads(g, &draft, "attention.head_count_kv", "num_kv_heads",
                            &g->num_kv_heads);
    if (status == PE_OK)
        status = read_count(g, &draft, "context_length", "context_length",
                            INT64_C(1) << 40, &g->context);
    if (status != PE_OK)
        return status;
    if (g->num_kv_heads == 0 && g->num_heads != 0) {
        const pe_claim claim = {.source = PE_DEFAULTED,
                                .reason = "not stated: as many as query heads"};
        g->num_kv_heads = g->num_heads;
        pe_draft_integer(&draft, "num_kv_heads", g->num_kv_heads, &claim);
    }
    pe_build_fields(g->model, "", &draft);
    pe_model_info *info = &g->model->info;
    info->num_layers = (int32_t)g->num_layers;
    info->num_heads = (int32_t)g->num_heads;
    info->num_kv_heads = (int32_t)g->num_kv_heads;
    info->trained_len = info->extended_len = g->context;
    if (g->num_layers == 0)
        pe_build_note(g->model, PE_WARNING, NULL,
                      "%s.block_count is not stated: one site stands for all", g->name);
    if (g->context == 0)
        pe_build_note(g->model, PE_WARNING, NULL,
                      "%s.context_length is not stated: the context is unknown",
                      g->name);
    return PE_OK;
}

/* An architecture that the table does not have: what the keys and weights say. */
static pe_gguf_kind kind_of_unknown(const pe_gguf *g, double max_bias)
{
    char prefix[PE_SETTING_TEXT_MAX + 8];
    strcpy(prefix, g->name);
    strcat(prefix, ".rope");
    if (max_bias > 0)
        return PE_GGUF_ALIBI;
    if (pe_settings_find_under(&g->checkpoint->settings, prefix) != NULL)
        return PE_GGUF_NEOX;
    if (pe_weights_find(&g->checkpoint->weights, "position_embd.weight") != NULL)
        return PE_GGUF_LEARNED;
    return PE_GGUF_UNKNOWN;
}

/* ALiBi is a number, in the file or in the code of an architecture. */
static pe_status read_max_bias(pe_gguf *g, double *max_bias, pe_claim *claim)
{
    const pe_setting *setting = NULL;
    *max_bias = 0;
    pe_status status =
        pe_gguf_number(g, "attention.max_alibi_bias", max_bias, &setting);
    if (status != PE_OK)
        return status;
    *claim = pe_gguf_stated(setting);
    if (setting != NULL && *max_bias < 0)
        return pe_fail(g->error, PE_E_ARGUMENT, "%s is %.40s, must be at least 0",
                       setting->path, setting->text);
    const int is_baichuan_13b = strcmp(g->name, "baichuan") == 0 && g->num_layers == 40;
    const int in_code = strcmp(g->name, "bloom") == 0 ||
                        strcmp(g->name, "refact") == 0 ||
                        strcmp(g->name, "jina-bert-v2") == 0 || is_baichuan_13b;
    if (*max_bias == 0 && in_code) {
        *max_bias = 8;
        *claim = pe_gguf_claim(g, PE_DERIVED,
                               is_baichuan_13b
                                   ? "llama.cpp: baichuan with 40 layers is the 13B"
                                   : "llama.cpp: in the code of this architecture");
    }
    return PE_OK;
}

static pe_status refuse(const pe_gguf *g)
{
    return pe_fail(
        g->error, PE_E_UNSUPPORTED,
        *g->arch->name == '\0'
            ? "architecture %.60s is not known, and no key says which "
              "positions it uses"
            : "architecture %.60s places its heads in a way that is not read",
        g->name);
}

static pe_status read_kind(pe_gguf *g)
{
    double max_bias = 0;
    pe_claim claim;
    pe_status status = read_max_bias(g, &max_bias, &claim);
    if (status != PE_OK)
        return status;
    pe_gguf_kind kind = g->arch->kind;
    if (kind == PE_GGUF_UNKNOWN)
        kind = kind_of_unknown(g, max_bias);
    if (kind == PE_GGUF_UNKNOWN || kind == PE_GGUF_REFUSED)
        return refuse(g);
    if (kind == PE_GGUF_ALIBI && max_bias == 0)
        kind = PE_GGUF_LEARNED;
    if (max_bias > 0)
        return pe_gguf_alibi(g, max_bias, &claim);
    if (kind == PE_GGUF_LEARNED)
        return pe_gguf_learned(g);
    if (kind == PE_GGUF_T5)
        return pe_gguf_t5(g);
    if (kind != PE_GGUF_NONE)
        return pe_gguf_rope_layers(g);
    g->model->info.method = "none";
    pe_build_note(g->model, PE_INFO, NULL,
                  "architecture %s has no positions in its attention", g->name);
    return pe_gguf_plain_layers(g, -1);
}

/* What llama.cpp's converter has no key for, whatever the model. */
static void note_lost(pe_gguf *g)
{
    const pe_entry *split = pe_settings_find(&g->checkpoint->settings, "split.count");
    if (split != NULL && split->setting.integer > 1)
        pe_build_note(g->model, PE_INFO, &split->setting,
                      "one of %s files: weights of the others are not read",
                      split->setting.text);
    if (*g->arch->name == '\0')
        pe_build_note(g->model, PE_WARNING, NULL,
                      "architecture %s is not known: only what the keys say is read",
                      g->name);
}

pe_status pe_read_gguf(pe_model *model, const pe_checkpoint *checkpoint,
                       int64_t seq_len, pe_error *error)
{
    const pe_entry *name =
        pe_settings_find(&checkpoint->settings, "general.architecture");
    if (name == NULL || name->setting.type != PE_SETTING_STRING ||
        *name->setting.text == '\0')
        return pe_fail(error, PE_E_FORMAT,
                       name == NULL ? "general.architecture is not stated"
                                    : "general.architecture must be a name");
    pe_gguf g = {.model = model,
                 .checkpoint = checkpoint,
                 .error = error,
                 .name = name->setting.text,
                 .arch = pe_gguf_find_arch(name->setting.text),
                 .seq_len = seq_len};
    model->info.model_type = g.name;
    note_lost(&g);
    pe_status status = read_shape(&g);
    if (status == PE_OK)
        status = read_kind(&g);
    return status == PE_OK ? pe_gguf_temperature(&g) : status;
}
