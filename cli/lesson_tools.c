/* SPDX-License-Identifier: MIT
 *
 * lesson_tools.c - short questions to the library, as the lesson asks them
 */
#include "lesson_tools.h"

const pe_env lesson_env = {.struct_size = sizeof lesson_env, .isa = PE_ISA_SCALAR};

int lesson_sinusoids(int64_t first, int64_t count, int32_t dim, float *out)
{
    const pe_sinusoidal_spec spec = {
        .struct_size = sizeof spec, .order = PE_SIN_COS_INTERLEAVED, .model_dim = dim};
    const pe_positions at = {.start = first};
    pe_absolute *plan;
    pe_tensor y;
    pe_error error;
    pe_tensor_bshd(&y, PE_F32, out, 1, count, 1, dim);
    pe_status status = pe_sinusoidal_create(&plan, &spec, &lesson_env, &error);
    if (status == PE_OK)
        status = pe_absolute_fill(plan, &at, &y, &error);
    pe_absolute_destroy(plan);
    return status == PE_OK ? CLI_DONE : cli_fail(CLI_FAILED, "%s", error.message);
}

int lesson_rope_create(pe_rope **out, int32_t head_dim, pe_pairing pairing,
                       const double *inv_freq)
{
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = head_dim,
        .pairs = {.pairing = pairing},
        .freqs = {.rope_type = inv_freq ? PE_ROPE_CUSTOM : PE_ROPE_DEFAULT,
                  .rope_theta = inv_freq ? 0 : 10000,
                  .inv_freq = inv_freq}};
    pe_error error;
    if (pe_rope_create(out, &spec, &lesson_env, &error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    return CLI_DONE;
}

int lesson_turn(const pe_rope *rope, int64_t position, const float *x, float *y)
{
    const int32_t dim = pe_rope_get_info(rope)->head_dim;
    const pe_positions at = {.start = position};
    pe_tensor from, to;
    pe_error error;
    pe_tensor_bshd(&from, PE_F32, x, 1, 1, 1, dim);
    pe_tensor_bshd(&to, PE_F32, y, 1, 1, 1, dim);
    if (pe_rope_apply(rope, &at, &from, &to, &error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    return CLI_DONE;
}

int lesson_score(const pe_rope *rope, const float *q, int64_t q_position,
                 const float *k, int64_t k_position, double *score)
{
    enum { MAX_DIM = 128 };
    float q_turned[MAX_DIM], k_turned[MAX_DIM];
    int status = lesson_turn(rope, q_position, q, q_turned);
    if (status == CLI_DONE)
        status = lesson_turn(rope, k_position, k, k_turned);
    if (status == CLI_DONE)
        *score = lesson_dot(q_turned, k_turned, pe_rope_get_info(rope)->head_dim);
    return status;
}

int lesson_cos_sin(const pe_rope *rope, int64_t position, float *cosines, float *sines)
{
    const int32_t dim = pe_rope_get_info(rope)->num_pairs;
    const pe_positions at = {.start = position};
    pe_tensor c, s;
    pe_error error;
    pe_tensor_bshd(&c, PE_F32, cosines, 1, 1, 1, dim);
    pe_tensor_bshd(&s, PE_F32, sines, 1, 1, 1, dim);
    if (pe_rope_table(rope, &at, &c, &s, &error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    return CLI_DONE;
}

int lesson_alibi_create(pe_bias **out, int32_t num_heads, const float *slopes)
{
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = PE_BIAS_ALIBI,
                               .form = PE_BIAS_CAUSAL,
                               .num_heads = num_heads,
                               .slopes = slopes};
    pe_error error;
    if (pe_bias_create(out, &spec, &lesson_env, &error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    return CLI_DONE;
}

double lesson_dot(const float *a, const float *b, int32_t dim)
{
    double sum = 0;
    for (int32_t i = 0; i < dim; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}
