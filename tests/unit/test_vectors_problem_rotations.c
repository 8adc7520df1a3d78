/* SPDX-License-Identifier: MIT
 *
 * test_vectors_problem_rotations.c - what has really gone wrong for people: rotations */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/problem_case.h"

static void test_c01_pairing(void **state)
{
    json_object *c = find_case("c01");
    pe_rope_spec spec = {.struct_size = sizeof spec,
                         .head_dim = (int32_t)integer(c, "input/head_dim"),
                         .pairs = {.pairing = PE_HALF_SPLIT},
                         .freqs = {.rope_theta = number(c, "input/theta")}};
    const int64_t position = integer(c, "input/position");
    float half[8], interleaved[8];
    double apart = 0;

    (void)state;
    check_inv_freq(c, &spec, "expect/inv_freq");
    rotate(&spec, position, c, "input/x", half);
    spec.pairs.pairing = PE_INTERLEAVED;
    rotate(&spec, position, c, "input/x", interleaved);
    for (int i = 0; i < 8; i++) {
        near_float(c, half[i], item(c, "expect/half_split", i));
        near_float(c, interleaved[i], item(c, "expect/interleaved", i));
        apart = fmax(apart, fabs((double)half[i] - (double)interleaved[i]));
    }
    near_float(c, (float)apart, number(c, "expect/max_abs_difference_between_layouts"));
}

static void check_rows(json_object *c, const pe_pairs *pairs, int64_t num_heads,
                       const char *path)
{
    int64_t rows[32];
    pe_error error;

    assert_int_equal(num_heads * 8, length(c, path));
    if (pe_pairs_permutation(pairs, num_heads, 8, rows, &error) != PE_OK)
        fail_msg("%s", error.message);
    for (int64_t r = 0; r < num_heads * 8; r++)
        assert_int_equal(rows[r], (int64_t)item(c, path, r));
}

static void test_c03_permutation(void **state)
{
    json_object *c = find_case("c03");
    const pe_pairs there = {.pairing = PE_INTERLEAVED, .out_pairing = PE_HALF_SPLIT};
    const pe_pairs back = {.pairing = PE_HALF_SPLIT, .out_pairing = PE_INTERLEAVED};

    (void)state;
    check_rows(c, &there, integer(c, "input/n_heads"), "expect/q_rows");
    check_rows(c, &there, integer(c, "input/n_kv_heads"), "expect/k_rows");
    check_rows(c, &back, integer(c, "input/n_kv_heads"), "expect/k_rows_inverse");
}

static void test_c05_far_angles(void **state)
{
    json_object *c = find_case("c05");
    const pe_positions at = {.start = integer(c, "input/position")};
    float cos_row[64], sin_row[64];
    pe_tensor cos_t, sin_t;
    pe_error error;
    pe_rope_spec spec = {.struct_size = sizeof spec,
                         .head_dim = (int32_t)integer(c, "input/head_dim"),
                         .pairs = {.pairing = PE_HALF_SPLIT},
                         .freqs = {.rope_theta = number(c, "input/theta")}};
    const double allowed = number(c, "tolerance/f32_output_abs");

    (void)state;
    for (int hf = 0; hf < 2; hf++) {
        int misses = 0;
        spec.angles = hf ? PE_ANGLES_HF_F32 : PE_ANGLES_EXACT;
        pe_rope *rope = create(&spec);
        pe_tensor_bshd(&cos_t, PE_F32, cos_row, 1, 1, 1, 64);
        pe_tensor_bshd(&sin_t, PE_F32, sin_row, 1, 1, 1, 64);
        if (pe_rope_table(rope, &at, &cos_t, &sin_t, &error) != PE_OK)
            fail_msg("%s", error.message);
        for (int64_t n = 0; n < length(c, "expect/values"); n++) {
            json_object *v =
                json_object_array_get_idx(at_path(c, "expect/values"), (size_t)n);
            const int64_t i = integer(v, "pair");
            misses += !(fabs((double)cos_row[i] - number(v, "cos")) <= allowed) ||
                      !(fabs((double)sin_row[i] - number(v, "sin")) <= allowed);
        }
        /* Float angles miss by what the report saw: the tolerance means something. */
        if (hf)
            assert_true(misses > 0);
        else
            assert_int_equal(misses, 0);
        pe_rope_destroy(rope);
    }
}

static void check_rounding(json_object *c, pe_dtype dtype, const char *in,
                           const char *out)
{
    const int64_t count = length(c, in);
    float x[16], back[16];
    uint16_t stored[16];
    pe_tensor x_t, stored_t, back_t;

    assert_true(count <= 16 && count == length(c, out));
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)item(c, in, i);
    pe_tensor_bshd(&x_t, PE_F32, x, 1, 1, 1, count);
    pe_tensor_bshd(&stored_t, dtype, stored, 1, 1, 1, count);
    pe_tensor_bshd(&back_t, PE_F32, back, 1, 1, 1, count);
    assert_int_equal(pe_tensor_copy(&x_t, &stored_t, NULL, NULL), PE_OK);
    assert_int_equal(pe_tensor_copy(&stored_t, &back_t, NULL, NULL), PE_OK);
    for (int64_t i = 0; i < count; i++) {
        json_object *v = json_object_array_get_idx(at_path(c, out), (size_t)i);
        if (json_object_is_type(v, json_type_string)) /* "inf" */
            assert_true(isinf(back[i]) && back[i] > 0);
        else
            assert_true((double)back[i] == json_object_get_double(v));
    }
}

