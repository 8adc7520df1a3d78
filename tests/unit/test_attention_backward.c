/* SPDX-License-Identifier: MIT
 *
 * test_attention_backward.c - gradients against the textbook in double, and the textbook
 * against central differences
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/attention_case.h"
#include "../support/executor.h"
#include "posenc/env.h"

static const pe_isa isas[] = {PE_ISA_SCALAR, PE_ISA_AVX2, PE_ISA_AVX512, PE_ISA_NEON,
                              PE_ISA_WASM128};

static void *new_array(int64_t count, size_t size)
{
    void *p = calloc((size_t)count + 1, size);

    assert_non_null(p);
    return p;
}

/* Everything about one backward call: what it gives, and what it must give. */
struct gradients {
    attention_case c;
    int64_t nq, nk, nv, ns; /* elements; scores */
    float *dout, *dq, *dk, *dv, *dmask, *dbias[2], *dsinks;
    pe_tensor dout_t, dq_t, dk_t, dv_t, dmask_t;
    double *dout_exact, *dscores, *ddots, *dv_exact, *dsinks_exact, *dq_exact,
        *dk_exact;
    char message[200];
};

static void tensor_like(pe_tensor *t, float *data, const pe_tensor *x)
{
    pe_tensor_bhsd(t, PE_F32, data, x->batch, x->num_heads, x->seq_len, x->dim);
}

static int64_t count_of(const pe_tensor *x)
{
    return x->batch * x->num_heads * x->seq_len * x->dim;
}

static void set_up(struct gradients *g, uint64_t seed, int flags)
{
    *g = (struct gradients){.nq = 0};
    attention_case_init(&g->c, seed, flags | CASE_NO_SCORES);
    attention_case *c = &g->c;
    const ref_attention *ref = &c->ref;
    g->nq = count_of(&c->q.t);
    g->nk = count_of(&c->k.t);
    g->nv = count_of(&c->v.t);
    g->ns = ref->batch * ref->heads * ref->q_len * ref->k_len;
    const int64_t no = count_of(&c->out.t);
    g->dout = new_array(no, sizeof(float));
    g->dq = new_array(g->nq, sizeof(float));
    g->dk = new_array(g->nk, sizeof(float));
    g->dv = new_array(g->nv, sizeof(float));
    g->dsinks = new_array(ref->heads, sizeof(float));
    for (int64_t i = 0; i < no; i++)
        g->dout[i] = test_rng_float(&c->rng);
    for (int i = 0; i < 2; i++)
        g->dbias[i] = new_array(64 * 64, sizeof(float));
    tensor_like(&g->dout_t, g->dout, &c->out.t);
    tensor_like(&g->dq_t, g->dq, &c->q.t);
    tensor_like(&g->dk_t, g->dk, &c->k.t);
    tensor_like(&g->dv_t, g->dv, &c->v.t);
    if (c->has_mask) {
        g->dmask = new_array(count_of(&c->mask.t), sizeof(float));
        tensor_like(&g->dmask_t, g->dmask, &c->mask.t);
    }
}

static void tear_down(struct gradients *g)
{
    void *const arrays[] = {g->dout,     g->dq,       g->dk,        g->dv,
                            g->dmask,    g->dbias[0], g->dbias[1],  g->dsinks,
                            g->dscores,  g->ddots,    g->dv_exact,  g->dsinks_exact,
                            g->dq_exact, g->dk_exact, g->dout_exact};

    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        free(arrays[i]);
    attention_case_free(&g->c);
}

static const char *run_backward(struct gradients *g, pe_isa isa, const pe_env *other)
{
    static pe_error error;
    attention_case *c = &g->c;
    const pe_env plain = {.struct_size = sizeof plain, .isa = isa};
    const pe_env *env = other != NULL ? other : &plain;
    const char *bad = attention_case_forward(c, env);
    pe_attention *plan = NULL;
    size_t size = 0;

    if (bad != NULL)
        return bad;
    pe_attention_grads grads = {.struct_size = sizeof grads,
                                .dout = &g->dout_t,
                                .dq = &g->dq_t,
                                .dk = &g->dk_t,
                                .dv = &g->dv_t,
                                .dmask = g->dmask != NULL ? &g->dmask_t : NULL,
                                .dsinks = c->sinks != NULL ? g->dsinks : NULL};
    for (int i = 0; i < 2; i++)
        grads.dbias[i] = c->bias[i] != NULL ? g->dbias[i] : NULL;
    pe_status status = pe_attention_create(&plan, &c->spec, env, &error);
    if (status == PE_OK)
        status = pe_attention_workspace(plan, &c->args, NULL, &size, &error);
    if (status == PE_OK) {
        void *work = aligned_alloc(64, (size + 63) / 64 * 64);
        memset(work, 0xff, size);
        status = pe_attention_backward(plan, &c->args, &grads, work, size, &error);
        free(work);
    }
    pe_attention_destroy(plan);
    return status == PE_OK ? NULL : error.message;
}

