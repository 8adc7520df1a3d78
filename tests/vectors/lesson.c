/* SPDX-License-Identifier: MIT
 *
 * lesson.c - the worked examples of the lesson: a score depends on the distance only
 */
#include "vectors.h"

#include <math.h>

static void rotate_at(const vec_case *c, const pe_rope *rope, int64_t position,
                      float x[2])
{
    const pe_positions at = {.start = position};
    pe_tensor t;
    pe_error error;

    pe_tensor_bshd(&t, PE_F32, x, 1, 1, 1, 2);
    if (pe_rope_apply(rope, &at, &t, &t, &error) != PE_OK)
        vec_fail(c, "expected a rotation, got %s", error.message);
}

static void check_dot(vec_case *c)
{
    const double abs_tol = vec_number(c, c->tolerance, "exact_abs");
    const double printed_abs = vec_number(c, c->tolerance, "printed_abs");
    const double exact = *vec_expected(c, "exact", 1);
    const double printed = *vec_expected(c, "printed", 1);
    const double inv_freq = vec_number(c, c->spec, "theta_per_step");
    int64_t num_q, num_k;
    const double *q_in = vec_numbers(c, c->spec, "q", &num_q);
    const double *k_in = vec_numbers(c, c->spec, "k", &num_k);
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = 2,
        .pairs = {.pairing = PE_INTERLEAVED},
        .freqs = {.rope_type = PE_ROPE_CUSTOM, .inv_freq = &inv_freq},
    };

    if (num_q != 2 || num_k != 2)
        vec_fail(c, "q and k have %lld and %lld numbers, must be 2", (long long)num_q,
                 (long long)num_k);
    const pe_rope *rope = vec_rope(c, &spec);
    float q[2] = {(float)q_in[0], (float)q_in[1]};
    float k[2] = {(float)k_in[0], (float)k_in[1]};
    rotate_at(c, rope, vec_integer(c, c->spec, "q_pos"), q);
    rotate_at(c, rope, vec_integer(c, c->spec, "k_pos"), k);
    const double got = (double)q[0] * (double)k[0] + (double)q[1] * (double)k[1];
    /* Each of q and k was rounded to float, so their product carries both roundings. */
    const double size = hypot(q_in[0], q_in[1]) * hypot(k_in[0], k_in[1]);
    vec_near(c, "score", 0, got, exact, abs_tol + 2 * vec_float_rounding(size));
    vec_near(c, "score as printed", 0, got, printed, printed_abs);
}

const vec_kind vec_lesson_kinds[] = {
    {"rope-2d-dot", check_dot},
    {"alibi-slopes", vec_lesson_alibi_slopes},
    {"alibi-softmax", vec_lesson_alibi_softmax},
    {"sinusoidal", vec_lesson_sinusoidal},
    {NULL, NULL},
};
