/* SPDX-License-Identifier: MIT
 *
 * test_rope_info.c - what a plan says about itself: axes, ramps, lengths, fingerprint
 *
 * Numbers of known models: Qwen3-VL's and ggml's axis maps, YaRN correction ranges of
 * gpt-oss, DeepSeek-V3 and Kimi-K2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "posenc/env.h"

static pe_rope_spec base_spec(void)
{
    return (pe_rope_spec){.struct_size = sizeof(pe_rope_spec),
                          .head_dim = 128,
                          .pairs = {.pairing = PE_HALF_SPLIT},
                          .freqs = {.rope_theta = 10000}};
}

static pe_rope *create(const pe_rope_spec *spec)
{
    pe_rope *rope = NULL;
    pe_error error;

    if (pe_rope_create(&rope, spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    return rope;
}

/* "0120": the axis of each pair. */
static void check_axes(pe_axis_map map, const int32_t section[4], int32_t num_axes,
                       const char *expected)
{
    pe_rope_spec spec = base_spec();

    spec.head_dim = 2 * (int32_t)strlen(expected);
    spec.axes.map = map;
    memcpy(spec.axes.section, section, sizeof spec.axes.section);
    pe_rope *rope = create(&spec);
    const pe_rope_info *info = pe_rope_get_info(rope);
    assert_int_equal(info->num_axes, num_axes);
    assert_int_equal(info->num_pairs, (int)strlen(expected));
    for (int32_t i = 0; i < info->num_pairs; i++)
        if (info->pair_axis[i] != expected[i] - '0')
            fail_msg("map %d: pair %d follows axis %d, not %c", map, i,
                     info->pair_axis[i], expected[i]);
    pe_rope_destroy(rope);
}

static void test_axis_maps(void **state)
{
    const int32_t qwen2[4] = {16, 24, 24}, qwen3[4] = {24, 20, 20},
                  small[4] = {3, 3, 2};
    const int32_t grid[4] = {4, 4}, qwen35[4] = {11, 11, 10};

    (void)state;
    check_axes(PE_AXIS_CHUNKED, qwen2, 3,
               "0000000000000000111111111111111111111111222222222222222222222222");
    check_axes(PE_AXIS_INTERLEAVED, qwen3, 3,
               "0120120120120120120120120120120120120120120120120120120120120000");
    /* ggml sends pairs 61 and 62 to a fourth axis. */
    check_axes(PE_AXIS_IMROPE, qwen3, 4,
               "0120120120120120120120120120120120120120120120120120120120120330");
    check_axes(PE_AXIS_INTERLEAVED, qwen35, 3, "01201201201201201201201201201201");
    check_axes(PE_AXIS_ERNIE, small, 3, "12121200");
    check_axes(PE_AXIS_SPLIT, grid, 2, "00001111");
}

/* One ladder per axis: the same frequencies twice, those of a head of half the size. */
static void test_split_ladders(void **state)
{
    pe_rope_spec spec = base_spec();

    (void)state;
    pe_rope *half = NULL, *both = NULL;
    spec.head_dim = 64;
    half = create(&spec);
    spec.head_dim = 128;
    spec.axes = (pe_axes){.map = PE_AXIS_SPLIT, .section = {32, 32}};
    both = create(&spec);
    const double *one = pe_rope_get_info(half)->inv_freq;
    const double *two = pe_rope_get_info(both)->inv_freq;
    assert_memory_equal(one, two, 32 * sizeof *one);
    assert_memory_equal(one, two + 32, 32 * sizeof *one);
    pe_rope_destroy(half);
    pe_rope_destroy(both);
}

static void check_yarn(int32_t head_dim, const pe_freqs *freqs, double low, double high,
                       double attention_factor, double softmax_factor)
{
    pe_rope_spec spec = base_spec();

    spec.head_dim = head_dim;
    spec.freqs = *freqs;
    spec.freqs.rope_type = PE_ROPE_YARN;
    pe_rope *rope = create(&spec);
    const pe_rope_info *info = pe_rope_get_info(rope);
    assert_true(fabs(info->ramp_low - low) <= 1e-13 * fabs(low));
    assert_true(fabs(info->ramp_high - high) <= 1e-13 * fabs(high));
    assert_true(fabs(info->attention_factor - attention_factor) <= 1e-10);
    assert_true(fabs(info->softmax_factor - softmax_factor) <= 1e-15 * softmax_factor);
    pe_rope_destroy(rope);
}

static void test_yarn_ranges(void **state)
{
    const pe_freqs gpt_oss = {.rope_theta = 150000,
                              .factor = 32,
                              .original_max_position_embeddings = 4096,
                              .no_truncate = 1};
    const pe_freqs deepseek = {.rope_theta = 10000,
                               .factor = 40,
                               .original_max_position_embeddings = 4096,
                               .mscale = 1,
                               .mscale_all_dim = 1,
                               .mscale_rule = PE_MSCALE_DEEPSEEK};
    const pe_freqs kimi = {.rope_theta = 50000,
                           .factor = 32,
                           .original_max_position_embeddings = 4096,
                           .beta_fast = 1,
                           .beta_slow = 1,
                           .mscale = 1,
                           .mscale_all_dim = 1};
    pe_freqs plain = deepseek;

    (void)state;
    check_yarn(64, &gpt_oss, 8.092779115512402, 17.39802450158856, 1.3465735903, 1);
    check_yarn(64, &deepseek, 10, 23, 1, 1.8738542070926265);
    check_yarn(64, &kimi, 19, 20, 1, 1);
    plain.mscale_rule = PE_MSCALE_IGNORE; /* the other published rule */
    check_yarn(64, &plain, 10, 23, 1.3688879454, 1);
}

