/* SPDX-License-Identifier: MIT
 *
 * hf.c - a Hugging Face config.json into a model
 *
 * Finds the text model's settings and its method, and refuses, by name, every key whose
 * meaning is known to matter and is not read. */
#include "model/hf.h"

#include "base/error.h"

#include <string.h>

static const char *text_of(const pe_setting *setting)
{
    return setting == NULL || setting->type != PE_SETTING_STRING ? "" : setting->text;
}

static void find_text_model(pe_hf *hf)
{
    static const char *const nests[] = {"thinker_config.text_config.", "text_config.",
                                        "llm_config.", "language_config."};
    hf->prefix = "";
    const char *outer = text_of(pe_hf_get(hf, "model_type"));
    for (size_t i = 0; i < PE_COUNT(nests); i++) {
        char name[64];
        strcpy(name, nests[i]);
        name[strlen(name) - 1] = '\0';
        const pe_entry *entry = pe_settings_find_under(hf->settings, name);
        if (entry == NULL || strcmp(entry->setting.path, name) == 0)
            continue;
        hf->prefix = nests[i];
        pe_build_note(hf->model, PE_INFO, NULL,
                      "the text model's settings are read from %s", name);
        break;
    }
    const char *inner = text_of(pe_hf_get(hf, "model_type"));
    hf->model_type = *inner != '\0' ? inner : outer;
    if (pe_settings_find_under(hf->settings, "vision_config") != NULL)
        pe_build_note(hf->model, PE_INFO, NULL,
                      "vision_config is not read: sites are the text model's");
}

/* The text model does not look outside its own settings, so what stands there and
 * differs deserves a word. */
static void note_outside(pe_hf *hf)
{
    static const char *const names[] = {"rope_theta",
                                        "rope_scaling.factor",
                                        "rope_scaling.type",
                                        "rope_scaling.rope_type",
                                        "max_position_embeddings",
                                        "rope_parameters.rope_theta",
                                        "rope_parameters.factor",
                                        "rope_parameters.rope_type",
                                        "head_dim",
                                        "partial_rotary_factor"};
    for (size_t i = 0; *hf->prefix != '\0' && i < PE_COUNT(names); i++) {
        const pe_entry *outer = pe_settings_find(hf->settings, names[i]);
        const pe_setting *inner = pe_hf_get(hf, names[i]);
        if (outer == NULL || outer->setting.type == PE_SETTING_NULL)
            continue;
        if (inner == NULL || inner->number != outer->setting.number ||
            (inner->type == PE_SETTING_STRING &&
             strcmp(inner->text, outer->setting.text) != 0))
            pe_build_note(
                hf->model, PE_WARNING, &outer->setting,
                "%s is %.60s outside %.*s, where it is %.60s; only the second "
                "is read",
                names[i], outer->setting.text, (int)strlen(hf->prefix) - 1, hf->prefix,
                inner == NULL ? "not stated" : inner->text);
    }
}

/* Keys that are refused unless the model_type is one that has them. */
static int is_read(const pe_hf *hf, const char *key)
{
    static const struct {
        const char *key;
        int32_t flag;
    } keys[] = {{"partial_rotary_factors", PE_HF_LAYER_LISTS},
                {"compress_rope_theta", PE_HF_COMPRESS},
                {"rope_ratio", PE_HF_THETA_RATIO}};
    for (size_t i = 0; i < PE_COUNT(keys); i++) {
        if (strcmp(key, keys[i].key) == 0)
            return (hf->arch->flags & keys[i].flag) != 0;
    }
    return strcmp(key, "swa_rope_theta") == 0 &&
           strcmp(hf->model_type, "mimo_v2_flash") == 0;
}

static pe_status refuse_unread(const pe_hf *hf)
{
    static const char *const keys[] = {"per_layer_config",
                                       "partial_rotary_factors",
                                       "swa_rope_theta",
                                       "compress_rope_theta",
                                       "compress_rope_scaling",
                                       "xdrope_section",
                                       "use_fope",
                                       "rope_position_scale",
                                       "rope_ratio",
                                       "mixed_b",
                                       "rope_scaling.mixed_b"};
    for (size_t i = 0; i < PE_COUNT(keys); i++) {
        const pe_setting *setting = pe_hf_get(hf, keys[i]);
        if (setting == NULL || is_read(hf, keys[i]) ||
            (setting->type == PE_SETTING_BOOL && setting->integer == 0))
            continue;
        return pe_fail(
            hf->error, PE_E_UNSUPPORTED,
            "%s is %.60s: it changes the positions in a way that is not read",
            setting->path, setting->text);
    }
    return PE_OK;
}

/* Keys that only a model with rope has. */
static int has_rope_key(const pe_hf *hf)
{
    static const char *const keys[] = {
        "rope_theta",     "rotary_dim", "rotary_pct",      "partial_rotary_factor",
        "rope_base",      "rope_pct",   "rotary_emb_base", "rope_scaling",
        "rope_parameters"};
    for (size_t i = 0; i < PE_COUNT(keys); i++) {
        char path[96];
        strcpy(path, hf->prefix);
        strcat(path, keys[i]);
        const pe_entry *entry = pe_settings_find_under(hf->settings, path);
        if (entry != NULL && entry->setting.type != PE_SETTING_NULL)
            return 1;
    }
    return *hf->model_type != '\0' && pe_hf_get(hf, "qk_rope_head_dim") != NULL;
}

static int is_true(const pe_hf *hf, const char *name)
{
    const pe_setting *setting = pe_hf_get(hf, name);
    return setting != NULL && setting->type == PE_SETTING_BOOL && setting->integer != 0;
}

