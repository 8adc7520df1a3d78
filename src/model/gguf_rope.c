/* SPDX-License-Identifier: MIT
 *
 * gguf_rope.c - the rope of full or of sliding layers: width, pairing, theta, axes
 */
#include "model/gguf_dialect.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { HEAD_DIM_MAX = 4096 };

static pe_status read_head_dim(pe_gguf *g, int32_t is_sliding, pe_rope_spec *spec,
                               pe_draft *draft)
{
    static const char *const names[] = {
        "attention.key_length_swa", "attention.key_length_mla", "attention.key_length"};
    for (size_t i = is_sliding ? 0 : 1; i < PE_COUNT(names); i++) {
        const pe_setting *setting = NULL;
        int64_t dim = 0;
        pe_status status =
            pe_gguf_integer(g, names[i], 2, HEAD_DIM_MAX, &dim, &setting);
        if (status != PE_OK)
            return status;
        if (setting == NULL)
            continue;
        if (dim % 2 != 0)
            return pe_fail(g->error, PE_E_ARGUMENT, "%s is %lld, must be even",
                           setting->path, (long long)dim);
        const pe_claim claim = pe_gguf_stated(setting);
        spec->head_dim = (int32_t)dim;
        pe_draft_integer(draft, "head_dim", dim, &claim);
        return PE_OK;
    }
    if (g->width == 0 || g->num_heads == 0) {
        pe_build_note(g->model, PE_WARNING, NULL,
                      "head_dim is unknown: neither attention.key_length nor "
                      "embedding_length and attention.head_count are stated");
        return PE_OK;
    }
    const int64_t dim = g->width / g->num_heads;
    if (g->width % g->num_heads != 0 || dim % 2 != 0 || dim > HEAD_DIM_MAX)
        return pe_fail(g->error, PE_E_ARGUMENT,
                       "embedding_length is %lld, attention.head_count %lld: head_dim "
                       "must be even and at most %d",
                       (long long)g->width, (long long)g->num_heads, HEAD_DIM_MAX);
    spec->head_dim = (int32_t)dim;
    const pe_claim claim = {
        .source = PE_DERIVED,
        .reason = pe_arena_format(&g->model->arena,
                                  "embedding_length %lld / attention.head_count %lld",
                                  (long long)g->width, (long long)g->num_heads)};
    pe_draft_integer(draft, "head_dim", dim, &claim);
    return PE_OK;
}

static pe_status read_window(pe_gguf *g, int32_t is_sliding, pe_rope_spec *spec,
                             pe_draft *draft)
{
    const pe_setting *setting = NULL;
    int64_t dim = 0;
    pe_status status = PE_OK;
    if (is_sliding)
        status = pe_gguf_integer(g, "rope.dimension_count_swa", 2, HEAD_DIM_MAX, &dim,
                                 &setting);
    if (status == PE_OK && setting == NULL)
        status =
            pe_gguf_integer(g, "rope.dimension_count", 2, HEAD_DIM_MAX, &dim, &setting);
    if (status != PE_OK)
        return status;
    if (setting == NULL) {
        if (spec->head_dim == 0)
            return PE_OK;
        const pe_claim claim = {.source = PE_DEFAULTED,
                                .reason = "not stated: the whole head turns"};
        spec->pairs.rotary_dim = spec->head_dim;
        pe_draft_integer(draft, "rotary_dim", spec->head_dim, &claim);
        return PE_OK;
    }
    if (dim % 2 != 0 || (spec->head_dim != 0 && dim > spec->head_dim))
        return pe_fail(g->error, PE_E_ARGUMENT,
                       "%s is %lld, must be even and at most head_dim (%d)",
                       setting->path, (long long)dim, spec->head_dim);
    const pe_claim claim = pe_gguf_stated(setting);
    spec->pairs.rotary_dim = (int32_t)dim;
    pe_draft_integer(draft, "rotary_dim", dim, &claim);
    if (spec->head_dim == 0)
        spec->head_dim = (int32_t)dim;
    if (strcmp(g->name, "llama") == 0 && dim != spec->head_dim)
        pe_build_note(g->model, PE_WARNING, setting,
                      "rope.dimension_count is %lld, but heads have %d: llama.cpp "
                      "refuses that for llama",
                      (long long)dim, spec->head_dim);
    if ((g->arch->flags & PE_GGUF_TAIL) != 0 && dim < spec->head_dim) {
        const pe_claim tail = pe_gguf_claim(
            g, PE_DERIVED, "a query is [nope | rope]: the last part turns");
        spec->pairs.rotary_start = spec->head_dim - (int32_t)dim;
        pe_draft_integer(draft, "rotary_start", spec->pairs.rotary_start, &tail);
    }
    return PE_OK;
}

static int has_sections(const pe_gguf *g)
{
    const pe_setting *setting = pe_gguf_get(g, "rope.dimension_sections");
    for (int64_t i = 0; setting != NULL && i < setting->num_numbers; i++) {
        if (i < 2 && setting->numbers[i] > 0)
            return 1;
    }
    return 0;
}

