/* SPDX-License-Identifier: MIT
 *
 * gguf_scaling.c - {arch}.rope.scaling.*: the rule, its numbers, and what is lost
 *
 * What Hugging Face states and GGUF has no key for is named in notes: truncate, mscale
 * beside mscale_all_dim, dynamic, and a rope_scaling of sliding layers. */
#include "model/gguf_dialect.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

typedef struct scaling {
    const pe_setting *type, *factor_setting;
    double factor;       /* 0: not stated */
    int32_t has_factors; /* rope_factors_long and _short are there */
    int32_t is_unscaled; /* these layers keep the trained frequencies */
} scaling;

/* llama.cpp's yarn_attn_factor: Peng et al. 2023 eq. 22, with mscale in it. */
static double magnitude(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

static void name_type(pe_draft *draft, const char *name, const pe_setting *setting,
                      pe_source source, const char *reason)
{
    const pe_claim claim = {.setting = setting, .source = source, .reason = reason};
    pe_draft_text(draft, "rope_type", name, &claim);
}

/* An optional number above 0; absent ones leave *out alone. */
static pe_status read_positive(pe_gguf *g, pe_draft *draft, const char *name,
                               const char *field, double *out)
{
    const pe_setting *setting = NULL;
    pe_status status = pe_gguf_number(g, name, out, &setting);
    if (status != PE_OK || setting == NULL)
        return status;
    if (!(*out > 0))
        return pe_fail(g->error, PE_E_ARGUMENT, "%s is %.40s, must be above 0",
                       setting->path, setting->text);
    const pe_claim claim = pe_gguf_stated(setting);
    pe_draft_number(draft, field, *out, &claim);
    return PE_OK;
}

static pe_status read_factor(pe_gguf *g, scaling *s)
{
    pe_status status =
        pe_gguf_number(g, "rope.scaling.factor", &s->factor, &s->factor_setting);
    if (status == PE_OK && s->factor_setting == NULL) {
        status = pe_gguf_number(g, "rope.scale_linear", &s->factor, &s->factor_setting);
        if (s->factor_setting != NULL)
            pe_build_note(g->model, PE_INFO, s->factor_setting,
                          "rope.scale_linear is the older name of rope.scaling.factor");
    }
    if (status == PE_OK && s->factor != 0 && !(s->factor >= 1))
        return pe_fail(g->error, PE_E_ARGUMENT, "%s is %.40s, must be 0 or at least 1",
                       s->factor_setting->path, s->factor_setting->text);
    return status;
}

static pe_status read_original(pe_gguf *g, pe_rope_spec *spec, pe_draft *draft)
{
    const pe_setting *setting = NULL;
    int64_t *out = &spec->freqs.original_max_position_embeddings;
    pe_status status = pe_gguf_integer(g, "rope.scaling.original_context_length", 1,
                                       INT64_C(1) << 40, out, &setting);
    if (status != PE_OK)
        return status;
    pe_claim claim = pe_gguf_stated(setting);
    if (setting == NULL) {
        if (g->context == 0)
            return pe_fail(g->error, PE_E_ARGUMENT,
                           "%s.rope.scaling.original_context_length is not stated, nor "
                           "is context_length",
                           g->name);
        *out = g->context;
        claim = (pe_claim){.source = PE_DEFAULTED,
                           .reason = "not stated: llama.cpp takes context_length"};
        pe_build_note(g->model, PE_WARNING, NULL,
                      "rope.scaling.original_context_length is not stated, "
                      "context_length (%lld) is taken for it",
                      (long long)g->context);
    }
    pe_draft_integer(draft, "original_max_position_embeddings", *out, &claim);
    return PE_OK;
}

/* Scaling stretches what was trained; context_length may already say so. */
static void set_lengths(pe_gguf *g, const pe_rope_spec *spec)
{
    pe_model_info *info = &g->model->info;
    const int64_t original = spec->freqs.original_max_position_embeddings;
    if (original != 0) {
        const double stretched = spec->freqs.factor * (double)original;
        info->trained_len = original;
        info->extended_len = g->context;
        if (stretched > (double)g->context && stretched < 0x1p53)
            info->extended_len = (int64_t)stretched;
    }
}

/* yarn_log_multiplier is mscale_all_dim, in DeepSeek's files times 0.1.  mscale itself
 * is not in the file. */
static pe_status read_log_multiplier(pe_gguf *g, pe_rope_spec *spec, pe_draft *draft)
{
    const pe_setting *setting = NULL;
    double stored = 0;
    pe_freqs *freqs = &spec->freqs;
    pe_status status =
        pe_gguf_number(g, "rope.scaling.yarn_log_multiplier", &stored, &setting);
    if (status != PE_OK || setting == NULL || stored == 0)
        return status;
    if (!(stored > 0))
        return pe_fail(g->error, PE_E_ARGUMENT, "%s is %.40s, must be at least 0",
                       setting->path, setting->text);
    const int is_tenth = (g->arch->flags & PE_GGUF_LOG_TENTH) != 0;
    pe_claim claim = {.setting = setting, .source = PE_STATED};
    if (is_tenth) {
        freqs->mscale_all_dim = (double)((float)stored / 0.1f);
        claim.source = PE_DERIVED;
        claim.reason = "the converter stores 0.1 mscale_all_dim for this architecture";
        if (stored > 0.1001)
            pe_build_note(g->model, PE_WARNING, setting,
                          "yarn_log_multiplier is %s, above 0.1: the file may be older "
                          "than the rule that stores 0.1 mscale_all_dim",
                          setting->text);
    } else {
        freqs->mscale_all_dim = stored;
    }
    pe_draft_number(draft, "mscale_all_dim", freqs->mscale_all_dim, &claim);
    const int as_all = strcmp(g->name, "deepseek2") == 0;
    freqs->mscale = as_all ? freqs->mscale_all_dim : 1;
    claim = (pe_claim){.source = PE_DEFAULTED,
                       .reason = as_all ? "not in GGUF: llama.cpp takes mscale_all_dim"
                                        : "not in GGUF: llama.cpp takes 1"};
    pe_draft_number(draft, "mscale", freqs->mscale, &claim);
    pe_build_note(g->model, PE_INFO, setting,
                  "GGUF keeps mscale_all_dim (as yarn_log_multiplier) but not mscale");
    freqs->mscale_rule = is_tenth ? PE_MSCALE_DEEPSEEK : PE_MSCALE_HF;
    claim = pe_gguf_claim(
        g, PE_DERIVED,
        is_tenth ? "multi-head latent attention: the ratio goes to cos and "
                   "sin, m(mscale_all_dim)^2 to the softmax scale"
                 : "the ratio of both goes to cos and sin");
    pe_draft_text(draft, "mscale_rule", is_tenth ? "deepseek" : "hf", &claim);
    return PE_OK;
}

/* attn_factor multiplies what yarn derives; yarn_attn_factor is Hugging Face's
 * attention_factor, the whole of it. */
static pe_status read_yarn_magnitude(pe_gguf *g, pe_rope_spec *spec, pe_draft *draft)
{
    pe_freqs *freqs = &spec->freqs;
    const pe_setting *whole = NULL, *extra = NULL;
    double stated = 0, times = 1;
    pe_status status =
        pe_gguf_number(g, "rope.scaling.yarn_attn_factor", &stated, &whole);
    if (status == PE_OK)
        status = pe_gguf_number(g, "rope.scaling.attn_factor", &times, &extra);
    if (status != PE_OK)
        return status;
    if ((whole != NULL && !(stated > 0)) || !(times > 0))
        return pe_fail(g->error, PE_E_ARGUMENT, "%s is %.40s, must be above 0",
                       times > 0 ? whole->path : extra->path,
                       times > 0 ? whole->text : extra->text);
    const double derived = freqs->mscale_all_dim == 0
                               ? magnitude(freqs->factor, 1)
                               : magnitude(freqs->factor, freqs->mscale) /
                                     magnitude(freqs->factor, freqs->mscale_all_dim);
    if (whole != NULL) {
        const pe_claim claim = pe_gguf_stated(whole);
        freqs->attention_factor = stated;
        pe_draft_number(draft, "attention_factor", stated, &claim);
        if (fabs(stated - derived) > 1e-6 * derived)
            pe_build_note(g->model, PE_WARNING, whole,
                          "yarn_attn_factor is %s, the attention factor that Hugging "
                          "Face stated; llama.cpp replaces it by %.9g",
                          whole->text, derived);
    } else if (extra != NULL && times != 1) {
        const pe_claim claim = {.setting = extra,
                                .source = PE_DERIVED,
                                .reason = "attn_factor times what yarn derives"};
        freqs->attention_factor = times * derived;
        pe_draft_number(draft, "attention_factor", freqs->attention_factor, &claim);
    }
    return PE_OK;
}

static pe_status read_yarn(pe_gguf *g, const scaling *s, pe_rope_spec *spec,
                           pe_draft *draft)
{
    const pe_setting *setting = NULL;
    double extrapolation = 1;
    pe_status status =
        pe_gguf_number(g, "rope.scaling.yarn_ext_factor", &extrapolation, &setting);
    if (status == PE_OK && setting != NULL && extrapolation != 1)
        return pe_fail(g->error, PE_E_UNSUPPORTED,
                       "%s is %.40s: a yarn_ext_factor other than 1 is not read",
                       setting->path, setting->text);
    if (status == PE_OK)
        status = read_original(g, spec, draft);
    if (status != PE_OK)
        return status;
    const pe_claim claim = pe_gguf_stated(s->factor_setting);
    spec->freqs.factor = s->factor;
    pe_draft_number(draft, "factor", s->factor, &claim);
    status = read_positive(g, draft, "rope.scaling.yarn_beta_fast", "beta_fast",
                           &spec->freqs.beta_fast);
    if (status == PE_OK)
        status = read_positive(g, draft, "rope.scaling.yarn_beta_slow", "beta_slow",
                               &spec->freqs.beta_slow);
    if (status == PE_OK)
        status = read_log_multiplier(g, spec, draft);
    if (status == PE_OK)
        status = read_yarn_magnitude(g, spec, draft);
    const int is_gpt_oss = strcmp(g->name, "gpt-oss") == 0;
    pe_build_note(g->model, is_gpt_oss ? PE_WARNING : PE_INFO, s->type,
                  is_gpt_oss ? "GGUF cannot say truncate: gpt-oss was trained with it "
                               "false, llama.cpp rounds the correction range"
                             : "GGUF cannot say truncate: the correction range is "
                               "rounded, as llama.cpp does");
    set_lengths(g, spec);
    return status;
}

static pe_status read_longrope(pe_gguf *g, const scaling *s, pe_rope_spec *spec,
                               pe_draft *draft)
{
    pe_freqs *freqs = &spec->freqs;
    const int64_t count = spec->pairs.rotary_dim / 2;
    pe_status status = read_original(g, spec, draft);
    if (status == PE_OK)
        status =
            pe_gguf_factors(g, "rope_factors_long.weight", count, &freqs->long_factor);
    if (status == PE_OK)
        status = pe_gguf_factors(g, "rope_factors_short.weight", count,
                                 &freqs->short_factor);
    if (status == PE_OK)
        status = read_positive(g, draft, "rope.scaling.attn_factor", "attention_factor",
                               &freqs->attention_factor);
    if (status != PE_OK)
        return status;
    const double original = (double)freqs->original_max_position_embeddings;
    pe_claim claim = {.source = PE_DERIVED,
                      .reason = "context_length / original_context_length"};
    freqs->factor = (double)g->context / original;
    if (s->factor > 1) {
        freqs->factor = s->factor;
        claim = pe_gguf_stated(s->factor_setting);
    }
    if (!(freqs->factor >= 1))
        freqs->factor = 1;
    pe_draft_number(draft, "factor", freqs->factor, &claim);
    claim = (pe_claim){.source = PE_STATED, .reason = "rope_factors_short.weight"};
    pe_draft_text(draft, "short_factor", "in the file", &claim);
    claim.reason = "rope_factors_long.weight";
    pe_draft_text(draft, "long_factor", "in the file", &claim);
    freqs->max_position_embeddings = g->context;
    freqs->seq_len = g->seq_len;
    set_lengths(g, spec);
    return PE_OK;
}

/* Hunyuan's alpha: theta grows, nothing is divided. */
static pe_status read_alpha(pe_gguf *g, pe_rope_spec *spec, pe_draft *draft)
{
    const pe_setting *setting = NULL;
    double alpha = 0;
    pe_status status = pe_gguf_number(g, "rope.scaling.alpha", &alpha, &setting);
    if (status != PE_OK || setting == NULL || alpha == 0 || alpha == 1)
        return status;
    if (!(alpha > 1))
        return pe_fail(g->error, PE_E_ARGUMENT, "%s is %.40s, must be 0 or at least 1",
                       setting->path, setting->text);
    const pe_claim claim = pe_gguf_stated(setting);
    spec->freqs.rope_type = PE_ROPE_NTK;
    spec->freqs.factor = alpha;
    name_type(draft, "ntk", setting, PE_DERIVED, "alpha is a fixed NTK base change");
    pe_draft_number(draft, "factor", alpha, &claim);
    return PE_OK;
}

static void read_linear(pe_gguf *g, const scaling *s, pe_rope_spec *spec,
                        pe_draft *draft)
{
    const pe_claim claim = pe_gguf_stated(s->factor_setting);
    const pe_setting *setting = NULL;
    int64_t original = 0;
    spec->freqs.rope_type = PE_ROPE_LINEAR;
    spec->freqs.factor = s->factor;
    name_type(draft, "linear", s->type, s->type ? PE_STATED : PE_DEFAULTED,
              s->type ? NULL : "not stated: llama.cpp's default beside a factor");
    pe_draft_number(draft, "factor", s->factor, &claim);
    if (pe_gguf_integer(g, "rope.scaling.original_context_length", 1, INT64_C(1) << 40,
                        &original, &setting) == PE_OK &&
        setting != NULL) {
        spec->freqs.original_max_position_embeddings = original;
        set_lengths(g, spec);
        spec->freqs.original_max_position_embeddings = 0;
    }
}

/* No rule, or one that comes to nothing. */
static pe_status read_none(pe_gguf *g, const scaling *s, pe_rope_spec *spec,
                           pe_draft *draft)
{
    const pe_setting *setting = NULL;
    double times = 1;
    pe_status status = read_alpha(g, spec, draft);
    if (status != PE_OK || spec->freqs.rope_type == PE_ROPE_NTK)
        return status;
    if (s->type != NULL && strcmp(s->type->text, "none") != 0)
        pe_build_note(g->model, PE_WARNING, s->type,
                      "rope.scaling.type is %s, but no factor above 1 is stated: "
                      "nothing is scaled",
                      s->type->text);
    else if (s->type != NULL && s->factor > 1)
        pe_build_note(g->model, PE_WARNING, s->factor_setting,
                      "the factor %s is ignored: rope.scaling.type is none",
                      s->factor_setting->text);
    name_type(draft, "default", s->type, s->type ? PE_DERIVED : PE_DEFAULTED,
              s->type ? "nothing is scaled" : "no scaling is stated");
    status = pe_gguf_number(g, "rope.scaling.attn_factor", &times, &setting);
    if (status != PE_OK || setting == NULL || times == 1)
        return status;
    if (!(times > 0))
        return pe_fail(g->error, PE_E_ARGUMENT, "%s is %.40s, must be above 0",
                       setting->path, setting->text);
    const pe_claim claim = pe_gguf_stated(setting);
    spec->freqs.attention_factor = times;
    pe_draft_number(draft, "attention_factor", times, &claim);
    pe_build_note(g->model, PE_WARNING, setting,
                  "attn_factor is %s, but neither a rule nor rope_factors weights are "
                  "in the file: frequencies are unscaled",
                  setting->text);
    return PE_OK;
}

pe_status pe_gguf_scaling(pe_gguf *g, int32_t is_sliding, pe_rope_spec *spec,
                          pe_draft *draft)
{
    const pe_weights *weights = &g->checkpoint->weights;
    scaling s = {
        .type = pe_gguf_get(g, "rope.scaling.type"),
        .has_factors = pe_weights_find(weights, "rope_factors_long.weight") != NULL &&
                       pe_weights_find(weights, "rope_factors_short.weight") != NULL,
        .is_unscaled = is_sliding &&
                       (g->arch->flags & (PE_GGUF_OWN_BASE | PE_GGUF_UNSCALED)) != 0};
    if (s.is_unscaled) {
        name_type(draft, "default", NULL, PE_DERIVED,
                  "llama.cpp: sliding layers of this architecture are not scaled");
        return PE_OK;
    }
    pe_status status = read_factor(g, &s);
    if (status != PE_OK)
        return status;
    const char *type = s.type == NULL                      ? ""
                       : s.type->type == PE_SETTING_STRING ? s.type->text
                                                           : "?";
    const int is_scaled = s.factor > 1;
    if (s.has_factors && spec->head_dim != 0 &&
        (*type == '\0' || strcmp(type, "longrope") == 0)) {
        spec->freqs.rope_type = PE_ROPE_LONGROPE;
        name_type(draft, "longrope", s.type, s.type ? PE_STATED : PE_DERIVED,
                  s.type ? NULL : "the file has rope_factors_long and _short");
        return read_longrope(g, &s, spec, draft);
    }
    if (strcmp(type, "longrope") == 0)
        return pe_fail(g->error, PE_E_ARGUMENT,
                       "%s is longrope, but the weights rope_factors_long and "
                       "rope_factors_short are not in the file",
                       s.type->path);
    if (*type != '\0' && strcmp(type, "none") != 0 && strcmp(type, "linear") != 0 &&
        strcmp(type, "yarn") != 0)
        return pe_fail(g->error, PE_E_UNSUPPORTED,
                       "%s is \"%.60s\", must be none, linear, yarn or longrope",
                       s.type->path, s.type->text);
    if (strcmp(type, "none") == 0 || !is_scaled)
        return read_none(g, &s, spec, draft);
    if (strcmp(type, "yarn") != 0) {
        read_linear(g, &s, spec, draft);
        return PE_OK;
    }
    spec->freqs.rope_type = PE_ROPE_YARN;
    name_type(draft, "yarn", s.type, PE_STATED, NULL);
    return read_yarn(g, &s, spec, draft);
}