/* ------------------------------------------------------------------ right answers --- */

/* Gradients of the turned vectors go back through pe_rope_transpose. */
static void turn_back(const pe_rope *rope, const pe_positions *at,
                      const pe_tensor *like, double *x)
{
    const int64_t count = count_of(like);
    pe_error error;

    if (rope == NULL || like->seq_len == 0)
        return;
    float *flat = new_array(count, sizeof *flat);
    pe_tensor t;
    for (int64_t i = 0; i < count; i++)
        flat[i] = (float)x[i];
    tensor_like(&t, flat, like);
    assert_int_equal(pe_rope_transpose(rope, at, &t, &t, &error), PE_OK);
    for (int64_t i = 0; i < count; i++)
        x[i] = (double)flat[i];
    free(flat);
}

/* dq and dk of the pairs that stand where variant v says. */
static void solve_variant(struct gradients *g, int v)
{
    const attention_case *c = &g->c;
    const ref_attention *ref = &c->ref;
    const int64_t dim = c->spec.head_dim, group = ref->heads / ref->kv_heads;
    double *dq = new_array(g->nq, sizeof *dq), *dk = new_array(g->nk, sizeof *dk);
    int64_t n = 0;

    for (int64_t b = 0; b < ref->batch; b++)
        for (int64_t h = 0; h < ref->heads; h++)
            for (int64_t i = 0; i < ref->q_len; i++)
                for (int64_t j = 0; j < ref->k_len; j++, n++) {
                    const int64_t q = ((b * ref->heads + h) * ref->q_len + i) * dim;
                    const int64_t k =
                        ((b * ref->kv_heads + h / group) * ref->k_len + j) * dim;
                    for (int64_t d = 0;
                         attention_case_variant(c, b, i, j) == v && d < dim; d++) {
                        dq[q + d] += g->ddots[n] * c->k_turned[v][k + d];
                        dk[k + d] += g->ddots[n] * c->q_turned[v][q + d];
                    }
                }
    turn_back(c->q_rope, v > 0 ? &c->far_q_at[v - 1] : &c->q_at, &c->q.t, dq);
    turn_back(c->k_rope, v > 0 ? &c->far_k_at[v - 1] : &c->k_at, &c->k.t, dk);
    for (int64_t i = 0; i < g->nq; i++)
        g->dq_exact[i] += dq[i];
    for (int64_t i = 0; i < g->nk; i++)
        g->dk_exact[i] += dk[i];
    free(dq);
    free(dk);
}

static void solve(struct gradients *g)
{
    const attention_case *c = &g->c;
    const ref_attention *ref = &c->ref;
    const int64_t rows = ref->batch * ref->heads * ref->q_len;

    g->dout_exact = new_array(rows * ref->v_dim, sizeof(double));
    for (int64_t i = 0; i < rows * ref->v_dim; i++)
        g->dout_exact[i] = (double)g->dout[i];
    g->dscores = new_array(g->ns, sizeof(double));
    g->ddots = new_array(g->ns, sizeof(double));
    g->dv_exact = new_array(g->nv, sizeof(double));
    g->dsinks_exact = new_array(ref->heads, sizeof(double));
    g->dq_exact = new_array(g->nq, sizeof(double));
    g->dk_exact = new_array(g->nk, sizeof(double));
    ref_attention_backward(ref, c->probs, c->exact, c->exact_lse, g->dout_exact,
                           g->dscores, g->ddots, g->dv_exact, g->dsinks_exact);
    for (int v = 0; v <= (int)c->args.num_far_rules; v++)
        solve_variant(g, v);
}

static const char *compare(struct gradients *g, const char *what, const float *got,
                           const double *exact, int64_t count, double allowed)
{
    double size = 1;

    for (int64_t i = 0; i < count; i++)
        size = fmax(size, fabs(exact[i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - exact[i]) <= allowed * size)) {
            snprintf(g->message, sizeof g->message,
                     "%s[%lld] is %.9g, must be %.9g (within %.2g)", what, (long long)i,
                     (double)got[i], exact[i], allowed * size);
            return g->message;
        }
    return NULL;
}

