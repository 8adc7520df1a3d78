/* SPDX-License-Identifier: MIT
 *
 * preset_dialect.c - one object of data/presets.json into a model
 *
 * A preset states resolved specs, site by site, so nothing is derived here; a key or
 * word that is not known is an error, which the tests of the file rely on. */
#include "model/build.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

typedef struct preset {
    pe_model *model;
    const pe_settings *settings;
    const char *source;
    int64_t seq_len;
    pe_error *error;
} preset;

typedef enum kind { NUMBER, INT32, INT64, WORD, NUMBERS, SECTION, FALSE_IS_1 } kind;

typedef struct key {
    const char *name;
    kind kind;
    size_t offset;            /* in pe_rope_spec, or in pe_bias_spec */
    const char *const *words; /* WORD: the name of value i, NULL where none */
    int32_t num_words;
} key;

static const char *const pairings[] = {NULL, "half-split", "interleaved"};
static const char *const rope_types[] = {"default", "linear",       "ntk",
                                         "dynamic", "yarn",         "longrope",
                                         "llama3",  "proportional", "custom"};
static const char *const mscale_rules[] = {"hf", "deepseek", "ignore"};
static const char *const axis_maps[] = {"single", "chunked", "interleaved",
                                        "imrope", "ernie",   "split"};
static const char *const forms[] = {NULL, "causal", "bidirectional", "key-only"};
static const char *const bias_types[] = {NULL, "alibi", "t5"};
static const char *const dtypes[] = {NULL, "f32", "f16", "bf16"};
static const char *const orders[] = {NULL, "sin-cos-interleaved", "sin-cos-halves",
                                     "cos-sin-halves"};
static const char *const roles[] = {"self",     "cross",   "indexer",
                                    "compress", "encoder", "vision"};

#define LIST(words)  words, (int32_t)PE_COUNT(words)
#define ROPE(member) offsetof(pe_rope_spec, member)

/* clang-format off */
static const key rope_keys[] = {
    {"pairing",               WORD, ROPE(pairs.pairing), LIST(pairings)},
    {"out_pairing",           WORD, ROPE(pairs.out_pairing), LIST(pairings)},
    {"head_dim",              INT32, ROPE(head_dim), NULL, 0},
    {"rotary_dim",            INT32, ROPE(pairs.rotary_dim), NULL, 0},
    {"rotary_start",          INT32, ROPE(pairs.rotary_start), NULL, 0},
    {"reversed",              INT32, ROPE(pairs.reversed), NULL, 0},
    {"axis_map",              WORD, ROPE(axes.map), LIST(axis_maps)},
    {"mrope_section",         SECTION, ROPE(axes.section), NULL, 0},
    {"rope_theta",            NUMBER, ROPE(freqs.rope_theta), NULL, 0},
    {"rope_type",             WORD, ROPE(freqs.rope_type), LIST(rope_types)},
    {"factor",                NUMBER, ROPE(freqs.factor), NULL, 0},
    {"attention_factor",      NUMBER, ROPE(freqs.attention_factor), NULL, 0},
    {"max_position_embeddings", INT64, ROPE(freqs.max_position_embeddings), NULL, 0},
    {"original_max_position_embeddings", INT64,
                              ROPE(freqs.original_max_position_embeddings), NULL, 0},
    {"beta_fast",             NUMBER, ROPE(freqs.beta_fast), NULL, 0},
    {"beta_slow",             NUMBER, ROPE(freqs.beta_slow), NULL, 0},
    {"truncate",              FALSE_IS_1, ROPE(freqs.no_truncate), NULL, 0},
    {"mscale",                NUMBER, ROPE(freqs.mscale), NULL, 0},
    {"mscale_all_dim",        NUMBER, ROPE(freqs.mscale_all_dim), NULL, 0},
    {"mscale_rule",           WORD, ROPE(freqs.mscale_rule), LIST(mscale_rules)},
    {"low_freq_factor",       NUMBER, ROPE(freqs.low_freq_factor), NULL, 0},
    {"high_freq_factor",      NUMBER, ROPE(freqs.high_freq_factor), NULL, 0},
    {"partial_rotary_factor", NUMBER, ROPE(freqs.partial_rotary_factor), NULL, 0},
    {"short_factor",          NUMBERS, ROPE(freqs.short_factor), NULL, 0},
    {"long_factor",           NUMBERS, ROPE(freqs.long_factor), NULL, 0},
    {"inv_freq",              NUMBERS, ROPE(freqs.inv_freq), NULL, 0},
};

