/* SPDX-License-Identifier: MIT
 *
 * hf_f32.c - PE_ANGLES_HF_F32 against what Hugging Face's float code printed
 *
 * rope_freqs cases come first and are remembered: a rope_cache case is checked from the
 * hf_inv_freq of the frequency case with its settings, so that cos and sin are judged
 * apart from the frequencies.  Exact angles must fail that check, else it means
 * nothing. */
#include "hf_f32.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_REMEMBERED = 1024, MAX_KEY = 4096, MAX_PAIRS = 256 };

static struct remembered {
    char key[MAX_KEY];
    double inv_freq[MAX_PAIRS], attention_factor;
    int64_t num_pairs;
} table[MAX_REMEMBERED];
static int num_remembered;
static long freqs_equal, freqs_seen;

/* rope_cache cases that no rope_freqs case shares its settings with: checked with our
 * own float frequencies and the looser tolerances of the case. */
static const char *const alone[] = {
    "cache/llama-3.2-1b",
    "cache/vicuna-7b-v1.5-16k",
    "cache/deepseek-v2",
    "cache/phi-3-vision-128k/short",
    "cache/phi-3-vision-128k/long",
    "cache/phi-3.5-mini/long",
    "cache/phi-4-mini/long",
    "cache/minicpm-1b-longrope/short",
    "cache/gemma-4-global-proportional",
    "cache/pythia-6.9b",
    "cache/glm-4.5",
    "cache/command-r-plus",
    "cache/internlm2.5-7b-1m-dynamic/short",
    "cache/internlm2.5-7b-1m-dynamic/long",
    "cache/internlm3-8b-dynamic/long",
    "cache/smollm2-135m",
    "cache/nomic-embed-v1",
    "cache/exaone-4-32b",
};

static void settings_key(const vec_case *c, char key[MAX_KEY])
{
    json_object *scaling = vec_object(c, c->spec, "scaling");
    int length = snprintf(key, MAX_KEY, "%lld %lld %.17g %lld %s",
                          (long long)vec_integer(c, c->spec, "head_dim"),
                          (long long)vec_integer(c, c->spec, "rotary_dim"),
                          vec_number(c, c->spec, "theta"),
                          (long long)vec_integer_or(c, c->spec, "seq_len", -1),
                          json_object_to_json_string(scaling));

    if (length < 0 || length >= MAX_KEY)
        vec_fail(c, "the settings take %d bytes, at most %d are compared", length,
                 MAX_KEY - 1);
}

static void check_freqs(vec_case *c)
{
    pe_rope_spec spec;

    vec_rope_spec(c, &spec);
    spec.angles = PE_ANGLES_HF_F32;
    const pe_rope_info *info = pe_rope_get_info(vec_rope(c, &spec));
    const double *hf = vec_expected(c, "hf_inv_freq", info->num_pairs);

    if (num_remembered == MAX_REMEMBERED || info->num_pairs > MAX_PAIRS)
        vec_fail(c, "too many cases, or pairs, to remember");
    struct remembered *entry = &table[num_remembered++];
    settings_key(c, entry->key);
    entry->num_pairs = info->num_pairs;
    entry->attention_factor = vec_number(c, c->expect, "hf_attention_factor");
    memcpy(entry->inv_freq, hf, (size_t)info->num_pairs * sizeof *hf);

    if (spec.freqs.rope_type != PE_ROPE_DEFAULT)
        return;
    for (int32_t i = 0; i < info->num_pairs; i++) {
        const float expected = (float)hf[i];
        const double ulp = (double)(nextafterf(expected, INFINITY) - expected);
        vec_near(c, "hf_f32 inv_freq", i, info->inv_freq[i], hf[i], ulp);
        freqs_seen++;
        freqs_equal += info->inv_freq[i] == hf[i];
    }
}

struct cache {
    const int64_t *positions, *pairs;
    int64_t num_positions, num_pairs, count;
    const double *angle, *cos_hf, *sin_hf;
    float *cos_got, *sin_got;
    int64_t width;
};

static void fill_table(const vec_case *c, const pe_rope_spec *spec, struct cache *cache)
{
    const pe_rope *rope = vec_rope(c, spec);
    const pe_positions at = {.ids = cache->positions};
    pe_tensor cos_t, sin_t;
    pe_error error;

    const int64_t width = cache->width = pe_rope_get_info(rope)->num_pairs;
    for (int64_t i = 0; i < cache->num_pairs; i++)
        if (cache->pairs[i] < 0 || cache->pairs[i] >= width)
            vec_fail(c, "pair_indices has %lld, there are %lld pairs",
                     (long long)cache->pairs[i], (long long)width);
    cache->cos_got = vec_alloc(c, cache->num_positions * width, sizeof(float));
    cache->sin_got = vec_alloc(c, cache->num_positions * width, sizeof(float));
    pe_tensor_bshd(&cos_t, PE_F32, cache->cos_got, 1, cache->num_positions, 1, width);
    pe_tensor_bshd(&sin_t, PE_F32, cache->sin_got, 1, cache->num_positions, 1, width);
    if (pe_rope_table(rope, &at, &cos_t, &sin_t, &error) != PE_OK)
        vec_fail(c, "expected a table, got %s", error.message);
}

