/* SPDX-License-Identifier: MIT
 *
 * attend.c - attention through the public calls, one plan for each layer
 *
 * Queries and keys are turned in place before attention rather than inside it: a batch
 * of short rows reads each key in backward again, and turning it once costs a third.
 * Only dynamic NTK leaves them as they are, for every block of queries turns all its
 * keys by a rotation of its own. */
#include "attend.h"

#include "posenc/attention.h"

#include <math.h>

typedef struct lab_attend_layer {
    pe_bias *bias;
    pe_attention *plan; /* NULL: dynamic */
    float *lse;         /* [rows][heads][tokens] for backward, else NULL */
} lab_attend_layer;

struct lab_attend {
    lab_pass_spec spec;
    lab_memory *memory;
    pe_env env;
    int64_t width, heads, head_dim;
    pe_rope *rope; /* of all layers that turn; NULL: none, or dynamic */
    double *inv_freq;
    void *workspace;
    size_t workspace_size;
    lab_attend_layer layer[LAB_MAX_LAYERS];
};

/* ------------------------------------------------------------------------ tensors --- */

/* Heads of qkv: part 0 those of q, 1 of k, 2 of v. */
static pe_tensor heads_of(const lab_attend *a, float *qkv, int64_t part,
                          int64_t num_heads)
{
    pe_tensor x;
    pe_tensor_bshd(&x, PE_F32, qkv + part * a->width, a->spec.rows, a->spec.tokens,
                   num_heads, a->head_dim);
    x.seq_stride = 3 * a->width;
    x.batch_stride = a->spec.tokens * x.seq_stride;
    return x;
}

static pe_tensor part_of(const lab_attend *a, float *qkv, int64_t part)
{
    return heads_of(a, qkv, part, a->heads);
}

static pe_tensor whole(const lab_attend *a, float *x)
{
    pe_tensor out;
    pe_tensor_bshd(&out, PE_F32, x, a->spec.rows, a->spec.tokens, a->heads,
                   a->head_dim);
    return out;
}

/* ---------------------------------------------------------------------- workspace --- */

static pe_status grow_workspace(lab_attend *a, size_t size, pe_error *error)
{
    if (size <= a->workspace_size)
        return PE_OK;
    lab_memory_return(a->memory, a->workspace, (int64_t)a->workspace_size, 1);
    a->workspace_size = 0;
    a->workspace = lab_memory_take(a->memory, (int64_t)size, 1);
    if (a->workspace == NULL)
        return lab_fail(error, PE_E_NO_MEMORY, "no memory for %zu bytes of workspace",
                        size);
    a->workspace_size = size;
    return PE_OK;
}

static pe_status make_room(lab_attend *a, const pe_attention *plan,
                           const pe_attention_args *args, pe_error *error)
{
    size_t forward = 0, backward = 0;
    const pe_status status = pe_attention_workspace(
        plan, args, &forward, a->spec.has_backward ? &backward : NULL, error);
    if (status != PE_OK)
        return status;
    return grow_workspace(a, forward > backward ? forward : backward, error);
}

/* -------------------------------------------------------------------------- plans --- */

static pe_status make_bias(lab_attend *a, int32_t layer, const float *weights,
                           pe_error *error)
{
    const lab_layer_offsets *at = &a->spec.layout->layer[layer];
    pe_bias_spec spec = {.struct_size = sizeof spec,
                         .form = PE_BIAS_CAUSAL,
                         .num_heads = a->spec.config->heads};
    switch (a->spec.config->layer[layer]) {
    case LAB_ALIBI:
        spec.type = PE_BIAS_ALIBI;
        spec.slopes = at->slopes >= 0 ? weights + at->slopes : NULL;
        break;
    case LAB_T5:
        spec.type = PE_BIAS_T5;
        spec.table = weights + a->spec.layout->t5;
        break;
    case LAB_KERPLE:
        spec.type = PE_BIAS_KERPLE_LOG;
        spec.kerple_p = weights + at->kerple;
        spec.kerple_a = spec.kerple_p + a->heads;
        break;
    default:
        return PE_OK;
    }
    return pe_bias_create(&a->layer[layer].bias, &spec, &a->env, error);
}

static pe_attention_spec attention_spec(const lab_attend *a, const pe_bias *bias)
{
    const int32_t heads = a->spec.config->heads;
    const int windowed = a->spec.mode.type == LAB_MODE_WINDOW;
    return (pe_attention_spec){
        .struct_size = sizeof(pe_attention_spec),
        .num_heads = heads,
        .num_kv_heads = heads,
        .head_dim = (int32_t)a->head_dim,
        .visible = {.mask = PE_MASK_CAUSAL,
                    .window = windowed ? a->spec.config->length : 0},
        .bias = {bias}};
}