static pe_hf_method method_of_unknown(const pe_hf *hf)
{
    const char *stated = text_of(pe_hf_get(hf, "position_embedding_type"));
    if (is_true(hf, "alibi") || strcmp(stated, "alibi") == 0)
        return PE_HF_ALIBI;
    if (has_rope_key(hf) || strcmp(stated, "rope") == 0 ||
        strcmp(stated, "rotary") == 0)
        return PE_HF_ROPE;
    if (strcmp(stated, "absolute") == 0)
        return PE_HF_LEARNED;
    if (strcmp(stated, "nope") == 0)
        return PE_HF_NONE;
    if (pe_hf_get(hf, "max_position_embeddings") != NULL)
        return PE_HF_ROPE;
    return PE_HF_REFUSED;
}

/* Switches inside one model_type. */
static pe_hf_method method_of(const pe_hf *hf)
{
    const char *type = hf->model_type;
    const char *stated = text_of(pe_hf_get(hf, "position_embedding_type"));
    if (*hf->arch->model_type == '\0')
        return method_of_unknown(hf);
    if (strcmp(type, "falcon") == 0 || strncmp(type, "RefinedWeb", 10) == 0)
        return is_true(hf, "alibi") ? PE_HF_ALIBI : PE_HF_ROPE;
    if (strcmp(type, "baichuan") == 0) /* 13B, by its size alone */
        return hf->num_layers == 40 || hf->hidden_size == 5120 ? PE_HF_ALIBI
                                                               : PE_HF_ROPE;
    if (strcmp(type, "mpt") == 0) {
        const pe_setting *alibi = pe_hf_get(hf, "attn_config.alibi");
        return alibi != NULL && alibi->integer == 0 ? PE_HF_LEARNED : PE_HF_ALIBI;
    }
    if (strcmp(type, "distilbert") == 0 && is_true(hf, "sinusoidal_pos_embds"))
        return PE_HF_SINUSOIDAL;
    if (hf->arch->method == PE_HF_LEARNED && strcmp(stated, "alibi") == 0)
        return PE_HF_ALIBI;
    if (hf->arch->method == PE_HF_LEARNED && strncmp(stated, "relative", 8) == 0)
        return PE_HF_RELATIVE;
    if (strcmp(type, "chatglm") == 0 && is_true(hf, "position_encoding_2d"))
        return PE_HF_REFUSED;
    if (strcmp(type, "esm") == 0 && strcmp(stated, "absolute") == 0)
        return PE_HF_LEARNED;
    return hf->arch->method;
}

static pe_status refuse(const pe_hf *hf)
{
    if (*hf->model_type == '\0')
        return pe_fail(hf->error, PE_E_UNSUPPORTED,
                       "no model_type, and no key says which positions the model uses");
    if (strcmp(hf->model_type, "vjepa2") == 0)
        return pe_fail(
            hf->error, PE_E_UNSUPPORTED,
            "model_type vjepa2 pairs neighbours, but gives the two the angles "
            "of two pairs: that is no rotation, and no spec can express it");
    if (strcmp(hf->model_type, "chatglm") == 0)
        return pe_fail(hf->error, PE_E_UNSUPPORTED,
                       "position_encoding_2d is true: ChatGLM-6B turns two halves of a "
                       "head by two positions, which is not read");
    return pe_fail(hf->error, PE_E_UNSUPPORTED,
                   *hf->arch->model_type == '\0'
                       ? "model_type %.60s is not known, and no key says which "
                         "positions it uses"
                       : "model_type %.60s turns or places its heads in a way that is "
                         "not read",
                   hf->model_type);
}

static pe_status read_method(pe_hf *hf, pe_hf_method method)
{
    static const char *const names[] = {"rope", "learned",  "sinusoidal", "alibi",
                                        "t5",   "relative", "none"};
    if (method == PE_HF_REFUSED)
        return refuse(hf);
    hf->model->info.method = names[method];
    switch (method) {
    case PE_HF_ROPE:
        pe_hf_note_unread(hf);
        return pe_hf_rope_layers(hf);
    case PE_HF_LEARNED:
        return pe_hf_learned(hf);
    case PE_HF_SINUSOIDAL:
        return pe_hf_sinusoidal(hf);
    case PE_HF_ALIBI:
        return pe_hf_alibi(hf);
    case PE_HF_T5:
        return pe_hf_t5(hf);
    default:
        hf->model->info.trained_len = hf->max_positions;
        hf->model->info.extended_len = hf->max_positions;
        pe_build_note(hf->model, PE_INFO, pe_hf_get(hf, "model_type"),
                      method == PE_HF_NONE
                          ? "model_type %s has no positions in its attention"
                          : "model_type %s has relative terms of its own, which are "
                            "not read",
                      hf->model_type);
        return pe_hf_plain_layers(hf, PE_SITE_SELF, -1);
    }
}

pe_status pe_read_hf(pe_model *model, const pe_checkpoint *checkpoint, int64_t seq_len,
                     pe_error *error)
{
    pe_hf hf = {.model = model,
                .checkpoint = checkpoint,
                .settings = &checkpoint->settings,
                .error = error,
                .seq_len = seq_len};
    find_text_model(&hf);
    note_outside(&hf);
    hf.arch = pe_hf_find_arch(hf.model_type);
    model->info.model_type = hf.model_type;
    if (*hf.model_type == '\0')
        pe_build_note(model, PE_WARNING, NULL,
                      "model_type is not stated: only what the keys say is read");
    pe_status status = refuse_unread(&hf);
    if (status == PE_OK)
        status = pe_hf_read_shape(&hf);
    return status == PE_OK ? read_method(&hf, method_of(&hf)) : status;
}
