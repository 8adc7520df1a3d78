/* SPDX-License-Identifier: MIT
 *
 * plan.c - from a spec to a plan
 */
#include "rope/plan.h"

#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/spec.h"
#include "rope/freq.h"
#include "rope/pairs.h"

#include <string.h>

/* Hands out aligned parts of one block; with base NULL it only adds up sizes. */
typedef struct {
    unsigned char *base;
    int64_t used; /* -1: the sum overflowed */
} arena;

static void *take(arena *a, int64_t count, int64_t size)
{
    int64_t bytes, end;
    if (a->used < 0 || !pe_mul_i64(count, size, &bytes) ||
        !pe_add_i64(a->used, bytes, &end) || !pe_add_i64(end, 63, &end)) {
        a->used = -1;
        return NULL;
    }
    void *part = a->base != NULL ? a->base + a->used : NULL;
    a->used = end / 64 * 64;
    return part;
}

/* Lays the plan's arrays out behind it. */
static pe_rope *place_arrays(arena *a, const pe_rope_spec *spec, int32_t num_pairs)
{
    pe_rope *rope = take(a, 1, sizeof *rope);
    uint64_t *hi = take(a, num_pairs, sizeof *hi);
    uint64_t *lo = take(a, num_pairs, sizeof *lo);
    pe_wide *exact = take(a, num_pairs, sizeof *exact);
    double *head = take(a, num_pairs, sizeof *head);
    double *tail = take(a, num_pairs, sizeof *tail);
    double *inv_freq = take(a, num_pairs, sizeof *inv_freq);
    uint8_t *pair_axis = take(a, num_pairs, sizeof *pair_axis);
    int32_t *rung = take(a, num_pairs, sizeof *rung);
    int32_t *ladder_dim = take(a, num_pairs, sizeof *ladder_dim);
    float *imitated =
        spec->angles == PE_ANGLES_EXACT ? NULL : take(a, num_pairs, sizeof *imitated);
    float *table = spec->table_len == 0 ? NULL
                                        : take(a, spec->table_len,
                                               2 * num_pairs * (int64_t)sizeof *table);
    if (rope == NULL)
        return NULL;
    rope->turns = (pe_turns){
        .n = num_pairs, .hi = hi, .lo = lo, .exact = exact, .head = head, .tail = tail};
    rope->axes = (pe_axis_layout){1, 1, pair_axis, rung, ladder_dim};
    rope->info.inv_freq = inv_freq;
    rope->info.pair_axis = pair_axis;
    rope->table = table;
    if (spec->angles == PE_ANGLES_HF_F32)
        rope->hf_inv_freq = imitated;
    else
        rope->ggml.freq_factors = imitated;
    return rope;
}

/* ------------------------------------------------------------------ imitation --- */

/* theta's divisor that ggml would be given for a pair: its own factors, and the rules
 * that GGUF files store as factors. */
static float ggml_divisor(const pe_freq_rule *rule, pe_wide inv_freq, pe_wide base_freq)
{
    const float never = 1e30f; /* ggml's own mark for a pair that stands still */
    if (pe_wide_is_zero(inv_freq))
        return never;
    pe_wide divisor = pe_wide_div(base_freq, inv_freq);
    if (rule->spec.rope_type == PE_ROPE_LINEAR ||
        (rule->spec.rope_type == PE_ROPE_PROPORTIONAL && rule->factor != 1))
        divisor = pe_wide_div(divisor, pe_wide_from_double(rule->factor));
    return pe_wide_to_float(divisor);
}

/* base^(-2/d) in ggml's float. */
static float ggml_theta_scale(float base, int32_t d)
{
    const float exponent = -2.0f / (float)d;
    return pe_wide_to_float(
        pe_wide_pow(pe_wide_from_double(base), pe_wide_from_double(exponent)));
}

/* The theta that a rule turns in; not for custom. */
static pe_wide rule_base(const pe_freq_rule *rule, int32_t d)
{
    const pe_rope_type type = rule->spec.rope_type;
    const pe_wide base = pe_wide_from_double(rule->spec.rope_theta);
    if (type != PE_ROPE_NTK && type != PE_ROPE_DYNAMIC)
        return base;
    return pe_wide_mul(
        base, pe_wide_pow(pe_ntk_alpha(rule),
                          pe_wide_div(pe_wide_from_int(d), pe_wide_from_int(d - 2))));
}

