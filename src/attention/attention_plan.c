/* SPDX-License-Identifier: MIT
 *
 * attention_plan.c - checking a pe_attention_spec
 */
#include "attention/attention_plan.h"

#include "base/error.h"
#include "base/spec.h"
#include "base/tensor.h"
#include "bias/bias_plan.h"
#include "rope/plan.h"

#include <math.h>

static pe_status check_heads(const pe_attention_spec *s, pe_error *error)
{
    const struct {
        const char *name;
        int32_t value, max;
    } fields[] = {
        {"num_heads", s->num_heads, PE_MAX_ATTENTION_HEADS},
        {"num_kv_heads", s->num_kv_heads, PE_MAX_ATTENTION_HEADS},
        {"head_dim", s->head_dim, PE_MAX_VECTOR_DIM},
        {"v_head_dim", s->v_head_dim, PE_MAX_VECTOR_DIM},
    };
    for (size_t i = 0; i < PE_COUNT(fields); i++)
        if (fields[i].value < 1 || fields[i].value > fields[i].max)
            return pe_fail(error, PE_E_ARGUMENT, "%s is %d, must be in 1 .. %d",
                           fields[i].name, fields[i].value, fields[i].max);
    if (s->num_heads % s->num_kv_heads != 0)
        return pe_fail(error, PE_E_ARGUMENT,
                       "num_heads is %d, must be a multiple of num_kv_heads (%d)",
                       s->num_heads, s->num_kv_heads);
    return PE_OK;
}

static pe_status check_visible(const pe_visibility *v, pe_error *error)
{
    if (v->mask != PE_MASK_NONE && v->mask != PE_MASK_CAUSAL)
        return pe_fail(error, PE_E_ARGUMENT,
                       "visible.mask is %d, must be PE_MASK_NONE (1) or PE_MASK_CAUSAL "
                       "(2)",
                       v->mask);
    if (v->num_sinks < 0)
        return pe_fail(error, PE_E_ARGUMENT,
                       "visible.num_sinks is %d, must be at least 0", v->num_sinks);
    if (v->window < 0 || v->chunk < 0)
        return pe_fail(error, PE_E_ARGUMENT,
                       "visible.window is %lld and chunk %lld, must be at least 0",
                       (long long)v->window, (long long)v->chunk);
    return PE_OK;
}

static pe_status check_numbers(const pe_attention_spec *s, pe_error *error)
{
    const pe_positions origin = {0};
    float factor;
    pe_tensor one;
    if (s->no_skip != 0 && s->no_skip != 1)
        return pe_fail(error, PE_E_ARGUMENT, "no_skip is %d, must be 0 or 1",
                       s->no_skip);
    if (!(fabs(s->scale) <= 0x1p60))
        return pe_fail(error, PE_E_ARGUMENT,
                       "scale is %g, must be finite and at most 2^60 in size",
                       s->scale);
    if (!(s->softcap >= 0 && s->softcap <= 0x1p60))
        return pe_fail(error, PE_E_ARGUMENT, "softcap is %g, must be in 0 .. 2^60",
                       s->softcap);
    pe_tensor_bshd(&one, PE_F32, &factor, 1, 1, 1, 1);
    return pe_temperature_fill(&s->temperature, &origin, &one, error);
}

static pe_status check_ropes(const pe_attention_spec *s, pe_error *error)
{
    const pe_rope *const ropes[] = {s->q_rope, s->k_rope};
    const char *const names[] = {"q_rope", "k_rope"};
    for (int i = 0; i < 2; i++)
        if (ropes[i] != NULL && ropes[i]->info.head_dim != s->head_dim)
            return pe_fail(error, PE_E_INCOMPATIBLE,
                           "%s has head_dim %d, must be head_dim (%d)", names[i],
                           ropes[i]->info.head_dim, s->head_dim);
    if (s->q_rope != NULL && s->k_rope != NULL &&
        s->q_rope->pairs.out_pairing != s->k_rope->pairs.out_pairing)
        return pe_fail(error, PE_E_INCOMPATIBLE,
                       "out_pairing is %d in q_rope and %d in k_rope, must be equal",
                       s->q_rope->pairs.out_pairing, s->k_rope->pairs.out_pairing);
    return PE_OK;
}

static pe_status check_biases(const pe_attention_spec *s, pe_error *error)
{
    for (int i = 0; i < 2; i++) {
        const pe_bias *bias = s->bias[i];
        if (bias != NULL && bias->num_heads - bias->head_start < s->num_heads)
            return pe_fail(error, PE_E_INCOMPATIBLE,
                           "bias[%d] has %d heads from head_start (%d), must have "
                           "num_heads (%d)",
                           i, bias->num_heads - bias->head_start, bias->head_start,
                           s->num_heads);
    }
    return PE_OK;
}

/* ALiBi whose values are not made to imitate a rounding goes into the softmax loop. */
static void choose_fast_bias(pe_attention *plan)
{
    plan->fast_bias = -1;
    plan->distance = PE_DISTANCE_NONE;
    for (int i = 0; i < 2 && plan->fast_bias < 0; i++) {
        const pe_bias *bias = plan->spec.bias[i];
        if (bias == NULL || bias->type != PE_BIAS_ALIBI || bias->round_to != 0)
            continue;
        plan->fast_bias = i;
        plan->distance = bias->form == PE_BIAS_CAUSAL          ? PE_DISTANCE_CAUSAL
                         : bias->form == PE_BIAS_BIDIRECTIONAL ? PE_DISTANCE_SYMMETRIC
                                                               : PE_DISTANCE_SIGNED;
    }
}

static int64_t round_up(int64_t n)
{
    return (n + PE_COLUMN_GROUP - 1) / PE_COLUMN_GROUP * PE_COLUMN_GROUP;
}

pe_status pe_attention_create(pe_attention **out, const pe_attention_spec *spec,
                              const pe_env *env, pe_error *error)
{
    pe_attention_spec s;
    pe_env full;
    pe_status status;
    if (out == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "out is NULL");
    *out = NULL;
    if ((status = pe_spec_read(&s, sizeof s, spec, sizeof s, "pe_attention_spec",
                               error)) != PE_OK ||
        (status = pe_env_resolve(&full, env, error)) != PE_OK)
        return status;
    if (s.v_head_dim == 0)
        s.v_head_dim = s.head_dim;
    if ((status = check_heads(&s, error)) != PE_OK ||
        (status = check_visible(&s.visible, error)) != PE_OK ||
        (status = check_numbers(&s, error)) != PE_OK ||
        (status = check_ropes(&s, error)) != PE_OK ||
        (status = check_biases(&s, error)) != PE_OK)
        return status;
    if (s.scale == 0) {
        s.scale = 1 / sqrt((double)s.head_dim);
        if (s.q_rope != NULL)
            s.scale *= s.q_rope->info.softmax_factor;
    }
    pe_attention *plan = pe_alloc(&full, sizeof *plan);
    if (plan == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for a plan of %zu bytes",
                       sizeof *plan);
    plan->env = full;
    plan->spec = s;
    plan->kernels = pe_attention_kernels_get(full.isa);
    plan->plain = pe_kernels_get(full.isa);
    plan->group = s.num_heads / s.num_kv_heads;
    plan->k_pad = round_up(s.head_dim);
    plan->v_pad = round_up(s.v_head_dim);
    choose_fast_bias(plan);
    *out = plan;
    return PE_OK;
}

void pe_attention_destroy(pe_attention *plan)
{
    if (plan != NULL) {
        const pe_env env = plan->env;
        pe_release(&env, plan, sizeof *plan);
    }
}
