/* SPDX-License-Identifier: MIT
 *
 * hf_layers.c - which layers turn, and which share a rope
 *
 * Layers differ by kind (sliding or full attention) and by NoPE lists.  The rope of a
 * kind is read once. */
#include "model/hf.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { GROUPS_MAX = 8 };

typedef struct plan {
    pe_hf *hf;
    const pe_entry *layer_types;
    const pe_setting *no_rope;    /* no_rope_layers: 1 where a layer turns */
    const pe_setting *cross;      /* cross_attention_layers */
    const pe_setting *hybrid;     /* hybrid_layer_pattern: 1 where a layer slides */
    const pe_setting *ratios;     /* compress_ratios: 0 where keys are kept whole */
    const pe_setting *thetas;     /* rope_theta, a list */
    const pe_setting *partials;   /* partial_rotary_factors */
    int64_t sliding_period;       /* full when (l + 1) % this is 0; 0: all alike */
    int64_t nope_interval;        /* NoPE when (l + 1) % this is 0; 0: none */
    int64_t attention_interval;   /* attends when (l + 1) % this is 0; 0: always */
    int32_t has_kinds;            /* the rope depends on the kind of layer */
    int32_t rope_on_sliding_only; /* Cohere 2, EXAONE 4 */
    pe_hf_group groups[GROUPS_MAX];
    int32_t ropes[GROUPS_MAX];
    int32_t num_groups;
} plan;

/* rope_parameters.full_attention.rope_theta: a dict in the dict. */
static const char *nested_name(const pe_hf *hf, const char *dict)
{
    char prefix[160];
    snprintf(prefix, sizeof prefix, "%s%s.", hf->prefix, dict);
    for (int64_t i = 0; i < hf->settings->num; i++) {
        const char *path = hf->settings->entries[i].setting.path;
        if (strncmp(path, prefix, strlen(prefix)) != 0)
            continue;
        const char *dot = strchr(path + strlen(prefix), '.');
        if (dot != NULL && strcmp(dot, ".__float__") != 0)
            return path;
    }
    return NULL;
}

static pe_status find_dicts(plan *p)
{
    static const char *const names[2] = {"rope_parameters", "rope_scaling"};
    pe_hf *hf = p->hf;
    for (int i = 0; i < 2; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s%s", hf->prefix, names[i]);
        const pe_entry *entry = pe_settings_find_under(hf->settings, path);
        if (entry == NULL || entry->setting.type == PE_SETTING_NULL)
            continue;
        if (strcmp(entry->setting.path, path) == 0)
            return pe_fail(hf->error, PE_E_ARGUMENT, "%s is %.60s, must be an object",
                           path, entry->setting.text);
        hf->dicts[i] = names[i];
        const char *nested = nested_name(hf, names[i]);
        if (nested != NULL &&
            (i != 0 || (p->layer_types == NULL && p->hf->arch->sliding_period == 0 &&
                        p->ratios == NULL)))
            return pe_fail(hf->error, PE_E_UNSUPPORTED,
                           "%.120s is nested, but no layer_types says which layers it "
                           "is for",
                           nested);
        hf->is_nested = hf->is_nested || nested != NULL;
    }
    if (hf->is_nested)
        hf->dicts[1] = NULL;
    return PE_OK;
}

/* Prediction layers at the end may have elements, too. */
static pe_status check_list(pe_hf *hf, const pe_setting *setting, int64_t count)
{
    const int may_be_longer =
        (hf->arch->flags & (PE_HF_LAYER_LISTS | PE_HF_COMPRESS)) != 0;
    if (count == hf->num_layers || (may_be_longer && count > hf->num_layers))
        return PE_OK;
    return pe_fail(hf->error, PE_E_ARGUMENT,
                   "%s has %lld elements, must have one for each of %lld layers",
                   setting->path, (long long)count, (long long)hf->num_layers);
}

