/* SPDX-License-Identifier: MIT
 *
 * attention.c - whole attention: scores, probabilities, outputs and gradients
 *
 * Every method on every instruction set.  Absolute encodings are added to q and k first,
 * and their gradient is that of q and k. */
#include "vectors.h"

#include "absolute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "posenc/attention.h"

enum { MAX_DOCUMENTS = 16 };

/* Arithmetic is in float: each of these sums has at most 16 terms of size up to 4, so
 * that 20 roundings of 2^-24 at the size of the result, or 1, cover them. */
static double allowed(const vec_case *c, double exact)
{
    return vec_number(c, c->tolerance, "exact_abs") +
           20 * 0x1p-24 * fmax(1, fabs(exact));
}

struct problem {
    const vec_case *c;
    int64_t batch, heads, kv_heads, q_len, k_len, dim, keys[MAX_DOCUMENTS];
    float *q, *k, *v, *upstream, *table;
    int64_t table_rows;
    pe_positions q_at, k_at;
    pe_isa isa;
    pe_attention_spec spec;
    float *probs, *out, *lse, *dq, *dk, *dv, *dslopes;
};

static float *input(const vec_case *c, const char *name)
{
    int64_t shape[4];
    int rank;

    return vec_input(c, name, shape, &rank);
}

static void tensor(pe_tensor *t, const struct problem *p, const float *x, int64_t heads,
                   int64_t len, int64_t dim)
{
    pe_tensor_bhsd(t, PE_F32, x, p->batch, heads, len, dim);
}

/* Keys that any query sees: places count from the last key, positions from the first. */
static int64_t keys_in_use(const struct problem *p, const int64_t *q, const int64_t *k)
{
    if (p->spec.visible.mask != PE_MASK_CAUSAL)
        return p->k_len;
    const int64_t last = q[p->q_len - 1] - k[0] + 1;
    return last < p->k_len ? last : p->k_len;
}

static void read_problem(struct problem *p, const vec_case *c)
{
    int64_t num_q, num_k;

    *p = (struct problem){.c = c,
                          .batch = vec_integer(c, c->spec, "batch"),
                          .heads = vec_integer(c, c->spec, "q_heads"),
                          .kv_heads = vec_integer(c, c->spec, "kv_heads"),
                          .q_len = vec_integer(c, c->spec, "q_len"),
                          .k_len = vec_integer(c, c->spec, "k_len"),
                          .dim = vec_integer(c, c->spec, "head_dim")};
    const int64_t *q = vec_integers(c, c->spec, "q_positions", &num_q);
    const int64_t *k = vec_integers(c, c->spec, "k_positions", &num_k);
    if (num_q != p->q_len || num_k != p->k_len || p->batch > MAX_DOCUMENTS)
        vec_fail(c, "expected %lld and %lld positions", (long long)p->q_len,
                 (long long)p->k_len);
    p->q_at = (pe_positions){.ids = q};
    p->k_at = (pe_positions){.ids = k};
    p->q = input(c, "q");
    p->k = input(c, "k");
    p->v = input(c, "v");
    p->upstream = input(c, "upstream");
    p->spec = (pe_attention_spec){
        .struct_size = sizeof p->spec,
        .num_heads = (int32_t)p->heads,
        .num_kv_heads = (int32_t)p->kv_heads,
        .head_dim = (int32_t)p->dim,
        .scale = vec_number(c, c->spec, "scale"),
        .visible = {.mask =
                        vec_flag(c, c->spec, "causal") ? PE_MASK_CAUSAL : PE_MASK_NONE,
                    .window = vec_integer_or(c, c->spec, "window", 0)}};
    for (int64_t b = 0; b < p->batch; b++)
        p->keys[b] = keys_in_use(p, q, k);
    p->probs = vec_alloc(c, p->batch * p->heads * p->q_len * p->k_len, sizeof(float));
    p->out = vec_alloc(c, p->batch * p->heads * p->q_len * p->dim, sizeof(float));
    p->lse = vec_alloc(c, p->batch * p->heads * p->q_len, sizeof(float));
    p->dq = vec_alloc(c, p->batch * p->heads * p->q_len * p->dim, sizeof(float));
    p->dk = vec_alloc(c, p->batch * p->kv_heads * p->k_len * p->dim, sizeof(float));
    p->dv = vec_alloc(c, p->batch * p->kv_heads * p->k_len * p->dim, sizeof(float));
    p->dslopes = vec_alloc(c, p->heads, sizeof(float));
}

/* ---------------------------------------------------------------------- methods --- */

static pe_attention *create(struct problem *p)
{
    const pe_env env = {.struct_size = sizeof env, .isa = p->isa};
    pe_attention *plan;
    pe_error error;

    if (pe_attention_create(&plan, &p->spec, &env, &error) != PE_OK)
        vec_fail(p->c, "expected a plan, got %s", error.message);
    return plan;
}

