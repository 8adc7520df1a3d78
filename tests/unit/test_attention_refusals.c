/* SPDX-License-Identifier: MIT
 *
 * test_attention_refusals.c - every wrong spec and call is named, and writes nothing
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/refusal.h"
#include "posenc/attention.h"

enum { T = 6, H = 4, KV = 2, D = 8 };

struct call {
    pe_attention_spec spec;
    pe_attention_args args;
    pe_attention_grads grads;
    pe_tensor q, k, v, out, dout, dq, dk, dv, mask, scores;
    pe_positions q_at, k_at;
    pe_far far_rule;
    int64_t k_lens[1];
    int32_t cu[3];
    pe_rope *rope, *other, *narrow;
    pe_bias *bias, *small;
    float lse[T * H], dbias[H], dsinks[H];
    size_t size;
    void *work;
};

static float q[T * H * D], k[T * KV * D], v[T * KV * D], out[T * H * D];
static float dout[T * H * D + 1], dq[T * H * D], dk[T * KV * D], dv[T * KV * D];
static float mask[T * T], scores[H * T * T];

static void set_up(struct call *c)
{
    pe_rope_spec rope = {.struct_size = sizeof rope,
                         .head_dim = D,
                         .pairs = {.pairing = PE_HALF_SPLIT},
                         .freqs = {.rope_theta = 10000}};
    pe_bias_spec bias = {.struct_size = sizeof bias,
                         .type = PE_BIAS_ALIBI,
                         .form = PE_BIAS_CAUSAL,
                         .num_heads = H};

    *c = (struct call){.cu = {0, 2, T}};
    assert_int_equal(pe_rope_create(&c->rope, &rope, NULL, NULL), PE_OK);
    rope.pairs.pairing = PE_INTERLEAVED;
    assert_int_equal(pe_rope_create(&c->other, &rope, NULL, NULL), PE_OK);
    rope.head_dim = D / 2;
    assert_int_equal(pe_rope_create(&c->narrow, &rope, NULL, NULL), PE_OK);
    assert_int_equal(pe_bias_create(&c->bias, &bias, NULL, NULL), PE_OK);
    bias.num_heads = H - 1;
    assert_int_equal(pe_bias_create(&c->small, &bias, NULL, NULL), PE_OK);
    c->spec = (pe_attention_spec){.struct_size = sizeof c->spec,
                                  .num_heads = H,
                                  .num_kv_heads = KV,
                                  .head_dim = D,
                                  .visible = {.mask = PE_MASK_CAUSAL},
                                  .q_rope = c->rope,
                                  .k_rope = c->rope,
                                  .bias = {c->bias}};
    pe_tensor_bshd(&c->q, PE_F32, q, 1, T, H, D);
    pe_tensor_bshd(&c->k, PE_F32, k, 1, T, KV, D);
    pe_tensor_bshd(&c->v, PE_F32, v, 1, T, KV, D);
    pe_tensor_bshd(&c->out, PE_F32, out, 1, T, H, D);
    pe_tensor_bshd(&c->dout, PE_F32, dout, 1, T, H, D);
    pe_tensor_bshd(&c->dq, PE_F32, dq, 1, T, H, D);
    pe_tensor_bshd(&c->dk, PE_F32, dk, 1, T, KV, D);
    pe_tensor_bshd(&c->dv, PE_F32, dv, 1, T, KV, D);
    pe_tensor_bhsd(&c->mask, PE_F32, mask, 1, 1, T, T);
    pe_tensor_bhsd(&c->scores, PE_F32, scores, 1, H, T, T);
    c->args = (pe_attention_args){.struct_size = sizeof c->args,
                                  .q = &c->q,
                                  .k = &c->k,
                                  .v = &c->v,
                                  .out = &c->out,
                                  .q_at = &c->q_at,
                                  .k_at = &c->k_at,
                                  .lse = c->lse};
    c->grads = (pe_attention_grads){.struct_size = sizeof c->grads,
                                    .dout = &c->dout,
                                    .dq = &c->dq,
                                    .dk = &c->dk,
                                    .dv = &c->dv,
                                    .dbias = {c->dbias}};
    c->far_rule = (pe_far){.unit = 1, .from = 2, .q_at = &c->q_at, .k_at = &c->k_at};
    c->size = (size_t)4 << 20;
    c->work = aligned_alloc(64, c->size);
    for (int i = 0; i < T * H * D; i++)
        out[i] = 7;
}

static void tear_down(struct call *c)
{
    free(c->work);
    pe_rope_destroy(c->rope);
    pe_rope_destroy(c->other);
    pe_rope_destroy(c->narrow);
    pe_bias_destroy(c->bias);
    pe_bias_destroy(c->small);
}

struct wrong {
    const char *words;
    pe_status status;
    void (*change)(struct call *c);
};

/* ---------------------------------------------------------------------- the lists --- */

