/* SPDX-License-Identifier: MIT
 *
 * rope_cache.c - cos and sin tables of real model settings, far positions included
 */
#include "vectors.h"

#include <math.h>

static void check_on(const vec_case *c, pe_isa isa)
{
    const double abs_tol = vec_number(c, c->tolerance, "exact_abs");
    const double per_angle = vec_number(c, c->tolerance, "exact_per_angle");
    const double factor = vec_number(c, c->expect, "exact_attention_factor");
    int64_t num_positions, num_pairs;
    const int64_t *positions = vec_integers(c, c->spec, "positions", &num_positions);
    const int64_t *pairs = vec_integers(c, c->spec, "pair_indices", &num_pairs);
    const int64_t count = num_positions * num_pairs;
    const double *angle = vec_expected(c, "exact_angle", count);
    const double *cos_exact = vec_expected(c, "exact_cos", count);
    const double *sin_exact = vec_expected(c, "exact_sin", count);
    pe_rope_spec spec;
    pe_tensor cos_t, sin_t;
    pe_error error;

    vec_rope_spec(c, &spec);
    const pe_rope *rope = vec_rope_on(c, &spec, isa);
    const pe_rope_info *info = pe_rope_get_info(rope);
    const int64_t width = info->num_pairs;
    float *cos_got = vec_alloc(c, num_positions * width, sizeof *cos_got);
    float *sin_got = vec_alloc(c, num_positions * width, sizeof *sin_got);
    const pe_positions at = {.ids = positions};
    pe_tensor_bshd(&cos_t, PE_F32, cos_got, 1, num_positions, 1, width);
    pe_tensor_bshd(&sin_t, PE_F32, sin_got, 1, num_positions, 1, width);
    if (pe_rope_table(rope, &at, &cos_t, &sin_t, &error) != PE_OK)
        vec_fail(c, "expected a table, got %s", error.message);

    vec_near(c, "attention_factor", 0, info->attention_factor, factor, 1e-14 * factor);
    for (int64_t n = 0; n < count; n++) {
        const int64_t t = n / num_pairs, i = pairs[n % num_pairs];
        if (i < 0 || i >= width)
            vec_fail(c, "pair_indices has %lld, there are %lld pairs", (long long)i,
                     (long long)width);
        const double slack = abs_tol + per_angle * fabs(angle[n]);
        vec_near(c, "angle", n, info->inv_freq[i] * (double)positions[t], angle[n],
                 abs_tol + 2e-14 * fabs(angle[n]));
        vec_near(c, "cos", n, (double)cos_got[t * width + i], cos_exact[n],
                 slack + vec_float_rounding(cos_exact[n]));
        vec_near(c, "sin", n, (double)sin_got[t * width + i], sin_exact[n],
                 slack + vec_float_rounding(sin_exact[n]));
    }
}

static void check_cache(vec_case *c)
{
    for (pe_isa isa = vec_isa_next(0); isa; isa = vec_isa_next(isa))
        check_on(c, isa);
}

const vec_kind vec_rope_cache_kinds[] = {
    {"model-cache", check_cache},
    {NULL, NULL},
};