/* Forward and backward with a plan that is gone afterwards. */
static void attend(struct problem *p)
{
    pe_attention *plan = create(p);
    pe_tensor q, k, v, out, probs, upstream, dq, dk, dv;
    size_t forward, backward;
    pe_error error;

    tensor(&q, p, p->q, p->heads, p->q_len, p->dim);
    tensor(&k, p, p->k, p->kv_heads, p->k_len, p->dim);
    tensor(&v, p, p->v, p->kv_heads, p->k_len, p->dim);
    tensor(&out, p, p->out, p->heads, p->q_len, p->dim);
    tensor(&upstream, p, p->upstream, p->heads, p->q_len, p->dim);
    tensor(&probs, p, p->probs, p->heads, p->q_len, p->k_len);
    tensor(&dq, p, p->dq, p->heads, p->q_len, p->dim);
    tensor(&dk, p, p->dk, p->kv_heads, p->k_len, p->dim);
    tensor(&dv, p, p->dv, p->kv_heads, p->k_len, p->dim);
    memset(p->dslopes, 0, (size_t)p->heads * sizeof(float));
    const pe_attention_args args = {.struct_size = sizeof args,
                                    .q = &q,
                                    .k = &k,
                                    .v = &v,
                                    .out = &out,
                                    .q_at = &p->q_at,
                                    .k_at = &p->k_at,
                                    .k_lens = p->keys,
                                    .lse = p->lse,
                                    .scores = &probs};
    const pe_attention_grads grads = {
        .struct_size = sizeof grads,
        .dout = &upstream,
        .dq = &dq,
        .dk = &dk,
        .dv = &dv,
        .dbias = {p->spec.bias[0] != NULL ? p->dslopes : NULL}};
    pe_status status = pe_attention_workspace(plan, &args, &forward, &backward, &error);
    if (status == PE_OK) {
        const size_t size = forward > backward ? forward : backward;
        void *work = aligned_alloc(64, (size + 63) / 64 * 64);
        status = pe_attention_forward(plan, &args, work, size, &error);
        if (status == PE_OK)
            status = pe_attention_backward(plan, &args, &grads, work, size, &error);
        free(work);
    }
    pe_attention_destroy(plan);
    if (status != PE_OK)
        vec_fail(p->c, "expected attention, got %s", error.message);
}

static void compare(const struct problem *p, const char *what, const float *got,
                    int64_t count)
{
    const double *exact = vec_expected(p->c, what, count);

    for (int64_t i = 0; i < count; i++)
        vec_near(p->c, what, i, (double)got[i], exact[i], allowed(p->c, exact[i]));
}

/* A score is ln p + lse; null: hidden. */
static void compare_scores(const struct problem *p)
{
    json_object *scores = NULL;
    const int64_t count = p->batch * p->heads * p->q_len * p->k_len;

    if (!json_object_object_get_ex(p->c->expect, "scores", &scores) ||
        !json_object_is_type(scores, json_type_array) ||
        (int64_t)json_object_array_length(scores) != count)
        vec_fail(p->c, "expected %lld scores", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        json_object *score = json_object_array_get_idx(scores, (size_t)i);
        if (score == NULL) {
            if (p->probs[i] != 0)
                vec_fail(p->c, "probability %lld is not 0 where the score is hidden",
                         (long long)i);
            continue;
        }
        const double exact = json_object_get_double(score);
        const double got = log((double)p->probs[i]) + (double)p->lse[i / p->k_len];
        vec_near(p->c, "scores", i, got, exact, 2 * allowed(p->c, exact));
    }
}

static void run(struct problem *p)
{
    attend(p);
    compare_scores(p);
    compare(p, "probs", p->probs, p->batch * p->heads * p->q_len * p->k_len);
    compare(p, "out", p->out, p->batch * p->heads * p->q_len * p->dim);
    compare(p, "d_q", p->dq, p->batch * p->heads * p->q_len * p->dim);
    compare(p, "d_k", p->dk, p->batch * p->kv_heads * p->k_len * p->dim);
    compare(p, "d_v", p->dv, p->batch * p->kv_heads * p->k_len * p->dim);
}

static void check_none(vec_case *c)
{
    struct problem p;

    read_problem(&p, c);
    for (p.isa = vec_isa_next(0); p.isa; p.isa = vec_isa_next(p.isa))
        run(&p);
}

static void check_rope(vec_case *c)
{
    struct problem p;
    pe_rope_spec spec;

    read_problem(&p, c);
    vec_rope_spec(c, &spec);
    for (p.isa = vec_isa_next(0); p.isa; p.isa = vec_isa_next(p.isa)) {
        p.spec.q_rope = p.spec.k_rope = vec_rope_on(c, &spec, p.isa);
        run(&p);
    }
}