static const char *compare_mask(struct gradients *g, double allowed)
{
    const ref_attention *ref = &g->c.ref;
    const pe_tensor *m = &g->dmask_t;
    double *exact = new_array(count_of(m), sizeof *exact);
    int64_t n = 0;

    for (int64_t b = 0; b < ref->batch; b++)
        for (int64_t h = 0; h < ref->heads; h++)
            for (int64_t i = 0; i < ref->q_len; i++)
                for (int64_t j = 0; j < ref->k_len; j++, n++)
                    exact[(((m->batch > 1 ? b : 0) * m->num_heads +
                            (m->num_heads > 1 ? h : 0)) *
                               ref->q_len +
                           i) *
                              ref->k_len +
                          j] += g->dscores[n];
    const char *bad = compare(g, "dmask", g->dmask, exact, count_of(m), allowed);
    free(exact);
    return bad;
}

/* The parameters' gradients are those that pe_bias_backward gives for dscores. */
static const char *compare_bias(struct gradients *g, int i, double allowed)
{
    const attention_case *c = &g->c;
    const ref_attention *ref = &c->ref;
    float *flat = new_array(g->ns, sizeof *flat),
          *grad = new_array(64 * 64, sizeof *grad);
    double *exact = new_array(64 * 64, sizeof *exact);
    pe_tensor t;
    pe_error error;

    for (int64_t n = 0; n < g->ns; n++)
        flat[n] = (float)g->dscores[n];
    if (g->ns > 0) {
        pe_tensor_bhsd(&t, PE_F32, flat, ref->batch, ref->heads, ref->q_len,
                       ref->k_len);
        assert_int_equal(
            pe_bias_backward(c->bias[i], &c->q_at, &c->k_at, &t, grad, &error), PE_OK);
    }
    double span = 1;
    for (int64_t j = 0; j < ref->batch * ref->k_len; j++)
        if (c->bias_spec[i].type == PE_BIAS_ALIBI)
            span = fmax(span, c->bias_spec[i].form == PE_BIAS_KEY_ONLY
                                  ? (double)c->k_ids[j]
                                  : (double)(ref->k_len * 3));
    for (int64_t n = 0; n < 64 * 64; n++)
        exact[n] = (double)grad[n];
    const char *bad =
        compare(g, i ? "dbias[1]" : "dbias[0]", g->dbias[i], exact, 64 * 64,
                allowed * span * (double)(ref->batch * ref->q_len));
    free(flat);
    free(grad);
    free(exact);
    return bad;
}

static void check_case(uint64_t seed, int flags, pe_isa isa)
{
    static struct gradients g;
    const char *bad;

    set_up(&g, seed, flags);
    bad = run_backward(&g, isa, NULL);
    solve(&g);
    /* out and lse come from forward, in out's dtype: that is what D is made of. */
    double allowed = 2e-6 + 0x1p-24 * (16 * g.c.product_size + 8 * 40);
    if (g.c.out.t.dtype != PE_F32)
        allowed += 2 * test_half_ulp(g.c.out.t.dtype, 1) * (double)g.c.ref.v_dim;
    for (int64_t n = 0; n < g.ns; n++)
        if (g.c.probs[n] > 1e-7)
            allowed = fmax(allowed, 0x1p-20 * g.c.bias_sizes[n]);
    if (bad == NULL)
        bad = compare(&g, "dv", g.dv, g.dv_exact, g.nv, allowed);
    if (bad == NULL)
        bad = compare(&g, "dq", g.dq, g.dq_exact, g.nq, allowed);
    if (bad == NULL)
        bad = compare(&g, "dk", g.dk, g.dk_exact, g.nk, allowed);
    if (bad == NULL && g.c.sinks != NULL)
        bad = compare(&g, "dsinks", g.dsinks, g.dsinks_exact, g.c.ref.heads,
                      allowed * (double)g.c.ref.q_len);
    if (bad == NULL && g.dmask != NULL)
        bad = compare_mask(&g, allowed);
    for (int i = 0; i < 2 && bad == NULL; i++)
        if (g.c.bias[i] != NULL)
            bad = compare_bias(&g, i, allowed);
    if (bad != NULL)
        fail_msg("seed %llu, flags %d, %s (%lld x %lld, %d/%d heads, %d, %d):%s: %s",
                 (unsigned long long)seed, flags, pe_isa_name(isa),
                 (long long)g.c.ref.q_len, (long long)g.c.ref.k_len, g.c.spec.num_heads,
                 g.c.spec.num_kv_heads, g.c.spec.head_dim, g.c.spec.v_head_dim,
                 g.c.about, bad);
    tear_down(&g);
}