#define BIAS(member) offsetof(pe_bias_spec, member)
static const key bias_keys[] = {
    {"type",         WORD, BIAS(type), LIST(bias_types)},
    {"form",         WORD, BIAS(form), LIST(forms)},
    {"num_heads",    INT32, BIAS(num_heads), NULL, 0},
    {"max_bias",     NUMBER, BIAS(max_bias), NULL, 0},
    {"scale",        NUMBER, BIAS(scale), NULL, 0},
    {"round_to",     WORD, BIAS(round_to), LIST(dtypes)},
    {"num_buckets",  INT32, BIAS(num_buckets), NULL, 0},
    {"max_distance", INT64, BIAS(max_distance), NULL, 0},
};

#define SINE(member) offsetof(pe_sinusoidal_spec, member)
static const key sinusoidal_keys[] = {
    {"order",                WORD, SINE(order), LIST(orders)},
    {"model_dim",            INT32, SINE(model_dim), NULL, 0},
    {"num_axes",             INT32, SINE(num_axes), NULL, 0},
    {"base",                 NUMBER, SINE(base), NULL, 0},
    {"downscale_freq_shift", NUMBER, SINE(downscale_freq_shift), NULL, 0},
    {"position_scale",       NUMBER, SINE(position_scale), NULL, 0},
    {"embed_scale",          NUMBER, SINE(embed_scale), NULL, 0},
    {"padding_position",     INT64, SINE(padding_position), NULL, 0},
    {"has_padding",          INT32, SINE(has_padding), NULL, 0},
};
/* clang-format on */

static pe_status bad(const preset *p, const pe_setting *setting, const char *expected)
{
    return pe_fail(p->error, PE_E_FORMAT, "%.100s is %.60s, must be %s", setting->path,
                   setting->text, expected);
}

static int word_index(const char *word, const char *const *words, int32_t num)
{
    for (int32_t i = 0; i < num; i++) {
        if (words[i] != NULL && strcmp(words[i], word) == 0)
            return i;
    }
    return -1;
}

static pe_status store(const preset *p, const key *k, const pe_setting *setting,
                       void *spec)
{
    char *at = (char *)spec + k->offset;
    const int is_integer = setting->type == PE_SETTING_INTEGER;
    const int32_t small = (int32_t)setting->integer;
    int32_t index = 0;
    switch (k->kind) {
    case NUMBER:
        if (!is_integer && setting->type != PE_SETTING_NUMBER)
            return bad(p, setting, "a number");
        memcpy(at, &setting->number, sizeof(double));
        return PE_OK;
    case INT32:
        if (!is_integer || small != setting->integer)
            return bad(p, setting, "an integer");
        memcpy(at, &small, sizeof small);
        return PE_OK;
    case INT64:
        if (!is_integer)
            return bad(p, setting, "an integer");
        memcpy(at, &setting->integer, sizeof setting->integer);
        return PE_OK;
    case WORD:
        index = word_index(setting->text, k->words, k->num_words);
        if (setting->type != PE_SETTING_STRING || index < 0)
            return bad(p, setting, "one of the names of this key");
        memcpy(at, &index, sizeof index);
        return PE_OK;
    case NUMBERS:
        if (setting->numbers == NULL)
            return bad(p, setting, "an array of numbers");
        memcpy(at, &setting->numbers, sizeof(const double *));
        return PE_OK;
    case SECTION:
        if (setting->num_numbers < 2 || setting->num_numbers > 4)
            return bad(p, setting, "an array of 2 to 4 integers");
        for (int64_t i = 0; i < setting->num_numbers; i++) {
            index = (int32_t)setting->numbers[i];
            memcpy(at + (size_t)i * sizeof index, &index, sizeof index);
        }
        return PE_OK;
    default:
        if (setting->type != PE_SETTING_BOOL)
            return bad(p, setting, "true or false");
        index = !setting->integer;
        memcpy(at, &index, sizeof index);
        return PE_OK;
    }
}

