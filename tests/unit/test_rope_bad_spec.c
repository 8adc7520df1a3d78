/* SPDX-License-Identifier: MIT
 *
 * test_rope_bad_spec.c - every wrong spec is refused in words, and no plan comes out
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../support/refusal.h"
#include "posenc/env.h"

static const double list[] = {1, 1.5, 2, 3, 4, 5, 6, 7};

/* A good spec of each rule: head_dim 16, eight pairs. */
static pe_rope_spec good(pe_rope_type type)
{
    pe_rope_spec spec = {.struct_size = sizeof spec,
                         .head_dim = 16,
                         .pairs = {.pairing = PE_HALF_SPLIT},
                         .freqs = {.rope_type = type, .rope_theta = 10000}};

    if (type != PE_ROPE_DEFAULT && type != PE_ROPE_CUSTOM)
        spec.freqs.factor = 4;
    spec.freqs.max_position_embeddings = 4096;
    if (type == PE_ROPE_YARN || type == PE_ROPE_LLAMA3 || type == PE_ROPE_LONGROPE)
        spec.freqs.original_max_position_embeddings = 1024;
    if (type == PE_ROPE_LLAMA3) {
        spec.freqs.low_freq_factor = 1;
        spec.freqs.high_freq_factor = 4;
    }
    if (type == PE_ROPE_LONGROPE)
        spec.freqs.short_factor = spec.freqs.long_factor = list;
    if (type == PE_ROPE_CUSTOM) {
        spec.freqs.rope_theta = 0;
        spec.freqs.inv_freq = list;
    }
    return spec;
}

static void refused_in(int line, const pe_rope_spec *spec, const pe_env *env,
                       pe_status status, const char *words)
{
    pe_rope *rope = (pe_rope *)&status; /* must become NULL */
    pe_error error;

    const pe_status got = pe_rope_create(&rope, spec, env, &error);
    const char *complaint = test_refusal(&error, got, status, words);
    if (got == PE_OK)
        pe_rope_destroy(rope);
    else if (rope != NULL)
        fail_msg("line %d: a plan came out with %s", line, error.message);
    if (complaint != NULL)
        fail_msg("line %d: %s", line, complaint);
    /* Without an error struct the same, and no crash. */
    assert_int_equal(pe_rope_create(&rope, spec, env, NULL), status);
}

/* REFUSED(status, words, rule, changes to spec) */
#define REFUSED(status, words, type, ...)             \
  do {                                                \
    pe_rope_spec spec = good(type);                   \
    __VA_ARGS__;                                      \
    refused_in(__LINE__, &spec, NULL, status, words); \
  } while (0)

#define ARG PE_E_ARGUMENT

static void test_good_specs(void **state)
{
    (void)state;
    for (pe_rope_type type = PE_ROPE_DEFAULT; type <= PE_ROPE_CUSTOM; type++) {
        const pe_rope_spec spec = good(type);
        pe_rope *rope = NULL;
        pe_error error;
        if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK)
            fail_msg("rope_type %d: %s", type, error.message);
        pe_rope_destroy(rope);
    }
    pe_rope_destroy(NULL);
}

