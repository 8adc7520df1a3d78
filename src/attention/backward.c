/* SPDX-License-Identifier: MIT
 *
 * backward.c - one backward call: its checks, what nobody covers, and sums of parameters
 *
 * The gradients themselves are made in gradient.c, one kv head of a document at a time. */
#include "attention/gradient.h"

#include "attention/tile.h"
#include "base/error.h"
#include "base/spec.h"
#include "bias/bias_plan.h"

#include <string.h>

/* ------------------------------------------------------------------------- checks --- */

static pe_status check_gradient(const pe_tensor *x, const char *x_name,
                                const pe_tensor *dx, const char *name, pe_error *error)
{
    pe_status status;
    if (dx == NULL)
        return PE_OK;
    if ((status = pe_tensor_check(dx, PE_OUTPUT, name, error)) != PE_OK ||
        (status = pe_tensor_check_same_shape(x, x_name, dx, name, error)) != PE_OK)
        return status;
    if (dx->dtype != PE_F32 && dx->dtype != PE_F16 && dx->dtype != PE_BF16)
        return pe_fail(error, PE_E_DTYPE,
                       "%s.dtype is %d, must be PE_F32, PE_F16 or PE_BF16", name,
                       dx->dtype);
    return PE_OK;
}

static pe_status check_parameters(const pe_gradient_call *g, pe_error *error)
{
    const pe_attention_args *a = &g->call.args;
    const pe_attention_spec *s = &g->call.plan->spec;
    for (int i = 0; i < 2; i++)
        if (g->grads.dbias[i] != NULL && s->bias[i] == NULL)
            return pe_fail(error, PE_E_ARGUMENT,
                           "dbias[%d] is set, the plan has no bias[%d]", i, i);
    if (g->grads.dsinks != NULL && a->sinks == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "dsinks is set, the call has no sinks");
    if (g->grads.dmask == NULL)
        return PE_OK;
    if (a->mask == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "dmask is set, the call has no mask");
    if (g->grads.dmask->dtype != PE_F32)
        return pe_fail(error, PE_E_DTYPE, "dmask.dtype is %d, must be PE_F32 (1)",
                       g->grads.dmask->dtype);
    return check_gradient(a->mask, "mask", g->grads.dmask, "dmask", error);
}

/* What is read is read again after some gradients are stored. */
static pe_status check_apart(const pe_gradient_call *g, pe_error *error)
{
    const pe_attention_args *a = &g->call.args;
    const pe_attention_grads *d = &g->grads;
    const struct {
        const pe_tensor *x;
        const char *name;
    } all[] = {{d->dq, "dq"},     {d->dk, "dk"},    {d->dv, "dv"}, {d->dmask, "dmask"},
               {a->q, "q"},       {a->k, "k"},      {a->v, "v"},   {a->out, "out"},
               {d->dout, "dout"}, {a->mask, "mask"}};
    enum { OUTPUTS = 4 };
    for (size_t y = 0; y < OUTPUTS; y++)
        for (size_t x = y + 1; x < PE_COUNT(all) && all[y].x != NULL; x++) {
            const pe_status status =
                all[x].x == NULL ? PE_OK
                                 : pe_tensor_check_apart(all[x].x, all[x].name,
                                                         all[y].x, all[y].name, error);
            if (status != PE_OK)
                return status;
        }
    return PE_OK;
}

static pe_status check(pe_gradient_call *g, const pe_attention_grads *grads,
                       pe_error *error)
{
    const pe_attention_args *a = &g->call.args;
    pe_status status;
    if ((status = pe_spec_read(&g->grads, sizeof g->grads, grads, sizeof g->grads,
                               "pe_attention_grads", error)) != PE_OK)
        return status;
    if (g->grads.reserved != 0)
        return pe_fail(error, PE_E_ARGUMENT, "grads.reserved is %d, must be 0",
                       g->grads.reserved);
    if (a->lse == NULL)
        return pe_fail(error, PE_E_ARGUMENT,
                       "lse is NULL, backward needs what forward wrote there");
    if ((status = pe_tensor_check(g->grads.dout, PE_INPUT, "dout", error)) != PE_OK ||
        (status = pe_tensor_check_same_shape(a->out, "out", g->grads.dout, "dout",
                                             error)) != PE_OK ||
        (status = check_gradient(a->q, "q", g->grads.dq, "dq", error)) != PE_OK ||
        (status = check_gradient(a->k, "k", g->grads.dk, "dk", error)) != PE_OK ||
        (status = check_gradient(a->v, "v", g->grads.dv, "dv", error)) != PE_OK ||
        (status = check_parameters(g, error)) != PE_OK)
        return status;
    return check_apart(g, error);
}

