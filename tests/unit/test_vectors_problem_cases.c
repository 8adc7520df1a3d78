/* SPDX-License-Identifier: MIT
 *
 * test_vectors_problem_cases.c - what has really gone wrong for people, once more
 *
 * Inputs and right values stand in tests/data/problem-cases.json. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "posenc/posenc.h"

static json_object *file;

static int set_up(void **state)
{
    (void)state;
    file = json_object_from_file("tests/data/problem-cases.json");
    return file == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    json_object_put(file);
    return 0;
}

/* The value at a path of member names and list indices: "expect/values/2/cos". */
static json_object *at_path(json_object *value, const char *path)
{
    char name[64];
    const char *whole = path;

    while (*path != '\0') {
        const size_t span = strcspn(path, "/");
        assert_true(span < sizeof name);
        memcpy(name, path, span);
        name[span] = '\0';
        if (json_object_is_type(value, json_type_array))
            value = json_object_array_get_idx(value, (size_t)strtoul(name, NULL, 10));
        else if (!json_object_object_get_ex(value, name, &value))
            value = NULL;
        if (value == NULL)
            fail_msg("problem-cases.json has no %s", whole);
        path += span + (path[span] == '/');
    }
    return value;
}

static json_object *find_case(const char *id)
{
    json_object *cases = at_path(file, "cases");

    for (size_t i = 0; i < json_object_array_length(cases); i++) {
        json_object *c = json_object_array_get_idx(cases, i);
        if (strcmp(json_object_get_string(at_path(c, "id")), id) == 0)
            return c;
    }
    fail_msg("no case %s", id);
    return NULL;
}

static double number(json_object *parent, const char *path)
{
    return json_object_get_double(at_path(parent, path));
}

static int64_t integer(json_object *parent, const char *path)
{
    return json_object_get_int64(at_path(parent, path));
}

static int64_t length(json_object *parent, const char *path)
{
    return (int64_t)json_object_array_length(at_path(parent, path));
}

static double item(json_object *parent, const char *path, int64_t i)
{
    return json_object_get_double(
        json_object_array_get_idx(at_path(parent, path), (size_t)i));
}

static void near(double got, double expected, double abs_tol, double rel_tol)
{
    if (!(fabs(got - expected) <= abs_tol + rel_tol * fabs(expected)))
        fail_msg("%.17g, expected %.17g", got, expected);
}

/* The tolerances that the file gives to doubles and to floats. */
static void near_double(json_object *c, double got, double expected)
{
    near(got, expected, number(c, "tolerance/abs"), number(c, "tolerance/rel"));
}

static void near_float(json_object *c, float got, double expected)
{
    near((double)got, expected, number(c, "tolerance/f32_abs"),
         number(c, "tolerance/f32_rel"));
}