static void test_struct_size(void **state)
{
    struct {
        pe_rope_spec spec;
        int64_t later[3];
    } newer = {.spec = good(PE_ROPE_DEFAULT)};
    pe_rope *rope = NULL;
    pe_error error;

    (void)state;
    refused_in(__LINE__, NULL, NULL, ARG, "spec");
    REFUSED(ARG, "struct_size|0", 0, spec.struct_size = 0);
    REFUSED(ARG, "struct_size", 0, spec.struct_size = sizeof spec - 8);
    newer.spec.struct_size = sizeof newer;
    if (pe_rope_create(&rope, &newer.spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    pe_rope_destroy(rope);
    newer.later[1] = 1;
    refused_in(__LINE__, &newer.spec, NULL, PE_E_UNSUPPORTED, "byte");
    const pe_rope_spec spec = good(PE_ROPE_DEFAULT);
    assert_int_equal(pe_rope_create(NULL, &spec, NULL, &error), ARG);
}

static void test_sizes_and_window(void **state)
{
    (void)state;
    REFUSED(ARG, "head_dim|0", 0, spec.head_dim = 0);
    REFUSED(ARG, "head_dim|-16", 0, spec.head_dim = -16);
    REFUSED(ARG, "head_dim|4098|4096", 0, spec.head_dim = 4098);
    REFUSED(ARG, "head_dim|2147483646|4096", 0, spec.head_dim = INT32_MAX - 1);
    REFUSED(ARG, "rotary_dim|15|even", 0, spec.head_dim = 15);
    REFUSED(ARG, "rotary_dim|7|even", 0, spec.pairs.rotary_dim = 7);
    REFUSED(ARG, "rotary_dim|18|16", 0, spec.pairs.rotary_dim = 18);
    REFUSED(ARG, "rotary_dim|-2", 0, spec.pairs.rotary_dim = -2);
    REFUSED(ARG, "rotary_dim", 0, spec.pairs.rotary_dim = INT32_MIN);
    REFUSED(ARG, "rotary_start|-1", 0, spec.pairs.rotary_dim = 8;
            spec.pairs.rotary_start = -1);
    REFUSED(ARG, "rotary_start|9", 0, spec.pairs.rotary_dim = 8;
            spec.pairs.rotary_start = 9);
    REFUSED(ARG, "rotary_start|2147483647", 0, spec.pairs.rotary_dim = 8;
            spec.pairs.rotary_start = INT32_MAX);
    REFUSED(ARG, "rotary_start", 0, spec.pairs.rotary_start = 1);
    REFUSED(ARG, "table_len|-1", 0, spec.table_len = -1);
    REFUSED(ARG, "pairing", 0, spec.pairs.pairing = 0);
    REFUSED(ARG, "pairing|3", 0, spec.pairs.pairing = 3);
    REFUSED(ARG, "pairing|-1", 0, spec.pairs.pairing = -1);
    REFUSED(ARG, "out_pairing|3", 0, spec.pairs.out_pairing = 3);
    REFUSED(ARG, "reversed|2", 0, spec.pairs.reversed = 2);
    REFUSED(ARG, "angles|3", 0, spec.angles = 3);
    REFUSED(ARG, "angles|-1", 0, spec.angles = -1);
}

static void test_reserved(void **state)
{
    (void)state;
    REFUSED(ARG, "reserved|1", 0, spec.reserved = 1);
    REFUSED(ARG, "reserved|1", 0, spec.pairs.reserved = 1);
    REFUSED(ARG, "reserved|1", 0, spec.axes.reserved = 1);
    REFUSED(ARG, "reserved|1", 0, spec.freqs.reserved = 1);
}

/* A table that cannot be had must be refused, whatever the machine. */
static void test_huge_table(void **state)
{
    static const int64_t lengths[] = {INT64_MAX, INT64_MAX / 2, (int64_t)1 << 60};
    pe_rope *rope = NULL;
    pe_error error;

    (void)state;
    for (int i = 0; i < 3; i++) {
        pe_rope_spec spec = good(PE_ROPE_DEFAULT);
        spec.table_len = lengths[i];
        const pe_status status = pe_rope_create(&rope, &spec, NULL, &error);
        assert_true(status == PE_E_ARGUMENT || status == PE_E_LIMIT ||
                    status == PE_E_NO_MEMORY);
        assert_null(rope);
        assert_non_null(strstr(error.message, "table_len"));
    }
}

static void test_axes(void **state)
{
    static const uint8_t axis_4[8] = {0, 1, 2, 3, 4, 0, 0, 0};

    (void)state;
    REFUSED(ARG, "map|7", 0, spec.axes.map = 7);
    REFUSED(ARG, "map|-1", 0, spec.axes.map = -1);
    REFUSED(ARG, "section|7|8", 0, spec.axes.map = PE_AXIS_CHUNKED;
            spec.axes.section[0] = 4; spec.axes.section[1] = 3);
    REFUSED(ARG, "section|9|8", 0, spec.axes.map = PE_AXIS_INTERLEAVED;
            spec.axes.section[0] = 3; spec.axes.section[1] = 3;
            spec.axes.section[2] = 3);
    REFUSED(ARG, "section|-1", 0, spec.axes.map = PE_AXIS_CHUNKED;
            spec.axes.section[0] = 9; spec.axes.section[1] = -1);
    REFUSED(ARG, "section", 0, spec.axes.map = PE_AXIS_CHUNKED;
            spec.axes.section[0] = spec.axes.section[1] = INT32_MAX;
            spec.axes.section[2] = 10);
    REFUSED(ARG, "section", 0, spec.axes.map = PE_AXIS_SPLIT);
    REFUSED(ARG, "pair_axis", 0, spec.axes.map = PE_AXIS_CUSTOM);
    REFUSED(ARG, "pair_axis|4|3", 0, spec.axes.map = PE_AXIS_CUSTOM;
            spec.axes.pair_axis = axis_4);
}

static void test_rules(void **state)
{
    (void)state;
    REFUSED(ARG, "rope_type|9", 0, spec.freqs.rope_type = 9);
    REFUSED(ARG, "rope_type|-1", 0, spec.freqs.rope_type = -1);
    REFUSED(ARG, "mscale_rule|3", PE_ROPE_YARN, spec.freqs.mscale_rule = 3);
    for (pe_rope_type type = PE_ROPE_DEFAULT; type < PE_ROPE_CUSTOM; type++) {
        REFUSED(ARG, "rope_theta|not set", type, spec.freqs.rope_theta = 0);
        REFUSED(ARG, "rope_theta|-10000", type, spec.freqs.rope_theta = -10000);
    }
    REFUSED(ARG, "rope_theta|1", PE_ROPE_YARN, spec.freqs.rope_theta = 1);
    for (pe_rope_type type = PE_ROPE_LINEAR; type <= PE_ROPE_LLAMA3; type++) {
        if (type == PE_ROPE_YARN || type == PE_ROPE_LONGROPE)
            continue; /* these derive it */
        REFUSED(ARG, "factor|not set", type, spec.freqs.factor = 0);
    }
    for (pe_rope_type type = PE_ROPE_LINEAR; type <= PE_ROPE_PROPORTIONAL; type++)
        REFUSED(ARG, "factor|-2", type, spec.freqs.factor = -2);
    for (pe_rope_type type = PE_ROPE_LINEAR; type <= PE_ROPE_PROPORTIONAL; type++)
        REFUSED(ARG, "factor|0.5|1", type, spec.freqs.factor = 0.5);
    /* Fields that only another rule reads: rope_type was forgotten, or is wrong. */
    REFUSED(ARG, "factor|default", PE_ROPE_DEFAULT, spec.freqs.factor = 8);
    REFUSED(ARG, "beta_fast|linear", PE_ROPE_LINEAR, spec.freqs.beta_fast = 32);
    REFUSED(ARG, "short_factor|yarn", PE_ROPE_YARN, spec.freqs.short_factor = list);
    REFUSED(ARG, "factor|0.5|512 / 1024", PE_ROPE_YARN,
            (spec.freqs.factor = 0, spec.freqs.max_position_embeddings = 512));
    REFUSED(ARG, "low_freq_factor|ntk", PE_ROPE_NTK, spec.freqs.low_freq_factor = 1);
    REFUSED(ARG, "inv_freq|llama3", PE_ROPE_LLAMA3, spec.freqs.inv_freq = list);

    REFUSED(ARG, "rotary_dim|2", PE_ROPE_NTK, spec.pairs.rotary_dim = 2);
    REFUSED(ARG, "rotary_dim|2", PE_ROPE_DYNAMIC, spec.pairs.rotary_dim = 2);
    REFUSED(ARG, "max_position_embeddings", PE_ROPE_DYNAMIC,
            spec.freqs.max_position_embeddings = 0);
    REFUSED(ARG, "max_position_embeddings|-4096", PE_ROPE_DYNAMIC,
            spec.freqs.max_position_embeddings = -4096);
    REFUSED(ARG, "seq_len|-1", PE_ROPE_DYNAMIC, spec.freqs.seq_len = -1);
    REFUSED(ARG, "seq_len|-1", PE_ROPE_LONGROPE, spec.freqs.seq_len = -1);

    REFUSED(ARG, "original_max_position_embeddings", PE_ROPE_YARN,
            spec.freqs.original_max_position_embeddings = 0;
            spec.freqs.max_position_embeddings = 0);
    REFUSED(ARG, "original_max_position_embeddings|-1", PE_ROPE_YARN,
            spec.freqs.original_max_position_embeddings = -1);
    REFUSED(ARG, "beta_fast|-32", PE_ROPE_YARN, spec.freqs.beta_fast = -32);
    REFUSED(ARG, "beta_slow|-1", PE_ROPE_YARN, spec.freqs.beta_slow = -1);
    REFUSED(ARG, "no_truncate|2", PE_ROPE_YARN, spec.freqs.no_truncate = 2);
    REFUSED(ARG, "attention_factor|-1", PE_ROPE_YARN, spec.freqs.attention_factor = -1);

    REFUSED(ARG, "low_freq_factor", PE_ROPE_LLAMA3, spec.freqs.low_freq_factor = 0);
    REFUSED(ARG, "high_freq_factor", PE_ROPE_LLAMA3, spec.freqs.high_freq_factor = 0);
    REFUSED(ARG, "low_freq_factor|8|high_freq_factor", PE_ROPE_LLAMA3,
            spec.freqs.low_freq_factor = 8);
    REFUSED(ARG, "original_max_position_embeddings", PE_ROPE_LLAMA3,
            spec.freqs.original_max_position_embeddings = 0);

    REFUSED(ARG, "partial_rotary_factor|-0.25", PE_ROPE_PROPORTIONAL,
            spec.freqs.partial_rotary_factor = -0.25);
    REFUSED(ARG, "partial_rotary_factor|1.5|1", PE_ROPE_PROPORTIONAL,
            spec.freqs.partial_rotary_factor = 1.5);
}

static void test_lists(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, 0, -1};
    double with_bad[8];

    (void)state;
    REFUSED(ARG, "short_factor", PE_ROPE_LONGROPE, spec.freqs.short_factor = NULL);
    REFUSED(ARG, "long_factor", PE_ROPE_LONGROPE, spec.freqs.long_factor = NULL);
    REFUSED(ARG, "inv_freq", PE_ROPE_CUSTOM, spec.freqs.inv_freq = NULL);
    for (int i = 0; i < 5; i++) {
        memcpy(with_bad, list, sizeof with_bad);
        with_bad[5] = bad[i];
        REFUSED(ARG, "short_factor[5]", PE_ROPE_LONGROPE,
                spec.freqs.short_factor = with_bad);
        REFUSED(ARG, "long_factor[5]", PE_ROPE_LONGROPE, spec.freqs.seq_len = 5000;
                spec.freqs.long_factor = with_bad);
        REFUSED(ARG, "freq_factors[5]", PE_ROPE_DEFAULT,
                spec.freqs.freq_factors = with_bad);
        if (!isfinite(bad[i]))
            REFUSED(ARG, "inv_freq[5]", PE_ROPE_CUSTOM, spec.freqs.inv_freq = with_bad);
    }
}

/* NaN and infinities in every number that a rule reads. */
static void test_not_finite(void **state)
{
    static const struct {
        pe_rope_type type;
        size_t offset;
        const char *name;
    } fields[] = {
        {PE_ROPE_DEFAULT, offsetof(pe_freqs, rope_theta), "rope_theta"},
        {PE_ROPE_LINEAR, offsetof(pe_freqs, rope_theta), "rope_theta"},
        {PE_ROPE_NTK, offsetof(pe_freqs, rope_theta), "rope_theta"},
        {PE_ROPE_DYNAMIC, offsetof(pe_freqs, rope_theta), "rope_theta"},
        {PE_ROPE_YARN, offsetof(pe_freqs, rope_theta), "rope_theta"},
        {PE_ROPE_LONGROPE, offsetof(pe_freqs, rope_theta), "rope_theta"},
        {PE_ROPE_LLAMA3, offsetof(pe_freqs, rope_theta), "rope_theta"},
        {PE_ROPE_PROPORTIONAL, offsetof(pe_freqs, rope_theta), "rope_theta"},
        {PE_ROPE_LINEAR, offsetof(pe_freqs, factor), "factor"},
        {PE_ROPE_NTK, offsetof(pe_freqs, factor), "factor"},
        {PE_ROPE_DYNAMIC, offsetof(pe_freqs, factor), "factor"},
        {PE_ROPE_YARN, offsetof(pe_freqs, factor), "factor"},
        {PE_ROPE_LONGROPE, offsetof(pe_freqs, factor), "factor"},
        {PE_ROPE_LLAMA3, offsetof(pe_freqs, factor), "factor"},
        {PE_ROPE_PROPORTIONAL, offsetof(pe_freqs, factor), "factor"},
        {PE_ROPE_DEFAULT, offsetof(pe_freqs, attention_factor), "attention_factor"},
        {PE_ROPE_YARN, offsetof(pe_freqs, attention_factor), "attention_factor"},
        {PE_ROPE_LONGROPE, offsetof(pe_freqs, attention_factor), "attention_factor"},
        {PE_ROPE_CUSTOM, offsetof(pe_freqs, attention_factor), "attention_factor"},
        {PE_ROPE_YARN, offsetof(pe_freqs, beta_fast), "beta_fast"},
        {PE_ROPE_YARN, offsetof(pe_freqs, beta_slow), "beta_slow"},
        {PE_ROPE_YARN, offsetof(pe_freqs, mscale), "mscale"},
        {PE_ROPE_YARN, offsetof(pe_freqs, mscale_all_dim), "mscale_all_dim"},
        {PE_ROPE_LLAMA3, offsetof(pe_freqs, low_freq_factor), "low_freq_factor"},
        {PE_ROPE_LLAMA3, offsetof(pe_freqs, high_freq_factor), "high_freq_factor"},
        {PE_ROPE_PROPORTIONAL, offsetof(pe_freqs, partial_rotary_factor),
         "partial_rotary_factor"},
    };
    static const double bad[] = {NAN, INFINITY, -INFINITY};

    (void)state;
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++)
        for (int i = 0; i < 3; i++)
            REFUSED(
                ARG, fields[f].name, fields[f].type,
                memcpy((char *)&spec.freqs + fields[f].offset, &bad[i], sizeof bad[i]));
}

