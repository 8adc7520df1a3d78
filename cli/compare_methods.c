/* SPDX-License-Identifier: MIT
 *
 * compare_methods.c - none, sinusoidal, learned, RoPE and ALiBi on equal terms
 *
 * Absolute encodings are added to q and k of every head, where their effect on scores is
 * plainest; models add them to the input before q and k are made of it. */
#include "compare_methods.h"

#include "posenc/env.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const cmp_names[CMP_METHODS] = {"none", "sinusoidal", "learned", "rope",
                                            "alibi"};
const char *const cmp_places[CMP_METHODS] = {
    "nothing anywhere", "sines and cosines of the position, added to q and k",
    "a trained row for each position, added to q and k",
    "q and k turned by position times a frequency for each pair",
    "slope * distance taken off every score"};

/* The reference kernels, so that the digits do not depend on the machine. */
static const pe_env reference = {.struct_size = sizeof reference, .isa = PE_ISA_SCALAR};

typedef struct plans {
    pe_absolute *absolute;
    pe_rope *rope;
    pe_bias *bias;
    pe_attention *attention;
} plans;

static void destroy(plans *p)
{
    pe_attention_destroy(p->attention);
    pe_bias_destroy(p->bias);
    pe_rope_destroy(p->rope);
    pe_absolute_destroy(p->absolute);
}

static pe_status create(const cmp_problem *p, int method, pe_mask mask, plans *out,
                        pe_error *error)
{
    const pe_sinusoidal_spec sinusoidal = {.struct_size = sizeof sinusoidal,
                                           .order = PE_SIN_COS_INTERLEAVED,
                                           .model_dim = (int32_t)p->dim};
    const pe_rope_spec rope = {.struct_size = sizeof rope,
                               .head_dim = (int32_t)p->dim,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .freqs = {.rope_theta = 10000}};
    const pe_bias_spec alibi = {.struct_size = sizeof alibi,
                                .type = PE_BIAS_ALIBI,
                                .form = mask == PE_MASK_CAUSAL ? PE_BIAS_CAUSAL
                                                               : PE_BIAS_BIDIRECTIONAL,
                                .num_heads = (int32_t)p->heads};
    pe_tensor table;
    pe_tensor_bshd(&table, PE_F32, p->table, 1, p->trained, 1, p->dim);
    const pe_learned_spec learned = {.struct_size = sizeof learned, .weight = &table};
    pe_status status = PE_OK;
    if (method == CMP_SINUSOIDAL)
        status = pe_sinusoidal_create(&out->absolute, &sinusoidal, &reference, error);
    else if (method == CMP_LEARNED)
        status = pe_learned_create(&out->absolute, &learned, &reference, error);
    else if (method == CMP_ROPE)
        status = pe_rope_create(&out->rope, &rope, &reference, error);
    else if (method == CMP_ALIBI)
        status = pe_bias_create(&out->bias, &alibi, &reference, error);
    if (status != PE_OK)
        return status;
    const pe_attention_spec spec = {.struct_size = sizeof spec,
                                    .num_heads = (int32_t)p->heads,
                                    .num_kv_heads = (int32_t)p->heads,
                                    .head_dim = (int32_t)p->dim,
                                    .visible = {.mask = mask},
                                    .q_rope = out->rope,
                                    .k_rope = out->rope,
                                    .bias = {out->bias}};
    return pe_attention_create(&out->attention, &spec, &reference, error);
}

/* y = x with the encoding added to every head. */
static pe_status add(const cmp_problem *p, const pe_absolute *absolute, int64_t start,
                     const float *x, float *y, pe_error *error)
{
    const pe_positions at = {.start = start};
    const size_t count = (size_t)(p->tokens * p->heads * p->dim);
    memcpy(y, x, count * sizeof *y);
    for (int64_t h = 0; h < p->heads && absolute != NULL; h++) {
        pe_tensor t;
        pe_tensor_bshd(&t, PE_F32, y + h * p->dim, 1, p->tokens, 1, p->dim);
        t.seq_stride = p->heads * p->dim;
        const pe_status status = pe_absolute_add(absolute, &at, &t, &t, error);
        if (status != PE_OK)
            return status;
    }
    return PE_OK;
}

