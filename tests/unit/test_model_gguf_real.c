/* SPDX-License-Identifier: MIT
 *
 * test_model_gguf_real.c - settings of public GGUF files, as a loader's log printed them
 *
 * Expected numbers are double arithmetic on the published formulas. */
#include "support/gguf_model.h"

/* The log has no key_length and no freq_base; 192 and 50000 are Kimi-K2's. */
static void kimi_k2(void **state)
{
    (void)state;
    loaded l;
    begin(&l, "deepseek2");
    test_gguf_u32(&l.file, "deepseek2.rope.dimension_count", 64);
    test_gguf_u32(&l.file, "deepseek2.attention.key_length", 192);
    test_gguf_f32(&l.file, "deepseek2.rope.freq_base", 50000);
    test_gguf_string(&l.file, "deepseek2.rope.scaling.type", "yarn");
    test_gguf_f32(&l.file, "deepseek2.rope.scaling.factor", 32);
    test_gguf_u32(&l.file, "deepseek2.rope.scaling.original_context_length", 4096);
    test_gguf_f32(&l.file, "deepseek2.rope.scaling.yarn_log_multiplier", 0.1f);
    load(&l);
    assert_string_equal(pe_model_get_info(l.model)->method, "rope");
    assert_string_equal(pe_model_get_info(l.model)->model_type, "deepseek2");
    expect_field(&l, "rope[0].pairing", "interleaved", PE_DERIVED);
    expect_field(&l, "rope[0].head_dim", "192", PE_STATED);
    expect_field(&l, "rope[0].rotary_dim", "64", PE_STATED);
    expect_field(&l, "rope[0].rotary_start", "128", PE_DERIVED);
    expect_field(&l, "rope[0].rope_type", "yarn", PE_STATED);
    expect_field(&l, "rope[0].factor", "32", PE_STATED);
    expect_field(&l, "rope[0].mscale_all_dim", "1", PE_DERIVED);
    expect_field(&l, "rope[0].mscale", "1", PE_DEFAULTED);
    expect_note(&l, PE_INFO, "but not mscale");
    expect_note(&l, PE_INFO, "cannot say truncate");
    expect_plan(&l, 0, 1, 1.8132604340394958, 16, 0.001583881484062351,
                8.764412911589874e-07);
    assert_int_equal(pe_model_get_info(l.model)->trained_len, 4096);
    assert_int_equal(pe_model_get_info(l.model)->extended_len, 131072);
    done(&l);
}

static void phi_3_mini_128k(void **state)
{
    (void)state;
    loaded l;
    shape(&l, "phi3", 32, 32, 3072, 131072);
    test_gguf_u32(&l.file, "phi3.rope.dimension_count", 96);
    test_gguf_f32(&l.file, "phi3.rope.freq_base", 10000);
    test_gguf_u32(&l.file, "phi3.attention.sliding_window", 262144);
    test_gguf_f32(&l.file, "phi3.rope.scaling.attn_factor", 1.190238f);
    load(&l);
    expect_field(&l, "rope[0].pairing", "half-split", PE_DERIVED);
    expect_field(&l, "rope[0].head_dim", "96", PE_DERIVED);
    expect_field(&l, "rope[0].rope_type", "default", PE_DEFAULTED);
    expect_note(&l, PE_WARNING, "neither a rule nor rope_factors weights are in");
    assert_true(fabs(spec_of(&l, 0).freqs.attention_factor - 1.190238) < 1e-7);
    done(&l);

    /* The same with the weights that the log did not list. */
    float factors[48];
    shape(&l, "phi3", 32, 32, 3072, 131072);
    test_gguf_u32(&l.file, "phi3.rope.dimension_count", 96);
    test_gguf_u32(&l.file, "phi3.rope.scaling.original_context_length", 4096);
    test_gguf_f32(&l.file, "phi3.rope.scaling.attn_factor", 1.190238f);
    test_gguf_weight(&l.file, "rope_factors_long.weight", 1, (uint64_t[]){48}, 0, 0);
    test_gguf_weight(&l.file, "rope_factors_short.weight", 1, (uint64_t[]){48}, 0, 192);
    test_gguf_end(&l.file, 32);
    for (int i = 0; i < 48; i++)
        factors[i] = 64.0f;
    test_gguf_f32_data(&l.file, factors, 48);
    for (int i = 0; i < 48; i++)
        factors[i] = 1.0f + (float)i / 64;
    test_gguf_f32_data(&l.file, factors, 48);
    load(&l);
    expect_field(&l, "rope[0].rope_type", "longrope", PE_DERIVED);
    expect_field(&l, "rope[0].factor", "32", PE_DERIVED);
    const pe_rope_spec spec = spec_of(&l, 0);
    assert_int_equal(spec.freqs.rope_type, PE_ROPE_LONGROPE);
    assert_true(spec.freqs.long_factor[47] == 64);
    assert_true(spec.freqs.short_factor[47] == 1.734375);
    assert_int_equal(pe_model_get_info(l.model)->trained_len, 4096);
    assert_int_equal(pe_model_get_info(l.model)->extended_len, 131072);
    done(&l);
}