/* The architecture's kind with its conditions decided. */
static pe_gguf_kind kind_of(const pe_gguf *g)
{
    const pe_gguf_kind kind = g->arch->kind;
    if (kind == PE_GGUF_NORM_MROPE)
        return has_sections(g) ? PE_GGUF_MROPE : PE_GGUF_NORM;
    if (kind == PE_GGUF_NEOX_MROPE)
        return has_sections(g) ? PE_GGUF_MROPE : PE_GGUF_NEOX;
    return kind;
}

static void read_pairing(pe_gguf *g, pe_rope_spec *spec, pe_draft *draft)
{
    const pe_gguf_kind kind = kind_of(g);
    pe_claim claim = pe_gguf_claim(
        g, PE_DERIVED,
        kind == PE_GGUF_NORM    ? "llama.cpp: NORM for this architecture"
        : kind == PE_GGUF_NEOX  ? "llama.cpp: NEOX for this architecture"
        : kind == PE_GGUF_MROPE ? "llama.cpp: MROPE for this architecture"
                                : "llama.cpp: IMROPE for this architecture");
    spec->pairs.pairing = kind == PE_GGUF_NORM ? PE_INTERLEAVED : PE_HALF_SPLIT;
    if (kind == PE_GGUF_UNKNOWN) {
        claim = (pe_claim){.source = PE_DEFAULTED,
                           .reason = "architecture is not known; most are NEOX"};
        pe_build_note(g->model, PE_WARNING, NULL,
                      "pairing is a guess (half-split): architecture %s is not known, "
                      "and GGUF never states it",
                      g->name);
    }
    pe_draft_text(draft, "pairing",
                  spec->pairs.pairing == PE_INTERLEAVED ? "interleaved" : "half-split",
                  &claim);
    if (strcmp(g->name, "llama") == 0 || strcmp(g->name, "mistral3") == 0)
        pe_build_note(g->model, PE_INFO, NULL,
                      "the converter permutes rows of q and k: the Hugging Face "
                      "checkpoint of this model is half-split");
}

static pe_status read_theta(pe_gguf *g, int32_t is_sliding, pe_rope_spec *spec,
                            pe_draft *draft)
{
    const pe_setting *setting = NULL;
    double theta = 0;
    pe_status status = PE_OK;
    const int own_base = is_sliding && (g->arch->flags & PE_GGUF_OWN_BASE) != 0;
    if (is_sliding)
        status = pe_gguf_number(g, "rope.freq_base_swa", &theta, &setting);
    if (status == PE_OK && setting == NULL && !own_base)
        status = pe_gguf_number(g, "rope.freq_base", &theta, &setting);
    if (status != PE_OK)
        return status;
    if (setting != NULL) {
        if (!(theta > 1))
            return pe_fail(g->error, PE_E_ARGUMENT, "%s is %.40s, must be above 1",
                           setting->path, setting->text);
        const pe_claim claim = pe_gguf_stated(setting);
        spec->freqs.rope_theta = theta;
        pe_draft_number(draft, "rope_theta", theta, &claim);
        return PE_OK;
    }
    const pe_claim claim = {.source = PE_DEFAULTED,
                            .reason = "not stated: llama.cpp's default"};
    spec->freqs.rope_theta = 10000;
    pe_draft_number(draft, "rope_theta", 10000, &claim);
    pe_build_note(g->model, own_base ? PE_INFO : PE_WARNING, NULL,
                  "%s.rope.freq_base%s is not stated, 10000 is llama.cpp's default%s",
                  g->name, own_base ? "_swa" : "",
                  own_base ? " for sliding layers" : ", not a fact about this model");
    return PE_OK;
}

/* ggml's rule for sections in turns sends pairs past a section to an unused fourth
 * axis; models were trained with the time axis there. */
static void note_imrope(pe_gguf *g, const pe_rope_spec *spec, const pe_setting *setting)
{
    const int32_t *section = spec->axes.section;
    char pairs[80] = "";
    for (int32_t i = 0; i < spec->pairs.rotary_dim / 2; i++) {
        const int trained_time = i % 3 == 0 || i >= 3 * section[i % 3];
        const int ggml_time = i % 3 == 0 && i < 3 * section[0];
        const size_t used = strlen(pairs);
        if (trained_time && !ggml_time && used < sizeof pairs - 16) {
            (void)snprintf(pairs + used, sizeof pairs - used, "%s%d", used ? ", " : "",
                           i);
        }
    }
    if (*pairs != '\0')
        pe_build_note(g->model, PE_WARNING, setting,
                      "pairs %s follow time, as the model was trained; ggml's IMROPE "
                      "gives them an unused fourth axis",
                      pairs);
}