typedef struct buffers {
    float *q, *k, *lse;
    void *work;
} buffers;

static pe_status attend(const cmp_problem *p, const plans *plan, int64_t start,
                        buffers *b, cmp_result *out, pe_error *error)
{
    const pe_positions at = {.start = start};
    pe_tensor q, k, v, result, probs;
    size_t size;
    pe_status status;
    if ((status = add(p, plan->absolute, start, p->q, b->q, error)) != PE_OK ||
        (status = add(p, plan->absolute, start, p->k, b->k, error)) != PE_OK)
        return status;
    pe_tensor_bshd(&q, PE_F32, b->q, 1, p->tokens, p->heads, p->dim);
    pe_tensor_bshd(&k, PE_F32, b->k, 1, p->tokens, p->heads, p->dim);
    pe_tensor_bshd(&v, PE_F32, p->v, 1, p->tokens, p->heads, p->dim);
    pe_tensor_bshd(&result, PE_F32, out->out, 1, p->tokens, p->heads, p->dim);
    pe_tensor_bhsd(&probs, PE_F32, out->probs, 1, p->heads, p->tokens, p->tokens);
    const pe_attention_args args = {.struct_size = sizeof args,
                                    .q = &q,
                                    .k = &k,
                                    .v = &v,
                                    .out = &result,
                                    .q_at = &at,
                                    .k_at = &at,
                                    .lse = b->lse,
                                    .scores = &probs};
    if ((status = pe_attention_workspace(plan->attention, &args, &size, NULL, error)) !=
        PE_OK)
        return status;
    b->work = aligned_alloc(64, (size + 63) / 64 * 64);
    if (b->work == NULL)
        return PE_E_NO_MEMORY;
    status = pe_attention_forward(plan->attention, &args, b->work, size, error);
    /* A score is ln p + log-sum-exp. */
    for (int64_t i = 0; status == PE_OK && i < p->heads * p->tokens * p->tokens; i++)
        out->scores[i] =
            out->probs[i] > 0
                ? (float)(log((double)out->probs[i]) + (double)b->lse[i / p->tokens])
                : NAN;
    return status;
}

static int attend_masked(const cmp_problem *p, int method, pe_mask mask, int64_t start,
                         cmp_result *out)
{
    const size_t values = (size_t)(p->tokens * p->heads * p->dim);
    const size_t pairs = (size_t)(p->heads * p->tokens * p->tokens);
    plans plan = {NULL, NULL, NULL, NULL};
    pe_error error = {.message = "out of memory"};
    *out = (cmp_result){.scores = calloc(pairs, sizeof(float)),
                        .probs = calloc(pairs, sizeof(float)),
                        .out = calloc(values, sizeof(float))};
    buffers b = {calloc(values, sizeof(float)), calloc(values, sizeof(float)),
                 calloc((size_t)(p->heads * p->tokens), sizeof(float)), NULL};
    pe_status status = PE_E_NO_MEMORY;
    if (out->scores && out->probs && out->out && b.q && b.k && b.lse)
        status = create(p, method, mask, &plan, &error);
    if (status == PE_OK)
        status = attend(p, &plan, start, &b, out, &error);
    destroy(&plan);
    free(b.q);
    free(b.k);
    free(b.lse);
    free(b.work);
    if (status == PE_E_POSITION) {
        (void)snprintf(out->message, sizeof out->message, "%s", error.message);
        out->is_refused = 1;
        return CLI_DONE;
    }
    if (status != PE_OK)
        return cli_fail(CLI_FAILED, "%s: %s", cmp_names[method], error.message);
    return CLI_DONE;
}

int cmp_attend(const cmp_problem *p, int method, int64_t start, cmp_result *out)
{
    return attend_masked(p, method, PE_MASK_CAUSAL, start, out);
}