#define CHANGE(name, statement)    \
  static void name(struct call *c) \
  {                                \
    statement;                     \
  }

CHANGE(no_heads, c->spec.num_heads = 0)
CHANGE(kv_heads, c->spec.num_kv_heads = 3)
CHANGE(wide, c->spec.head_dim = 5000)
CHANGE(no_mask, c->spec.visible.mask = 0)
CHANGE(few_sinks, c->spec.visible.num_sinks = -1)
CHANGE(window, c->spec.visible.window = -2)
CHANGE(skips, c->spec.no_skip = 2)
CHANGE(scale, c->spec.scale = (double)INFINITY)
CHANGE(cap, c->spec.softcap = -1)
CHANGE(hot, c->spec.temperature.type = 9)
CHANGE(narrow_rope, c->spec.q_rope = c->narrow)
CHANGE(other_rope, c->spec.k_rope = c->other)
CHANGE(small_bias, c->spec.bias[1] = c->small)
CHANGE(spec_size, c->spec.struct_size = 4)

static const struct wrong specs[] = {
    {"num_heads|0", PE_E_ARGUMENT, no_heads},
    {"num_heads|4|num_kv_heads (3)", PE_E_ARGUMENT, kv_heads},
    {"head_dim|5000|4096", PE_E_ARGUMENT, wide},
    {"visible.mask is 0", PE_E_ARGUMENT, no_mask},
    {"num_sinks is -1", PE_E_ARGUMENT, few_sinks},
    {"window is -2", PE_E_ARGUMENT, window},
    {"no_skip is 2", PE_E_ARGUMENT, skips},
    {"scale is inf", PE_E_ARGUMENT, scale},
    {"softcap is -1", PE_E_ARGUMENT, cap},
    {"temperature.type is 9", PE_E_ARGUMENT, hot},
    {"q_rope has head_dim 4|8", PE_E_INCOMPATIBLE, narrow_rope},
    {"out_pairing is 1 in q_rope and 2", PE_E_INCOMPATIBLE, other_rope},
    {"bias[1] has 3 heads|4", PE_E_INCOMPATIBLE, small_bias},
    {"struct_size|4", PE_E_ARGUMENT, spec_size},
};

CHANGE(no_q, c->args.q = NULL)
CHANGE(no_k_data, c->k.data = NULL)
CHANGE(q_dtype, c->q.dtype = 0)
CHANGE(k_heads, c->k.num_heads = 1)
CHANGE(v_dim, c->v.dim = D - 1)
CHANGE(v_len, c->v.seq_len = T - 1)
CHANGE(out_len, c->out.seq_len = T - 1)
CHANGE(out_is_k, c->args.out = &c->k; c->spec.num_kv_heads = H; c->k = c->q;
       c->args.v = &c->q)
CHANGE(out_inside, c->out.data = v + 1)
CHANGE(no_q_at, c->args.q_at = NULL)
CHANGE(no_k_at, c->args.k_at = NULL)
CHANGE(far_position, c->k_at.start = INT64_MAX / 2)
CHANGE(k_lens, c->k_lens[0] = T + 1; c->args.k_lens = c->k_lens)
CHANGE(cu_alone, c->args.q_cu_seqlens = c->cu)
CHANGE(no_cu, c->args.num_seqs = 2)
CHANGE(cu_falls, c->cu[1] = T + 2; c->args.num_seqs = 2; c->args.q_cu_seqlens = c->cu)
CHANGE(cu_long, c->cu[2] = T + 1; c->args.num_seqs = 2; c->args.q_cu_seqlens = c->cu)
CHANGE(mask_shape, c->mask.dim = T - 1; c->args.mask = &c->mask)
CHANGE(mask_dtype, c->mask.dtype = PE_I8; c->mask.scales = mask;
       c->args.mask = &c->mask)