static void check_row(const pe_rope *rope)
{
    const pe_positions at = {.start = -123456789};
    const double factor = pe_rope_get_info(rope)->attention_factor;
    float row[2][8];
    pe_tensor cos_t, sin_t;

    pe_tensor_bshd(&cos_t, PE_F32, row[0], 1, 1, 1, 8);
    pe_tensor_bshd(&sin_t, PE_F32, row[1], 1, 1, 1, 8);
    assert_int_equal(pe_rope_table(rope, &at, &cos_t, &sin_t, NULL), PE_OK);
    for (int i = 0; i < 8; i++) {
        const double norm = hypot((double)row[0][i], (double)row[1][i]);
        assert_true(fabs(norm / factor - 1) <= 2e-7);
    }
}

/* Extremes that are finite: refused or not, but neither a crash nor a NaN. */
static void test_extremes(void **state)
{
    static const double extremes[] = {5e-324, 1e-300, 1e-10, 0.5, 1, 1.0000000000000002,
                                      1e100,  1.7e308};
    pe_error error;

    (void)state;
    for (pe_rope_type type = PE_ROPE_DEFAULT; type <= PE_ROPE_CUSTOM; type++)
        for (int n = 0; n < 3 * 8 * 8; n++) {
            pe_rope_spec spec = good(type);
            pe_rope *rope = NULL;
            if (type != PE_ROPE_CUSTOM)
                spec.freqs.rope_theta = extremes[n % 8];
            spec.freqs.factor = extremes[n / 8 % 8];
            spec.angles = n / 64;
            if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK) {
                assert_null(rope);
                assert_int_not_equal(error.message[0], 0);
                continue;
            }
            const pe_rope_info *info = pe_rope_get_info(rope);
            assert_true(isfinite(info->attention_factor) && info->attention_factor > 0);
            for (int i = 0; i < info->num_pairs; i++)
                assert_true(isfinite(info->inv_freq[i]));
            check_row(rope);
            pe_rope_destroy(rope);
        }
}