void cmp_release(cmp_result *result)
{
    free(result->scores);
    free(result->probs);
    free(result->out);
    *result = (cmp_result){.scores = NULL};
}

/* ------------------------------------------------------------------------- tests --- */

static int test_shift(const cmp_problem *p, int method, double *shift)
{
    cmp_result here, there;
    int status = cmp_attend(p, method, 0, &here);
    if (status == CLI_DONE) {
        status = cmp_attend(p, method, CMP_SHIFT, &there);
        *shift = there.is_refused ? NAN : 0;
        for (int64_t i = 0; status == CLI_DONE && !there.is_refused &&
                            i < p->heads * p->tokens * p->tokens;
             i++)
            if (here.probs[i] > 0)
                *shift = fmax(*shift, fabs((double)here.scores[i] - there.scores[i]));
        cmp_release(&there);
    }
    cmp_release(&here);
    return status;
}

static int test_bare_shift(const cmp_problem *p, int method, cmp_tests *out)
{
    cmp_problem bare = *p;
    float *zeroes = calloc((size_t)(p->tokens * p->heads * p->dim), sizeof *zeroes);
    bare.q = bare.k = zeroes;
    const int status = zeroes == NULL ? cli_fail(CLI_FAILED, "out of memory")
                                      : test_shift(&bare, method, &out->bare_shift);
    free(zeroes);
    return status;
}

/* Every token moves up a place and the first goes last; positions stay.  (Turning the
 * order round would keep distances, and ALiBi sees nothing else.) */
static float *shuffled(const cmp_problem *p, const float *x)
{
    const int64_t row = p->heads * p->dim;
    float *y = malloc((size_t)(p->tokens * row) * sizeof *y);
    for (int64_t t = 0; y != NULL && t < p->tokens; t++)
        memcpy(y + t * row, x + (t + 1) % p->tokens * row, (size_t)row * sizeof *y);
    return y;
}

static int test_shuffle(const cmp_problem *p, int method, cmp_tests *out)
{
    cmp_problem other = *p;
    float *const q = shuffled(p, p->q), *const k = shuffled(p, p->k);
    float *const v = shuffled(p, p->v);
    cmp_result a = {.scores = NULL}, b = {.scores = NULL};
    int status = CLI_DONE;
    other.q = q;
    other.k = k;
    other.v = v;
    if (q == NULL || k == NULL || v == NULL)
        status = cli_fail(CLI_FAILED, "out of memory");
    if (status == CLI_DONE)
        status = attend_masked(p, method, PE_MASK_NONE, 0, &a);
    if (status == CLI_DONE)
        status = attend_masked(&other, method, PE_MASK_NONE, 0, &b);
    const int64_t row = p->heads * p->dim;
    for (int64_t t = 0; status == CLI_DONE && t < p->tokens; t++)
        for (int64_t i = 0; i < row; i++)
            out->shuffle =
                fmax(out->shuffle, fabs((double)a.out[(t + 1) % p->tokens * row + i] -
                                        b.out[t * row + i]));
    cmp_release(&a);
    cmp_release(&b);
    free(q);
    free(k);
    free(v);
    return status;
}

/* Frequencies theta^(-2i/d) of RoPE, and of sinusoids alike. */
static void count_unseen(const cmp_problem *p, int method, cmp_tests *out)
{
    if (method != CMP_ROPE && method != CMP_SINUSOIDAL)
        return;
    out->pairs = p->dim / 2;
    for (int64_t i = 0; i < out->pairs; i++)
        out->unseen +=
            pow(10000, -2.0 * (double)i / (double)p->dim) * (double)p->trained <
            6.283185307179586;
}

int cmp_run_tests(const cmp_problem *p, int method, cmp_tests *out)
{
    *out = (cmp_tests){0};
    count_unseen(p, method, out);
    int status = test_shift(p, method, &out->shift);
    if (status == CLI_DONE)
        status = test_bare_shift(p, method, out);
    return status == CLI_DONE ? test_shuffle(p, method, out) : status;
}
