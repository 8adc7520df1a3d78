/* SPDX-License-Identifier: MIT
 *
 * test_vectors_problem_freqs.c - what has really gone wrong for people: scaling rules */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

#include "../support/problem_case.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c08_dynamic), cmocka_unit_test(test_c10_yarn),
        cmocka_unit_test(test_c12_mscale),  cmocka_unit_test(test_c14_longrope),
        cmocka_unit_test(test_c15_llama3),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