/* Lists that only some model_types have. */
static pe_status read_own_lists(plan *p)
{
    pe_hf *hf = p->hf;
    const int32_t flags = hf->arch->flags;
    const pe_setting **const lists[] = {&p->hybrid, &p->ratios, &p->thetas,
                                        &p->partials};
    static const char *const names[] = {"hybrid_layer_pattern", "compress_ratios",
                                        "rope_theta", "partial_rotary_factors"};
    const int wanted[] = {
        strcmp(hf->model_type, "mimo_v2_flash") == 0, (flags & PE_HF_COMPRESS) != 0,
        (flags & PE_HF_LAYER_LISTS) != 0, (flags & PE_HF_LAYER_LISTS) != 0};
    for (size_t i = 0; i < PE_COUNT(lists); i++) {
        const pe_setting *list = wanted[i] ? pe_hf_get(hf, names[i]) : NULL;
        if (list == NULL || (i == 2 && list->type != PE_SETTING_ARRAY))
            continue;
        if (list->numbers == NULL)
            return pe_fail(hf->error, PE_E_ARGUMENT,
                           "%s is %.60s, must be an array of numbers", list->path,
                           list->text);
        pe_status status = check_list(hf, list, list->num_numbers);
        if (status != PE_OK)
            return status;
        for (int64_t k = 0; i >= 2 && k < list->num_numbers; k++) {
            if (!(list->numbers[k] > (i == 2 ? 1 : 0)))
                return pe_fail(hf->error, PE_E_ARGUMENT,
                               "%s[%lld] is %g, must be above %d", list->path,
                               (long long)k, list->numbers[k], i == 2 ? 1 : 0);
        }
        *lists[i] = list;
    }
    const pe_entry *scaled = pe_hf_entry(hf, "yarn_only_types");
    if ((flags & PE_HF_LAYER_LISTS) != 0 && scaled != NULL &&
        (scaled->num_strings != 1 || strcmp(scaled->strings[0], "full_attention") != 0))
        return pe_fail(hf->error, PE_E_UNSUPPORTED,
                       "%s must be [\"full_attention\"]: scaling of other layers is "
                       "not read",
                       scaled->setting.path);
    if (p->hybrid == NULL && p->layer_types == NULL &&
        strcmp(hf->model_type, "mimo_v2_flash") == 0)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "neither hybrid_layer_pattern nor layer_types is stated: which "
                       "layers slide is not known");
    if ((flags & PE_HF_COMPRESS) != 0 && p->ratios == NULL && p->layer_types == NULL)
        return pe_fail(
            hf->error, PE_E_ARGUMENT,
            "neither compress_ratios nor layer_types is stated: which layers "
            "compress their keys is not known");
    return PE_OK;
}

static pe_status read_lists(plan *p)
{
    pe_hf *hf = p->hf;
    p->layer_types = pe_hf_entry(hf, "layer_types");
    p->no_rope = pe_hf_get(hf, "no_rope_layers");
    p->cross = pe_hf_get(hf, "cross_attention_layers");
    if (p->no_rope != NULL && p->no_rope->num_numbers == 0)
        p->no_rope = NULL; /* an empty list means the interval */
    if (p->layer_types != NULL && p->layer_types->strings == NULL)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "%s is %.60s, must be an array of strings",
                       p->layer_types->setting.path, p->layer_types->setting.text);
    if (hf->num_layers == 0 && p->layer_types != NULL) {
        hf->num_layers = p->layer_types->num_strings;
        hf->model->info.num_layers = (int32_t)hf->num_layers;
    }
    if (p->cross != NULL && p->cross->num_numbers > hf->num_layers)
        return pe_fail(
            hf->error, PE_E_ARGUMENT,
            "%s has %lld elements, must have at most %lld, one for each layer",
            p->cross->path, (long long)p->cross->num_numbers,
            (long long)hf->num_layers);
    pe_status status = PE_OK;
    if (p->layer_types != NULL)
        status = check_list(hf, &p->layer_types->setting, p->layer_types->num_strings);
    if (status == PE_OK && p->no_rope != NULL)
        status = check_list(hf, p->no_rope, p->no_rope->num_numbers);
    return status == PE_OK ? read_own_lists(p) : status;
}

