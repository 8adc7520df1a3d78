/* SPDX-License-Identifier: MIT
 *
 * attention.h - attention that knows where its tokens stand
 *
 * softmax(scale * q k^T + bias + mask) v, forward and backward, with memory linear in
 * length: no q_len x k_len array ever exists.  The rules of posenc.h hold; results are
 * the same bits for any number of threads.
 */
#ifndef POSENC_ATTENTION_H
#define POSENC_ATTENTION_H

#include "positions.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- the spec --- */

/* Which keys a query sees.  Counted in places, not positions: the last query is in the
 * place of the last key (bottom-right), whatever the position ids say. */
typedef struct pe_visibility {
    pe_mask mask;      /* required */
    int32_t num_sinks; /* the first keys stay visible past window and chunk */
    int64_t window;    /* key seen if q - k < window (and k - q < window); 0: all */
    int64_t chunk;     /* key seen if k / chunk == q / chunk (Llama 4); 0: all */
} pe_visibility;

typedef struct pe_attention_spec {
    uint32_t struct_size;
    int32_t num_heads, num_kv_heads, head_dim; /* required; whole groups of q heads */
    int32_t v_head_dim;                        /* default: head_dim */
    int32_t no_skip; /* 1: visit ALiBi blocks that cannot matter, too */
    double
        scale; /* default 1 / sqrt(head_dim), times softmax_factor if q_rope is set */
    double softcap; /* cap * tanh(score / cap) before bias; default: off */
    pe_visibility visible;
    pe_temperature temperature;
    const pe_rope *q_rope;  /* rotate q on the way in; borrowed; NULL: do not */
    const pe_rope *k_rope;  /* NULL: do not, or the keys are rotated already */
    const pe_bias *bias[2]; /* both are added; borrowed; NULL: none */
} pe_attention_spec;

typedef struct pe_attention pe_attention;
PE_API pe_status pe_attention_create(pe_attention **out, const pe_attention_spec *spec,
                                     const pe_env *env, pe_error *error);
PE_API void pe_attention_destroy(pe_attention *plan);

/* ------------------------------------------------------------- the calls --- */

/* Other positions for far keys: those with floor(q / unit) - floor(k / unit) >= from
 * (places).  Self-Extend and ReRoPE: unit 1, from window.  Dual chunk attention: unit
 * chunk, from 1 and from 2.  Needs q_rope and k_rope. */
typedef struct pe_far {
    int64_t unit, from;
    const pe_positions *q_at, *k_at;
} pe_far;

/* One call.  q is (batch, q_len, num_heads, head_dim), k (batch, k_len, num_kv_heads,
 * head_dim), v the same with v_head_dim, out as q with v_head_dim; each has its own
 * dtype and layout, and k and v may be int8, coded or paged caches.
 *
 * With ALiBi, blocks of keys too far to matter are left out.  How far that is depends on
 * the longest keys.  k_norms, as pe_kv keeps it, is [batch][num_kv_heads][ceil(k_len /
 * 64)]: no key in that run of 64 is longer (each one as given, before k_rope).  NULL: a
 * call of more than 8 rows measures the keys itself where that can pay, into its
 * workspace; fewer rows would read keys for nothing else, and visit them all.  Results
 * are the same bits with, without and under no_skip, the sign of a zero aside; with
 * k_norms given, for finite v. */
typedef struct pe_attention_args {
    uint32_t struct_size;
    int32_t num_seqs;                 /* packed: number of documents, else 0 */
    const pe_tensor *q, *k, *v, *out; /* required */
    const pe_positions *q_at, *k_at;  /* required by a rope, bias or temperature */
    const int64_t *k_lens;            /* [batch]: keys in use; default: all */
    const int32_t *q_cu_seqlens;      /* packed, batch 1: [num_seqs + 1] */
    const int32_t *k_cu_seqlens;      /* default: q_cu_seqlens */
    const pe_tensor *mask;            /* scores tensor, added; batch, heads may be 1 */
    const float *sinks;               /* [num_heads]: extra logits (gpt-oss) */
    const float *k_norms;             /* see above */
    const pe_far *far_rules; /* [num_far_rules]; the last rule that applies wins */
    float *lse; /* out: [batch][num_heads][q_len], sinks included; backward needs it */
    const pe_tensor *scores; /* out: probabilities of queries scores_start, ... */
    int64_t *num_blocks;     /* out: [2], 64-key blocks visited and left out */
    int64_t num_far_rules;
    int64_t scores_start;
} pe_attention_args;

/* Bytes of 64-byte aligned scratch for these shapes; NULL: not wanted. */
PE_API pe_status pe_attention_workspace(const pe_attention *plan,
                                        const pe_attention_args *args, size_t *forward,
                                        size_t *backward, pe_error *error);

/* Prefill and decode: few queries stream over the keys, split among threads.  A query
 * that sees no key gets zeroes and lse -inf (or its sink).  NaN in q, k or v reaches the
 * rows that see it, and no other; in a sink, the rows of its head.  A sink of +inf takes
 * all weight (zeroes, lse +inf), one of -inf none.  A key on an absent page is not seen.  Packed queries
 * past the last document are left alone. */
