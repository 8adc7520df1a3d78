/* SPDX-License-Identifier: MIT
 *
 * gguf_layers.c - which layers turn, and which are sliding
 *
 * attention.sliding_window_pattern is a period, or true and false for each layer; the
 * architecture says the rest. */
#include "model/gguf_dialect.h"

#include "base/error.h"

#include <string.h>

enum { PERIOD_MAX = 4096 };

typedef struct plan {
    pe_gguf *g;
    const pe_setting *pattern;  /* an array: true where a layer is sliding */
    const pe_setting *kv_heads; /* an array: 0 where a layer has no attention */
    int64_t period;             /* 0: all layers are full */
    int64_t attention_every;    /* the other layers are recurrent */
    int32_t nope_every_4;
    int32_t rotates_no_layer;
} plan;

/* An array with one element for each layer, or NULL. */
static pe_status read_list(const pe_gguf *g, const char *name, const pe_setting **out)
{
    const pe_setting *setting = pe_gguf_get(g, name);
    *out = NULL;
    if (setting == NULL || setting->type != PE_SETTING_ARRAY)
        return PE_OK;
    if (setting->num_numbers < g->num_layers)
        return pe_fail(g->error, PE_E_ARGUMENT,
                       "%s has %lld elements, must have one for each of %lld layers",
                       setting->path, (long long)setting->num_numbers,
                       (long long)g->num_layers);
    *out = setting;
    return PE_OK;
}

static pe_status read_window_pattern(plan *p)
{
    pe_gguf *g = p->g;
    const pe_setting *setting = NULL;
    int64_t window = -1;
    pe_status status = pe_gguf_integer(g, "attention.sliding_window", 0,
                                       INT64_C(1) << 40, &window, &setting);
    if (status == PE_OK)
        status = read_list(g, "attention.sliding_window_pattern", &p->pattern);
    if (status != PE_OK)
        return status;
    p->period = g->arch->period;
    if ((g->arch->flags & PE_GGUF_NEEDS_WINDOW) != 0 && window <= 0)
        p->period = 0;
    if (strcmp(g->name, "llama4") == 0 && window == 0) {
        p->period = 0;
        p->nope_every_4 = 0;
    }
    const pe_setting *pattern = pe_gguf_get(g, "attention.sliding_window_pattern");
    if (p->period == 0)
        p->pattern = NULL;
    else if (pattern != NULL && p->pattern == NULL)
        status = pe_gguf_integer(g, "attention.sliding_window_pattern", 0, PERIOD_MAX,
                                 &p->period, &setting);
    return status;
}

static pe_status read_plan(plan *p)
{
    pe_gguf *g = p->g;
    const pe_setting *setting = NULL;
    p->nope_every_4 = (g->arch->flags & PE_GGUF_NOPE_EVERY_4) != 0;
    p->attention_every = (g->arch->flags & PE_GGUF_EVERY_4TH) != 0 ? 4 : 0;
    pe_status status = read_window_pattern(p);
    if (status == PE_OK)
        status = read_list(g, "attention.head_count_kv", &p->kv_heads);
    if (status == PE_OK)
        status = pe_gguf_integer(g, "full_attention_interval", 1, PERIOD_MAX,
                                 &p->attention_every, &setting);
    if (status != PE_OK)
        return status;
    setting = pe_gguf_get(g, "rope.scaling.finetuned");
    if ((g->arch->flags & PE_GGUF_FINETUNED) != 0 && setting != NULL &&
        setting->type == PE_SETTING_BOOL && !setting->integer) {
        p->rotates_no_layer = 1;
        pe_build_note(g->model, PE_INFO, setting,
                      "rope.scaling.finetuned is false: llama.cpp then does not rotate "
                      "this architecture");
    }
    return PE_OK;
}

static int is_sliding(const plan *p, int64_t layer)
{
    if (p->pattern != NULL)
        return p->pattern->numbers[layer] != 0;
    if (p->period == 0)
        return 0;
    return (p->g->arch->flags & PE_GGUF_FULL_FIRST) != 0
               ? layer % p->period != 0
               : layer % p->period != p->period - 1;
}

static int has_attention(const plan *p, int64_t layer)
{
    if (p->kv_heads != NULL && p->kv_heads->numbers[layer] == 0)
        return 0;
    return p->attention_every == 0 || (layer + 1) % p->attention_every == 0;
}

static int rotates(const plan *p, int64_t layer)
{
    if (p->rotates_no_layer || (p->nope_every_4 && (layer + 1) % 4 == 0))
        return 0;
    if ((p->g->arch->flags & PE_GGUF_SLIDING_ROPE) == 0 || p->period == 0)
        return 1;
    return is_sliding(p, layer);
}

pe_status pe_gguf_rope_layers(pe_gguf *g)
{
    plan p = {.g = g};
    int32_t ropes[2] = {-1, -1};
    const int64_t num_layers = g->num_layers == 0 ? 1 : g->num_layers;
    g->model->info.method = "rope";
    pe_status status = read_plan(&p);
    for (int64_t layer = 0; layer < num_layers && status == PE_OK; layer++) {
        const int sliding = g->num_layers != 0 && is_sliding(&p, layer);
        int32_t rope = -1;
        if (g->num_layers != 0 && !has_attention(&p, layer))
            continue;
        if (g->num_layers == 0 || rotates(&p, layer)) {
            if (ropes[sliding] < 0)
                status = pe_gguf_rope(g, sliding, &ropes[sliding]);
            rope = ropes[sliding];
        }
        if (status == PE_OK)
            pe_build_site(g->model, (int32_t)layer, PE_SITE_SELF, rope, -1);
    }
    return status;
}

pe_status pe_gguf_plain_layers(pe_gguf *g, int32_t bias)
{
    const int64_t num_layers = g->num_layers == 0 ? 1 : g->num_layers;
    for (int64_t layer = 0; layer < num_layers; layer++)
        pe_build_site(g->model, (int32_t)layer, PE_SITE_SELF, -1, bias);
    return PE_OK;
}