/* All settings below prefix into the spec and the draft. */
static pe_status read_block(const preset *p, const char *prefix, const key *keys,
                            size_t num_keys, void *spec, pe_draft *draft)
{
    const size_t length = strlen(prefix);
    for (int64_t i = 0; i < p->settings->num; i++) {
        const pe_setting *setting = &p->settings->entries[i].setting;
        if (strncmp(setting->path, prefix, length) != 0 || setting->path[length] != '.')
            continue;
        const char *name = setting->path + length + 1;
        size_t k = 0;
        while (k < num_keys && strcmp(keys[k].name, name) != 0)
            k++;
        if (k == num_keys)
            return pe_fail(p->error, PE_E_FORMAT, "%.160s is not a key of presets",
                           setting->path);
        pe_status status = store(p, &keys[k], setting, spec);
        if (status != PE_OK)
            return status;
        pe_draft_text(
            draft, keys[k].name, setting->text,
            &(pe_claim){.setting = setting, .reason = p->source, .source = PE_STATED});
    }
    return PE_OK;
}

static const pe_setting *get(const preset *p, const char *path)
{
    const pe_entry *entry = path == NULL ? NULL : pe_settings_find(p->settings, path);
    return entry == NULL ? NULL : &entry->setting;
}

static int64_t get_integer(const preset *p, const char *path)
{
    const pe_setting *setting = get(p, path);
    return setting == NULL ? 0 : setting->integer;
}

/* "0-4,6-10,12": calls for each layer. */
static pe_status add_sites(const preset *p, const pe_setting *layers, int32_t role,
                           int32_t rope, int32_t bias)
{
    const char *at = layers->text;
    while (*at != '\0') {
        char *end = NULL;
        const long first = strtol(at, &end, 10);
        long last = first;
        if (end == at)
            return bad(p, layers, "layer ranges as in 0-4,6");
        if (*end == '-') {
            at = end + 1;
            last = strtol(at, &end, 10);
        }
        if (end == at || first < 0 || last < first || last > 4095 ||
            (*end != ',' && *end != '\0'))
            return bad(p, layers, "layer ranges as in 0-4,6");
        for (long layer = first; layer <= last; layer++)
            pe_build_site(p->model, (int32_t)layer, role, rope, bias);
        at = *end == ',' ? end + 1 : end;
    }
    return PE_OK;
}

static pe_status read_site(const preset *p, const char *prefix)
{
    pe_arena *arena = &p->model->arena;
    const pe_setting *layers = get(p, pe_arena_format(arena, "%s.layers", prefix));
    const pe_setting *role = get(p, pe_arena_format(arena, "%s.role", prefix));
    int32_t rope = -1, bias = -1, role_index = 0;
    if (layers == NULL)
        return pe_fail(p->error, PE_E_FORMAT, "%s has no layers", prefix);
    if (role != NULL) {
        role_index = word_index(role->text, roles, (int32_t)PE_COUNT(roles));
        if (role_index < 0)
            return bad(p, role, "a role");
    }
    const char *rope_path = pe_arena_format(arena, "%s.rope", prefix);
    if (rope_path == NULL)
        return PE_E_NO_MEMORY;
    if (pe_settings_find_under(p->settings, rope_path) != NULL) {
        pe_rope_spec spec = {.struct_size = sizeof spec};
        pe_draft draft = {.model = p->model};
        pe_status status =
            read_block(p, rope_path, rope_keys, PE_COUNT(rope_keys), &spec, &draft);
        if (status != PE_OK)
            return status;
        if (spec.freqs.rope_type == PE_ROPE_DYNAMIC ||
            spec.freqs.rope_type == PE_ROPE_LONGROPE)
            spec.freqs.seq_len = p->seq_len;
        rope = pe_build_rope(p->model, &spec, &draft);
    }
    const char *bias_path = pe_arena_format(arena, "%s.bias", prefix);
    if (bias_path == NULL)
        return PE_E_NO_MEMORY;
    if (pe_settings_find_under(p->settings, bias_path) != NULL) {
        pe_bias_spec spec = {.struct_size = sizeof spec};
        pe_draft draft = {.model = p->model};
        pe_status status =
            read_block(p, bias_path, bias_keys, PE_COUNT(bias_keys), &spec, &draft);
        if (status != PE_OK)
            return status;
        bias = pe_build_bias(p->model, &spec, &draft);
    }
    return add_sites(p, layers, role_index, rope, bias);
}