static int is_dynamic(const lab_attend *a, int32_t layer)
{
    return a->spec.mode.type == LAB_MODE_DYN &&
           a->spec.config->layer[layer] == LAB_ROPE;
}

static int has_parameters(const lab_attend *a, int32_t layer)
{
    const lab_method method = a->spec.config->layer[layer];
    return method == LAB_T5 || method == LAB_KERPLE ||
           a->spec.layout->layer[layer].slopes >= 0;
}

static void drop_plan(lab_attend_layer *layer)
{
    pe_attention_destroy(layer->plan);
    pe_bias_destroy(layer->bias);
    layer->plan = NULL;
    layer->bias = NULL;
}

static pe_status make_plan(lab_attend *a, int32_t layer, const float *weights,
                           pe_error *error)
{
    lab_attend_layer *l = &a->layer[layer];
    drop_plan(l);
    const pe_status status = make_bias(a, layer, weights, error);
    if (status != PE_OK)
        return status;
    pe_attention_spec spec = attention_spec(a, l->bias);
    if (a->spec.config->layer[layer] == LAB_ROPE)
        spec.scale =
            pe_rope_get_info(a->rope)->softmax_factor / sqrt((double)a->head_dim);
    return pe_attention_create(&l->plan, &spec, &a->env, error);
}

static pe_status make_rope(lab_attend *a, pe_rope **out, int64_t tokens,
                           pe_error *error)
{
    pe_rope_spec spec;
    lab_mode_rope(&a->spec.mode, a->spec.config, tokens, a->inv_freq, &spec);
    return pe_rope_create(out, &spec, &a->env, error);
}

static pe_status create(lab_attend *a, pe_error *error)
{
    const lab_config *config = a->spec.config;
    pe_status status = PE_OK;
    a->inv_freq = lab_memory_take(a->memory, a->head_dim / 2, sizeof *a->inv_freq);
    if (a->inv_freq == NULL)
        return lab_fail(error, PE_E_NO_MEMORY, "no memory for frequencies");
    for (int32_t i = 0; i < config->layers && status == PE_OK; i++) {
        if (is_dynamic(a, i))
            continue;
        if (config->layer[i] == LAB_ROPE && a->rope == NULL)
            status = make_rope(a, &a->rope, a->spec.tokens, error);
        if (status == PE_OK && !has_parameters(a, i))
            status = make_plan(a, i, NULL, error);
        if (status == PE_OK && a->spec.has_backward) {
            a->layer[i].lse = lab_memory_take(
                a->memory, a->spec.rows * a->heads * a->spec.tokens, sizeof(float));
            if (a->layer[i].lse == NULL)
                status = lab_fail(error, PE_E_NO_MEMORY, "no memory for layer %d", i);
        }
    }
    return status;
}

pe_status lab_attend_create(lab_attend **out, const lab_pass_spec *spec,
                            lab_memory *memory, pe_error *error)
{
    *out = lab_memory_take(memory, 1, sizeof **out);
    if (*out == NULL)
        return lab_fail(error, PE_E_NO_MEMORY, "no memory for attention");
    **out = (lab_attend){.spec = *spec,
                         .memory = memory,
                         .env = lab_memory_env(memory, spec->isa),
                         .width = spec->config->width,
                         .heads = spec->config->heads,
                         .head_dim = spec->config->width / spec->config->heads};
    const pe_status status = create(*out, error);
    if (status != PE_OK) {
        lab_attend_destroy(*out);
        *out = NULL;
    }
    return status;
}

void lab_attend_destroy(lab_attend *a)
{
    if (a == NULL)
        return;
    for (int32_t i = 0; i < a->spec.config->layers; i++) {
        drop_plan(&a->layer[i]);
        lab_memory_return(a->memory, a->layer[i].lse,
                          a->spec.rows * a->heads * a->spec.tokens, sizeof(float));
    }
    pe_rope_destroy(a->rope);
    lab_memory_return(a->memory, a->inv_freq, a->head_dim / 2, sizeof *a->inv_freq);
    lab_memory_return(a->memory, a->workspace, (int64_t)a->workspace_size, 1);
    lab_memory_return(a->memory, a, 1, sizeof *a);
}

pe_status lab_attend_update(lab_attend *a, const float *weights, pe_error *error)
{
    pe_status status = PE_OK;
    for (int32_t i = 0; i < a->spec.config->layers && status == PE_OK; i++)
        if (has_parameters(a, i))
            status = make_plan(a, i, weights, error);
    return status;
}

/* -------------------------------------------------------------------------- calls --- */

static const pe_positions from_zero = {0};

