/* SPDX-License-Identifier: MIT
 *
 * alibi.c - slopes, bias tables and softmaxes of ALiBi, and the lesson's examples of it
 *
 * Plans are gone again before anything is compared, since a failure leaves by longjmp. */
#include "vectors.h"

#include <math.h>
#include <string.h>

#include "posenc/positions.h"

enum { MAX_HEADS = 4096 };

static int32_t num_heads(const vec_case *c)
{
    const int64_t heads = vec_integer(c, c->spec, "n_heads");

    if (heads < 1 || heads > MAX_HEADS)
        vec_fail(c, "n_heads is %lld, must be in 1 .. %d", (long long)heads, MAX_HEADS);
    return (int32_t)heads;
}

static pe_bias_spec alibi_spec(const vec_case *c, pe_bias_form form)
{
    return (pe_bias_spec){.struct_size = sizeof(pe_bias_spec),
                          .type = PE_BIAS_ALIBI,
                          .form = form,
                          .num_heads = num_heads(c),
                          .max_bias = vec_number_or(c, c->spec, "bias_max", 8)};
}

static pe_bias *create(const vec_case *c, const pe_bias_spec *spec)
{
    pe_bias *bias;
    pe_error error;

    if (pe_bias_create(&bias, spec, NULL, &error) != PE_OK)
        vec_fail(c, "expected a plan, got %s", error.message);
    return bias;
}

/* ---------------------------------------------------------------- slopes --- */

static const float *slopes_of(const vec_case *c)
{
    const pe_bias_spec spec = alibi_spec(c, PE_BIAS_CAUSAL);
    float *slopes = vec_alloc(c, spec.num_heads, sizeof *slopes);
    pe_bias *bias = create(c, &spec);

    memcpy(slopes, pe_bias_slopes(bias), (size_t)spec.num_heads * sizeof *slopes);
    pe_bias_destroy(bias);
    return slopes;
}

static void check_slopes(vec_case *c)
{
    static const char *const references[] = {"hf_bloom_f32", "hf_mpt_f32", "ggml_f32"};
    const double exact_rel = vec_number(c, c->tolerance, "exact_rel");
    const int32_t heads = num_heads(c);
    const float *got = slopes_of(c);
    const double *exact = vec_expected(c, "exact", heads);

    for (int32_t h = 0; h < heads; h++)
        vec_near(c, "slope", h, (double)got[h], exact[h],
                 exact_rel * exact[h] + vec_float_rounding(exact[h]));
    for (size_t r = 0; r < sizeof references / sizeof references[0]; r++) {
        if (!json_object_object_get_ex(c->expect, references[r], NULL))
            continue;
        const double hf_rel = vec_number(c, c->tolerance, "hf_rel");
        const double *expected = vec_expected(c, references[r], heads);
        for (int32_t h = 0; h < heads; h++)
            vec_near(c, references[r], h, (double)got[h], expected[h],
                     hf_rel * expected[h]);
    }
}

void vec_lesson_alibi_slopes(vec_case *c)
{
    const double exact_rel = vec_number(c, c->tolerance, "exact_rel");
    const double printed_abs = vec_number(c, c->tolerance, "printed_abs");
    const int32_t heads = num_heads(c);
    const float *got = slopes_of(c);
    const double *exact = vec_expected(c, "exact", heads);
    int64_t num_printed;
    const double *printed = vec_numbers(c, c->expect, "printed", &num_printed);

    if (num_printed > heads)
        vec_fail(c, "%lld slopes are printed, there are %d", (long long)num_printed,
                 heads);
    for (int32_t h = 0; h < heads; h++)
        vec_near(c, "slope", h, (double)got[h], exact[h],
                 exact_rel * exact[h] + vec_float_rounding(exact[h]));
    for (int64_t h = 0; h < num_printed; h++)
        vec_near(c, "slope as printed", h, (double)got[h], printed[h], printed_abs);
}

/* ----------------------------------------------------------------- tables --- */

/* The bias of (batch, heads, q_len, k_len). */
static const float *fill(const vec_case *c, const pe_bias_spec *spec, int64_t batch,
                         const pe_positions *q_at, int64_t q_len,
                         const pe_positions *k_at, int64_t k_len)
{
    const int64_t limit = 4096;
    if (q_len < 1 || q_len > limit || k_len < 1 || k_len > limit)
        vec_fail(c, "the table is %lld x %lld", (long long)q_len, (long long)k_len);
    float *y = vec_alloc(c, batch * spec->num_heads * q_len * k_len, sizeof *y);
    pe_bias *bias = create(c, spec);
    pe_tensor t;
    pe_error error;

    pe_tensor_bhsd(&t, PE_F32, y, batch, spec->num_heads, q_len, k_len);
    const pe_status status = pe_bias_fill(bias, q_at, k_at, &t, &error);
    pe_bias_destroy(bias);
    if (status != PE_OK)
        vec_fail(c, "expected a bias, got %s", error.message);
    return y;
}

