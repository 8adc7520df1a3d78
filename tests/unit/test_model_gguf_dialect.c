/* SPDX-License-Identifier: MIT
 *
 * test_model_gguf_dialect.c - what GGUF keys and weights mean, and what is refused
 */
#include "posenc/env.h"
#include "support/gguf_model.h"

#include <stdlib.h>

static void says_what_was_not_stated(void **state)
{
    (void)state;
    loaded l;
    begin(&l, "qwen2");
    test_gguf_u32(&l.file, "qwen2.attention.key_length", 64);
    load(&l);
    expect_field(&l, "rope[0].rope_theta", "10000", PE_DEFAULTED);
    expect_note(&l, PE_WARNING, "qwen2.rope.freq_base is not stated, 10000 is");
    expect_note(&l, PE_WARNING, "qwen2.context_length is not stated");
    expect_note(&l, PE_WARNING, "one site stands for all");
    done(&l);

    begin(&l, "qwen99");
    test_gguf_u32(&l.file, "qwen99.attention.key_length", 64);
    test_gguf_f32(&l.file, "qwen99.rope.freq_base", 1e6f);
    load(&l);
    expect_field(&l, "rope[0].pairing", "half-split", PE_DEFAULTED);
    expect_note(&l, PE_WARNING, "pairing is a guess");
    expect_note(&l, PE_WARNING, "architecture qwen99 is not known");
    done(&l);
}

static void reads_linear_and_legacy_factors(void **state)
{
    (void)state;
    loaded l;
    shape(&l, "llama", 2, 2, 128, 16384);
    test_gguf_f32(&l.file, "llama.rope.scale_linear", 4);
    load(&l);
    expect_field(&l, "rope[0].rope_type", "linear", PE_DEFAULTED);
    expect_field(&l, "rope[0].factor", "4", PE_STATED);
    expect_note(&l, PE_INFO, "older name of rope.scaling.factor");
    done(&l);

    shape(&l, "llama", 2, 2, 128, 16384);
    test_gguf_string(&l.file, "llama.rope.scaling.type", "none");
    test_gguf_f32(&l.file, "llama.rope.scaling.factor", 4);
    load(&l);
    expect_field(&l, "rope[0].rope_type", "default", PE_DERIVED);
    expect_note(&l, PE_WARNING, "the factor 4 is ignored");
    done(&l);

    shape(&l, "hunyuan-dense", 2, 2, 256, 32768);
    test_gguf_f32(&l.file, "hunyuan-dense.rope.scaling.alpha", 1000);
    load(&l);
    expect_field(&l, "rope[0].rope_type", "ntk", PE_DERIVED);
    assert_true(spec_of(&l, 0).freqs.factor == 1000);
    done(&l);
}

