/* SPDX-License-Identifier: MIT
 *
 * bias_plan.c - from a bias spec to a plan
 */
#include "bias/bias_plan.h"

#include "base/dtype.h"
#include "base/error.h"
#include "base/spec.h"
#include "bias/buckets.h"
#include "bias/slopes.h"

#include <string.h>

static const char *const type_names[] = {"", "PE_BIAS_ALIBI", "PE_BIAS_T5",
                                         "PE_BIAS_KERPLE_LOG", "PE_BIAS_KERPLE_POWER"};

static int is_finite(double x)
{
    return x - x == 0;
}

/* ------------------------------------------------------------------ checks --- */

static pe_status check_heads(const pe_bias_spec *s, pe_error *error)
{
    if (s->num_heads < 1 || s->num_heads > PE_MAX_BIAS_HEADS)
        return pe_fail(error, PE_E_ARGUMENT, "num_heads is %d, must be in 1 .. %d",
                       s->num_heads, PE_MAX_BIAS_HEADS);
    if (s->head_start < 0 || s->head_start >= s->num_heads)
        return pe_fail(error, PE_E_ARGUMENT,
                       "head_start is %d, must be at least 0 and below num_heads (%d), "
                       "which counts the whole model's heads",
                       s->head_start, s->num_heads);
    return PE_OK;
}

/* Fields of other types: set, they would be ignored, so they are refused. */
static pe_status check_foreign(const pe_bias_spec *s, pe_error *error)
{
    const int alibi = s->type == PE_BIAS_ALIBI, t5 = s->type == PE_BIAS_T5;
    const int kerple = !alibi && !t5;
    const struct {
        const char *field;
        int set, used;
    } fields[] = {{"slope_recipe", s->slope_recipe != 0, alibi},
                  {"round_to", s->round_to != 0, alibi},
                  {"slopes", s->slopes != NULL, alibi},
                  {"max_bias", s->max_bias != 0, alibi},
                  {"num_buckets", s->num_buckets != 0, t5},
                  {"table", s->table != NULL, t5},
                  {"max_distance", s->max_distance != 0, t5},
                  {"kerple_p", s->kerple_p != NULL, kerple},
                  {"kerple_a", s->kerple_a != NULL, kerple}};
    for (size_t i = 0; i < PE_COUNT(fields); i++)
        if (fields[i].set && !fields[i].used)
            return pe_fail(error, PE_E_ARGUMENT,
                           "%s is set, but type %s has no use of it", fields[i].field,
                           type_names[s->type]);
    return PE_OK;
}

static pe_status check_numbers(const char *field, const float *values, int64_t count,
                               int positive, pe_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (!is_finite((double)values[i]) || (positive && !(values[i] > 0)))
            return pe_fail(error, PE_E_ARGUMENT, "%s[%lld] is %g, must be finite%s",
                           field, (long long)i, (double)values[i],
                           positive ? " and over 0" : "");
    return PE_OK;
}

static pe_status check_alibi(pe_bias_spec *s, pe_error *error)
{
    if (s->round_to != 0 && s->round_to != PE_F32 && s->round_to != PE_F16 &&
        s->round_to != PE_BF16)
        return pe_fail(
            error, PE_E_ARGUMENT,
            "round_to is %d, must be 0, PE_F32 (1), PE_F16 (2) or PE_BF16 (3)",
            s->round_to);
    if (s->slope_recipe < PE_SLOPES_PUBLISHED || s->slope_recipe > PE_SLOPES_GEOMETRIC)
        return pe_fail(error, PE_E_ARGUMENT,
                       "slope_recipe is %d, must be PE_SLOPES_PUBLISHED (0) or "
                       "PE_SLOPES_GEOMETRIC (1)",
                       s->slope_recipe);
    if (s->slopes != NULL) {
        if (s->slope_recipe != 0 || s->max_bias != 0)
            return pe_fail(error, PE_E_ARGUMENT,
                           "slopes is set, so %s must be 0: one or the other gives the "
                           "slopes",
                           s->slope_recipe != 0 ? "slope_recipe" : "max_bias");
        return check_numbers("slopes", s->slopes, s->num_heads, 0, error);
    }
    if (s->max_bias == 0)
        s->max_bias = 8;
    /* The smallest slope, 2^-max_bias, stays a normal float. */
    if (!(s->max_bias > 0 && s->max_bias <= 126))
        return pe_fail(error, PE_E_ARGUMENT,
                       "max_bias is %g, must be over 0 and at most 126", s->max_bias);
    return PE_OK;
}