static pe_status read_axes(pe_gguf *g, pe_rope_spec *spec, pe_draft *draft)
{
    const pe_setting *setting = pe_gguf_get(g, "rope.dimension_sections");
    const pe_gguf_kind kind = kind_of(g);
    const int is_multi = kind == PE_GGUF_MROPE || kind == PE_GGUF_IMROPE;
    int64_t sum = 0;
    if (setting == NULL || !has_sections(g)) {
        if (kind == PE_GGUF_MROPE || kind == PE_GGUF_IMROPE)
            return pe_fail(g->error, PE_E_ARGUMENT,
                           "%s.rope.dimension_sections is not stated, architecture %s "
                           "needs it",
                           g->name, g->name);
        return PE_OK;
    }
    if (!is_multi) {
        pe_build_note(g->model, PE_WARNING, setting,
                      "rope.dimension_sections is not read by architecture %s, which "
                      "turns along one axis",
                      g->name);
        return PE_OK;
    }
    if (setting->num_numbers < 3 || setting->num_numbers > 4)
        return pe_fail(g->error, PE_E_ARGUMENT,
                       "%s is %.60s, must be an array of 3 or 4 counts", setting->path,
                       setting->text);
    for (int64_t i = 0; i < setting->num_numbers; i++) {
        const double count = setting->numbers[i];
        if (!(count >= 0 && count <= 2048) || count != (double)(int32_t)count)
            return pe_fail(g->error, PE_E_ARGUMENT,
                           "%s is %.60s, must be an array of counts in 0..2048",
                           setting->path, setting->text);
        spec->axes.section[i] = (int32_t)count;
        sum += (int64_t)count;
    }
    if (spec->head_dim != 0 && 2 * sum != spec->pairs.rotary_dim)
        return pe_fail(g->error, PE_E_ARGUMENT,
                       "%s sums to %lld, must be rotary_dim / 2 (%d)", setting->path,
                       (long long)sum, spec->pairs.rotary_dim / 2);
    if (kind == PE_GGUF_IMROPE && spec->axes.section[3] != 0)
        return pe_fail(g->error, PE_E_UNSUPPORTED,
                       "%s is %.60s: four axes in turns are not read", setting->path,
                       setting->text);
    const pe_claim claim = pe_gguf_stated(setting);
    const pe_claim map = pe_gguf_claim(g, PE_DERIVED,
                                       kind == PE_GGUF_MROPE
                                           ? "llama.cpp: MROPE for this architecture"
                                           : "llama.cpp: IMROPE for this architecture");
    spec->axes.map = kind == PE_GGUF_MROPE ? PE_AXIS_CHUNKED : PE_AXIS_INTERLEAVED;
    pe_draft_text(draft, "axis_map", kind == PE_GGUF_MROPE ? "chunked" : "interleaved",
                  &map);
    pe_draft_text(draft, "mrope_section", setting->text, &claim);
    if (kind == PE_GGUF_IMROPE)
        note_imrope(g, spec, setting);
    return PE_OK;
}

/* rope_freqs.weight: what is left of llama3 and of proportional rules in GGUF. */
static pe_status read_freq_factors(pe_gguf *g, int32_t is_sliding, pe_rope_spec *spec,
                                   pe_draft *draft)
{
    static const char name[] = "rope_freqs.weight";
    if (is_sliding && (g->arch->flags & PE_GGUF_FACTORS_FULL) != 0)
        return PE_OK;
    if (spec->head_dim == 0)
        return PE_OK;
    const double **out = &spec->freqs.freq_factors;
    pe_status status = pe_gguf_factors(g, name, spec->pairs.rotary_dim / 2, out);
    if (status != PE_OK || *out == NULL)
        return status;
    const double last = (*out)[spec->pairs.rotary_dim / 2 - 1];
    const pe_claim claim = {.source = PE_STATED, .reason = name};
    char first_text[32], last_text[32];
    char value[72];
    (void)snprintf(value, sizeof value, "%s .. %s",
                   pe_number_text((*out)[0], first_text),
                   pe_number_text(last, last_text));
    pe_draft_text(draft, "freq_factors", value, &claim);
    pe_build_note(g->model, PE_INFO, NULL,
                  "rope_freqs.weight divides the frequencies (by %s for the slowest): "
                  "the rule it was made by, and the length trained before it, are not "
                  "in the file",
                  pe_number_text(last, last_text));
    return PE_OK;
}

pe_status pe_gguf_rope(pe_gguf *g, int32_t is_sliding, int32_t *rope)
{
    pe_rope_spec spec = {.struct_size = sizeof spec};
    pe_draft draft = {.model = g->model};
    pe_status status = read_head_dim(g, is_sliding, &spec, &draft);
    if (status == PE_OK) {
        read_pairing(g, &spec, &draft);
        status = read_window(g, is_sliding, &spec, &draft);
    }
    if (status == PE_OK)
        status = read_theta(g, is_sliding, &spec, &draft);
    if (status == PE_OK)
        status = pe_gguf_scaling(g, is_sliding, &spec, &draft);
    if (status == PE_OK)
        status = read_freq_factors(g, is_sliding, &spec, &draft);
    if (status == PE_OK)
        status = read_axes(g, &spec, &draft);
    if (status == PE_OK)
        *rope = pe_build_rope(g->model, &spec, &draft);
    return status;
}