/* sliding_window_pattern: 6, or EXAONE's "LLLG". */
static pe_status read_period(plan *p)
{
    static const char *const interval[] = {"no_rope_layer_interval", NULL};
    static const char *const attention[] = {"full_attention_interval", NULL};
    static const char *const pattern[] = {"sliding_window_pattern",
                                          "_sliding_window_pattern",
                                          "global_attn_every_n_layers", NULL};
    pe_hf *hf = p->hf;
    pe_pick pick;
    const pe_setting *word = pe_hf_get(hf, pattern[0]);
    p->sliding_period = hf->arch->sliding_period;
    p->nope_interval = (hf->arch->flags & PE_HF_NOPE_EVERY_4) != 0 ? 4 : 0;
    p->attention_interval = (hf->arch->flags & PE_HF_LINEAR_BETWEEN) != 0 ? 4 : 0;
    pe_status status = pe_hf_integer(hf, interval, 0, 4096, &p->nope_interval, &pick);
    if (status == PE_OK)
        status = pe_hf_integer(hf, attention, 1, 4096, &p->attention_interval, &pick);
    if (status != PE_OK || hf->arch->sliding_period == 0)
        return status;
    if (word == NULL || word->type != PE_SETTING_STRING)
        return pe_hf_integer(hf, pattern, 1, 4096, &p->sliding_period, &pick);
    const size_t length = strlen(word->text);
    if (length == 0 || strspn(word->text, "L") != length - 1 ||
        word->text[length - 1] != 'G')
        return pe_fail(hf->error, PE_E_UNSUPPORTED, "%s is \"%.40s\", must be L..LG",
                       word->path, word->text);
    p->sliding_period = (int64_t)length;
    return PE_OK;
}

static int is_sliding(const plan *p, int64_t layer)
{
    if (p->ratios != NULL)
        return p->ratios->numbers[layer] == 0;
    if (p->hybrid != NULL)
        return p->hybrid->numbers[layer] != 0;
    if (p->layer_types != NULL)
        return strstr(p->layer_types->strings[layer], "sliding") != NULL;
    const int64_t first = (p->hf->arch->flags & PE_HF_FULL_FIRST) != 0 ? 0 : 1;
    return p->sliding_period != 0 && (layer + first) % p->sliding_period != 0;
}

static int turns(const plan *p, int64_t layer)
{
    if (p->rope_on_sliding_only && !is_sliding(p, layer))
        return 0;
    if (p->no_rope != NULL)
        return p->no_rope->numbers[layer] != 0;
    return p->nope_interval == 0 || (layer + 1) % p->nope_interval != 0;
}

/* Linear attention, state spaces and convolutions have no site. */
static int attends(const plan *p, int64_t layer)
{
    static const char *const others[] = {"linear_attention", "mamba", "conv",
                                         "recurrent"};
    if (p->layer_types == NULL)
        return p->attention_interval == 0 || (layer + 1) % p->attention_interval == 0;
    for (size_t i = 0; i < PE_COUNT(others); i++) {
        if (strcmp(p->layer_types->strings[layer], others[i]) == 0)
            return 0;
    }
    return 1;
}

static int is_cross(const plan *p, int64_t layer)
{
    for (int64_t i = 0; p->cross != NULL && i < p->cross->num_numbers; i++) {
        if (p->cross->numbers[i] == (double)layer)
            return 1;
    }
    return 0;
}

static pe_status use_dict(plan *p, const pe_hf_group *group)
{
    pe_hf *hf = p->hf;
    if (!hf->is_nested)
        return PE_OK;
    const char *dict =
        pe_arena_format(&hf->model->arena, "rope_parameters.%s", group->layer_type);
    const char *path = pe_arena_format(&hf->model->arena, "%s%s", hf->prefix, dict);
    if (dict == NULL || path == NULL)
        return PE_E_NO_MEMORY;
    if (pe_settings_find_under(hf->settings, path) == NULL)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "rope_parameters has nothing for %.60s, which layers have",
                       group->layer_type);
    hf->dicts[0] = dict;
    return PE_OK;
}

