/* SPDX-License-Identifier: MIT
 *
 * attn_scale.c - what multiplies a score or a query: mscale, temperature, log n
 */
#include "vectors.h"

#include <math.h>

#include "posenc/positions.h"

static void check_mscale(vec_case *c)
{
    const double rel = vec_number(c, c->tolerance, "exact_rel");
    const double m = vec_number(c, c->expect, "exact_m");
    const double scale = vec_number(c, c->expect, "exact_softmax_scale");
    const double qk_head_dim = vec_number(c, c->spec, "qk_head_dim");
    const double mscale = vec_number(c, c->spec, "mscale_all_dim");
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = 64,
        .pairs = {.pairing = PE_INTERLEAVED},
        .freqs = {.rope_type = PE_ROPE_YARN,
                  .mscale_rule = PE_MSCALE_DEEPSEEK,
                  .rope_theta = 10000,
                  .factor = vec_number(c, c->spec, "factor"),
                  .original_max_position_embeddings = 4096,
                  .mscale = mscale,
                  .mscale_all_dim = mscale},
    };
    /* In long double, so that only the library's rounding is judged. */
    const long double got = pe_rope_get_info(vec_rope(c, &spec))->softmax_factor;

    vec_near(c, "m", 0, (double)sqrtl(got), m, rel * m);
    vec_near(c, "softmax_scale", 0, (double)(got / sqrtl((long double)qk_head_dim)),
             scale, rel * scale);
}

static void check_temperature(const vec_case *c, const pe_temperature *temperature,
                              const int64_t *positions, int64_t count)
{
    const double abs_tol = vec_number(c, c->tolerance, "exact_abs");
    const double *exact = vec_expected(c, "exact", count);
    float *factors = vec_alloc(c, count, sizeof *factors);
    const pe_positions at = {.ids = positions};
    pe_tensor out;
    pe_error error;

    pe_tensor_bshd(&out, PE_F32, factors, 1, count, 1, 1);
    if (pe_temperature_fill(temperature, &at, &out, &error) != PE_OK)
        vec_fail(c, "expected factors, got %s", error.message);
    for (int64_t t = 0; t < count; t++)
        vec_near(c, "factor", t, (double)factors[t], exact[t],
                 abs_tol + vec_float_rounding(exact[t]));
}

static void check_llama4(vec_case *c)
{
    int64_t count;
    const int64_t *positions = vec_integers(c, c->spec, "positions", &count);
    const pe_temperature temperature = {.type = PE_TEMPERATURE_LLAMA4,
                                        .length = vec_number(c, c->spec, "floor_scale"),
                                        .scale = vec_number(c, c->spec, "attn_scale")};

    check_temperature(c, &temperature, positions, count);
}

static void check_ministral(vec_case *c)
{
    int64_t count;
    const int64_t *positions = vec_integers(c, c->spec, "positions", &count);
    const pe_temperature temperature = {
        .type = PE_TEMPERATURE_MINISTRAL,
        .length = vec_number(c, c->spec, "original_max_position_embeddings"),
        .scale = vec_number(c, c->spec, "beta")};

    check_temperature(c, &temperature, positions, count);
}

/* The case counts tokens from 1, positions count from 0. */
static void check_log_n(vec_case *c)
{
    int64_t count;
    int64_t *positions = vec_integers(c, c->spec, "lengths_i", &count);
    const pe_temperature temperature = {
        .type = PE_TEMPERATURE_LOG_N, .length = vec_number(c, c->spec, "train_length")};

    for (int64_t t = 0; t < count; t++)
        positions[t] -= 1;
    check_temperature(c, &temperature, positions, count);
}

const vec_kind vec_attn_scale_kinds[] = {
    {"deepseek-mscale", check_mscale},
    {"query-temperature-llama4", check_llama4},
    {"query-temperature-ministral", check_ministral},
    {"query-logn", check_log_n},
    {NULL, NULL},
};