/* --------------------------------------------------------------------------- call --- */

/* What no document covers has no gradient. */
static void clear(const pe_tensor *x)
{
    const float zeroes[PE_MAX_VECTOR_DIM] = {0};
    for (int64_t b = 0; x != NULL && b < x->batch; b++)
        for (int64_t t = 0; t < x->seq_len; t++)
            for (int64_t h = 0; h < x->num_heads; h++) {
                int64_t element;
                if (!pe_tensor_at(x, b, t, h, &element))
                    continue;
                for (int64_t i = 0; i < x->dim; i += PE_MAX_VECTOR_DIM)
                    pe_vector_store(x, element, i,
                                    x->dim - i < PE_MAX_VECTOR_DIM ? x->dim - i
                                                                   : PE_MAX_VECTOR_DIM,
                                    zeroes);
            }
}

static void clear_outputs(const pe_gradient_call *g)
{
    const pe_call *call = &g->call;
    const int covered = call->args.num_seqs == 0 && call->args.k_lens == NULL;
    clear(g->grads.dmask);
    if (covered)
        return;
    clear(g->grads.dq);
    clear(g->grads.dk);
    clear(g->grads.dv);
}

/* Documents in order, so that the sum has one. */
static void store_parameters(const pe_gradient_call *g)
{
    const pe_call *call = &g->call;
    const int32_t heads = call->plan->spec.num_heads;
    for (int64_t d = 0; d < call->num_documents; d++)
        for (int32_t h = 0; h < heads; h++) {
            for (int i = 0; i < 2; i++) {
                const pe_bias *bias = call->plan->spec.bias[i];
                if (g->grads.dbias[i] != NULL)
                    pe_bias_store_gradients(bias, bias->head_start + h,
                                            pe_call_bias_sums(call, i, d, h),
                                            g->grads.dbias[i]);
            }
            if (g->grads.dsinks != NULL)
                g->grads.dsinks[h] =
                    (float)((double)g->grads.dsinks[h] + *pe_call_sink_sum(call, d, h));
        }
}

static void clear_sums(const pe_call *call)
{
    const int64_t count = call->num_documents * call->plan->spec.num_kv_heads;
    for (int i = 0; i < 2; i++)
        if (call->bias_sums[i] != NULL)
            memset(call->bias_sums[i], 0,
                   (size_t)(count * call->sums_size[i]) * sizeof(double));
    memset(call->sink_sums, 0, (size_t)(count * call->sinks_size) * sizeof(double));
}

pe_status pe_attention_backward(const pe_attention *plan, const pe_attention_args *args,
                                const pe_attention_grads *grads, void *workspace,
                                size_t workspace_size, pe_error *error)
{
    pe_gradient_call g;
    pe_status status;
    if ((status = pe_call_check(&g.call, plan, args, 1, error)) != PE_OK ||
        (status = check(&g, grads, error)) != PE_OK ||
        (status = pe_call_place(&g.call, workspace, workspace_size, error)) != PE_OK ||
        (status = pe_call_prepare(&g.call, error)) != PE_OK)
        return status;
    const int64_t items = g.call.num_documents * plan->spec.num_kv_heads;
    const pe_tensor *dmask = g.grads.dmask;
    clear_sums(&g.call);
    clear_outputs(&g);
    pe_tile_clear(&g.call);
    /* Heads or rows that share a mask add to the same elements: one after another. */
    if (dmask != NULL && (dmask->batch < g.call.batch ||
                          dmask->num_heads < (int64_t)plan->spec.num_heads))
        pe_gradient_heads(&g, 0, 0, items);
    else
        pe_run(&plan->env, items, 1, pe_gradient_heads, &g);
    store_parameters(&g);
    return PE_OK;
}
