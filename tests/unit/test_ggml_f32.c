/* SPDX-License-Identifier: MIT
 *
 * test_ggml_f32.c - PE_ANGLES_GGML_F32 against ggml's recurrence, written anew
 *
 * ggml multiplies one float angle by theta^(-2/d) from pair to pair, divides it by the
 * pair's frequency factor, scales and (YaRN) mixes it in float, and takes cosf and
 * sinf.  Angles must agree to the bit, so cos and sin may differ by libm's error only;
 * the exact angles must not pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "posenc/posenc.h"

enum { MAX_PAIRS = 64, NUM_POSITIONS = 9 };
#define LIBM_ERROR 1.2e-7

static const int64_t positions[NUM_POSITIONS] = {0,     1,      -7,      100,     4095,
                                                 32767, 131071, 1000000, 16777217};

struct ggml {
    int num_dims;
    float freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow;
    int original_len;
    const double *freq_factors;
};

static float correction_dim(const struct ggml *g, float beta)
{
    return (float)g->num_dims *
           logf((float)g->original_len / (beta * 2 * 3.14159265358979f)) /
           (2 * logf(g->freq_base));
}

static void reference_row(const struct ggml *g, int64_t position, float *cos_row,
                          float *sin_row)
{
    /* powf, correctly rounded. */
    const float step =
        (float)pow((double)g->freq_base, (double)(-2.0f / (float)g->num_dims));
    float theta = (float)position;

    for (int i = 0; i < g->num_dims / 2; i++) {
        const float divisor = g->freq_factors ? (float)g->freq_factors[i] : 1.0f;
        const float extrapolated = theta / divisor;
        float angle = g->freq_scale * extrapolated, scale = g->attn_factor;
        if (g->ext_factor != 0) {
            const float low = fmaxf(0, floorf(correction_dim(g, g->beta_fast)));
            const float high =
                fminf((float)g->num_dims - 1, ceilf(correction_dim(g, g->beta_slow)));
            const float y = ((float)i - low) / fmaxf(0.001f, high - low);
            const float mix = (1 - fminf(1, fmaxf(0, y))) * g->ext_factor;
            angle = angle * (1 - mix) + extrapolated * mix;
            scale *= 1.0f + 0.1f * logf(1.0f / g->freq_scale);
        }
        cos_row[i] = cosf(angle) * scale;
        sin_row[i] = sinf(angle) * scale;
        theta *= step;
    }
}

/* Largest difference between the plan's table and the recurrence. */
static double difference(const pe_rope_spec *spec, const struct ggml *g)
{
    float cos_got[MAX_PAIRS], sin_got[MAX_PAIRS], cos_row[MAX_PAIRS],
        sin_row[MAX_PAIRS];
    const int num_pairs = g->num_dims / 2;
    double worst = 0;
    pe_rope *rope = NULL;
    pe_error error;

    if (pe_rope_create(&rope, spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    for (int p = 0; p < NUM_POSITIONS; p++) {
        const pe_positions at = {.start = positions[p]};
        pe_tensor cos_t, sin_t;
        pe_tensor_bshd(&cos_t, PE_F32, cos_got, 1, 1, 1, num_pairs);
        pe_tensor_bshd(&sin_t, PE_F32, sin_got, 1, 1, 1, num_pairs);
        if (pe_rope_table(rope, &at, &cos_t, &sin_t, &error) != PE_OK)
            fail_msg("%s", error.message);
        reference_row(g, positions[p], cos_row, sin_row);
        for (int i = 0; i < num_pairs; i++) {
            worst = fmax(worst, fabs((double)cos_got[i] - (double)cos_row[i]));
            worst = fmax(worst, fabs((double)sin_got[i] - (double)sin_row[i]));
        }
    }
    pe_rope_destroy(rope);
    return worst;
}

static void check(pe_rope_spec spec, const struct ggml *g)
{
    const double factor = fmax(1, (double)g->attn_factor);

    spec.angles = PE_ANGLES_GGML_F32;
    const double off = difference(&spec, g);
    if (!(off <= 1.2 * LIBM_ERROR * factor))
        fail_msg("rope_type %d, theta %g, %d dims: %.3g off", spec.freqs.rope_type,
                 spec.freqs.rope_theta, g->num_dims, off);
    spec.angles = PE_ANGLES_EXACT;
    assert_true(difference(&spec, g) > 100 * LIBM_ERROR);
}

static const struct {
    float theta;
    int num_dims;
} settings[] = {{10000, 128}, {10000, 64}, {500000, 128}, {1e6f, 128},
                {10000, 96},  {10000, 20}, {5e6f, 80}};

enum { NUM_SETTINGS = sizeof settings / sizeof settings[0] };

static pe_rope_spec spec_of(int n)
{
    return (pe_rope_spec){.struct_size = sizeof(pe_rope_spec),
                          .head_dim = settings[n].num_dims,
                          .pairs = {.pairing = PE_HALF_SPLIT},
                          .freqs = {.rope_theta = (double)settings[n].theta}};
}

static struct ggml ggml_of(int n)
{
    return (struct ggml){.num_dims = settings[n].num_dims,
                         .freq_base = settings[n].theta,
                         .freq_scale = 1,
                         .attn_factor = 1};
}

static void test_default(void **state)
{
    (void)state;
    for (int n = 0; n < NUM_SETTINGS; n++) {
        const struct ggml g = ggml_of(n);
        check(spec_of(n), &g);
    }
}

static void test_linear(void **state)
{
    (void)state;
    for (int n = 0; n < NUM_SETTINGS; n++) {
        struct ggml g = ggml_of(n);
        pe_rope_spec spec = spec_of(n);
        spec.freqs.rope_type = PE_ROPE_LINEAR;
        spec.freqs.factor = 8;
        g.freq_scale = 1.0f / 8;
        check(spec, &g);
    }
}

/* GGUF's rope_freqs tensor: llama3 and longrope reach ggml as divisors. */
static void test_freq_factors(void **state)
{
    double divisors[MAX_PAIRS];

    (void)state;
    for (int i = 0; i < MAX_PAIRS; i++)
        divisors[i] = (double)(1.0f + 0.37f * (float)i);
    for (int n = 0; n < NUM_SETTINGS; n++) {
        struct ggml g = ggml_of(n);
        pe_rope_spec spec = spec_of(n);
        spec.freqs.freq_factors = g.freq_factors = divisors;
        check(spec, &g);
    }
}

/* ggml's op multiplies by 1 + 0.1 ln factor itself: HF's default attention factor. */
static void test_yarn(void **state)
{
    (void)state;
    for (int n = 0; n < NUM_SETTINGS; n++) {
        struct ggml g = ggml_of(n);
        pe_rope_spec spec = spec_of(n);
        spec.freqs.rope_type = PE_ROPE_YARN;
        spec.freqs.factor = 4;
        spec.freqs.original_max_position_embeddings = 4096;
        g.freq_scale = 0.25f;
        g.ext_factor = 1;
        g.beta_fast = 32;
        g.beta_slow = 1;
        g.original_len = 4096;
        check(spec, &g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_freq_factors),
        cmocka_unit_test(test_yarn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