static void reads_yarn_magnitudes(void **state)
{
    (void)state;
    loaded l;
    shape(&l, "mistral3", 2, 2, 256, 262144);
    test_gguf_string(&l.file, "mistral3.rope.scaling.type", "yarn");
    test_gguf_f32(&l.file, "mistral3.rope.scaling.factor", 16);
    test_gguf_u32(&l.file, "mistral3.rope.scaling.original_context_length", 16384);
    test_gguf_f32(&l.file, "mistral3.rope.scaling.yarn_log_multiplier", 1);
    test_gguf_f32(&l.file, "mistral3.rope.freq_base", 1e6f);
    test_gguf_f32(&l.file, "mistral3.attention.temperature_scale", 0.1f);
    load(&l);
    expect_field(&l, "rope[0].mscale_rule", "hf", PE_DERIVED);
    expect_note(&l, PE_WARNING, "queries have a temperature");
    pe_rope *rope = NULL;
    pe_rope_spec spec = spec_of(&l, 0);
    assert_int_equal(pe_rope_create(&rope, &spec, NULL, NULL), PE_OK);
    assert_true(pe_rope_get_info(rope)->attention_factor == 1);
    assert_true(pe_rope_get_info(rope)->ramp_low == 20);
    assert_true(pe_rope_get_info(rope)->ramp_high == 37);
    pe_rope_destroy(rope);
    done(&l);

    shape(&l, "qwen3", 2, 2, 256, 131072);
    test_gguf_string(&l.file, "qwen3.rope.scaling.type", "yarn");
    test_gguf_f32(&l.file, "qwen3.rope.scaling.factor", 4);
    test_gguf_u32(&l.file, "qwen3.rope.scaling.original_context_length", 32768);
    test_gguf_f32(&l.file, "qwen3.rope.scaling.yarn_attn_factor", 1);
    load(&l);
    expect_field(&l, "rope[0].attention_factor", "1", PE_STATED);
    expect_note(&l, PE_WARNING, "llama.cpp replaces it by 1.13862944");
    done(&l);

    shape(&l, "deepseek2", 2, 2, 128, 163840);
    test_gguf_u32(&l.file, "deepseek2.attention.key_length", 576);
    test_gguf_u32(&l.file, "deepseek2.attention.key_length_mla", 192);
    test_gguf_u32(&l.file, "deepseek2.rope.dimension_count", 64);
    test_gguf_string(&l.file, "deepseek2.rope.scaling.type", "yarn");
    test_gguf_f32(&l.file, "deepseek2.rope.scaling.factor", 40);
    test_gguf_u32(&l.file, "deepseek2.rope.scaling.original_context_length", 4096);
    test_gguf_f32(&l.file, "deepseek2.rope.scaling.yarn_log_multiplier", 0.707f);
    load(&l);
    expect_field(&l, "rope[0].head_dim", "192", PE_STATED);
    expect_note(&l, PE_WARNING, "yarn_log_multiplier is 0.707, above 0.1");
    done(&l);
}

static void knows_which_layers_turn(void **state)
{
    (void)state;
    loaded l;
    shape(&l, "gemma3", 7, 4, 1024, 131072);
    test_gguf_f32(&l.file, "gemma3.rope.freq_base", 1e6f);
    test_gguf_u32(&l.file, "gemma3.attention.sliding_window", 512);
    test_gguf_string(&l.file, "gemma3.rope.scaling.type", "linear");
    test_gguf_f32(&l.file, "gemma3.rope.scaling.factor", 8);
    load(&l);
    assert_int_equal(rope_of(&l, 0), 0);
    assert_int_equal(rope_of(&l, 4), 0);
    assert_int_equal(rope_of(&l, 5), 1);
    assert_int_equal(rope_of(&l, 6), 0);
    expect_field(&l, "rope[0].rope_theta", "10000", PE_DEFAULTED);
    expect_field(&l, "rope[0].rope_type", "default", PE_DERIVED);
    expect_field(&l, "rope[1].rope_theta", "1000000", PE_STATED);
    expect_field(&l, "rope[1].factor", "8", PE_STATED);
    done(&l);

    shape(&l, "smollm3", 8, 4, 512, 65536);
    test_gguf_f32(&l.file, "smollm3.rope.freq_base", 5e6f);
    load(&l);
    assert_int_equal(rope_of(&l, 2), 0);
    assert_int_equal(rope_of(&l, 3), -1);
    assert_int_equal(rope_of(&l, 7), -1);
    done(&l);

    shape(&l, "cohere2", 4, 4, 512, 8192);
    test_gguf_f32(&l.file, "cohere2.rope.freq_base", 50000);
    test_gguf_u32(&l.file, "cohere2.attention.sliding_window", 4096);
    load(&l);
    assert_int_equal(rope_of(&l, 0), 0);
    assert_int_equal(rope_of(&l, 3), -1);
    done(&l);

    shape(&l, "lfm2", 3, 4, 512, 8192);
    test_gguf_f32(&l.file, "lfm2.rope.freq_base", 1e6f);
    test_gguf_i32s(&l.file, "lfm2.attention.head_count_kv", (int32_t[]){0, 8, 0}, 3);
    load(&l);
    assert_int_equal(rope_of(&l, 0), -2); /* no such site: the layer is recurrent */
    assert_int_equal(rope_of(&l, 1), 0);
    assert_int_equal(pe_model_get_info(l.model)->num_kv_heads, 8);
    assert_int_equal(pe_model_get_info(l.model)->num_sites, 1);
    done(&l);
}

