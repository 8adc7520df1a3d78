/* SPDX-License-Identifier: MIT
 *
 * call.c - checking pe_attention_args
 */
#include "attention/call.h"

#include "base/at.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/spec.h"
#include "rope/plan.h"

/* ------------------------------------------------------------------- tensors --- */

static pe_status check_shape(const pe_tensor *x, const char *name, int64_t batch,
                             int64_t num_heads, int64_t dim, pe_error *error)
{
    if (x->batch != batch || x->num_heads != num_heads || x->dim != dim)
        return pe_fail(
            error, PE_E_SHAPE,
            "%s has batch %lld, num_heads %lld and dim %lld, must have %lld, "
            "%lld and %lld",
            name, (long long)x->batch, (long long)x->num_heads, (long long)x->dim,
            (long long)batch, (long long)num_heads, (long long)dim);
    return PE_OK;
}

static pe_status check_tensors(const pe_call *call, pe_error *error)
{
    const pe_attention_args *a = &call->args;
    const pe_attention_spec *s = &call->plan->spec;
    pe_status status;
    if ((status = pe_tensor_check(a->q, PE_INPUT, "q", error)) != PE_OK ||
        (status = pe_tensor_check(a->k, PE_INPUT, "k", error)) != PE_OK ||
        (status = pe_tensor_check(a->v, PE_INPUT, "v", error)) != PE_OK ||
        (status = pe_tensor_check(a->out, PE_OUTPUT, "out", error)) != PE_OK)
        return status;
    const int64_t batch = a->q->batch;
    if ((status = check_shape(a->q, "q", batch, s->num_heads, s->head_dim, error)) !=
            PE_OK ||
        (status = check_shape(a->k, "k", batch, s->num_kv_heads, s->head_dim, error)) !=
            PE_OK ||
        (status = check_shape(a->v, "v", batch, s->num_kv_heads, s->v_head_dim,
                              error)) != PE_OK ||
        (status = check_shape(a->out, "out", batch, s->num_heads, s->v_head_dim,
                              error)) != PE_OK)
        return status;
    if (a->v->seq_len != a->k->seq_len)
        return pe_fail(error, PE_E_SHAPE, "v.seq_len is %lld, must be that of k (%lld)",
                       (long long)a->v->seq_len, (long long)a->k->seq_len);
    if (a->out->seq_len != a->q->seq_len)
        return pe_fail(error, PE_E_SHAPE,
                       "out.seq_len is %lld, must be that of q (%lld)",
                       (long long)a->out->seq_len, (long long)a->q->seq_len);
    const int64_t limit = (int64_t)1 << 40;
    int64_t queries, keys;
    if (!pe_mul_i64(batch, a->q->seq_len, &queries) || queries > limit ||
        !pe_mul_i64(batch, a->k->seq_len, &keys) || keys > limit ||
        batch > (int64_t)1 << 24)
        return pe_fail(error, PE_E_LIMIT,
                       "batch is %lld, q.seq_len %lld and k.seq_len %lld, must be at "
                       "most 2^24, and 2^40 when multiplied",
                       (long long)batch, (long long)a->q->seq_len,
                       (long long)a->k->seq_len);
    if (pe_tensor_same(a->k, a->out) || pe_tensor_same(a->v, a->out))
        return pe_fail(error, PE_E_ARGUMENT, "out is k or v, must be another tensor");
    if ((status = pe_tensor_check_overlap(a->q, "q", a->out, "out", error)) != PE_OK ||
        (status = pe_tensor_check_overlap(a->k, "k", a->out, "out", error)) != PE_OK)
        return status;
    return pe_tensor_check_overlap(a->v, "v", a->out, "out", error);
}

static pe_status check_mask(const pe_call *call, pe_error *error)
{
    const pe_tensor *m = call->args.mask;
    if (m == NULL)
        return PE_OK;
    const pe_status status = pe_tensor_check(m, PE_INPUT, "mask", error);
    if (status != PE_OK)
        return status;
    if (m->dtype != PE_F32 && m->dtype != PE_F16 && m->dtype != PE_BF16)
        return pe_fail(error, PE_E_DTYPE,
                       "mask.dtype is %d, must be PE_F32, PE_F16 or PE_BF16", m->dtype);
    if ((m->batch != 1 && m->batch != call->batch) || m->seq_len != call->q_len ||
        (m->num_heads != 1 && m->num_heads != call->plan->spec.num_heads) ||
        m->dim != call->k_len)
        return pe_fail(error, PE_E_SHAPE,
                       "mask is (%lld, %lld, %lld, %lld), must be (1 or batch %lld, "
                       "q_len %lld, 1 or num_heads %d, k_len %lld)",
                       (long long)m->batch, (long long)m->seq_len,
                       (long long)m->num_heads, (long long)m->dim,
                       (long long)call->batch, (long long)call->q_len,
                       call->plan->spec.num_heads, (long long)call->k_len);
    return pe_tensor_check_apart(m, "mask", call->args.out, "out", error);
}