/* Float code cannot hold every double: theta must stay clear of 0 and infinity. */
static pe_status check_float_base(const pe_rope *rope, const pe_freq_rule *rule,
                                  pe_error *error)
{
    if (rule->spec.rope_type == PE_ROPE_CUSTOM)
        return PE_OK;
    for (int64_t i = 0; i < rope->turns.n; i++) {
        const double base =
            pe_wide_to_double(rule_base(rule, rope->axes.ladder_dim[i]));
        if (!(base >= 0x1p-120 && base <= 0x1p120))
            return pe_fail(error, PE_E_ARGUMENT,
                           "rope_theta comes to %g, must be in 2^-120 .. 2^120 for "
                           "float angles",
                           base);
    }
    return PE_OK;
}

static pe_status fill_hf(pe_rope *rope, const pe_freq_rule *rule, pe_error *error)
{
    const int32_t n = (int32_t)rope->turns.n;
    pe_freq_fill_hf(rule, n, &rope->axes, rope->hf_inv_freq);
    for (int32_t i = 0; i < n; i++)
        if (!(rope->hf_inv_freq[i] >= 0 && rope->hf_inv_freq[i] <= 0x1p40f))
            return pe_fail(error, PE_E_ARGUMENT,
                           "inv_freq[%d] comes to %g in float, must be in 0 .. 2^40", i,
                           (double)rope->hf_inv_freq[i]);
    return PE_OK;
}

static void fill_ggml(pe_rope *rope, const pe_freq_rule *rule, const pe_wide *inv_freq,
                      const pe_freq_result *result)
{
    pe_ggml_freqs *g = &rope->ggml;
    const pe_rope_type type = rule->spec.rope_type;
    const int32_t d = rope->axes.ladder_dim[0];
    float *divisors = (float *)(uintptr_t)g->freq_factors;
    const pe_wide base = rule_base(rule, d);
    g->theta_scale = ggml_theta_scale(pe_wide_to_float(base), d);
    g->freq_scale = 1;
    if (type == PE_ROPE_LINEAR || type == PE_ROPE_YARN || type == PE_ROPE_PROPORTIONAL)
        g->freq_scale = 1 / (float)rule->factor;
    g->ext_factor = type == PE_ROPE_YARN ? 1 : 0;
    g->corr_low = pe_wide_to_float(result->ramp.low);
    g->corr_high = pe_wide_to_float(result->ramp.high);
    g->magnitude = pe_wide_to_float(result->attention_factor);
    g->ladder = rope->axes.rung;
    for (int64_t i = 0; i < rope->turns.n; i++) {
        if (type == PE_ROPE_YARN) {
            divisors[i] =
                rule->spec.freq_factors == NULL ? 1 : (float)rule->spec.freq_factors[i];
            continue;
        }
        const pe_wide exponent =
            pe_wide_div(pe_wide_from_int(-2 * (int64_t)rope->axes.rung[i]),
                        pe_wide_from_int(rope->axes.ladder_dim[i]));
        divisors[i] = ggml_divisor(rule, inv_freq[i], pe_wide_pow(base, exponent));
    }
}

static pe_status check_ggml(const pe_rope *rope, const pe_freq_rule *rule,
                            pe_error *error)
{
    if (rule->spec.rope_type == PE_ROPE_CUSTOM)
        return pe_fail(
            error, PE_E_UNSUPPORTED,
            "angles is PE_ANGLES_GGML_F32, which has no rope_type custom: ggml "
            "multiplies from pair to pair");
    if (rule->spec.no_truncate)
        return pe_fail(
            error, PE_E_UNSUPPORTED,
            "no_truncate is 1, which angles PE_ANGLES_GGML_F32 does not have");
    for (int64_t i = 0; i < rope->turns.n; i++)
        if (rope->axes.ladder_dim[i] != rope->axes.ladder_dim[0])
            return pe_fail(error, PE_E_UNSUPPORTED,
                           "axes.section has ladders of %d and %d elements, angles "
                           "PE_ANGLES_GGML_F32 needs equal ones",
                           rope->axes.ladder_dim[0], rope->axes.ladder_dim[i]);
    return PE_OK;
}

/* ---------------------------------------------------------------- fingerprint --- */

/* FNV-1a, 64 bits. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    for (int i = 0; i < 8; i++, word >>= 8)
        hash = (hash ^ (word & 0xff)) * 0x100000001b3u;
    return hash;
}

/* The floats of imitated angles: rules that agree exactly may round apart. */
static uint64_t mix_floats(const pe_rope *rope, uint64_t hash)
{
    const pe_ggml_freqs *g = &rope->ggml;
    const int hf = rope->angles == PE_ANGLES_HF_F32;
    const float *list = hf ? rope->hf_inv_freq : g->freq_factors;
    const float numbers[] = {g->theta_scale, g->freq_scale, g->ext_factor,
                             g->corr_low,    g->corr_high,  g->magnitude};
    for (int64_t i = 0; i < rope->turns.n; i++)
        hash = mix(hash, pe_f32_bits(list[i]));
    for (size_t i = 0; !hf && i < PE_COUNT(numbers); i++)
        hash = mix(hash, pe_f32_bits(numbers[i]));
    return hash;
}