static pe_rope *create(const pe_rope_spec *spec)
{
    pe_rope *rope = NULL;
    pe_error error;

    if (pe_rope_create(&rope, spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    return rope;
}

static void rotate(const pe_rope_spec *spec, int64_t position, json_object *c,
                   const char *x_path, float *y)
{
    pe_rope *rope = create(spec);
    const pe_positions at = {.start = position};
    pe_tensor y_t;
    pe_error error;

    for (int32_t i = 0; i < spec->head_dim; i++)
        y[i] = (float)item(c, x_path, i);
    pe_tensor_bshd(&y_t, PE_F32, y, 1, 1, 1, spec->head_dim);
    if (pe_rope_apply(rope, &at, &y_t, &y_t, &error) != PE_OK)
        fail_msg("%s", error.message);
    pe_rope_destroy(rope);
}

static void check_inv_freq(json_object *c, const pe_rope_spec *spec, const char *path)
{
    pe_rope *rope = create(spec);
    const pe_rope_info *info = pe_rope_get_info(rope);

    assert_int_equal(info->num_pairs, length(c, path));
    for (int32_t i = 0; i < info->num_pairs; i++)
        near_double(c, info->inv_freq[i], item(c, path, i));
    pe_rope_destroy(rope);
}

/* {"pair": value, ...}: some pairs only. */
static void check_some(json_object *c, const pe_rope_info *info, const char *path)
{
    int seen = 0;

    json_object_object_foreach(at_path(c, path), pair, value)
    {
        const long i = strtol(pair, NULL, 10);
        assert_true(i >= 0 && i < info->num_pairs);
        near_double(c, info->inv_freq[i], json_object_get_double(value));
        seen++;
    }
    assert_true(seen > 0);
}

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

static void test_c08_dynamic(void **state)
{
    json_object *c = find_case("c08");
    pe_rope_spec spec = {.struct_size = sizeof spec,
                         .head_dim = (int32_t)integer(c, "input/rotary_dim"),
                         .pairs = {.pairing = PE_HALF_SPLIT},
                         .freqs = {.rope_type = PE_ROPE_DYNAMIC,
                                   .rope_theta = number(c, "input/theta"),
                                   .factor = number(c, "input/rope_scaling/factor"),
                                   .max_position_embeddings =
                                       integer(c, "input/max_position_embeddings")}};
    uint64_t first = 0, last = 0;

    (void)state;
    for (int64_t n = 0; n < length(c, "expect/results"); n++) {
        json_object *result =
            json_object_array_get_idx(at_path(c, "expect/results"), (size_t)n);
        spec.freqs.seq_len = integer(result, "seq_len");
        pe_rope *rope = create(&spec);
        const pe_rope_info *info = pe_rope_get_info(rope);
        const int32_t d = info->rotary_dim;
        near_double(c, info->inv_freq[info->num_pairs - 1],
                    number(result, "inv_freq_last"));
        /* The base shows in pair 1: f = base^(-2/d). */
        near(pow(info->inv_freq[1], -d / 2.0), number(result, "base"), 0, 1e-12);
        last = info->fingerprint;
        first = n == 0 ? last : first;
        pe_rope_destroy(rope);
    }
    assert_true(first == last);
}

static void test_c10_yarn(void **state)
{
    json_object *c = find_case("c10");
    const int64_t head_dim = integer(c, "input/config/hidden_size") /
                             integer(c, "input/config/num_attention_heads");
    pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = (int32_t)head_dim,
        .pairs = {.pairing = PE_HALF_SPLIT},
        .freqs = {
            .rope_type = PE_ROPE_YARN,
            .rope_theta = number(c, "input/config/rope_theta"),
            .factor = number(c, "input/config/rope_scaling/factor"),
            .max_position_embeddings =
                integer(c, "input/config/max_position_embeddings"),
            .original_max_position_embeddings = integer(
                c, "input/config/rope_scaling/original_max_position_embeddings")}};
    pe_rope *rope = create(&spec);
    const pe_rope_info *info = pe_rope_get_info(rope);

    (void)state;
    check_some(c, info, "expect/inv_freq");
    near_double(c, info->attention_factor, number(c, "expect/attention_factor"));
    near_double(c, info->ramp_low, number(c, "expect/low"));
    near_double(c, info->ramp_high, number(c, "expect/high"));
    pe_rope_destroy(rope);

    spec.freqs.no_truncate = 1;
    rope = create(&spec);
    near_double(c, pe_rope_get_info(rope)->ramp_low, number(c, "expect/raw_low"));
    near_double(c, pe_rope_get_info(rope)->ramp_high, number(c, "expect/raw_high"));
    pe_rope_destroy(rope);

    spec.freqs.no_truncate = 0;
    spec.freqs.factor =
        0; /* derived from the two lengths: 1, and no attention factor */
    rope = create(&spec);
    near_double(
        c, pe_rope_get_info(rope)->attention_factor,
        number(c, "expect/if_factor_taken_from_max_over_original/attention_factor"));
    pe_rope_destroy(rope);
}

static void test_c12_mscale(void **state)
{
    json_object *c = find_case("c12");

    (void)state;
    for (int64_t n = 0; n < length(c, "input/models"); n++) {
        json_object *model =
            json_object_array_get_idx(at_path(c, "input/models"), (size_t)n);
        json_object *expect = at_path(at_path(c, "expect"),
                                      json_object_get_string(at_path(model, "name")));
        const pe_rope_spec spec = {
            .struct_size = sizeof spec,
            .head_dim = 64,
            .pairs = {.pairing = PE_INTERLEAVED},
            .freqs = {.rope_type = PE_ROPE_YARN,
                      .mscale_rule = PE_MSCALE_DEEPSEEK,
                      .rope_theta = 10000,
                      .factor = number(model, "rope_scaling/factor"),
                      .original_max_position_embeddings = integer(
                          model, "rope_scaling/original_max_position_embeddings"),
                      .beta_fast = number(model, "rope_scaling/beta_fast"),
                      .beta_slow = number(model, "rope_scaling/beta_slow"),
                      .mscale = number(model, "rope_scaling/mscale"),
                      .mscale_all_dim = number(model, "rope_scaling/mscale_all_dim")}};
        pe_rope *rope = create(&spec);
        const pe_rope_info *info = pe_rope_get_info(rope);
        const double plain = 1 / sqrt(number(model, "qk_head_dim"));
        near_double(c, info->attention_factor, number(expect, "cos_sin_multiplier"));
        near_double(c, sqrt(info->softmax_factor),
                    number(expect, "mscale_all_dim_value"));
        near_double(c, info->softmax_factor * plain, number(expect, "softmax_scale"));
        pe_rope_destroy(rope);
    }
}

static void test_c14_longrope(void **state)
{
    json_object *c = find_case("c14");
    double short_factor[4], long_factor[4];
    pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = (int32_t)integer(c, "input/config/head_dim"),
        .pairs = {.pairing = PE_HALF_SPLIT},
        .freqs = {.rope_type = PE_ROPE_LONGROPE,
                  .rope_theta = number(c, "input/config/rope_theta"),
                  .max_position_embeddings =
                      integer(c, "input/config/max_position_embeddings"),
                  .original_max_position_embeddings =
                      integer(c, "input/config/original_max_position_embeddings"),
                  .short_factor = short_factor,
                  .long_factor = long_factor}};
    double last_freq[3];

    (void)state;
    for (int i = 0; i < 4; i++) {
        short_factor[i] = item(c, "input/config/rope_scaling/short_factor", i);
        long_factor[i] = item(c, "input/config/rope_scaling/long_factor", i);
    }
    assert_int_equal(length(c, "input/total_lengths"), 3);
    for (int64_t n = 0; n < 3; n++) {
        char path[64];
        spec.freqs.seq_len = (int64_t)item(c, "input/total_lengths", n);
        snprintf(path, sizeof path, "expect/inv_freq/%d", (int)spec.freqs.seq_len);
        check_inv_freq(c, &spec, path);
        pe_rope *rope = create(&spec);
        const pe_rope_info *info = pe_rope_get_info(rope);
        near_double(c, info->attention_factor, number(c, "expect/attention_factor"));
        assert_true(info->seq_len_min <= spec.freqs.seq_len &&
                    spec.freqs.seq_len <= info->seq_len_max);
        last_freq[n] = info->inv_freq[3];
        pe_rope_destroy(rope);
    }
    near_double(c, 4000 * (last_freq[2] - last_freq[0]),
                number(c, "expect/rerotate_angle_pair3_pos4000"));
}