static pe_status check_scores(const pe_call *call, pe_error *error)
{
    const pe_tensor *p = call->args.scores;
    if (p == NULL)
        return call->args.scores_start == 0
                   ? PE_OK
                   : pe_fail(error, PE_E_ARGUMENT,
                             "scores_start is %lld, must be 0 without scores",
                             (long long)call->args.scores_start);
    pe_status status = pe_tensor_check(p, PE_OUTPUT, "scores", error);
    if (status != PE_OK)
        return status;
    if (p->dtype != PE_F32 && p->dtype != PE_F16 && p->dtype != PE_BF16)
        return pe_fail(error, PE_E_DTYPE,
                       "scores.dtype is %d, must be PE_F32, PE_F16 or PE_BF16",
                       p->dtype);
    if ((status = check_shape(p, "scores", call->batch, call->plan->spec.num_heads,
                              call->k_len, error)) != PE_OK)
        return status;
    const int64_t start = call->args.scores_start;
    if (start < 0 || p->seq_len > call->q_len || start > call->q_len - p->seq_len)
        return pe_fail(error, PE_E_SHAPE,
                       "scores_start is %lld with %lld queries, must lie within q_len "
                       "(%lld)",
                       (long long)start, (long long)p->seq_len, (long long)call->q_len);
    const struct {
        const pe_tensor *x;
        const char *name;
    } others[] = {{call->args.q, "q"},
                  {call->args.k, "k"},
                  {call->args.v, "v"},
                  {call->args.mask, "mask"},
                  {call->args.out, "out"}};
    for (size_t i = 0; i < PE_COUNT(others) && status == PE_OK; i++)
        if (others[i].x != NULL)
            status =
                pe_tensor_check_apart(others[i].x, others[i].name, p, "scores", error);
    return status;
}

/* ----------------------------------------------------------------- documents --- */

static pe_status check_cu(const int32_t *cu, int64_t num_seqs, int64_t len,
                          const char *name, pe_error *error)
{
    if (cu[0] != 0)
        return pe_fail(error, PE_E_ARGUMENT, "%s[0] is %d, must be 0", name, cu[0]);
    for (int64_t i = 0; i < num_seqs; i++)
        if (cu[i + 1] < cu[i])
            return pe_fail(error, PE_E_ARGUMENT,
                           "%s[%lld] is %d, must be at least the one before (%d)", name,
                           (long long)(i + 1), cu[i + 1], cu[i]);
    if (cu[num_seqs] > len)
        return pe_fail(error, PE_E_ARGUMENT,
                       "%s[%lld] is %d, must be at most seq_len (%lld)", name,
                       (long long)num_seqs, cu[num_seqs], (long long)len);
    return PE_OK;
}

static pe_status check_documents(pe_call *call, pe_error *error)
{
    pe_attention_args *a = &call->args;
    if (a->num_seqs < 0)
        return pe_fail(error, PE_E_ARGUMENT, "num_seqs is %d, must be at least 0",
                       a->num_seqs);
    if (a->num_seqs == 0) {
        if (a->q_cu_seqlens != NULL || a->k_cu_seqlens != NULL)
            return pe_fail(error, PE_E_ARGUMENT,
                           "num_seqs is 0, must be set with q_cu_seqlens");
        for (int64_t b = 0; a->k_lens != NULL && b < call->batch; b++)
            if (a->k_lens[b] < 0 || a->k_lens[b] > call->k_len)
                return pe_fail(error, PE_E_ARGUMENT,
                               "k_lens[%lld] is %lld, must be in 0 .. k.seq_len (%lld)",
                               (long long)b, (long long)a->k_lens[b],
                               (long long)call->k_len);
        call->num_documents = call->batch;
        return PE_OK;
    }
    if (a->q_cu_seqlens == NULL)
        return pe_fail(error, PE_E_ARGUMENT,
                       "q_cu_seqlens is NULL, num_seqs (%d) needs it", a->num_seqs);
    if (call->batch != 1)
        return pe_fail(error, PE_E_SHAPE, "batch is %lld, must be 1 when packed",
                       (long long)call->batch);
    if (a->k_lens != NULL)
        return pe_fail(error, PE_E_ARGUMENT, "k_lens is set, must be NULL when packed");
    if (a->k_cu_seqlens == NULL)
        a->k_cu_seqlens = a->q_cu_seqlens;
    call->num_documents = a->num_seqs;
    const pe_status status =
        check_cu(a->q_cu_seqlens, a->num_seqs, call->q_len, "q_cu_seqlens", error);
    if (status != PE_OK)
        return status;
    return check_cu(a->k_cu_seqlens, a->num_seqs, call->k_len, "k_cu_seqlens", error);
}