CHANGE(scores_start, c->args.scores = &c->scores; c->args.scores_start = 1)
CHANGE(start_alone, c->args.scores_start = 1)
CHANGE(far_unit, c->far_rule.unit = 0; c->args.far_rules = &c->far_rule;
       c->args.num_far_rules = 1)
CHANGE(far_count, c->args.num_far_rules = 8; c->args.far_rules = &c->far_rule)
CHANGE(far_missing, c->args.num_far_rules = 1)
CHANGE(far_rope, c->spec.k_rope = NULL; c->args.far_rules = &c->far_rule;
       c->args.num_far_rules = 1)
CHANGE(args_size, c->args.struct_size = 8)
CHANGE(mask_is_out, pe_tensor_bhsd(&c->mask, PE_F32, out, 1, 1, T, T);
       c->args.mask = &c->mask)
CHANGE(scores_in_q, pe_tensor_bhsd(&c->scores, PE_F32, q, 1, H, 1, T);
       c->args.scores = &c->scores)
CHANGE(scores_in_out, pe_tensor_bhsd(&c->scores, PE_F32, out, 1, H, 1, T);
       c->args.scores = &c->scores)
CHANGE(small_work, c->size = 100)
CHANGE(crooked_work, c->work = (char *)c->work + 4)

static const struct wrong calls[] = {
    {"q is NULL", PE_E_ARGUMENT, no_q},
    {"k.data is NULL", PE_E_ARGUMENT, no_k_data},
    {"q.dtype is 0", PE_E_DTYPE, q_dtype},
    {"k has|num_heads 1|2", PE_E_SHAPE, k_heads},
    {"v has|dim 7|8", PE_E_SHAPE, v_dim},
    {"v.seq_len is 5|6", PE_E_SHAPE, v_len},
    {"out.seq_len is 5|6", PE_E_SHAPE, out_len},
    {"out is k or v", PE_E_ARGUMENT, out_is_k},
    {"out overlaps", PE_E_ARGUMENT, out_inside},
    {"q_at is NULL", PE_E_ARGUMENT, no_q_at},
    {"k_at is NULL", PE_E_ARGUMENT, no_k_at},
    {"k_at of row 0|2^52", PE_E_POSITION, far_position},
    {"k_lens[0] is 7|(6)", PE_E_ARGUMENT, k_lens},
    {"num_seqs is 0", PE_E_ARGUMENT, cu_alone},
    {"q_cu_seqlens is NULL", PE_E_ARGUMENT, no_cu},
    {"q_cu_seqlens[2] is 6|8", PE_E_ARGUMENT, cu_falls},
    {"q_cu_seqlens[2] is 7|(6)", PE_E_ARGUMENT, cu_long},
    {"mask is (1, 6, 1, 5)", PE_E_SHAPE, mask_shape},
    {"mask.dtype is 4", PE_E_DTYPE, mask_dtype},
    {"scores_start is 1 with 6|(6)", PE_E_SHAPE, scores_start},
    {"scores_start is 1|without", PE_E_ARGUMENT, start_alone},
    {"out overlaps mask|apart", PE_E_ARGUMENT, mask_is_out},
    {"scores overlaps q|apart", PE_E_ARGUMENT, scores_in_q},
    {"scores overlaps out|apart", PE_E_ARGUMENT, scores_in_out},
    {"far_rules[0] has unit 0", PE_E_ARGUMENT, far_unit},
    {"num_far_rules is 8|7", PE_E_LIMIT, far_count},
    {"far_rules is NULL", PE_E_ARGUMENT, far_missing},
    {"k_rope is not set", PE_E_ARGUMENT, far_rope},
    {"struct_size", PE_E_ARGUMENT, args_size},
    {"workspace_size is 100", PE_E_WORKSPACE, small_work},
    {"misaligned", PE_E_WORKSPACE, crooked_work},
};

CHANGE(no_lse, c->args.lse = NULL)
CHANGE(no_dout, c->grads.dout = NULL)
CHANGE(dq_shape, c->dq.dim = D - 1)
CHANGE(dk_dtype, c->dk.dtype = PE_I8; c->dk.scales = dk)
CHANGE(dbias, c->grads.dbias[1] = c->dbias)
CHANGE(dsinks, c->grads.dsinks = c->dsinks)
CHANGE(dmask, c->grads.dmask = &c->mask)
CHANGE(reserved, c->grads.reserved = 1)
CHANGE(dq_is_q, c->dq = c->q)
CHANGE(dk_is_v, c->dk = c->v)
CHANGE(dv_is_dk, c->dv = c->dk)
CHANGE(dq_in_dout, c->dq.data = dout + 1)
CHANGE(dq_is_dout, c->dq = c->dout)
CHANGE(dmask_is_mask, c->args.mask = c->grads.dmask = &c->mask)
CHANGE(back_far, c->args.far_rules = &c->far_rule; c->args.num_far_rules = -1)