static void *allocate(void *ctx, size_t size, size_t alignment)
{
    (void)ctx;
    (void)size;
    (void)alignment;
    return NULL;
}

static void run_nothing(void *ctx, int64_t count, int64_t grain, pe_work_fn work,
                        void *arg)
{
    (void)ctx;
    (void)grain;
    work(arg, 0, 0, count);
}

static void test_env(void **state)
{
    const pe_rope_spec spec = good(PE_ROPE_DEFAULT);
    pe_env env = {.struct_size = 4};

    (void)state;
    refused_in(__LINE__, &spec, &env, ARG, "struct_size");
    env = (pe_env){.struct_size = sizeof env, .isa = 99};
    refused_in(__LINE__, &spec, &env, PE_E_UNSUPPORTED, "isa|99");
    env = (pe_env){.struct_size = sizeof env, .allocator = {.alloc = allocate}};
    refused_in(__LINE__, &spec, &env, ARG, "allocator");
    env = (pe_env){.struct_size = sizeof env, .executor = {.run = run_nothing}};
    refused_in(__LINE__, &spec, &env, ARG, "num_workers|0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_specs),
        cmocka_unit_test(test_struct_size),
        cmocka_unit_test(test_sizes_and_window),
        cmocka_unit_test(test_reserved),
        cmocka_unit_test(test_huge_table),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_env),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