pe_document pe_call_document(const pe_call *call, int64_t index)
{
    const pe_attention_args *a = &call->args;
    if (a->num_seqs == 0)
        return (pe_document){index, 0, call->q_len, 0,
                             a->k_lens != NULL ? a->k_lens[index] : call->k_len};
    const int32_t *q = a->q_cu_seqlens + index, *k = a->k_cu_seqlens + index;
    return (pe_document){0, q[0], q[1] - q[0], k[0], k[1] - k[0]};
}

int64_t pe_call_num_tiles(const pe_call *call, const pe_document *d)
{
    return (d->q_len + call->tile_tokens - 1) / call->tile_tokens;
}

pe_document pe_call_tile(const pe_call *call, int64_t tile, pe_tile_cursor *cursor,
                         int64_t *token)
{
    if (call->args.num_seqs == 0) { /* rows of one length */
        const int64_t each = call->num_tiles / call->batch;
        *token = tile % each * call->tile_tokens;
        return pe_call_document(call, tile / each);
    }
    if (tile < cursor->first_tile)
        *cursor = (pe_tile_cursor){0, 0};
    pe_document d = pe_call_document(call, cursor->document);
    while (tile >= cursor->first_tile + pe_call_num_tiles(call, &d)) {
        cursor->first_tile += pe_call_num_tiles(call, &d);
        d = pe_call_document(call, ++cursor->document);
    }
    *token = (tile - cursor->first_tile) * call->tile_tokens;
    return d;
}

/* ----------------------------------------------------------------- positions --- */

static int32_t axes_of(const pe_rope *rope)
{
    return rope != NULL ? rope->info.num_axes : 1;
}

/* Biases measure distances in double: whole positions within 2^52. */
static pe_status check_range(const pe_positions *at, int64_t batch, int64_t seq_len,
                             const char *name, pe_error *error)
{
    const int64_t limit = (int64_t)1 << 52;
    const int64_t step = at->ids != NULL || seq_len < 2 ? 1 : seq_len - 1;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < seq_len; t += step) {
            const int64_t p = pe_at_id(at, 0, b, t);
            if (p > limit || p < -limit)
                return pe_fail(error, PE_E_POSITION,
                               "%s of row %lld, token %lld is %lld, must be at most "
                               "2^52 in size for a bias",
                               name, (long long)b, (long long)t, (long long)p);
        }
    return PE_OK;
}

static pe_status check_positions(const pe_call *call, pe_error *error)
{
    const pe_attention_args *a = &call->args;
    const pe_attention_spec *s = &call->plan->spec;
    const int bias = s->bias[0] != NULL || s->bias[1] != NULL;
    const int hot = s->temperature.type != PE_TEMPERATURE_NONE;
    pe_status status;
    if (a->q_at == NULL && (s->q_rope != NULL || bias || hot))
        return pe_fail(error, PE_E_ARGUMENT,
                       "q_at is NULL, a rope, bias or temperature needs it");
    if (a->k_at == NULL && (s->k_rope != NULL || bias))
        return pe_fail(error, PE_E_ARGUMENT, "k_at is NULL, a rope or bias needs it");
    if (a->q_at != NULL &&
        (status = pe_at_check(a->q_at, call->batch, call->q_len, axes_of(s->q_rope),
                              !bias && !hot, "q_at", error)) != PE_OK)
        return status;
    if (a->k_at != NULL &&
        (status = pe_at_check(a->k_at, call->batch, call->k_len, axes_of(s->k_rope),
                              !bias, "k_at", error)) != PE_OK)
        return status;
    if (!bias)
        return PE_OK;
    if ((status = check_range(a->q_at, call->batch, call->q_len, "q_at", error)) !=
        PE_OK)
        return status;
    return check_range(a->k_at, call->batch, call->k_len, "k_at", error);
}

