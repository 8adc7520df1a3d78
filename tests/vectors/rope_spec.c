/* SPDX-License-Identifier: MIT
 *
 * rope_spec.c - from the keys of a golden case to a pe_rope_spec
 */
#include "vectors.h"

#include <string.h>

static const struct {
    const char *name;
    pe_rope_type type;
} rope_types[] = {
    {"default", PE_ROPE_DEFAULT}, {"linear", PE_ROPE_LINEAR},
    {"ntk_alpha", PE_ROPE_NTK},   {"dynamic", PE_ROPE_DYNAMIC},
    {"yarn", PE_ROPE_YARN},       {"longrope", PE_ROPE_LONGROPE},
    {"llama3", PE_ROPE_LLAMA3},   {"proportional", PE_ROPE_PROPORTIONAL},
};

static pe_rope_type rope_type(const vec_case *c, const char *name)
{
    for (size_t i = 0; i < sizeof rope_types / sizeof rope_types[0]; i++)
        if (strcmp(rope_types[i].name, name) == 0)
            return rope_types[i].type;
    vec_fail(c, "rope_type is %s, which is unknown", name);
}

static pe_pairing pairing(const vec_case *c, const char *name)
{
    if (strcmp(name, "half") == 0 || strcmp(name, "half-inverse") == 0)
        return PE_HALF_SPLIT;
    if (strcmp(name, "adjacent") == 0)
        return PE_INTERLEAVED;
    vec_fail(c, "layout is %s, known: half, half-inverse, adjacent", name);
}

static int has(json_object *parent, const char *name)
{
    return json_object_object_get_ex(parent, name, NULL);
}

static int64_t small_integer(const vec_case *c, json_object *parent, const char *name)
{
    int64_t value = vec_integer(c, parent, name);

    if (value < INT32_MIN || value > INT32_MAX)
        vec_fail(c, "%s is %lld", name, (long long)value);
    return value;
}

static const double *factor_list(const vec_case *c, json_object *scaling,
                                 const char *name, int32_t num_pairs)
{
    int64_t count;

    if (!has(scaling, name))
        return NULL;
    const double *list = vec_numbers(c, scaling, name, &count);
    if (count != num_pairs)
        vec_fail(c, "%s has %lld numbers for %d pairs", name, (long long)count,
                 num_pairs);
    return list;
}

static void read_scaling(const vec_case *c, json_object *scaling, int32_t num_pairs,
                         pe_freqs *freqs)
{
    json_object *truncate = NULL;

    freqs->rope_type = rope_type(c, vec_string(c, scaling, "rope_type"));
    freqs->factor = freqs->rope_type == PE_ROPE_NTK
                        ? vec_number(c, scaling, "alpha")
                        : vec_number_or(c, scaling, "factor", 0);
    freqs->attention_factor = vec_number_or(c, scaling, "attention_factor", 0);
    freqs->original_max_position_embeddings =
        vec_integer_or(c, scaling, "original_max_position_embeddings", 0);
    freqs->beta_fast = vec_number_or(c, scaling, "beta_fast", 0);
    freqs->beta_slow = vec_number_or(c, scaling, "beta_slow", 0);
    freqs->mscale = vec_number_or(c, scaling, "mscale", 0);
    freqs->mscale_all_dim = vec_number_or(c, scaling, "mscale_all_dim", 0);
    freqs->low_freq_factor = vec_number_or(c, scaling, "low_freq_factor", 0);
    freqs->high_freq_factor = vec_number_or(c, scaling, "high_freq_factor", 0);
    freqs->partial_rotary_factor =
        vec_number_or(c, scaling, "partial_rotary_factor", 0);
    freqs->short_factor = factor_list(c, scaling, "short_factor", num_pairs);
    freqs->long_factor = factor_list(c, scaling, "long_factor", num_pairs);
    if (json_object_object_get_ex(scaling, "truncate", &truncate))
        freqs->no_truncate = !json_object_get_boolean(truncate);
}

void vec_rope_spec(const vec_case *c, pe_rope_spec *spec)
{
    *spec = (pe_rope_spec){.struct_size = sizeof *spec};
    spec->head_dim = (int32_t)small_integer(c, c->spec, "head_dim");
    spec->pairs.rotary_dim = has(c->spec, "rotary_dim")
                                 ? (int32_t)small_integer(c, c->spec, "rotary_dim")
                                 : spec->head_dim;
    /* Frequencies do not depend on the pairing; cases that rotate say it. */
    const char *layout =
        has(c->spec, "layout") ? vec_string(c, c->spec, "layout") : "half";
    spec->pairs.pairing = pairing(c, layout);
    if (strcmp(layout, "half-inverse") == 0) /* nanochat */
        spec->pairs.reversed = 1;
    if (has(c->spec, "output_layout"))
        spec->pairs.out_pairing = pairing(c, vec_string(c, c->spec, "output_layout"));
    if (has(c->spec, "direction")) {
        const char *direction = vec_string(c, c->spec, "direction");
        if (strcmp(direction, "inverse") != 0 && strcmp(direction, "forward") != 0)
            vec_fail(c, "direction is %s, known: forward, inverse", direction);
        spec->pairs.reversed |= strcmp(direction, "inverse") == 0;
    }
    spec->freqs.rope_theta = vec_number(c, c->spec, "theta");
    spec->freqs.max_position_embeddings =
        vec_integer_or(c, c->spec, "max_position_embeddings", 0);
    if (has(c->spec, "scaling"))
        read_scaling(c, vec_object(c, c->spec, "scaling"), spec->pairs.rotary_dim / 2,
                     &spec->freqs);
    /* Without a length the trained one holds; dynamic counts null as 0, the same. */
    spec->freqs.seq_len = vec_integer_or(c, c->spec, "seq_len", 0);
}