/* expect->name is a flat list of count numbers; null is left out. */
static void compare(const vec_case *c, const char *name, const float *got,
                    int64_t count, double abs_tol, double rel_tol)
{
    json_object *list = NULL;

    if (!json_object_object_get_ex(c->expect, name, &list) ||
        !json_object_is_type(list, json_type_array) ||
        (int64_t)json_object_array_length(list) != count)
        vec_fail(c, "%s must be a list of %lld numbers", name, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        json_object *item = json_object_array_get_idx(list, (size_t)i);
        if (item == NULL)
            continue;
        if (!json_object_is_type(item, json_type_double) &&
            !json_object_is_type(item, json_type_int))
            vec_fail(c, "%s[%lld] is not a number", name, (long long)i);
        const double exact = json_object_get_double(item);
        vec_near(c, name, i, (double)got[i], exact, abs_tol + rel_tol * fabs(exact));
    }
}

static void compare_exact(const vec_case *c, const char *name, const float *got,
                          int64_t count)
{
    const double abs_tol = vec_number_or(c, c->tolerance, "exact_abs", 0);
    const double rel_tol = vec_number_or(c, c->tolerance, "exact_rel", 0);

    /* The slope was rounded to float, and so is its product with the distance. */
    compare(c, name, got, count, abs_tol + 6e-8, rel_tol + 2 * 6e-8);
}

static void check_table(vec_case *c)
{
    const int causal = strcmp(c->kind, "bias-causal") == 0;
    const pe_bias_spec spec =
        alibi_spec(c, causal ? PE_BIAS_CAUSAL : PE_BIAS_BIDIRECTIONAL);
    const int64_t q_len = vec_integer(c, c->spec, "q_len");
    const int64_t k_len = vec_integer(c, c->spec, "k_len");
    const pe_positions q_at = {.start = vec_integer(c, c->spec, "query_offset")};
    const pe_positions k_at = {0};
    const float *got = fill(c, &spec, 1, &q_at, q_len, &k_at, k_len);

    compare_exact(c, "bias", got, spec.num_heads * q_len * k_len);
}

static void check_key_only(vec_case *c)
{
    const pe_bias_spec spec = alibi_spec(c, PE_BIAS_KEY_ONLY);
    const int64_t k_len = vec_integer(c, c->spec, "k_len");
    const int64_t count = spec.num_heads * k_len;
    const pe_positions q_at = {0}, bloom = {0}, mpt = {.start = 1 - k_len};
    const float *got = fill(c, &spec, 1, &q_at, 1, &bloom, k_len);

    compare_exact(c, "exact_bloom", got, count);
    compare(c, "hf_bloom_f32", got, count, 0, vec_number(c, c->tolerance, "hf_rel"));
    got = fill(c, &spec, 1, &q_at, 1, &mpt, k_len);
    compare_exact(c, "exact_mpt", got, count);
    compare(c, "hf_mpt_f32", got, count, 0, vec_number(c, c->tolerance, "hf_rel"));
}

static void check_padded(vec_case *c)
{
    const pe_bias_spec spec = alibi_spec(c, PE_BIAS_KEY_ONLY);
    json_object *rows = NULL;
    int64_t count;
    const int64_t *numbers = vec_integers(c, c->spec, "attention_mask", &count);

    json_object_object_get_ex(c->spec, "attention_mask", &rows);
    const int64_t batch = (int64_t)json_object_array_length(rows);
    if (batch < 1 || count % batch != 0)
        vec_fail(c, "attention_mask must be rows of one length");
    const int64_t k_len = count / batch;
    uint8_t *mask = vec_alloc(c, count, sizeof *mask);
    int64_t *ids = vec_alloc(c, count, sizeof *ids);
    pe_error error;
    for (int64_t i = 0; i < count; i++)
        mask[i] = numbers[i] != 0;
    if (pe_positions_from_mask(mask, batch, k_len, 0, ids, NULL, &error) != PE_OK)
        vec_fail(c, "expected positions, got %s", error.message);
    const pe_positions q_at = {0}, k_at = {.ids = ids, .batch_stride = k_len};
    const float *got = fill(c, &spec, batch, &q_at, 1, &k_at, k_len);
    compare_exact(c, "exact", got, spec.num_heads * count);
}

static void check_far(vec_case *c)
{
    const pe_bias_spec spec = alibi_spec(c, PE_BIAS_CAUSAL);
    const pe_positions q_at = {.start = vec_integer(c, c->spec, "distance")};
    const pe_positions k_at = {0};
    const float *got = fill(c, &spec, 1, &q_at, 1, &k_at, 1);

    compare_exact(c, "bias", got, spec.num_heads);
}

/* --------------------------------------------------------------- softmaxes --- */

/* One query at 0 and keys at distances, with a slope of the case's own; logits may be
 * NULL. */