static void qwen3_vl_235b(void **state)
{
    (void)state;
    loaded l;
    begin(&l, "qwen3vlmoe");
    test_gguf_u32(&l.file, "qwen3vlmoe.attention.head_count", 64);
    test_gguf_u32(&l.file, "qwen3vlmoe.attention.key_length", 128);
    test_gguf_f32(&l.file, "qwen3vlmoe.rope.freq_base", 5000000);
    test_gguf_i32s(&l.file, "qwen3vlmoe.rope.dimension_sections",
                   (int32_t[]){24, 20, 20, 0}, 4);
    load(&l);
    expect_field(&l, "rope[0].pairing", "half-split", PE_DERIVED);
    expect_field(&l, "rope[0].axis_map", "interleaved", PE_DERIVED);
    expect_field(&l, "rope[0].mrope_section", "[24, 20, 20, 0]", PE_STATED);
    expect_field(&l, "rope[0].rotary_dim", "128", PE_DEFAULTED);
    expect_note(&l, PE_WARNING, "pairs 61, 62 follow time");
    expect_plan(&l, 0, 1, 1, 32, 0.00044721359549995795, 2.545079788037606e-07);
    done(&l);
}

static void llama_3_1_8b(void **state)
{
    (void)state;
    loaded l;
    shape(&l, "llama", 32, 32, 4096, 131072);
    test_gguf_f32(&l.file, "llama.rope.freq_base", 500000);
    test_gguf_u32(&l.file, "llama.rope.dimension_count", 128);
    test_gguf_f32(&l.file, "llama.rope.scaling.attn_factor", 1);
    load(&l);
    expect_field(&l, "rope[0].pairing", "interleaved", PE_DERIVED);
    expect_field(&l, "rope[0].rope_theta", "500000", PE_STATED);
    expect_field(&l, "rope[0].rope_type", "default", PE_DEFAULTED);
    expect_plan(&l, 0, 1, 1, 32, 0.001414213562373095, 2.455140791131609e-06);
    assert_int_equal(pe_model_get_info(l.model)->trained_len, 131072);
    assert_int_equal(pe_model_get_info(l.model)->num_sites, 32);
    done(&l);

    /* With rope_freqs.weight: divisors 1 .. 8, in either byte order. */
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        float divisors[64];
        for (int i = 0; i < 64; i++)
            divisors[i] = i < 29 ? 1.0f : 8.0f;
        l = (loaded){.file = {.big_endian = big_endian}};
        test_gguf_begin(&l.file, 3);
        test_gguf_string(&l.file, "general.architecture", "llama");
        test_gguf_u32(&l.file, "llama.block_count", 2);
        test_gguf_u32(&l.file, "llama.attention.head_count", 32);
        test_gguf_u32(&l.file, "llama.embedding_length", 4096);
        test_gguf_f32(&l.file, "llama.rope.freq_base", 500000);
        test_gguf_weight(&l.file, "rope_freqs.weight", 1, (uint64_t[]){64}, 0, 0);
        test_gguf_end(&l.file, 32);
        test_gguf_f32_data(&l.file, divisors, 64);
        load(&l);
        expect_field(&l, "rope[0].freq_factors", "1 .. 8", PE_STATED);
        expect_plan(&l, 0, 1, 1, 32, 0.001414213562373095 / 8,
                    2.455140791131609e-06 / 8);
        done(&l);
    }
}

/* The same model in both dialects: divisors that llama3's rule gives, in float32, must
 * lead to the frequencies that the rule itself gives. */
static void agrees_with_the_rule_that_made_the_divisors(void **state)
{
    (void)state;
    static const char config[] =
        "{\"model_type\": \"llama\", \"hidden_size\": 4096, "
        "\"num_attention_heads\": 32, \"num_hidden_layers\": 1, "
        "\"rope_theta\": 500000.0, \"max_position_embeddings\": 131072, "
        "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, "
        "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
        "\"original_max_position_embeddings\": 8192}}";
    const double two_pi = 6.283185307179586;
    float divisors[64];
    for (int i = 0; i < 64; i++) {
        const double length = two_pi * pow(500000, (double)i / 64);
        const double smooth = (8192 / length - 1) / 3;
        divisors[i] = length < 2048   ? 1.0f
                      : length > 8192 ? 8.0f
                                      : (float)(1 / ((1 - smooth) / 8 + smooth));
    }
    assert_true(fabs((double)divisors[29] - 1.207484) < 1e-6);
    assert_true(fabs((double)divisors[33] - 3.684253) < 1e-6);
    loaded l, hf = {.model = NULL};
    shape(&l, "llama", 1, 32, 4096, 131072);
    test_gguf_f32(&l.file, "llama.rope.freq_base", 500000);
    test_gguf_weight(&l.file, "rope_freqs.weight", 1, (uint64_t[]){64}, 0, 0);
    test_gguf_end(&l.file, 32);
    test_gguf_f32_data(&l.file, divisors, 64);
    load(&l);
    assert_int_equal(pe_checkpoint_parse(&hf.checkpoint, PE_FORMAT_JSON, config,
                                         strlen(config), NULL, NULL),
                     PE_OK);
    assert_int_equal(pe_model_create(&hf.model, hf.checkpoint, 0, NULL, NULL), PE_OK);
    const pe_rope_spec a = spec_of(&l, 0), b = spec_of(&hf, 0);
    pe_rope *x = NULL, *y = NULL;
    assert_int_equal(pe_rope_create(&x, &a, NULL, NULL), PE_OK);
    assert_int_equal(pe_rope_create(&y, &b, NULL, NULL), PE_OK);
    for (int i = 0; i < 64; i++)
        assert_true(
            fabs(pe_rope_get_info(x)->inv_freq[i] / pe_rope_get_info(y)->inv_freq[i] -
                 1) < 1.2e-7);
    pe_rope_destroy(x);
    pe_rope_destroy(y);
    done(&l);
    done(&hf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kimi_k2),
        cmocka_unit_test(phi_3_mini_128k),
        cmocka_unit_test(qwen3_vl_235b),
        cmocka_unit_test(llama_3_1_8b),
        cmocka_unit_test(agrees_with_the_rule_that_made_the_divisors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