static uint64_t fingerprint(const pe_rope *rope)
{
    uint64_t hash = 0xcbf29ce484222325u;
    const pe_pairs *p = &rope->pairs;
    const int32_t words[] = {rope->info.head_dim, rope->angles,       p->pairing,
                             p->out_pairing,      p->rotary_dim,      p->rotary_start,
                             p->reversed,         rope->info.num_axes};
    for (size_t i = 0; i < PE_COUNT(words); i++)
        hash = mix(hash, (uint32_t)words[i]);
    const pe_wide a = rope->factors[PE_SCALE_FULL].exact;
    hash = mix(mix(mix(hash, a.hi), a.lo), (uint32_t)a.exponent);
    for (int64_t i = 0; i < rope->turns.n; i++) {
        hash = mix(mix(hash, rope->turns.exact[i].hi), rope->turns.exact[i].lo);
        hash = mix(mix(hash, (uint32_t)rope->turns.exact[i].exponent),
                   rope->axes.pair_axis[i]);
    }
    return rope->angles == PE_ANGLES_EXACT ? hash : mix_floats(rope, hash);
}

/* -------------------------------------------------------------------- create --- */

static pe_status check_spec(const pe_rope_spec *spec, pe_error *error)
{
    if (spec->head_dim < 1 || spec->head_dim > 2 * PE_MAX_PAIRS)
        return pe_fail(error, PE_E_ARGUMENT, "head_dim is %d, must be in 2 .. %d",
                       spec->head_dim, 2 * PE_MAX_PAIRS);
    if (spec->table_len < 0)
        return pe_fail(error, PE_E_ARGUMENT, "table_len is %lld, must be at least 0",
                       (long long)spec->table_len);
    if (spec->angles < PE_ANGLES_EXACT || spec->angles > PE_ANGLES_GGML_F32)
        return pe_fail(
            error, PE_E_ARGUMENT,
            "angles is %d, must be PE_ANGLES_EXACT (0), PE_ANGLES_HF_F32 (1) "
            "or PE_ANGLES_GGML_F32 (2)",
            spec->angles);
    if (spec->reserved != 0)
        return pe_fail(error, PE_E_ARGUMENT, "pe_rope_spec.reserved is %d, must be 0",
                       spec->reserved);
    return PE_OK;
}

static void fill_info(pe_rope *rope, const pe_rope_spec *spec,
                      const pe_freq_result *result)
{
    pe_rope_info *info = &rope->info;
    info->head_dim = spec->head_dim;
    info->rotary_dim = rope->pairs.rotary_dim;
    info->num_pairs = rope->pairs.rotary_dim / 2;
    info->num_axes = rope->axes.num_axes;
    info->attention_factor = rope->factors[PE_SCALE_FULL].value;
    info->softmax_factor = pe_wide_to_double(result->softmax_factor);
    info->seq_len_min = result->seq_len_min;
    info->seq_len_max = result->seq_len_max;
    info->table_len = spec->table_len;
    info->isa_name = rope->kernels->name;
    info->ramp_low = pe_wide_to_double(result->ramp.low);
    info->ramp_high = pe_wide_to_double(result->ramp.high);
    info->fingerprint = fingerprint(rope);
}