static const struct wrong backs[] = {
    {"lse is NULL", PE_E_ARGUMENT, no_lse},
    {"dout is NULL", PE_E_ARGUMENT, no_dout},
    {"dq is (1, 6, 4, 7)", PE_E_SHAPE, dq_shape},
    {"dk.dtype is 4", PE_E_DTYPE, dk_dtype},
    {"dbias[1] is set", PE_E_ARGUMENT, dbias},
    {"dsinks is set", PE_E_ARGUMENT, dsinks},
    {"dmask is set", PE_E_ARGUMENT, dmask},
    {"reserved is 1", PE_E_ARGUMENT, reserved},
    {"num_far_rules is -1", PE_E_LIMIT, back_far},
    {"dq overlaps q|apart", PE_E_ARGUMENT, dq_is_q},
    {"dk overlaps v|apart", PE_E_ARGUMENT, dk_is_v},
    {"dk overlaps dv|apart", PE_E_ARGUMENT, dv_is_dk},
    {"dq overlaps dout|apart", PE_E_ARGUMENT, dq_in_dout},
    {"dq overlaps dout|apart", PE_E_ARGUMENT, dq_is_dout},
    {"dmask overlaps mask|apart", PE_E_ARGUMENT, dmask_is_mask},
    {"workspace_size is 100", PE_E_WORKSPACE, small_work},
};

/* --------------------------------------------------------------------------- running --- */

static void must_refuse(const struct wrong *w, const pe_error *error, pe_status got)
{
    const char *bad = test_refusal(error, got, w->status, w->words);

    if (bad != NULL)
        fail_msg("%s", bad);
    for (int i = 0; i < T * H * D; i++)
        assert_true(out[i] == 7);
}

static void test_specs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct call c;
        pe_error error;
        set_up(&c);
        specs[i].change(&c);
        pe_attention *plan = (pe_attention *)&c;
        must_refuse(&specs[i], &error,
                    pe_attention_create(&plan, &c.spec, NULL, &error));
        assert_null(plan);
        tear_down(&c);
    }
    pe_error error;
    assert_int_equal(pe_attention_create(NULL, NULL, NULL, &error), PE_E_ARGUMENT);
    pe_attention_destroy(NULL);
}

static void run_calls(const struct wrong *list, size_t count, int backward)
{
    for (size_t i = 0; i < count; i++) {
        struct call c;
        pe_error error;
        pe_attention *plan;
        set_up(&c);
        void *const work = c.work;
        list[i].change(&c);
        assert_int_equal(pe_attention_create(&plan, &c.spec, NULL, &error), PE_OK);
        must_refuse(
            &list[i], &error,
            backward
                ? pe_attention_backward(plan, &c.args, &c.grads, c.work, c.size, &error)
                : pe_attention_forward(plan, &c.args, c.work, c.size, &error));
        pe_attention_destroy(plan);
        c.work = work;
        tear_down(&c);
    }
}

static void test_calls(void **state)
{
    (void)state;
    run_calls(calls, sizeof calls / sizeof calls[0], 0);
}

static void test_gradients(void **state)
{
    (void)state;
    run_calls(backs, sizeof backs / sizeof backs[0], 1);
}

/* The call that all others are a change away from. */
static void test_right(void **state)
{
    (void)state;
    struct call c;
    pe_error error;
    pe_attention *plan;
    size_t forward, backward;

    set_up(&c);
    assert_int_equal(pe_attention_create(&plan, &c.spec, NULL, &error), PE_OK);
    assert_int_equal(pe_attention_workspace(plan, &c.args, &forward, &backward, &error),
                     PE_OK);
    assert_true(forward <= c.size && backward <= c.size);
    assert_int_equal(pe_attention_forward(plan, &c.args, c.work, forward, &error),
                     PE_OK);
    assert_int_equal(
        pe_attention_backward(plan, &c.args, &c.grads, c.work, backward, &error),
        PE_OK);
    pe_attention_destroy(plan);
    tear_down(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_specs),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