static void test_c15_llama3(void **state)
{
    json_object *c = find_case("c15");
    const char *scaling = "input/config/rope_scaling";
    json_object *s = at_path(c, scaling);
    pe_rope_spec spec = {.struct_size = sizeof spec,
                         .head_dim =
                             (int32_t)(integer(c, "input/config/hidden_size") /
                                       integer(c, "input/config/num_attention_heads")),
                         .pairs = {.pairing = PE_HALF_SPLIT},
                         .freqs = {.rope_type = PE_ROPE_LLAMA3,
                                   .rope_theta = number(c, "input/config/rope_theta"),
                                   .factor = number(s, "factor"),
                                   .low_freq_factor = number(s, "low_freq_factor"),
                                   .high_freq_factor = number(s, "high_freq_factor"),
                                   .original_max_position_embeddings =
                                       integer(s, "original_max_position_embeddings")}};
    pe_rope *scaled = create(&spec);
    const pe_rope_info *info = pe_rope_get_info(scaled);
    int first_scaled = -1, first_full = -1;

    (void)state;
    check_some(c, info, "expect/inv_freq");
    near_double(c, info->attention_factor, number(c, "expect/attention_factor"));
    spec.freqs = (pe_freqs){.rope_theta = spec.freqs.rope_theta};
    pe_rope *plain = create(&spec);
    const double *base = pe_rope_get_info(plain)->inv_freq;
    json_object_object_foreach(at_path(c, "expect/gguf_rope_freqs_divisor"), pair, d)
    {
        const long i = strtol(pair, NULL, 10);
        near(base[i] / info->inv_freq[i], json_object_get_double(d), 0, 1e-13);
    }
    for (int32_t i = 0; i < info->num_pairs; i++) {
        if (first_scaled < 0 && info->inv_freq[i] != base[i])
            first_scaled = i;
        if (first_full < 0 && fabs(base[i] / info->inv_freq[i] - 8) < 1e-12)
            first_full = i;
    }
    assert_int_equal(first_scaled, integer(c, "expect/first_scaled_pair"));
    assert_int_equal(first_full, integer(c, "expect/first_fully_scaled_pair"));
    pe_rope_destroy(plain);
    pe_rope_destroy(scaled);
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
        cmocka_unit_test(test_c08_dynamic),    cmocka_unit_test(test_c10_yarn),
        cmocka_unit_test(test_c12_mscale),     cmocka_unit_test(test_c14_longrope),
        cmocka_unit_test(test_c15_llama3),     cmocka_unit_test(test_c17_partial),
        cmocka_unit_test(test_c28_shift),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