static pe_status check_t5(pe_bias_spec *s, pe_error *error)
{
    const int sides = s->form == PE_BIAS_BIDIRECTIONAL ? 2 : 1;
    if (s->num_buckets == 0)
        s->num_buckets = 32;
    if (s->max_distance == 0)
        s->max_distance = 128;
    if (s->num_buckets < 2 * sides || s->num_buckets > PE_MAX_BUCKETS)
        return pe_fail(error, PE_E_ARGUMENT, "num_buckets is %d, must be in %d .. %d%s",
                       s->num_buckets, 2 * sides, PE_MAX_BUCKETS,
                       sides == 2 ? " when bidirectional" : "");
    const int32_t exact = s->num_buckets / sides / 2;
    if (s->max_distance <= exact || s->max_distance > (int64_t)1 << 52)
        return pe_fail(error, PE_E_ARGUMENT,
                       "max_distance is %lld, must be over %d, the distances with a "
                       "bucket of their own, and at most 2^52",
                       (long long)s->max_distance, exact);
    if (s->table == NULL)
        return pe_fail(error, PE_E_ARGUMENT,
                       "table is NULL, PE_BIAS_T5 needs [num_buckets][num_heads]");
    return check_numbers("table", s->table, (int64_t)s->num_buckets * s->num_heads, 0,
                         error);
}

static pe_status check_kerple(const pe_bias_spec *s, pe_error *error)
{
    pe_status status;
    if (s->kerple_p == NULL || s->kerple_a == NULL)
        return pe_fail(
            error, PE_E_ARGUMENT, "%s is NULL, %s needs kerple_p and kerple_a",
            s->kerple_p == NULL ? "kerple_p" : "kerple_a", type_names[s->type]);
    if ((status = check_numbers("kerple_p", s->kerple_p, s->num_heads, 1, error)) !=
            PE_OK ||
        (status = check_numbers("kerple_a", s->kerple_a, s->num_heads, 1, error)) !=
            PE_OK ||
        s->type == PE_BIAS_KERPLE_LOG)
        return status;
    for (int32_t h = 0; h < s->num_heads; h++)
        if (s->kerple_p[h] > 2)
            return pe_fail(error, PE_E_ARGUMENT,
                           "kerple_p[%d] is %g, must be at most 2 for "
                           "PE_BIAS_KERPLE_POWER",
                           h, (double)s->kerple_p[h]);
    return PE_OK;
}

/* Refuses, and puts defaults in the place of what is unset. */
static pe_status check_spec(pe_bias_spec *s, pe_error *error)
{
    pe_status status;
    if (s->type < PE_BIAS_ALIBI || s->type > PE_BIAS_KERPLE_POWER)
        return pe_fail(error, PE_E_ARGUMENT,
                       "type is %d, must be PE_BIAS_ALIBI (1), PE_BIAS_T5 (2), "
                       "PE_BIAS_KERPLE_LOG (3) or PE_BIAS_KERPLE_POWER (4)",
                       s->type);
    if (s->form < PE_BIAS_CAUSAL || s->form > PE_BIAS_KEY_ONLY)
        return pe_fail(error, PE_E_ARGUMENT,
                       "form is %d, must be PE_BIAS_CAUSAL (1), PE_BIAS_BIDIRECTIONAL "
                       "(2) or PE_BIAS_KEY_ONLY (3)",
                       s->form);
    if (s->form == PE_BIAS_KEY_ONLY && s->type != PE_BIAS_ALIBI)
        return pe_fail(error, PE_E_ARGUMENT,
                       "form is PE_BIAS_KEY_ONLY (3), which type %s does not have",
                       type_names[s->type]);
    if ((status = check_heads(s, error)) != PE_OK ||
        (status = check_foreign(s, error)) != PE_OK)
        return status;
    if (s->scale == 0)
        s->scale = 1;
    if (!(s->scale > 0 && s->scale <= 0x1p100))
        return pe_fail(error, PE_E_ARGUMENT,
                       "scale is %g, must be over 0 and at most 2^100", s->scale);
    switch (s->type) {
    case PE_BIAS_ALIBI:
        return check_alibi(s, error);
    case PE_BIAS_T5:
        return check_t5(s, error);
    default:
        return check_kerple(s, error);
    }
}

