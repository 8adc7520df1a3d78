/* SPDX-License-Identifier: MIT
 *
 * attention_case.c - solving a random attention problem slowly, and checking the library
 */
#include "attention_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------- solving --- */

/* [batch][heads][len][dim] of a box, turned. */
static double *turned(const test_box *box, const pe_rope *rope, const pe_positions *at)
{
    const pe_tensor *x = &box->t;
    const int64_t count = x->batch * x->num_heads * x->seq_len * x->dim;
    float *flat = case_array(count, sizeof *flat);
    double *out = case_array(count, sizeof *out);
    pe_tensor dense;
    pe_error error;
    int64_t n = 0;

    for (int64_t b = 0; b < x->batch; b++)
        for (int64_t h = 0; h < x->num_heads; h++)
            for (int64_t t = 0; t < x->seq_len; t++)
                for (int64_t i = 0; i < x->dim; i++, n++)
                    flat[n] = test_box_is_present(box, b, t)
                                  ? (float)test_box_get(box, b, t, h, i)
                                  : 0;
    if (rope != NULL && x->seq_len > 0) {
        pe_tensor_bhsd(&dense, PE_F32, flat, x->batch, x->num_heads, x->seq_len,
                       x->dim);
        case_must(pe_rope_apply(rope, at, &dense, &dense, &error), &error);
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = (double)flat[i];
    free(flat);
    return out;
}

/* Places of query i and key j among the keys of their document. */
static void places(const ref_attention *ref, int64_t b, int64_t i, int64_t j, double *q,
                   double *k)
{
    int64_t place, key = j;

    if (ref->num_seqs > 0) {
        int32_t s = 0;
        while (s < ref->num_seqs - 1 && i >= ref->q_cu[s + 1])
            s++;
        place = ref->k_cu[s + 1] - ref->k_cu[s] - (ref->q_cu[s + 1] - ref->q_cu[s]) +
                i - ref->q_cu[s];
        key = j - ref->k_cu[s];
    } else {
        place = (ref->k_lens != NULL ? ref->k_lens[b] : ref->k_len) - ref->q_len + i;
    }
    *q = (double)place;
    *k = (double)key;
}

int attention_case_variant(const attention_case *c, int64_t b, int64_t i, int64_t j)
{
    double q, k;

    places(&c->ref, b, i, j, &q, &k);
    for (int64_t n = c->args.num_far_rules - 1; n >= 0; n--) {
        const double unit = (double)c->far_rules[n].unit;
        if (floor(q / unit) - floor(k / unit) >= (double)c->far_rules[n].from)
            return (int)n + 1;
    }
    return 0;
}

static void solve_dots(attention_case *c)
{
    const ref_attention *ref = &c->ref;
    const int64_t dim = c->spec.head_dim, group = ref->heads / ref->kv_heads;

    for (int v = 0; v <= CASE_FAR_RULES; v++) {
        c->q_turned[v] =
            turned(&c->q, c->q_rope, v > 0 ? &c->far_q_at[v - 1] : &c->q_at);
        c->k_turned[v] =
            turned(&c->k, c->k_rope, v > 0 ? &c->far_k_at[v - 1] : &c->k_at);
    }
    int64_t n = 0;
    for (int64_t b = 0; b < ref->batch; b++)
        for (int64_t h = 0; h < ref->heads; h++)
            for (int64_t i = 0; i < ref->q_len; i++)
                for (int64_t j = 0; j < ref->k_len; j++, n++) {
                    const int v = attention_case_variant(c, b, i, j);
                    const double *q =
                        c->q_turned[v] + ((b * ref->heads + h) * ref->q_len + i) * dim;
                    const double *k =
                        c->k_turned[v] +
                        ((b * ref->kv_heads + h / group) * ref->k_len + j) * dim;
                    double sum = 0, size = 0;
                    for (int64_t d = 0; d < dim; d++) {
                        sum += q[d] * k[d];
                        size += fabs(q[d] * k[d]);
                    }
                    c->dots[n] = sum;
                    if (c->factors != NULL)
                        size *= c->factors[b * ref->q_len + i];
                    c->product_size = fmax(c->product_size, size * fabs(ref->scale));
                }
}

/* Far positions make ALiBi large: what pe_bias_fill rounds to float is too coarse. */
static double alibi(const attention_case *c, int i, int64_t b, int64_t h, int64_t t,
                    int64_t j)
{
    const pe_bias_spec *spec = &c->bias_spec[i];
    const double slope = (double)pe_bias_slopes(c->bias[i])[spec->head_start + h] *
                         (spec->scale > 0 ? spec->scale : 1);
    const double q = (double)c->q_ids[b * c->ref.q_len + t];
    const double k = (double)c->k_ids[b * c->ref.k_len + j];

    if (spec->form == PE_BIAS_KEY_ONLY)
        return slope * k;
    if (spec->form == PE_BIAS_CAUSAL)
        return k > q ? 0 : slope * (k - q);
    return -slope * fabs(q - k);
}

static void add_bias(attention_case *c, int64_t n, double bias)
{
    c->biases[n] += bias;
    c->bias_sizes[n] += fabs(bias);
}

static void solve_alibi(attention_case *c, int i)
{
    const ref_attention *ref = &c->ref;
    int64_t n = 0;

    for (int64_t b = 0; b < ref->batch; b++)
        for (int64_t h = 0; h < ref->heads; h++)
            for (int64_t t = 0; t < ref->q_len; t++)
                for (int64_t j = 0; j < ref->k_len; j++)
                    add_bias(c, n++, alibi(c, i, b, h, t, j));
}

static void solve_biases(attention_case *c)
{
    const ref_attention *ref = &c->ref;
    const int64_t count = ref->batch * ref->heads * ref->q_len * ref->k_len;
    float *flat = case_array(count, sizeof *flat);
    pe_tensor t;
    pe_error error;

    for (int i = 0; i < 2 && count > 0; i++) {
        if (c->bias[i] == NULL)
            continue;
        if (c->bias_spec[i].type == PE_BIAS_ALIBI) {
            solve_alibi(c, i);
            continue;
        }
        pe_tensor_bhsd(&t, PE_F32, flat, ref->batch, ref->heads, ref->q_len,
                       ref->k_len);
        case_must(pe_bias_fill(c->bias[i], &c->q_at, &c->k_at, &t, &error), &error);
        for (int64_t n = 0; n < count; n++)
            add_bias(c, n, (double)flat[n]);
    }
    int64_t n = 0;
    for (int64_t b = 0; b < ref->batch && c->has_mask; b++)
        for (int64_t h = 0; h < ref->heads; h++)
            for (int64_t i = 0; i < ref->q_len; i++)
                for (int64_t j = 0; j < ref->k_len; j++, n++)
                    c->biases[n] += test_box_get(&c->mask, c->mask.t.batch > 1 ? b : 0,
                                                 i, c->mask.t.num_heads > 1 ? h : 0, j);
    free(flat);
}

static void solve_values(attention_case *c)
{
    ref_attention *ref = &c->ref;

    c->values = turned(&c->v, NULL, NULL);
    c->absent = case_array(ref->batch * ref->kv_heads * ref->k_len, 1);
    for (int64_t b = 0; b < ref->batch; b++)
        for (int64_t h = 0; h < ref->kv_heads; h++)
            for (int64_t j = 0; j < ref->k_len; j++)
                c->absent[(b * ref->kv_heads + h) * ref->k_len + j] =
                    !test_box_is_present(&c->k, b, j) ||
                    !test_box_is_present(&c->v, b, j);
    if (c->spec.temperature.type == PE_TEMPERATURE_NONE || ref->q_len == 0)
        return;
    float *flat = case_array(ref->batch * ref->q_len, sizeof *flat);
    pe_tensor t;
    pe_error error;
    c->factors = case_array(ref->batch * ref->q_len, sizeof *c->factors);
    pe_tensor_bshd(&t, PE_F32, flat, ref->batch, ref->q_len, 1, 1);
    case_must(pe_temperature_fill(&c->spec.temperature, &c->q_at, &t, &error), &error);
    for (int64_t i = 0; i < ref->batch * ref->q_len; i++)
        c->factors[i] = (double)flat[i];
    free(flat);
}

static void fill_norms(attention_case *c)
{
    const ref_attention *ref = &c->ref;
    const int64_t runs = (ref->k_len + 63) / 64;

    c->norms = case_array(ref->batch * ref->kv_heads * runs, sizeof *c->norms);
    for (int64_t b = 0; b < ref->batch; b++)
        for (int64_t h = 0; h < ref->kv_heads; h++)
            for (int64_t j = 0; j < ref->k_len; j++) {
                float *norm = c->norms + (b * ref->kv_heads + h) * runs + j / 64;
                double sum = 0;
                for (int64_t d = 0; d < c->spec.head_dim; d++)
                    if (test_box_is_present(&c->k, b, j))
                        sum += pow(test_box_get(&c->k, b, j, h, d), 2);
                sum = nextafterf((float)sqrt(sum), INFINITY);
                *norm = (float)sum > *norm ? (float)sum : *norm;
            }
}

void attention_case_init(attention_case *c, uint64_t seed, int flags)
{
    *c = (attention_case){.rng = {seed}, .args = {.struct_size = sizeof c->args}};
    test_rng *r = &c->rng;
    ref_attention *ref = &c->ref;
    case_draw(c, flags);
    const pe_attention_spec *s = &c->spec;
    const int64_t count = ref->batch * ref->heads * ref->q_len * ref->k_len;
    const int64_t rows = ref->batch * ref->heads * ref->q_len;
    c->dots = case_array(count, sizeof *c->dots);
    c->biases = case_array(count, sizeof *c->biases);
    c->bias_sizes = case_array(count, sizeof *c->bias_sizes);
    c->probs = case_array(count, sizeof *c->probs);
    c->exact = case_array(rows * ref->v_dim, sizeof *c->exact);
    c->exact_lse = case_array(rows, sizeof *c->exact_lse);
    c->lse = case_array(rows, sizeof *c->lse);
    ref->scale = s->scale;
    if (s->scale == 0)
        ref->scale = (c->q_rope ? pe_rope_get_info(c->q_rope)->softmax_factor : 1) /
                     sqrt(s->head_dim);
    solve_values(c);
    solve_dots(c);
    solve_biases(c);
    ref->softcap = s->softcap;
    ref->factors = c->factors;
    ref->visible = s->visible;
    ref->sinks = c->sinks;
    ref->absent = c->absent;
    ref->dots = c->dots;
    ref->bias = c->biases;
    ref->v = c->values;
    ref_attention_forward(ref, c->probs, c->exact, c->exact_lse);

    pe_attention_args *a = &c->args;
    a->num_seqs = ref->num_seqs;
    a->q = &c->q.t;
    a->k = &c->k.t;
    a->v = &c->v.t;
    a->out = &c->out.t;
    a->q_at = &c->q_at;
    a->k_at = &c->k_at;
    a->k_lens = c->k_lens;
    a->q_cu_seqlens = c->q_cu;
    a->k_cu_seqlens = c->k_cu;
    a->sinks = c->sinks;
    a->lse = c->lse;
    if (case_chance(r, 50)) {
        fill_norms(c);
        a->k_norms = c->norms;
        case_note(c, "norms");
    }
    if (!(flags & CASE_NO_SCORES) && case_chance(r, 40) && ref->k_len > 0 &&
        ref->q_len > 0) {
        a->scores_start = test_rng_int(r, 0, ref->q_len - 1);
        const int64_t n = test_rng_int(r, 1, ref->q_len - a->scores_start);
        c->scores =
            case_array(ref->batch * ref->heads * n * ref->k_len, sizeof *c->scores);
        pe_tensor_bhsd(&c->scores_tensor, PE_F32, c->scores, ref->batch, ref->heads, n,
                       ref->k_len);
        a->scores = &c->scores_tensor;
        case_note(c, "scores");
    }
}

void attention_case_free(attention_case *c)
{
    void *const arrays[] = {c->bias_sizes, c->q_ids,   c->k_ids, c->k_lens,
                            c->q_cu,       c->k_cu,    c->sinks, c->lse,
                            c->norms,      c->scores,  c->dots,  c->biases,
                            c->values,     c->factors, c->probs, c->exact,
                            c->exact_lse,  c->absent,  c->work};

    for (int v = 0; v <= CASE_FAR_RULES; v++) {
        free(c->q_turned[v]);
        free(c->k_turned[v]);
    }
    for (int v = 0; v < CASE_FAR_RULES; v++) {
        free(c->far_q[v]);
        free(c->far_k[v]);
    }
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        free(arrays[i]);
    pe_rope_destroy(c->q_rope);
    pe_rope_destroy(c->k_rope);
    pe_bias_destroy(c->bias[0]);
    pe_bias_destroy(c->bias[1]);
    test_box_free(&c->q);
    test_box_free(&c->k);
    test_box_free(&c->v);
    test_box_free(&c->out);
    if (c->has_mask)
        test_box_free(&c->mask);
}

/* -------------------------------------------------------------------- checking --- */

const char *attention_case_forward(attention_case *c, const pe_env *env)
{
    static pe_error error;
    pe_attention *plan = NULL;
    size_t size = 0;
    pe_status status = pe_attention_create(&plan, &c->spec, env, &error);

    if (status == PE_OK)
        status = pe_attention_workspace(plan, &c->args, &size, NULL, &error);
    if (status == PE_OK) {
        free(c->work);
        c->work_size = (size + 63) / 64 * 64;
        c->work = aligned_alloc(64, c->work_size);
        memset(c->work, 0xff, c->work_size);
        status = pe_attention_forward(plan, &c->args, c->work, size, &error);
    }
    pe_attention_destroy(plan);
    return status == PE_OK ? NULL : error.message;
}

static const char *differ(const char *what, int64_t at, double got, double exact,
                          double allowed)
{
    static char message[200];

    if (fabs(got - exact) <= allowed || got == exact)
        return NULL;
    snprintf(message, sizeof message, "%s[%lld] is %.9g, must be %.9g (within %.2g)",
             what, (long long)at, got, exact, allowed);
    return message;
}

/* Products are summed in float, then the score is rounded a few times: each rounding is
 * 2^-24 of the sizes involved, and a weight is off by as much of itself. */
static double row_rounding(const attention_case *c, int64_t r)
{
    double size = fabs(c->exact_lse[r]) < INFINITY ? fabs(c->exact_lse[r]) : 0;

    for (int64_t n = r * c->ref.k_len; n < (r + 1) * c->ref.k_len; n++)
        if (c->probs[n] > 1e-7 && c->bias_sizes[n] > size)
            size = c->bias_sizes[n];
    return 1e-6 + 0x1p-24 * (8 * c->product_size + 4 * size);
}

const char *attention_case_compare(attention_case *c)
{
    const ref_attention *ref = &c->ref;
    const char *bad = NULL;
    int64_t n = 0;

    for (int64_t b = 0; b < ref->batch && !bad; b++)
        for (int64_t h = 0; h < ref->heads && !bad; h++)
            for (int64_t i = 0; i < ref->q_len && !bad; i++) {
                const int64_t r = (b * ref->heads + h) * ref->q_len + i;
                const double rounding = row_rounding(c, r);
                for (int64_t d = 0; d < ref->v_dim && !bad; d++, n++)
                    bad =
                        differ("out", n, test_box_get(&c->out, b, i, h, d), c->exact[n],
                               rounding + test_half_ulp(c->out.t.dtype, c->exact[n]));
                const double lse = c->exact_lse[r];
                if (!bad)
                    bad = differ("lse", r, (double)c->lse[r], lse, rounding);
            }
    const pe_tensor *p = c->args.scores;
    n = 0;
    for (int64_t b = 0; p != NULL && b < ref->batch && !bad; b++)
        for (int64_t h = 0; h < ref->heads && !bad; h++)
            for (int64_t i = 0; i < p->seq_len && !bad; i++)
                for (int64_t j = 0; j < ref->k_len && !bad; j++, n++) {
                    const int64_t q = i + c->args.scores_start;
                    const double exact =
                        c->probs[((b * ref->heads + h) * ref->q_len + q) * ref->k_len +
                                 j];
                    bad =
                        differ("scores", n, (double)c->scores[n], exact,
                               row_rounding(c, (b * ref->heads + h) * ref->q_len + q));
                }
    return bad;
}