PE_API pe_status pe_attention_forward(const pe_attention *plan,
                                      const pe_attention_args *args, void *workspace,
                                      size_t workspace_size, pe_error *error);

/* Gradients; NULL: not wanted.  Tensors are overwritten, and lie apart from each other and
 * from all that is read; parameters are accumulated. */
typedef struct pe_attention_grads {
    uint32_t struct_size;
    int32_t reserved;
    const pe_tensor *dout;         /* required: in */
    const pe_tensor *dq, *dk, *dv; /* with respect to q, k, v as given (before rope) */
    const pe_tensor *dmask;
    float *dbias[2]; /* laid out as pe_bias_backward's grad */
    float *dsinks;   /* [num_heads] */
} pe_attention_grads;

/* args as forward was called, with out and lse as it left them.  Linear memory (dk once
 * more for each far rule); one thread does one kv head of one document.  NaN in q, k, v
 * or dout reaches the gradients of those that see it, and no other. */
PE_API pe_status pe_attention_backward(const pe_attention *plan,
                                       const pe_attention_args *args,
                                       const pe_attention_grads *grads, void *workspace,
                                       size_t workspace_size, pe_error *error);

/* ---------------------------------------------------- linear attention --- */

/* RoFormer's third point (Su et al. 2021 eq. 19): with a feature map f(x) = elu(x) + 1,
 *     out_m = sum_n (R_m f(q_m)) . (R_n f(k_n)) v_n / sum_n f(q_m) . f(k_n),
 * over n <= m (PE_MASK_CAUSAL, places as in pe_visibility) or all n; rotation only above,
 * so that nothing is divided by 0.  Time and memory are linear in length.  A reference,
 * in double; tensors as in pe_attention_args, rope NULL: no positions.  workspace:
 * head_dim * (v_head_dim + 1) + 2 * head_dim + v_head_dim doubles, aligned to 64. */
PE_API pe_status pe_linear_attention(const pe_rope *rope, pe_mask mask,
                                     const pe_positions *q_at, const pe_positions *k_at,
                                     const pe_tensor *q, const pe_tensor *k,
                                     const pe_tensor *v, const pe_tensor *out,
                                     void *workspace, size_t workspace_size,
                                     pe_error *error);

/* ------------------------------------------------------------- KV cache --- */

/* One sequence's rotated keys and values, and what has been done to them.  Not a plan:
 * one thread at a time.  Only create and fork allocate. */
typedef struct pe_kv_spec {
    uint32_t struct_size;
    int32_t num_kv_heads, head_dim, v_head_dim; /* as in pe_attention_spec */
    pe_dtype k_dtype, v_dtype;                  /* required */
    const pe_codec *k_codec, *v_codec;          /* PE_CODED; borrowed */
    const pe_rope *rope; /* rotates on append; borrowed until rebase; NULL: no */
    int64_t capacity;    /* required: tokens */
} pe_kv_spec;

typedef struct pe_kv_info {
    pe_tensor k, v;       /* the keys in use, seq_len = len */
    pe_positions at;      /* their positions */
    const float *k_norms; /* for pe_attention_args */
    int64_t len, next;    /* tokens held; position after the last */
    double k_error;       /* bound on |key - exact key| that storage and shifts made */
} pe_kv_info;

typedef struct pe_kv pe_kv;
PE_API pe_status pe_kv_create(pe_kv **out, const pe_kv_spec *spec, const pe_env *env,
                              pe_error *error);
PE_API void pe_kv_destroy(pe_kv *kv);
/* Valid until the next call that changes kv. */
PE_API const pe_kv_info *pe_kv_get_info(const pe_kv *kv);
/* Rotate, convert and store unrotated k and v at positions at; PE_E_LIMIT when full.
 * What no rotation reaches keeps its bytes where formats agree (int8 with one scale a
 * vector, blocks of the same codec): here, in moves and in forks. */
PE_API pe_status pe_kv_append(pe_kv *kv, const pe_positions *at, const pe_tensor *k,
                              const pe_tensor *v, pe_error *error);
typedef int32_t pe_gap;
enum {
    PE_GAP_KEEP = 1, /* later keys keep their positions: sliding-window models */
    PE_GAP_CLOSE = 2 /* and are rotated back by count: StreamingLLM, context shift */
};

/* Drop count tokens from place first; later ones move up.  first = n keeps n sinks. */
PE_API pe_status pe_kv_evict(pe_kv *kv, int64_t first, int64_t count, pe_gap gap,
                             pe_error *error);
/* Re-rotate every key for another plan: LongRoPE's switch, dynamic growth. */
PE_API pe_status pe_kv_rebase(pe_kv *kv, const pe_rope *rope, pe_error *error);
PE_API pe_status pe_kv_fork(pe_kv **out, const pe_kv *kv, pe_error *error);

#ifdef __cplusplus
}
#endif

#endif /* POSENC_ATTENTION_H */
