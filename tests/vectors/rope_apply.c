/* SPDX-License-Identifier: MIT
 *
 * rope_apply.c - rotated q and k, and gradients, in every pairing and scaling
 *
 * Gradients go through pe_rope_transpose.  Each result is computed out of place and in
 * place, and the two must have the same bits. */
#include "vectors.h"

#include <string.h>

typedef pe_status (*rotation)(const pe_rope *rope, const pe_positions *at,
                              const pe_tensor *x, const pe_tensor *y, pe_error *error);

static void check_one(const vec_case *c, pe_isa isa, const pe_rope *rope,
                      const pe_positions *at, rotation rotate, const char *input,
                      const char *expected)
{
    const char *axes = vec_string(c, c->spec, "axes");
    const double abs_tol = vec_number(c, c->tolerance, "exact_abs");
    int64_t shape[4], count = 1;
    int rank;
    pe_tensor x_t, y_t;
    pe_error error;

    float *x = vec_input(c, input, shape, &rank);
    for (int i = 0; i < rank; i++)
        count *= shape[i];
    const double *exact = vec_expected(c, expected, count);
    float *y = vec_alloc(c, count, sizeof *y);
    vec_tensor(c, &x_t, x, axes, shape, rank);
    vec_tensor(c, &y_t, y, axes, shape, rank);
    if (rotate(rope, at, &x_t, &y_t, &error) != PE_OK)
        vec_fail(c, "expected %s to be rotated, got %s", input, error.message);
    const double factor = pe_rope_get_info(rope)->attention_factor;
    const double slack = vec_product_rounding(isa, x, count, factor);
    for (int64_t i = 0; i < count; i++)
        vec_near(c, expected, i, (double)y[i], exact[i],
                 abs_tol + slack + vec_float_rounding(exact[i]));
    if (rotate(rope, at, &x_t, &x_t, &error) != PE_OK)
        vec_fail(c, "expected %s to be rotated in place, got %s", input, error.message);
    if (memcmp(x, y, (size_t)count * sizeof *x) != 0)
        vec_fail(c, "%s in place: expected the bits of out of place, got others",
                 input);
}

static const pe_rope *plan(const vec_case *c, pe_isa isa, pe_positions *at)
{
    const int64_t batch = vec_integer(c, c->spec, "batch");
    const int64_t seq = vec_integer(c, c->spec, "seq");
    pe_rope_spec spec;
    int64_t count;

    vec_rope_spec(c, &spec);
    const int64_t *ids = vec_integers(c, c->spec, "positions", &count);
    if (batch < 1 || seq < 0 || count / batch != seq || count % batch != 0)
        vec_fail(c, "positions has %lld numbers for batch %lld and seq %lld",
                 (long long)count, (long long)batch, (long long)seq);
    *at = (pe_positions){.ids = ids, .batch_stride = seq};
    return vec_rope_on(c, &spec, isa);
}

static void check_apply(vec_case *c)
{
    pe_positions at;

    for (pe_isa isa = vec_isa_next(0); isa; isa = vec_isa_next(isa)) {
        const pe_rope *rope = plan(c, isa, &at);
        check_one(c, isa, rope, &at, pe_rope_apply, "q", "q_exact");
        check_one(c, isa, rope, &at, pe_rope_apply, "k", "k_exact");
    }
}

static void check_backward(vec_case *c)
{
    pe_positions at;

    for (pe_isa isa = vec_isa_next(0); isa; isa = vec_isa_next(isa))
        check_one(c, isa, plan(c, isa, &at), &at, pe_rope_transpose, "upstream",
                  "d_q_exact");
}

const vec_kind vec_rope_apply_kinds[] = {
    {"apply-half", check_apply},
    {"apply-half-partial", check_apply},
    {"apply-half-scaled", check_apply},
    {"apply-half-partial-scaled", check_apply},
    {"apply-half-inverse", check_apply},
    {"apply-adjacent", check_apply},
    {"apply-adjacent-partial", check_apply},
    {"apply-adjacent-scaled", check_apply},
    {"apply-adjacent-in-half-out", check_apply},
    {"apply-backward-half", check_backward},
    {"apply-backward-half-partial", check_backward},
    {"apply-backward-half-scaled", check_backward},
    {"apply-backward-half-partial-scaled", check_backward},
    {"apply-backward-half-inverse", check_backward},
    {"apply-backward-adjacent", check_backward},
    {"apply-backward-adjacent-partial", check_backward},
    {"apply-backward-adjacent-scaled", check_backward},
    {"apply-backward-adjacent-in-half-out", check_backward},
    {NULL, NULL},
};