static void check_all(int flags, uint64_t first, uint64_t count)
{
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (uint64_t seed = first; pe_isa_available(isas[i]) && seed < first + count;
             seed++)
            check_case(seed, flags, isas[i]);
}

static void test_plain(void **state)
{
    (void)state;
    check_all(CASE_PLAIN_DTYPES, 1, 100);
}

static void test_mixed_dtypes(void **state)
{
    (void)state;
    check_all(0, 1000, 60);
}

/* Self-Extend, ReRoPE (one rule) and dual chunk attention (two). */
static void test_far_rules(void **state)
{
    (void)state;
    check_all(CASE_PLAIN_DTYPES | CASE_FAR, 2000, 100);
    check_all(CASE_FAR, 3000, 40);
}

/* Four threads, in any order, give the bits of one. */
static void test_threads(void **state)
{
    (void)state;
    static struct gradients one, four;
    const pe_env env = {.struct_size = sizeof env, .executor = test_executor_threads};
    for (uint64_t seed = 1; seed <= 25; seed++) {
        const int flags = seed % 2 ? 0 : CASE_FAR;
        set_up(&one, seed, flags);
        set_up(&four, seed, flags);
        assert_null(run_backward(&one, PE_ISA_AUTO, NULL));
        assert_null(run_backward(&four, PE_ISA_AUTO, &env));
        assert_memory_equal(one.dq, four.dq, (size_t)one.nq * sizeof(float));
        assert_memory_equal(one.dk, four.dk, (size_t)one.nk * sizeof(float));
        assert_memory_equal(one.dv, four.dv, (size_t)one.nv * sizeof(float));
        for (int i = 0; i < 2; i++)
            assert_memory_equal(one.dbias[i], four.dbias[i], 64 * 64 * sizeof(float));
        if (one.dmask != NULL)
            assert_memory_equal(one.dmask, four.dmask,
                                (size_t)count_of(&one.dmask_t) * sizeof(float));
        tear_down(&one);
        tear_down(&four);
    }
}

/* ------------------------------------------------------------ central differences --- */

static double loss(const ref_attention *ref, const double *dout, double *probs,
                   double *out, double *lse)
{
    const int64_t count = ref->batch * ref->heads * ref->q_len * ref->v_dim;
    double sum = 0;

    ref_attention_forward(ref, probs, out, lse);
    for (int64_t i = 0; i < count; i++)
        sum += out[i] * dout[i];
    return sum;
}

/* The textbook's gradients with respect to dot products, biases and values. */
static void test_central_differences(void **state)
{
    (void)state;
    static struct gradients g;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        set_up(&g, seed, CASE_PLAIN_DTYPES);
        solve(&g);
        ref_attention *ref = &g.c.ref;
        const int64_t rows = ref->batch * ref->heads * ref->q_len;
        double *probs = new_array(g.ns, sizeof *probs);
        double *out = new_array(rows * ref->v_dim, sizeof *out);
        double *lse = new_array(rows, sizeof *lse);
        struct {
            double *x;
            const double *gradient;
            int64_t count;
        } inputs[] = {{g.c.dots, g.ddots, g.ns},
                      {g.c.biases, g.dscores, g.ns},
                      {g.c.values, g.dv_exact, g.nv}};
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < 10 && inputs[k].count > 0; i++) {
                const int64_t n = test_rng_int(&g.c.rng, 0, inputs[k].count - 1);
                const double x = inputs[k].x[n], h = 1e-5;
                if (!(fabs(x) < INFINITY))
                    continue;
                inputs[k].x[n] = x + h;
                const double above = loss(ref, g.dout_exact, probs, out, lse);
                inputs[k].x[n] = x - h;
                const double below = loss(ref, g.dout_exact, probs, out, lse);
                inputs[k].x[n] = x;
                const double slope = (above - below) / (2 * h);
                assert_true(fabs(slope - inputs[k].gradient[n]) <=
                            1e-7 * fmax(1, fabs(slope)));
            }
        free(probs);
        free(out);
        free(lse);
        tear_down(&g);
    }
}

/* What moving element d of query (b, h, i), or of key (b, h, j), by one does to each
 * vector that it is turned into: a column of the rotation. */