static pe_status rope_of(plan *p, int64_t layer, int32_t *rope)
{
    pe_hf_group group = {.layer_type = NULL, .layer = (int32_t)layer};
    if (p->thetas != NULL)
        group.theta = p->thetas->numbers[layer];
    if (p->partials != NULL)
        group.partial = p->partials->numbers[layer];
    if ((p->hf->arch->flags & PE_HF_COMPRESS) != 0) {
        group.is_sliding = is_sliding(p, layer);
        group.layer_type = group.is_sliding ? "main" : "compress";
    } else if (p->has_kinds) {
        group.is_sliding = is_sliding(p, layer);
        group.layer_type = p->layer_types != NULL ? p->layer_types->strings[layer]
                           : group.is_sliding     ? "sliding_attention"
                                                  : "full_attention";
    }
    for (int32_t i = 0; i < p->num_groups; i++) {
        const char *name = p->groups[i].layer_type;
        if (p->groups[i].theta != group.theta || p->groups[i].partial != group.partial)
            continue;
        if (name == group.layer_type || (name != NULL && group.layer_type != NULL &&
                                         strcmp(name, group.layer_type) == 0)) {
            *rope = p->ropes[i];
            return PE_OK;
        }
    }
    if (p->num_groups == GROUPS_MAX)
        return pe_fail(p->hf->error, PE_E_LIMIT,
                       "layer_types has more than %d different names", GROUPS_MAX);
    pe_status status = use_dict(p, &group);
    if (status == PE_OK)
        status = pe_hf_rope(p->hf, &group, rope);
    if (status == PE_OK) {
        p->groups[p->num_groups] = group;
        p->ropes[p->num_groups++] = *rope;
    }
    return status;
}

static pe_status add_layers(plan *p)
{
    pe_hf *hf = p->hf;
    const int64_t num = hf->num_layers == 0 ? 1 : hf->num_layers;
    int64_t still = 0, without = 0;
    for (int64_t layer = 0; layer < num; layer++) {
        int32_t rope = -1;
        if (!attends(p, layer)) {
            without++;
            continue;
        }
        const int cross = is_cross(p, layer);
        if (!cross && turns(p, layer)) {
            pe_status status = rope_of(p, layer, &rope);
            if (status != PE_OK)
                return status;
        }
        still += rope < 0 && !cross;
        pe_build_site(hf->model, (int32_t)layer,
                      cross                                   ? PE_SITE_CROSS
                      : (hf->arch->flags & PE_HF_VISION) != 0 ? PE_SITE_VISION
                                                              : PE_SITE_SELF,
                      rope, -1);
        int32_t indexer = -1;
        if (rope >= 0 && (hf->arch->flags & PE_HF_MLA) != 0) {
            pe_status status = pe_hf_indexer(hf, rope, &indexer);
            if (status != PE_OK)
                return status;
        }
        if (indexer >= 0)
            pe_build_site(hf->model, (int32_t)layer, PE_SITE_INDEXER, indexer, -1);
        if ((hf->arch->flags & PE_HF_COMPRESS) != 0 && !is_sliding(p, layer))
            pe_build_site(hf->model, (int32_t)layer, PE_SITE_COMPRESS, rope, -1);
    }
    if (without > 0)
        pe_build_note(hf->model, PE_INFO, NULL,
                      "%lld of %lld layers have no softmax attention, and no site",
                      (long long)without, (long long)num);
    if (still > 0)
        pe_build_note(hf->model, PE_INFO, p->no_rope,
                      "%lld of %lld layers do not turn (NoPE)", (long long)still,
                      (long long)num);
    return PE_OK;
}

pe_status pe_hf_rope_layers(pe_hf *hf)
{
    plan p = {.hf = hf};
    const int32_t flags = hf->arch->flags;
    pe_status status = read_lists(&p);
    if (status == PE_OK)
        status = read_period(&p);
    if (status == PE_OK)
        status = find_dicts(&p);
    if (status != PE_OK)
        return status;
    pe_hf_note_sites(hf);
    p.has_kinds = hf->is_nested || p.hybrid != NULL ||
                  pe_hf_get(hf, "global_head_dim") != NULL ||
                  (flags & (PE_HF_LOCAL_BASE | PE_HF_SCALED_ON_FULL)) != 0;
    /* Without a window every layer of EXAONE 4 is full, and turns. */
    p.rope_on_sliding_only = (flags & PE_HF_ROPE_ON_SLIDING) != 0 &&
                             (strcmp(hf->model_type, "exaone4") != 0 ||
                              pe_hf_get(hf, "sliding_window") != NULL);
    if (hf->num_layers == 0 && (p.has_kinds || p.rope_on_sliding_only ||
                                p.nope_interval != 0 || p.attention_interval != 0))
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "num_hidden_layers is not stated, but the layers of model_type "
                       "%.60s differ",
                       hf->model_type);
    status = add_layers(&p);
    if (status == PE_OK && strcmp(hf->model_type, "moonshine") == 0)
        status = pe_hf_encoder_layers(hf, p.ropes[0]);
    return status;
}