/* Positions kept in 16 bits collide; counted through the library's own stores. */
static void check_collisions(json_object *c)
{
    float x[4096], back[4096];
    uint16_t stored[4096];
    pe_tensor x_t, stored_t, back_t;
    int64_t collisions = 0, distinct = 1;

    for (int i = 0; i < 4096; i++)
        x[i] = (float)i;
    pe_tensor_bshd(&x_t, PE_F32, x, 1, 1, 1, 4096);
    pe_tensor_bshd(&stored_t, PE_BF16, stored, 1, 1, 1, 4096);
    pe_tensor_bshd(&back_t, PE_F32, back, 1, 1, 1, 4096);
    assert_int_equal(pe_tensor_copy(&x_t, &stored_t, NULL, NULL), PE_OK);
    assert_int_equal(pe_tensor_copy(&stored_t, &back_t, NULL, NULL), PE_OK);
    for (int i = 1; i < 4096; i++) {
        distinct += stored[i] != stored[i - 1];
        collisions += i < 1024 && stored[i] == stored[i - 1];
    }
    assert_int_equal(distinct, integer(c, "expect/distinct_bf16_values_in_0_to_4095"));
    assert_int_equal(collisions, integer(c, "expect/collisions_bf16_below_1024"));
    for (int i = 0; i < 4096; i++)
        if ((double)back[i] != i) {
            assert_int_equal(i, integer(c, "expect/first_position_not_exact/bf16"));
            break;
        }
}

static void test_c07_low_precision(void **state)
{
    json_object *c = find_case("c07");
    const int64_t pair = integer(c, "input/inv_freq_case/pair");
    const int64_t position = integer(c, "input/inv_freq_case/position");
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = (int32_t)integer(c, "input/inv_freq_case/rotary_dim"),
        .pairs = {.pairing = PE_HALF_SPLIT},
        .freqs = {.rope_theta = number(c, "input/inv_freq_case/theta")}};
    const pe_positions at = {.start = position};
    float cos_row[16], sin_row[16];
    pe_tensor cos_t, sin_t;

    (void)state;
    check_rounding(c, PE_BF16, "input/positions_bf16", "expect/bf16");
    check_rounding(c, PE_F16, "input/positions_fp16", "expect/fp16");
    check_collisions(c);
    pe_rope *rope = create(&spec);
    pe_tensor_bshd(&cos_t, PE_F32, cos_row, 1, 1, 1, 16);
    pe_tensor_bshd(&sin_t, PE_F32, sin_row, 1, 1, 1, 16);
    assert_int_equal(pe_rope_table(rope, &at, &cos_t, &sin_t, NULL), PE_OK);
    near((double)cos_row[pair], number(c, "expect/exact_cos"), 0x1p-25 + 1e-12, 0);
    near(pe_rope_get_info(rope)->inv_freq[pair] * (double)position,
         number(c, "expect/exact_angle"), number(c, "tolerance/abs"), 0);
    pe_rope_destroy(rope);
}

static void test_c17_partial(void **state)
{
    json_object *c = find_case("c17");
    const int32_t head_dim = (int32_t)integer(c, "input/head_dim");
    const double partial = number(c, "input/partial_rotary_factor");
    pe_rope_spec spec = {.struct_size = sizeof spec,
                         .head_dim = head_dim,
                         .pairs = {.pairing = PE_HALF_SPLIT,
                                   .rotary_dim = (int32_t)(head_dim * partial)},
                         .freqs = {.rope_theta = number(c, "input/theta")}};
    const int64_t position = integer(c, "input/position");
    float y[8];

    (void)state;
    check_inv_freq(c, &spec, "expect/partial/inv_freq");
    rotate(&spec, position, c, "input/x", y);
    for (int i = 0; i < head_dim; i++)
        near_float(c, y[i], item(c, "expect/partial/y", i));

    spec.pairs.rotary_dim = 0;
    spec.freqs.rope_type = PE_ROPE_PROPORTIONAL;
    spec.freqs.partial_rotary_factor = partial;
    check_inv_freq(c, &spec, "expect/proportional/inv_freq");
    rotate(&spec, position, c, "input/x", y);
    for (int i = 0; i < head_dim; i++)
        near_float(c, y[i], item(c, "expect/proportional/y", i));
}

static void test_c28_shift(void **state)
{
    json_object *c = find_case("c28");
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = (int32_t)integer(c, "input/rotary_dim"),
        .pairs = {.pairing = PE_HALF_SPLIT},
        .freqs = {.rope_type = PE_ROPE_YARN,
                  .rope_theta = number(c, "input/theta"),
                  .factor = number(c, "input/rope_scaling/factor"),
                  .original_max_position_embeddings = integer(
                      c, "input/rope_scaling/original_max_position_embeddings")}};
    float key[4];
    pe_tensor key_t;
    pe_error error;

    (void)state;
    check_inv_freq(c, &spec, "expect/inv_freq");
    rotate(&spec, integer(c, "input/from_position"), c, "input/key", key);
    for (int i = 0; i < 4; i++)
        near_float(c, key[i], item(c, "expect/cached_at_10", i));
    pe_rope *rope = create(&spec);
    near_double(c, pe_rope_get_info(rope)->attention_factor,
                number(c, "expect/attention_factor"));
    pe_tensor_bshd(&key_t, PE_F32, key, 1, 1, 1, 4);
    if (pe_rope_shift(rope, integer(c, "input/delta"), &key_t, &key_t, &error) != PE_OK)
        fail_msg("%s", error.message);
    for (int i = 0; i < 4; i++)
        near_float(c, key[i], item(c, "expect/after_shift", i));
    pe_rope_destroy(rope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c01_pairing),    cmocka_unit_test(test_c03_permutation),
        cmocka_unit_test(test_c05_far_angles), cmocka_unit_test(test_c07_low_precision),
        cmocka_unit_test(test_c17_partial),    cmocka_unit_test(test_c28_shift),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