static void check_lengths(const pe_freqs *freqs, int64_t seq_len, int64_t min,
                          int64_t max)
{
    static const double list[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    pe_rope_spec spec = base_spec();

    spec.freqs = *freqs;
    spec.freqs.seq_len = seq_len;
    if (freqs->rope_type == PE_ROPE_LONGROPE)
        spec.freqs.short_factor = spec.freqs.long_factor = list;
    pe_rope *rope = create(&spec);
    const pe_rope_info *info = pe_rope_get_info(rope);
    /* A length is at least 1, so 0 and 1 say the same. */
    assert_int_equal(info->seq_len_min > 1 ? info->seq_len_min : 0, min);
    assert_int_equal(info->seq_len_max, max);
    pe_rope_destroy(rope);
}

static void test_lengths_served(void **state)
{
    const pe_freqs fixed = {.rope_theta = 10000};
    const pe_freqs dynamic = {.rope_type = PE_ROPE_DYNAMIC,
                              .rope_theta = 10000,
                              .factor = 2,
                              .max_position_embeddings = 4096};
    const pe_freqs longrope = {.rope_type = PE_ROPE_LONGROPE,
                               .rope_theta = 10000,
                               .factor = 32,
                               .original_max_position_embeddings = 4096};

    (void)state;
    check_lengths(&fixed, 0, 0, INT64_MAX);
    check_lengths(&dynamic, 0, 0, 4096);
    check_lengths(&dynamic, 4096, 0, 4096);
    check_lengths(&dynamic, 4097, 4097, 4097);
    check_lengths(&longrope, 0, 0, 4096);
    check_lengths(&longrope, 4096, 0, 4096);
    check_lengths(&longrope, 4097, 4097, INT64_MAX);
}

static uint64_t fingerprint(const pe_rope_spec *spec)
{
    pe_rope *rope = create(spec);
    const uint64_t result = pe_rope_get_info(rope)->fingerprint;

    pe_rope_destroy(rope);
    return result;
}

static void test_fingerprint(void **state)
{
    pe_rope_spec specs[10];
    uint64_t prints[10];
    const pe_env scalar = {.struct_size = sizeof scalar, .isa = PE_ISA_SCALAR};
    pe_rope *rope = NULL;

    (void)state;
    for (int i = 0; i < 10; i++)
        specs[i] = base_spec();
    specs[1].freqs.rope_theta = 10000.000000000002; /* the next double */
    specs[2].pairs.pairing = PE_INTERLEAVED;
    specs[3].pairs.out_pairing = PE_INTERLEAVED;
    specs[4].pairs.reversed = 1;
    specs[5].pairs.rotary_dim = 64;
    specs[6].pairs.rotary_dim = 64;
    specs[6].pairs.rotary_start = 64;
    specs[7].freqs.attention_factor = 1.25;
    specs[8].angles = PE_ANGLES_HF_F32;
    specs[9].axes = (pe_axes){.map = PE_AXIS_CHUNKED, .section = {16, 24, 24}};
    for (int i = 0; i < 10; i++) {
        prints[i] = fingerprint(&specs[i]);
        for (int j = 0; j < i; j++)
            if (prints[i] == prints[j])
                fail_msg("specs %d and %d have one fingerprint", i, j);
    }
    /* What does not change the rotation does not change it. */
    specs[0].table_len = 100;
    assert_true(fingerprint(&specs[0]) == prints[0]);
    specs[0].freqs.max_position_embeddings = 4096;
    assert_true(fingerprint(&specs[0]) == prints[0]);
    specs[0].pairs.out_pairing = PE_HALF_SPLIT;
    specs[0].pairs.rotary_dim = 128;
    assert_true(fingerprint(&specs[0]) == prints[0]);
    assert_int_equal(pe_rope_create(&rope, &specs[0], &scalar, NULL), PE_OK);
    assert_true(pe_rope_get_info(rope)->fingerprint == prints[0]);
    assert_string_equal(pe_rope_get_info(rope)->isa_name, pe_isa_name(PE_ISA_SCALAR));
    assert_int_equal(pe_rope_get_info(rope)->table_len, 100);
    pe_rope_destroy(rope);
}

/* Two ways to write one frequency: exactly they are one rotation, in the floats of other
 * systems they may round apart, and then are two. */
static void test_fingerprint_of_floats(void **state)
{
    double thirds[64];
    pe_rope_spec divided = base_spec(), scaled = base_spec();
    float cos_row[2][64], sin_row[2][64];
    const pe_positions at = {.start = 1001};

    (void)state;
    for (int i = 0; i < 64; i++)
        thirds[i] = 3;
    divided.freqs.freq_factors = thirds;
    scaled.freqs.rope_type = PE_ROPE_LINEAR;
    scaled.freqs.factor = 3;
    assert_true(fingerprint(&divided) == fingerprint(&scaled));
    divided.angles = scaled.angles = PE_ANGLES_GGML_F32;
    for (int i = 0; i < 2; i++) {
        pe_rope *rope = create(i == 0 ? &divided : &scaled);
        pe_tensor cos_t, sin_t;
        pe_tensor_bshd(&cos_t, PE_F32, cos_row[i], 1, 1, 1, 64);
        pe_tensor_bshd(&sin_t, PE_F32, sin_row[i], 1, 1, 1, 64);
        assert_int_equal(pe_rope_table(rope, &at, &cos_t, &sin_t, NULL), PE_OK);
        pe_rope_destroy(rope);
    }
    assert_memory_not_equal(cos_row[0], cos_row[1], sizeof cos_row[0]);
    assert_true(fingerprint(&divided) != fingerprint(&scaled));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axis_maps),
        cmocka_unit_test(test_split_ladders),
        cmocka_unit_test(test_yarn_ranges),
        cmocka_unit_test(test_lengths_served),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_fingerprint_of_floats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