static pe_status fill_frequencies(pe_rope *rope, const pe_rope_spec *spec,
                                  pe_error *error)
{
    const int32_t n = (int32_t)rope->turns.n;
    pe_wide *inv_freq = rope->turns.exact; /* turned into turns below */
    double *inv_freq_out = (double *)(uintptr_t)rope->info.inv_freq;
    pe_freq_rule rule;
    pe_freq_result result;
    pe_status status;
    if ((status = pe_axes_resolve(&spec->axes, n, &rope->axes, error)) != PE_OK ||
        (status = pe_freq_check(&spec->freqs, rope->pairs.rotary_dim, &rope->axes,
                                &rule, error)) != PE_OK ||
        (status = pe_freq_fill(&rule, n, &rope->axes, inv_freq, &result, error)) !=
            PE_OK)
        return status;
    if (spec->freqs.rope_type == PE_ROPE_PROPORTIONAL &&
        rope->pairs.rotary_dim != spec->head_dim)
        return pe_fail(error, PE_E_ARGUMENT,
                       "rotary_dim is %d, must be head_dim (%d) for rope_type "
                       "proportional, which leaves pairs still instead",
                       rope->pairs.rotary_dim, spec->head_dim);
    if (rope->angles != PE_ANGLES_EXACT &&
        (status = check_float_base(rope, &rule, error)) != PE_OK)
        return status;
    if (rope->angles == PE_ANGLES_HF_F32 &&
        (status = fill_hf(rope, &rule, error)) != PE_OK)
        return status;
    if (rope->angles == PE_ANGLES_GGML_F32) {
        if ((status = check_ggml(rope, &rule, error)) != PE_OK)
            return status;
        fill_ggml(rope, &rule, inv_freq, &result);
    }
    for (int32_t i = 0; i < n; i++) {
        inv_freq_out[i] = rope->angles == PE_ANGLES_HF_F32
                              ? (double)rope->hf_inv_freq[i]
                              : pe_wide_to_double(inv_freq[i]);
        pe_turns_set(&rope->turns, i, inv_freq[i]);
    }
    const pe_wide one = pe_wide_from_int(1);
    rope->factors[PE_SCALE_FULL] = pe_factor_make(result.attention_factor);
    rope->factors[PE_SCALE_NONE] = pe_factor_make(one);
    rope->factors[PE_SCALE_INVERSE] =
        pe_factor_make(pe_wide_div(one, result.attention_factor));
    fill_info(rope, spec, &result);
    return PE_OK;
}

static void fill_table(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const pe_rope *rope = arg;
    const int64_t n = rope->turns.n;
    (void)worker;
    if (rope->angles == PE_ANGLES_EXACT) {
        float *out = rope->table + begin * 2 * n;
        pe_angle_rows(rope->kernels, &rope->turns, begin, end - begin,
                      &rope->factors[PE_SCALE_FULL], out, out + n, 2 * n);
        return;
    }
    for (int64_t p = begin; p < end; p++) {
        pe_row_buffer buffer;
        const pe_place place = {1, {p, p, p, p}, {0}};
        const pe_row row = pe_rope_row(rope, &place, PE_SCALE_FULL, &buffer);
        float *out = rope->table + p * 2 * n;
        memcpy(out, row.cos, (size_t)n * sizeof *out);
        memcpy(out + n, row.sin, (size_t)n * sizeof *out);
    }
}

pe_status pe_rope_create(pe_rope **out, const pe_rope_spec *spec, const pe_env *env,
                         pe_error *error)
{
    pe_rope_spec s;
    pe_env full;
    pe_pairs pairs;
    pe_status status;
    if (out == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "out is NULL");
    *out = NULL;
    if ((status = pe_spec_read(&s, sizeof s, spec, PE_ROPE_SPEC_SIZE_V1, "pe_rope_spec",
                               error)) != PE_OK ||
        (status = pe_env_resolve(&full, env, error)) != PE_OK ||
        (status = check_spec(&s, error)) != PE_OK ||
        (status = pe_pairs_resolve(&s.pairs, s.head_dim, &pairs, error)) != PE_OK)
        return status;

    arena sizes = {NULL, 0};
    place_arrays(&sizes, &s, pairs.rotary_dim / 2);
    if (sizes.used < 0 || (uint64_t)sizes.used > SIZE_MAX / 2)
        return pe_fail(error, PE_E_ARGUMENT,
                       "table_len is %lld, a table of that many rows has no size",
                       (long long)s.table_len);
    arena parts = {pe_alloc(&full, (size_t)sizes.used), 0};
    if (parts.base == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for a plan of %lld bytes",
                       (long long)sizes.used);
    pe_rope *rope = place_arrays(&parts, &s, pairs.rotary_dim / 2);
    rope->size = (size_t)sizes.used;
    rope->env = full;
    rope->kernels = pe_kernels_get(full.isa);
    rope->pairs = pairs;
    rope->angles = s.angles;
    if ((status = fill_frequencies(rope, &s, error)) != PE_OK) {
        pe_release(&full, rope, rope->size);
        return status;
    }
    if (s.table_len > 0) {
        rope->info.table_len = 0; /* rows are computed while the table fills */
        pe_run(&full, s.table_len, 64, fill_table, rope);
        rope->info.table_len = s.table_len;
    }
    *out = rope;
    return PE_OK;
}

void pe_rope_destroy(pe_rope *rope)
{
    if (rope != NULL) {
        const pe_env env = rope->env;
        pe_release(&env, rope, rope->size);
    }
}

const pe_rope_info *pe_rope_get_info(const pe_rope *rope)
{
    return rope != NULL ? &rope->info : NULL;
}