static void reads_other_methods(void **state)
{
    (void)state;
    loaded l;
    float rows[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    shape(&l, "gpt2", 2, 2, 4, 2);
    test_gguf_weight(&l.file, "position_embd.weight", 2, (uint64_t[]){4, 2}, 0, 0);
    test_gguf_end(&l.file, 32);
    test_gguf_f32_data(&l.file, rows, 8);
    load(&l);
    pe_learned_spec learned = {.struct_size = sizeof learned};
    assert_int_equal(pe_model_learned_spec(l.model, &learned, NULL), PE_OK);
    assert_int_equal(learned.weight->seq_len, 2);
    assert_int_equal(learned.weight->dim, 4);
    assert_true(((const float *)learned.weight->data)[7] == 7);
    expect_field(&l, "learned.rows", "2", PE_STATED);
    done(&l);

    shape(&l, "bloom", 2, 16, 1024, 2048);
    load(&l);
    assert_string_equal(pe_model_get_info(l.model)->method, "alibi");
    expect_field(&l, "bias[0].max_bias", "8", PE_DERIVED);
    expect_field(&l, "bias[0].form", "causal", PE_DERIVED);
    done(&l);

    shape(&l, "mpt", 2, 16, 1024, 65536);
    test_gguf_f32(&l.file, "mpt.attention.max_alibi_bias", 16);
    load(&l);
    expect_field(&l, "bias[0].max_bias", "16", PE_STATED);
    done(&l);

    shape(&l, "baichuan", 40, 40, 5120, 4096);
    load(&l);
    assert_string_equal(pe_model_get_info(l.model)->method, "alibi");
    done(&l);

    shape(&l, "t5", 2, 8, 512, 512);
    test_gguf_u32(&l.file, "t5.attention.relative_buckets_count", 32);
    load(&l);
    assert_string_equal(pe_model_get_info(l.model)->method, "t5");
    expect_field(&l, "bias[0].num_buckets", "32", PE_STATED);
    expect_field(&l, "bias[0].max_distance", "128", PE_DEFAULTED);
    assert_int_equal(pe_model_get_info(l.model)->num_biases, 2);
    done(&l);

    shape(&l, "mamba", 2, 8, 512, 512);
    load(&l);
    assert_string_equal(pe_model_get_info(l.model)->method, "none");
    done(&l);
}

static void refuses_in_words(void **state)
{
    (void)state;
    loaded l = {.model = NULL};
    test_gguf_begin(&l.file, 3);
    expect_refusal(&l, PE_E_FORMAT, "general.architecture is not stated");

    begin(&l, "new-thing");
    expect_refusal(&l, PE_E_UNSUPPORTED,
                   "architecture new-thing is not known, and no key says which "
                   "positions it uses");

    begin(&l, "deepseek4");
    expect_refusal(&l, PE_E_UNSUPPORTED,
                   "architecture deepseek4 places its heads in a way that is not read");

    shape(&l, "llama", 2, 3, 128, 4096);
    expect_refusal(&l, PE_E_ARGUMENT,
                   "embedding_length is 128, attention.head_count 3: head_dim must be "
                   "even and at most 4096");

    shape(&l, "llama", 2, 2, 128, 4096);
    test_gguf_u32(&l.file, "llama.rope.dimension_count", 66);
    expect_refusal(&l, PE_E_ARGUMENT,
                   "llama.rope.dimension_count is 66, must be even and at most "
                   "head_dim (64)");

    shape(&l, "llama", 2, 2, 128, 4096);
    test_gguf_string(&l.file, "llama.rope.scaling.type", "dynamic");
    expect_refusal(&l, PE_E_UNSUPPORTED,
                   "llama.rope.scaling.type is \"dynamic\", must be none, linear, yarn "
                   "or longrope");

    shape(&l, "llama", 2, 2, 128, 4096);
    test_gguf_string(&l.file, "llama.rope.scaling.type", "longrope");
    expect_refusal(&l, PE_E_ARGUMENT,
                   "llama.rope.scaling.type is longrope, but the weights "
                   "rope_factors_long and rope_factors_short are not in the file");

    shape(&l, "llama", 2, 2, 128, 4096);
    test_gguf_f32(&l.file, "llama.rope.freq_base", NAN);
    expect_refusal(&l, PE_E_ARGUMENT,
                   "llama.rope.freq_base is nan, must be a finite number");

    shape(&l, "qwen2vl", 2, 2, 128, 4096);
    expect_refusal(&l, PE_E_ARGUMENT,
                   "qwen2vl.rope.dimension_sections is not stated, architecture "
                   "qwen2vl needs it");

    shape(&l, "qwen2vl", 2, 2, 128, 4096);
    test_gguf_i32s(&l.file, "qwen2vl.rope.dimension_sections", (int32_t[]){8, 8, 8, 0},
                   4);
    expect_refusal(&l, PE_E_ARGUMENT,
                   "qwen2vl.rope.dimension_sections sums to 24, must be rotary_dim / 2 "
                   "(32)");

    shape(&l, "llama", 2, 2, 128, 4096);
    test_gguf_weight(&l.file, "rope_freqs.weight", 1, (uint64_t[]){8}, 0, 0);
    test_gguf_end(&l.file, 32);
    test_gguf_f32_data(&l.file, (float[8]){1, 1, 1, 1, 1, 1, 1, 1}, 8);
    expect_refusal(&l, PE_E_ARGUMENT,
                   "rope_freqs.weight has 8 elements, must have 32 (rotary_dim / 2)");

    shape(&l, "bloom", 2, 2, 128, 4096);
    test_gguf_f32(&l.file, "bloom.attention.max_alibi_bias", -1);
    expect_refusal(&l, PE_E_ARGUMENT,
                   "bloom.attention.max_alibi_bias is -1, must be at least 0");
}

typedef struct failing {
    int64_t left, live;
} failing;

static void *failing_alloc(void *ctx, size_t size, size_t alignment)
{
    failing *f = ctx;
    if (f->left-- <= 0)
        return NULL;
    f->live++;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void failing_release(void *ctx, void *ptr, size_t size, size_t alignment)
{
    failing *f = ctx;
    (void)size;
    (void)alignment;
    f->live--;
    free(ptr);
}

/* Hundreds of layers and lists, so that memory is asked for more than once. */
static void survives_every_failed_allocation(void **state)
{
    (void)state;
    loaded l;
    float ones[2048];
    int32_t pattern[700];
    for (int i = 0; i < 2048; i++)
        ones[i] = 1;
    for (int i = 0; i < 700; i++)
        pattern[i] = i % 6 != 5;
    shape(&l, "gemma3", 700, 1, 4096, 131072);
    test_gguf_u32(&l.file, "gemma3.attention.sliding_window", 512);
    test_gguf_i32s(&l.file, "gemma3.attention.sliding_window_pattern", pattern, 700);
    test_gguf_weight(&l.file, "rope_freqs.weight", 1, (uint64_t[]){2048}, 0, 0);
    test_gguf_end(&l.file, 32);
    test_gguf_f32_data(&l.file, ones, 2048);
    load(&l);
    pe_status status = PE_E_NO_MEMORY;
    int64_t calls = 0;
    for (; status != PE_OK && calls < 100; calls++) {
        failing allocator = {.left = calls};
        const pe_env env = {.struct_size = sizeof env,
                            .allocator = {failing_alloc, failing_release, &allocator}};
        pe_model *model = NULL;
        status = pe_model_create(&model, l.checkpoint, 0, &env, NULL);
        if (status != PE_OK)
            assert_int_equal(status, PE_E_NO_MEMORY);
        pe_model_destroy(model);
        assert_int_equal(allocator.live, 0);
    }
    assert_int_equal(status, PE_OK);
    assert_true(calls > 5);
    done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_was_not_stated),
        cmocka_unit_test(reads_linear_and_legacy_factors),
        cmocka_unit_test(reads_yarn_magnitudes),
        cmocka_unit_test(knows_which_layers_turn),
        cmocka_unit_test(reads_other_methods),
        cmocka_unit_test(refuses_in_words),
        cmocka_unit_test(survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