/* ------------------------------------------------------------------ create --- */

static void fill_alibi(pe_bias *bias, const pe_bias_spec *s, float *room)
{
    bias->slopes = room;
    if (s->slopes != NULL)
        memcpy(room, s->slopes, (size_t)s->num_heads * sizeof *room);
    else
        pe_slopes_fill(s->slope_recipe, s->num_heads, s->max_bias, room);
    for (int32_t h = 0; h < s->num_heads; h++) {
        if (s->round_to == PE_BF16)
            room[h] = pe_bf16_to_f32(pe_bf16_from_f32(room[h]));
        if (s->round_to == PE_F16)
            room[h] = pe_f16_to_f32(pe_f16_from_f32(room[h]));
    }
}

static void fill_t5(pe_bias *bias, const pe_bias_spec *s, double *edges, float *room)
{
    const int sides = s->form == PE_BIAS_BIDIRECTIONAL ? 2 : 1;
    bias->edges = edges;
    bias->num_edges = s->num_buckets / sides;
    bias->later_side = sides == 2 ? bias->num_edges : 0;
    pe_bucket_edges(bias->num_edges, s->max_distance, edges);
    bias->table = room;
    memcpy(room, s->table,
           (size_t)s->num_buckets * (size_t)s->num_heads * sizeof *room);
}

static void fill_kerple(pe_bias *bias, const pe_bias_spec *s, float *room)
{
    const size_t size = (size_t)s->num_heads * sizeof *room;
    bias->p = room;
    bias->a = room + s->num_heads;
    memcpy(bias->p, s->kerple_p, size);
    memcpy(bias->a, s->kerple_a, size);
}

pe_status pe_bias_create(pe_bias **out, const pe_bias_spec *spec, const pe_env *env,
                         pe_error *error)
{
    pe_bias_spec s;
    pe_env full;
    pe_status status;
    if (out == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "out is NULL");
    *out = NULL;
    if ((status = pe_spec_read(&s, sizeof s, spec, PE_BIAS_SPEC_SIZE_V1, "pe_bias_spec",
                               error)) != PE_OK ||
        (status = pe_env_resolve(&full, env, error)) != PE_OK ||
        (status = check_spec(&s, error)) != PE_OK)
        return status;
    const size_t num_edges = s.type == PE_BIAS_T5 ? (size_t)s.num_buckets : 0;
    const size_t per_head = s.type == PE_BIAS_T5      ? (size_t)s.num_buckets
                            : s.type == PE_BIAS_ALIBI ? 1
                                                      : 2;
    const size_t size = sizeof(pe_bias) + num_edges * sizeof(double) +
                        per_head * (size_t)s.num_heads * sizeof(float);
    pe_bias *bias = pe_alloc(&full, size);
    if (bias == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for a plan of %llu bytes",
                       (unsigned long long)size);
    double *edges = (double *)(void *)(bias + 1);
    float *room = (float *)(void *)(edges + num_edges);
    bias->env = full;
    bias->size = size;
    bias->type = s.type;
    bias->form = s.form;
    bias->num_heads = s.num_heads;
    bias->head_start = s.head_start;
    bias->round_to = s.round_to;
    bias->scale = s.scale;
    if (s.type == PE_BIAS_ALIBI)
        fill_alibi(bias, &s, room);
    else if (s.type == PE_BIAS_T5)
        fill_t5(bias, &s, edges, room);
    else
        fill_kerple(bias, &s, room);
    *out = bias;
    return PE_OK;
}

void pe_bias_destroy(pe_bias *bias)
{
    if (bias != NULL) {
        const pe_env env = bias->env;
        pe_release(&env, bias, bias->size);
    }
}

const float *pe_bias_slopes(const pe_bias *bias)
{
    return bias != NULL ? bias->slopes : NULL;
}