static double got(const struct cache *cache, const float *table_got, int64_t n)
{
    const int64_t t = n / cache->num_pairs, i = cache->pairs[n % cache->num_pairs];

    return (double)table_got[t * cache->width + i];
}

/* Entries further than bound from Hugging Face's. */
static int64_t count_off(const struct cache *cache, double bound)
{
    int64_t off = 0;

    for (int64_t n = 0; n < cache->count; n++)
        off += !(fabs(got(cache, cache->cos_got, n) - cache->cos_hf[n]) <= bound) ||
               !(fabs(got(cache, cache->sin_got, n) - cache->sin_hf[n]) <= bound);
    return off;
}

static void check_alone(const vec_case *c, pe_rope_spec spec, struct cache *cache)
{
    const double abs_tol = vec_number(c, c->tolerance, "hf_abs");
    const double per_angle = vec_number(c, c->tolerance, "hf_per_angle");
    int listed = 0;

    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        listed |= strcmp(alone[i], c->id) == 0;
    if (!listed)
        vec_fail(c, "expected a rope_freqs case with these settings before this one, "
                    "got none");
    spec.angles = PE_ANGLES_HF_F32;
    fill_table(c, &spec, cache);
    for (int64_t n = 0; n < cache->count; n++) {
        const double allowed = abs_tol + per_angle * fabs(cache->angle[n]);
        vec_near(c, "hf_f32 cos", n, got(cache, cache->cos_got, n), cache->cos_hf[n],
                 allowed);
        vec_near(c, "hf_f32 sin", n, got(cache, cache->sin_got, n), cache->sin_hf[n],
                 allowed);
    }
    printf("note %s: checked with our own float frequencies\n", c->id);
}

static void check_cache(vec_case *c)
{
    const struct remembered *entry = NULL;
    struct cache cache;
    char key[MAX_KEY];
    pe_rope_spec spec;

    cache.positions = vec_integers(c, c->spec, "positions", &cache.num_positions);
    cache.pairs = vec_integers(c, c->spec, "pair_indices", &cache.num_pairs);
    cache.count = cache.num_positions * cache.num_pairs;
    cache.angle = vec_expected(c, "exact_angle", cache.count);
    cache.cos_hf = vec_expected(c, "hf_cos", cache.count);
    cache.sin_hf = vec_expected(c, "hf_sin", cache.count);
    vec_rope_spec(c, &spec);
    settings_key(c, key);
    for (int i = 0; i < num_remembered && entry == NULL; i++)
        if (strcmp(table[i].key, key) == 0)
            entry = &table[i];
    if (entry == NULL) {
        check_alone(c, spec, &cache);
        return;
    }

    const double bound = 1.2e-7 * fmax(1, entry->attention_factor);
    spec.freqs = (pe_freqs){.rope_type = PE_ROPE_CUSTOM,
                            .inv_freq = entry->inv_freq,
                            .attention_factor = entry->attention_factor};
    spec.angles = PE_ANGLES_HF_F32;
    fill_table(c, &spec, &cache);
    for (int64_t n = 0; n < cache.count; n++) {
        vec_near(c, "hf_f32 cos", n, got(&cache, cache.cos_got, n), cache.cos_hf[n],
                 bound);
        vec_near(c, "hf_f32 sin", n, got(&cache, cache.sin_got, n), cache.sin_hf[n],
                 bound);
    }
    spec.angles = PE_ANGLES_EXACT;
    fill_table(c, &spec, &cache);
    if (count_off(&cache, bound) == 0)
        vec_fail(c,
                 "expected exact angles to miss the hf_f32 bound %.3g, got none of "
                 "%lld off",
                 bound, (long long)cache.count);
}

int vec_hf_summary(void)
{
    printf("hf_f32: %ld of %ld default-rule frequencies equal Hugging Face's\n",
           freqs_equal, freqs_seen);
    if (freqs_equal * 100 >= freqs_seen * 98)
        return 0;
    printf("FAIL hf_f32: expected at least 98%% of the frequencies equal\n");
    return 1;
}

const vec_kind vec_hf_freqs_kinds[] = {
    {"model", check_freqs},
    {"synthetic-default", check_freqs},
    {"synthetic-linear", check_freqs},
    {"synthetic-dynamic", check_freqs},
    {"synthetic-yarn", check_freqs},
    {"synthetic-llama3", check_freqs},
    {"synthetic-longrope", check_freqs},
    {"synthetic-proportional", check_freqs},
    {NULL, NULL},
};

const vec_kind vec_hf_cache_kinds[] = {
    {"model-cache", check_cache},
    {NULL, NULL},
};