static void softmax_example(const vec_case *c, int64_t count, float *logits,
                            float *probs)
{
    int64_t num_ids, num_scores;
    const int64_t *ids = vec_integers(c, c->spec, "distances", &num_ids);
    const double *scores = vec_numbers(c, c->spec, "scores", &num_scores);
    const float slope = (float)vec_number(c, c->spec, "slope");
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = PE_BIAS_ALIBI,
                               .form = PE_BIAS_CAUSAL,
                               .num_heads = 1,
                               .slopes = &slope};
    const pe_positions q_at = {0}, k_at = {.ids = ids};
    pe_tensor x, y, z;
    pe_error error;

    if (num_ids != count || num_scores != count)
        vec_fail(c, "scores and distances have %lld and %lld numbers, must be %lld",
                 (long long)num_scores, (long long)num_ids, (long long)count);
    float *x_data = vec_alloc(c, count, sizeof *x_data);
    for (int64_t i = 0; i < count; i++)
        x_data[i] = (float)scores[i];
    pe_tensor_bhsd(&x, PE_F32, x_data, 1, 1, 1, count);
    pe_tensor_bhsd(&y, PE_F32, logits, 1, 1, 1, count);
    pe_tensor_bhsd(&z, PE_F32, probs, 1, 1, 1, count);
    pe_bias *bias = create(c, &spec);
    pe_status status = pe_bias_add(bias, &q_at, &k_at, &x, &y, &error);
    if (status == PE_OK)
        status = pe_bias_softmax(bias, 1, PE_MASK_CAUSAL, &q_at, &k_at, &x, &z, &error);
    pe_bias_destroy(bias);
    if (status != PE_OK)
        vec_fail(c, "expected a softmax, got %s", error.message);
}

static void check_example(vec_case *c)
{
    const double abs_tol = vec_number(c, c->tolerance, "exact_abs");
    int64_t count;
    const double *probs = vec_numbers(c, c->expect, "probs", &count);
    const double *logits = vec_expected(c, "logits", count);
    float *got_probs = vec_alloc(c, count, sizeof *got_probs);
    float *got_logits = vec_alloc(c, count, sizeof *got_logits);

    softmax_example(c, count, got_logits, got_probs);
    for (int64_t i = 0; i < count; i++) {
        vec_near(c, "logit", i, (double)got_logits[i], logits[i],
                 abs_tol + vec_float_rounding(logits[i]));
        vec_near(c, "prob", i, (double)got_probs[i], probs[i],
                 abs_tol + vec_float_rounding(probs[i]));
    }
}

void vec_lesson_alibi_softmax(vec_case *c)
{
    const double abs_tol = vec_number(c, c->tolerance, "exact_abs");
    const double printed_abs = vec_number(c, c->tolerance, "printed_abs");
    int64_t count;
    const double *exact = vec_numbers(c, c->expect, "exact", &count);
    const double *printed = vec_expected(c, "printed", count);
    float *probs = vec_alloc(c, count, sizeof *probs);
    float *logits = vec_alloc(c, count, sizeof *logits);

    softmax_example(c, count, logits, probs);
    for (int64_t i = 0; i < count; i++) {
        vec_near(c, "prob", i, (double)probs[i], exact[i],
                 abs_tol + vec_float_rounding(exact[i]));
        vec_near(c, "prob as printed", i, (double)probs[i], printed[i], printed_abs);
    }
}

static void check_causal_softmax(vec_case *c)
{
    const pe_bias_spec spec = alibi_spec(c, PE_BIAS_CAUSAL);
    const double abs_tol = vec_number(c, c->tolerance, "exact_abs");
    const pe_positions q_at = {.start = vec_integer(c, c->spec, "query_offset")};
    const pe_positions k_at = {0};
    int64_t shape[4];
    int rank;
    float *scores = vec_input(c, "scores", shape, &rank);
    pe_tensor t;
    pe_error error;

    if (rank != 3 || shape[0] != spec.num_heads)
        vec_fail(c, "scores must be [n_heads][q_len][k_len]");
    const int64_t count = shape[0] * shape[1] * shape[2];
    const double *probs = vec_expected(c, "probs", count);
    pe_tensor_bhsd(&t, PE_F32, scores, 1, shape[0], shape[1], shape[2]);
    pe_bias *bias = create(c, &spec);
    const pe_status status =
        pe_bias_softmax(bias, 1, PE_MASK_CAUSAL, &q_at, &k_at, &t, &t, &error);
    pe_bias_destroy(bias);
    if (status != PE_OK)
        vec_fail(c, "expected a softmax, got %s", error.message);
    for (int64_t i = 0; i < count; i++)
        vec_near(c, "prob", i, (double)scores[i], probs[i],
                 abs_tol + vec_float_rounding(probs[i]));
}

const vec_kind vec_alibi_kinds[] = {
    {"slopes", check_slopes},
    {"slopes-biasmax", check_slopes},
    {"bias-causal", check_table},
    {"bias-symmetric", check_table},
    {"bias-key-only", check_key_only},
    {"bias-padded", check_padded},
    {"bias-far", check_far},
    {"softmax-example", check_example},
    {"softmax-causal", check_causal_softmax},
    {NULL, NULL},
};