static pe_status check_far(const pe_call *call, pe_error *error)
{
    const pe_attention_args *a = &call->args;
    const pe_attention_spec *s = &call->plan->spec;
    pe_status status;
    if (a->num_far_rules < 0 || a->num_far_rules > PE_MAX_FAR_RULES)
        return pe_fail(error, PE_E_LIMIT, "num_far_rules is %lld, must be in 0 .. %d",
                       (long long)a->num_far_rules, PE_MAX_FAR_RULES);
    if (a->num_far_rules == 0)
        return PE_OK;
    if (a->far_rules == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "far_rules is NULL, num_far_rules is %lld",
                       (long long)a->num_far_rules);
    if (s->q_rope == NULL || s->k_rope == NULL)
        return pe_fail(error, PE_E_ARGUMENT,
                       "%s is not set, far_rules need q_rope and k_rope",
                       s->q_rope == NULL ? "q_rope" : "k_rope");
    for (int64_t i = 0; i < a->num_far_rules; i++) {
        const pe_far *rule = &a->far_rules[i];
        if (rule->unit < 1 || rule->unit > (int64_t)1 << 40 || rule->from < 0 ||
            rule->from > (int64_t)1 << 40)
            return pe_fail(error, PE_E_ARGUMENT,
                           "far_rules[%lld] has unit %lld and from %lld, must be in 1 "
                           ".. 2^40 and 0 .. 2^40",
                           (long long)i, (long long)rule->unit, (long long)rule->from);
        if ((status = pe_at_check(rule->q_at, call->batch, call->q_len,
                                  axes_of(s->q_rope), 1, "far_rules.q_at", error)) !=
                PE_OK ||
            (status = pe_at_check(rule->k_at, call->batch, call->k_len,
                                  axes_of(s->k_rope), 1, "far_rules.k_at", error)) !=
                PE_OK)
            return status;
    }
    return PE_OK;
}

pe_status pe_call_check(pe_call *call, const pe_attention *plan,
                        const pe_attention_args *args, int backward, pe_error *error)
{
    pe_status status;
    if (plan == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "plan is NULL");
    *call = (pe_call){.plan = plan, .backward = backward};
    if ((status = pe_spec_read(&call->args, sizeof call->args, args, sizeof call->args,
                               "pe_attention_args", error)) != PE_OK ||
        (status = check_tensors(call, error)) != PE_OK)
        return status;
    call->batch = call->args.q->batch;
    call->q_len = call->args.q->seq_len;
    call->k_len = call->args.k->seq_len;
    call->num_workers =
        plan->env.executor.run != NULL ? plan->env.executor.num_workers : 1;
    if ((status = check_documents(call, error)) != PE_OK ||
        (status = check_mask(call, error)) != PE_OK ||
        (status = check_scores(call, error)) != PE_OK ||
        (status = check_positions(call, error)) != PE_OK ||
        (status = check_far(call, error)) != PE_OK)
        return status;
    call->variants = 1 + (int)call->args.num_far_rules;
    const pe_attention_spec *s = &plan->spec;
    for (int i = 0; i < 2; i++)
        call->uses_extra |= s->bias[i] != NULL && i != plan->fast_bias;
    call->uses_extra |= call->args.mask != NULL || call->args.k->page_table != NULL ||
                        call->args.v->page_table != NULL;
    pe_call_choose_tiles(call);
    call->k_norms = s->no_skip ? NULL : call->args.k_norms;
    call->makes_norms = pe_call_may_skip(call);
    pe_call_lay_out(call, NULL);
    if (call->size == SIZE_MAX)
        return pe_fail(error, PE_E_LIMIT,
                       "the workspace of q_len %lld and k_len %lld has no size",
                       (long long)call->q_len, (long long)call->k_len);
    return PE_OK;
}

pe_status pe_call_prepare(const pe_call *call, pe_error *error)
{
    if (call->makes_norms)
        pe_call_make_norms(call);
    if (call->temperatures == NULL || call->q_len == 0)
        return PE_OK;
    pe_tensor factors;
    pe_tensor_bshd(&factors, PE_F32, call->temperatures, call->batch, call->q_len, 1,
                   1);
    return pe_temperature_fill(&call->plan->spec.temperature, call->args.q_at, &factors,
                               error);
}