/* Queries of one block of L, with every key up to its end, for the length so far. */
static pe_status forward_block(lab_attend *a, pe_attention_args *args, int64_t begin,
                               int64_t end, pe_error *error)
{
    pe_tensor q = *args->q, k = *args->k, v = *args->v, out = *args->out;
    const pe_positions at = {.start = begin};
    pe_attention_spec spec = attention_spec(a, NULL);
    pe_attention *plan = NULL;
    pe_rope *rope = NULL;
    q.data = (float *)q.data + begin * q.seq_stride;
    out.data = (float *)out.data + begin * out.seq_stride;
    q.seq_len = out.seq_len = end - begin;
    k.seq_len = v.seq_len = end;
    pe_status status = make_rope(a, &rope, end, error);
    spec.q_rope = spec.k_rope = rope;
    if (status == PE_OK)
        status = pe_attention_create(&plan, &spec, &a->env, error);
    const pe_attention_args block = {.struct_size = sizeof block,
                                     .q = &q,
                                     .k = &k,
                                     .v = &v,
                                     .out = &out,
                                     .q_at = &at,
                                     .k_at = &from_zero};
    if (status == PE_OK)
        status = make_room(a, plan, &block, error);
    if (status == PE_OK)
        status =
            pe_attention_forward(plan, &block, a->workspace, a->workspace_size, error);
    pe_attention_destroy(plan);
    pe_rope_destroy(rope);
    return status;
}

static pe_status forward_dynamic(lab_attend *a, pe_attention_args *args,
                                 pe_error *error)
{
    const int64_t step = a->spec.config->length;
    pe_status status = PE_OK;
    for (int64_t t = 0; t < a->spec.tokens && status == PE_OK; t += step)
        status = forward_block(
            a, args, t, t + step < a->spec.tokens ? t + step : a->spec.tokens, error);
    return status;
}

/* What both directions are given of a layer. */
typedef struct call {
    pe_tensor q, k, v, out;
    pe_attention_args args;
} call;

static void fill_call(call *c, const lab_attend *a, int32_t layer, float *qkv,
                      float *out)
{
    c->q = part_of(a, qkv, 0);
    c->k = part_of(a, qkv, 1);
    c->v = part_of(a, qkv, 2);
    c->out = whole(a, out);
    c->args = (pe_attention_args){.struct_size = sizeof c->args,
                                  .q = &c->q,
                                  .k = &c->k,
                                  .v = &c->v,
                                  .out = &c->out,
                                  .q_at = &from_zero,
                                  .k_at = &from_zero,
                                  .lse = a->layer[layer].lse};
}

pe_status lab_attend_forward(lab_attend *a, int32_t layer, float *qkv, float *out,
                             pe_error *error)
{
    call c;
    pe_status status = PE_OK;
    fill_call(&c, a, layer, qkv, out);
    if (is_dynamic(a, layer))
        return forward_dynamic(a, &c.args, error);
    if (a->spec.config->layer[layer] == LAB_ROPE) {
        const pe_tensor both = heads_of(a, qkv, 0, 2 * a->heads);
        status = pe_rope_apply(a->rope, &from_zero, &both, &both, error);
    }
    if (status == PE_OK)
        status = make_room(a, a->layer[layer].plan, &c.args, error);
    if (status == PE_OK)
        status = pe_attention_forward(a->layer[layer].plan, &c.args, a->workspace,
                                      a->workspace_size, error);
    return status;
}

static float *bias_gradient(const lab_attend *a, int32_t layer, float *grads)
{
    const lab_layer_offsets *at = &a->spec.layout->layer[layer];
    if (a->spec.config->layer[layer] == LAB_T5)
        return grads + a->spec.layout->t5;
    if (at->kerple >= 0)
        return grads + at->kerple;
    return at->slopes >= 0 ? grads + at->slopes : NULL;
}

pe_status lab_attend_backward(lab_attend *a, int32_t layer, float *qkv, float *out,
                              float *dout, float *dqkv, float *grads, pe_error *error)
{
    const pe_tensor d = whole(a, dout), dq = part_of(a, dqkv, 0),
                    dk = part_of(a, dqkv, 1), dv = part_of(a, dqkv, 2);
    call c;
    fill_call(&c, a, layer, qkv, out);
    const pe_attention_grads wanted = {.struct_size = sizeof wanted,
                                       .dout = &d,
                                       .dq = &dq,
                                       .dk = &dk,
                                       .dv = &dv,
                                       .dbias = {bias_gradient(a, layer, grads)}};
    pe_status status = pe_attention_backward(a->layer[layer].plan, &c.args, &wanted,
                                             a->workspace, a->workspace_size, error);
    if (status != PE_OK || a->spec.config->layer[layer] != LAB_ROPE)
        return status;
    const pe_tensor both = heads_of(a, dqkv, 0, 2 * a->heads);
    return pe_rope_transpose(a->rope, &from_zero, &both, &both, error);
}