typedef struct learned_block {
    int32_t rows, model_dim, position_offset;
} learned_block;

static pe_status read_absolute(const preset *p)
{
    static const key learned_keys[] = {
        {"rows", INT32, offsetof(learned_block, rows), NULL, 0},
        {"model_dim", INT32, offsetof(learned_block, model_dim), NULL, 0},
        {"position_offset", INT32, offsetof(learned_block, position_offset), NULL, 0},
    };
    pe_draft draft = {.model = p->model};
    pe_status status = PE_OK;
    if (pe_settings_find_under(p->settings, "sinusoidal") != NULL) {
        p->model->sinusoidal.struct_size = sizeof p->model->sinusoidal;
        status = read_block(p, "sinusoidal", sinusoidal_keys, PE_COUNT(sinusoidal_keys),
                            &p->model->sinusoidal, &draft);
        pe_build_fields(p->model, "sinusoidal.", &draft);
    }
    draft.num_fields = 0;
    if (status == PE_OK && pe_settings_find_under(p->settings, "learned") != NULL) {
        learned_block block = {0};
        status = read_block(p, "learned", learned_keys, PE_COUNT(learned_keys), &block,
                            &draft);
        p->model->learned = (pe_learned_spec){
            .struct_size = sizeof p->model->learned,
            .position_offset = block.position_offset,
        };
        pe_build_fields(p->model, "learned.", &draft);
    }
    return status;
}

static void read_info(const preset *p)
{
    pe_model_info *info = &p->model->info;
    const pe_setting *model_type = get(p, "model_type");
    const pe_setting *method = get(p, "method");
    info->model_type = model_type == NULL ? "" : model_type->text;
    info->method = method == NULL ? "" : method->text;
    info->num_layers = (int32_t)get_integer(p, "num_layers");
    info->num_heads = (int32_t)get_integer(p, "num_heads");
    info->num_kv_heads = (int32_t)get_integer(p, "num_kv_heads");
    info->trained_len = get_integer(p, "trained_len");
    info->extended_len = get_integer(p, "extended_len");
    static const char *const names[] = {"num_layers", "num_heads", "num_kv_heads",
                                        "trained_len", "extended_len"};
    pe_draft draft = {.model = p->model};
    for (size_t i = 0; i < PE_COUNT(names); i++) {
        const pe_setting *setting = get(p, names[i]);
        if (setting != NULL)
            pe_draft_text(&draft, names[i], setting->text,
                          &(pe_claim){.setting = setting,
                                      .reason = p->source,
                                      .source = PE_STATED});
    }
    pe_build_fields(p->model, "", &draft);
}

pe_status pe_read_preset(pe_model *model, const pe_checkpoint *checkpoint,
                         int64_t seq_len, pe_error *error)
{
    preset p = {.model = model,
                .settings = &checkpoint->settings,
                .seq_len = seq_len,
                .error = error};
    const pe_setting *source = get(&p, "source");
    p.source = source == NULL ? NULL : source->text;
    read_info(&p);
    pe_status status = PE_OK;
    for (int32_t i = 0; status == PE_OK; i++) {
        const char *prefix = pe_arena_format(&model->arena, "sites[%d]", i);
        if (prefix == NULL)
            return PE_E_NO_MEMORY;
        if (pe_settings_find_under(p.settings, prefix) == NULL)
            break;
        status = read_site(&p, prefix);
    }
    if (status == PE_OK)
        status = read_absolute(&p);
    const char *remembered = p.source == NULL ? NULL : strstr(p.source, "remembered: ");
    if (remembered != NULL)
        pe_build_note(model, PE_INFO, source, "remembered, not read anywhere: %s",
                      remembered + strlen("remembered: "));
    const pe_setting *note = get(&p, "note");
    if (note != NULL)
        pe_build_note(model, PE_INFO, note, "%s", note->text);
    return status;
}