static void check_alibi(vec_case *c)
{
    struct problem p;
    pe_error error;
    pe_bias *bias;

    read_problem(&p, c);
    const pe_bias_spec spec = {
        .struct_size = sizeof spec,
        .type = PE_BIAS_ALIBI,
        .form = vec_flag(c, c->spec, "causal") ? PE_BIAS_CAUSAL : PE_BIAS_BIDIRECTIONAL,
        .num_heads = (int32_t)p.heads,
        .max_bias = vec_number(c, c->spec, "bias_max")};
    for (p.isa = vec_isa_next(0); p.isa; p.isa = vec_isa_next(p.isa)) {
        if (pe_bias_create(&bias, &spec, NULL, &error) != PE_OK)
            vec_fail(c, "expected a bias, got %s", error.message);
        p.spec.bias[0] = bias;
        attend(&p);
        pe_bias_destroy(bias);
        compare_scores(&p);
        compare(&p, "probs", p.probs, p.batch * p.heads * p.q_len * p.k_len);
        compare(&p, "out", p.out, p.batch * p.heads * p.q_len * p.dim);
        compare(&p, "d_q", p.dq, p.batch * p.heads * p.q_len * p.dim);
        compare(&p, "d_k", p.dk, p.batch * p.kv_heads * p.k_len * p.dim);
        compare(&p, "d_v", p.dv, p.batch * p.kv_heads * p.k_len * p.dim);
        compare(&p, "d_slopes", p.dslopes, p.heads);
    }
}

/* --------------------------------------------------------------------- absolute --- */

/* x[batch][heads][len][dim] += encodings[len][dim], and the bits of it. */
static float *added(const struct problem *p, const float *x, int64_t heads, int64_t len,
                    const float *encodings)
{
    const int64_t count = p->batch * heads * len * p->dim;
    float *y = vec_alloc(p->c, count, sizeof *y);

    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] + encodings[i % (len * p->dim)];
    return y;
}

static void check_sinusoidal(vec_case *c)
{
    struct problem p;

    read_problem(&p, c);
    const pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                                     .order = PE_SIN_COS_INTERLEAVED,
                                     .model_dim = (int32_t)p.dim};
    p.q =
        added(&p, p.q, p.heads, p.q_len, vec_sinusoidal(c, &spec, &p.q_at, 1, p.q_len));
    p.k = added(&p, p.k, p.kv_heads, p.k_len,
                vec_sinusoidal(c, &spec, &p.k_at, 1, p.k_len));
    for (p.isa = vec_isa_next(0); p.isa; p.isa = vec_isa_next(p.isa))
        run(&p);
}

static void add_rows(const struct problem *p, const float *dx, int64_t heads,
                     int64_t len, const int64_t *ids, float *dtable)
{
    for (int64_t i = 0; i < p->batch * heads * len; i++)
        for (int64_t d = 0; d < p->dim; d++)
            dtable[ids[i % len] * p->dim + d] += dx[i * p->dim + d];
}

static void check_learned(vec_case *c)
{
    struct problem p;
    int64_t shape[4];
    int rank;

    read_problem(&p, c);
    const float *table = vec_input(c, "table", shape, &rank);
    if (rank != 2 || shape[1] != p.dim)
        vec_fail(c, "expected a table of rows of %lld", (long long)p.dim);
    p.q = added(&p, p.q, p.heads, p.q_len,
                vec_learned(c, table, shape[0], p.dim, 0, &p.q_at, 1, p.q_len, NULL));
    p.k = added(&p, p.k, p.kv_heads, p.k_len,
                vec_learned(c, table, shape[0], p.dim, 0, &p.k_at, 1, p.k_len, NULL));
    for (p.isa = vec_isa_next(0); p.isa; p.isa = vec_isa_next(p.isa)) {
        float *dtable = vec_alloc(c, shape[0] * p.dim, sizeof *dtable);
        memset(dtable, 0, (size_t)(shape[0] * p.dim) * sizeof *dtable);
        run(&p);
        add_rows(&p, p.dq, p.heads, p.q_len, p.q_at.ids, dtable);
        add_rows(&p, p.dk, p.kv_heads, p.k_len, p.k_at.ids, dtable);
        compare(&p, "d_table", dtable, shape[0] * p.dim);
    }
}

const vec_kind vec_attention_kinds[] = {
    {"attn-none", check_none},       {"attn-sinusoidal", check_sinusoidal},
    {"attn-learned", check_learned}, {"attn-rope", check_rope},
    {"attn-alibi", check_alibi},     {NULL, NULL},
};