static void column(const attention_case *c, int of_query, int v, int64_t b, int64_t t,
                   int64_t d, double *out)
{
    const pe_tensor *x = of_query ? &c->q.t : &c->k.t;
    const pe_rope *rope = of_query ? c->q_rope : c->k_rope;
    const pe_positions *at = v == 0     ? (of_query ? &c->q_at : &c->k_at)
                             : of_query ? &c->far_q_at[v - 1]
                                        : &c->far_k_at[v - 1];
    pe_positions one = {.start = at->ids[b * x->seq_len + t]};
    float unit[128] = {0};
    pe_tensor row;

    unit[d] = 1;
    pe_tensor_bshd(&row, PE_F32, unit, 1, 1, 1, x->dim);
    assert_int_equal(pe_rope_apply(rope, &one, &row, &row, NULL), PE_OK);
    for (int64_t e = 0; e < x->dim; e++)
        out[e] = (double)unit[e];
}

/* dots += step times what one element of one vector does to them. */
static void nudge(const attention_case *c, int of_query, int64_t b, int64_t head,
                  int64_t t, int64_t d, double step)
{
    const ref_attention *ref = &c->ref;
    const int64_t dim = c->spec.head_dim, group = ref->heads / ref->kv_heads;
    double columns[1 + CASE_FAR_RULES][128];

    for (int v = 0; v <= CASE_FAR_RULES; v++)
        column(c, of_query, v, b, t, d, columns[v]);
    for (int64_t h = 0; h < ref->heads; h++)
        for (int64_t i = 0; i < ref->q_len; i++)
            for (int64_t j = 0; j < ref->k_len; j++) {
                const int v = attention_case_variant(c, b, i, j);
                const double *other =
                    of_query
                        ? c->k_turned[v] +
                              ((b * ref->kv_heads + h / group) * ref->k_len + j) * dim
                        : c->q_turned[v] +
                              ((b * ref->heads + h) * ref->q_len + i) * dim;
                double dot = 0;
                if (of_query ? h != head || i != t : h / group != head || j != t)
                    continue;
                for (int64_t e = 0; e < dim; e++)
                    dot += columns[v][e] * other[e];
                c->dots[((b * ref->heads + h) * ref->q_len + i) * ref->k_len + j] +=
                    step * dot;
            }
}

/* The textbook's gradients with respect to queries and keys as given, through every
 * position they stand at. */
static void test_central_differences_of_inputs(void **state)
{
    (void)state;
    static struct gradients g;
    int64_t far = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        set_up(&g, seed, CASE_PLAIN_DTYPES | CASE_FAR);
        solve(&g);
        const ref_attention *ref = &g.c.ref;
        const int64_t rows = ref->batch * ref->heads * ref->q_len;
        const int64_t dim = g.c.spec.head_dim;
        double *probs = new_array(g.ns, sizeof *probs);
        double *out = new_array(rows * ref->v_dim, sizeof *out);
        double *lse = new_array(rows, sizeof *lse);
        for (int i = 0; i < 20 && g.c.k_rope != NULL && g.ns > 0; i++) {
            const int of_query = i % 2;
            const int64_t heads = of_query ? ref->heads : ref->kv_heads;
            const int64_t len = of_query ? ref->q_len : ref->k_len;
            const int64_t b = test_rng_int(&g.c.rng, 0, ref->batch - 1);
            const int64_t h = test_rng_int(&g.c.rng, 0, heads - 1);
            const int64_t t = test_rng_int(&g.c.rng, 0, len - 1);
            const int64_t d = test_rng_int(&g.c.rng, 0, dim - 1);
            const double step = 1e-5;
            const double exact =
                (of_query ? g.dq_exact
                          : g.dk_exact)[((b * heads + h) * len + t) * dim + d];
            nudge(&g.c, of_query, b, h, t, d, step);
            const double above = loss(ref, g.dout_exact, probs, out, lse);
            nudge(&g.c, of_query, b, h, t, d, -2 * step);
            const double below = loss(ref, g.dout_exact, probs, out, lse);
            nudge(&g.c, of_query, b, h, t, d, step);
            const double slope = (above - below) / (2 * step);
            /* dq and dk went back through a rotation of floats. */
            assert_true(fabs(slope - exact) <= 1e-6 * fmax(1, fabs(slope)));
            far += exact != 0 && g.c.args.num_far_rules > 0;
        }
        free(probs);
        free(out);
        free(lse);
        tear_down(&g);
    }
    assert_true(far > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_central_differences),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_central_differences_of_inputs),
        cmocka_unit_test(test_mixed_dtypes),
        cmocka_unit_test(test_far_rules),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
