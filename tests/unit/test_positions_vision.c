/* SPDX-License-Identifier: MIT
 *
 * test_positions_vision.c - image towers as an axis map and a grid
 *
 * Each tower's rule is written out as its code has it (docs/bias.md, "Image
 * towers"), and must be what one pe_axes, one builder and one plan give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "posenc/positions.h"

enum { MAX_PAIRS = 64, GRID_H = 4, GRID_W = 6, N = GRID_H * GRID_W };

static pe_error error;

/* Angle of pair i for the patch at row y, column x. */
typedef double (*angle_rule)(int i, int num_pairs, double y, double x);

/* The angles of the grid in ids order against the rule. */
static void check(const pe_rope_spec *spec, const int64_t *ids, int64_t tokens,
                  int x_first, angle_rule rule)
{
    static float cos_[N * MAX_PAIRS], sin_[N * MAX_PAIRS];
    const pe_positions at = {.ids = ids, .num_axes = 2, .axis_stride = tokens};
    pe_rope *rope = NULL;
    pe_tensor c, s;

    if (pe_rope_create(&rope, spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    const int pairs = pe_rope_get_info(rope)->num_pairs;
    assert_int_equal(pe_rope_get_info(rope)->num_axes, 2);
    pe_tensor_bshd(&c, PE_F32, cos_, 1, tokens, 1, pairs);
    pe_tensor_bshd(&s, PE_F32, sin_, 1, tokens, 1, pairs);
    if (pe_rope_table(rope, &at, &c, &s, &error) != PE_OK)
        fail_msg("%s", error.message);
    pe_rope_destroy(rope);
    for (int64_t t = 0; t < tokens; t++) {
        const double y = (double)ids[x_first ? tokens + t : t];
        const double x = (double)ids[x_first ? t : tokens + t];
        for (int i = 0; i < pairs; i++) {
            const double angle = rule(i, pairs, y, x);
            assert_true(fabs((double)cos_[t * pairs + i] - cos(angle)) < 1e-7);
            assert_true(fabs((double)sin_[t * pairs + i] - sin(angle)) < 1e-7);
        }
    }
}

/* Qwen2-VL: [y f, x f] with f over half the head's pairs, base 10000. */
static double qwen2_vl(int i, int num_pairs, double y, double x)
{
    const int half = num_pairs / 2;
    const double f = pow(10000, -(double)(i % half) / half);
    return (i < half ? y : x) * f;
}

static void test_qwen2_vl_tower(void **state)
{
    int64_t ids[2 * N];
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = 80,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .axes = {.map = PE_AXIS_SPLIT, .section = {20, 20}},
                               .freqs = {.rope_theta = 10000}};
    (void)state;
    for (int64_t merge = 1; merge <= 2; merge++) {
        assert_int_equal(pe_positions_grid(GRID_H, GRID_W, merge, ids, &error), PE_OK);
        check(&spec, ids, N, 0, qwen2_vl);
    }
}

/* Pixtral: one ladder over the head; y takes its even rungs, x its odd ones. */
static double pixtral(int i, int num_pairs, double y, double x)
{
    const int half = num_pairs / 2;
    const int rung = i < half ? 2 * i : 2 * (i - half) + 1;
    return (i < half ? y : x) * pow(10000, -(double)rung / num_pairs);
}

static void test_pixtral_tower(void **state)
{
    enum { PAIRS = 32 };
    int64_t ids[2 * N];
    double inv_freq[PAIRS];
    uint8_t pair_axis[PAIRS];
    pe_rope_spec spec = {.struct_size = sizeof spec,
                         .head_dim = 2 * PAIRS,
                         .pairs = {.pairing = PE_HALF_SPLIT},
                         .freqs = {.rope_theta = 10000}};
    pe_rope *ladder = NULL;
    (void)state;
    assert_int_equal(pe_rope_create(&ladder, &spec, NULL, &error), PE_OK);
    for (int i = 0; i < PAIRS; i++) {
        const int rung = i < PAIRS / 2 ? 2 * i : 2 * i - PAIRS + 1;
        inv_freq[i] = pe_rope_get_info(ladder)->inv_freq[rung];
        pair_axis[i] = i >= PAIRS / 2;
    }
    pe_rope_destroy(ladder);
    spec.axes = (pe_axes){.map = PE_AXIS_CUSTOM, .pair_axis = pair_axis};
    spec.freqs = (pe_freqs){.rope_type = PE_ROPE_CUSTOM, .inv_freq = inv_freq};
    assert_int_equal(pe_positions_grid(GRID_H, GRID_W, 1, ids, &error), PE_OK);
    check(&spec, ids, N, 0, pixtral);
    spec.axes = (pe_axes){.map = PE_AXIS_SPLIT, .section = {PAIRS / 2, PAIRS / 2}};
    check(&spec, ids, N, 0, pixtral);
}

/* Llama 4: base^(-2k / fd) with fd half the head, first fd / 2; the pairs of x come
 * first; patches count from 1, and the class token, which comes last, has no angle. */
static double llama4(int i, int num_pairs, double y, double x)
{
    const int half = num_pairs / 2;
    const double f = pow(10000, -(double)(i % half) / half);
    return (i < half ? x : y) * f;
}

static void test_llama4_tower(void **state)
{
    int64_t grid[2 * N], ids[2 * (N + 1)];
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = 88,
                               .pairs = {.pairing = PE_INTERLEAVED},
                               .axes = {.map = PE_AXIS_SPLIT, .section = {22, 22}},
                               .freqs = {.rope_theta = 10000}};
    (void)state;
    enum { H = 4, W = 5, TOKENS = H * W + 1 };
    assert_int_equal(pe_positions_grid(H, W, 1, grid, &error), PE_OK);
    for (int t = 0; t < H * W; t++) {
        ids[t] = grid[H * W + t] + 1;
        ids[TOKENS + t] = grid[t] + 1;
    }
    ids[TOKENS - 1] = ids[2 * TOKENS - 1] = 0;
    check(&spec, ids, TOKENS, 1, llama4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_qwen2_vl_tower),
        cmocka_unit_test(test_pixtral_tower),
        cmocka_unit_test(test_llama4_tower),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
