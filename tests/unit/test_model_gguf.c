/* SPDX-License-Identifier: MIT
 *
 * test_model_gguf.c - GGUF files into settings and weights
 */
#include "posenc/env.h"
#include "posenc/model.h"
#include "support/model_files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Key/values of every type and three weights, as a file of the given kind. */
static void make_whole(test_file *f, uint32_t version, int big_endian)
{
    *f = (test_file){.big_endian = big_endian};
    test_gguf_begin(f, version);
    test_gguf_string(f, "general.architecture", "llama");
    test_gguf_u32(f, "llama.block_count", 2);
    test_gguf_f32(f, "llama.rope.freq_base", 500000.0f);
    test_gguf_bool(f, "llama.causal", 1);
    test_gguf_key(f, "t.u8", TEST_GGUF_U8);
    test_file_number(f, 200, 1);
    test_gguf_key(f, "t.i8", TEST_GGUF_I8);
    test_file_number(f, 0xfd, 1);
    test_gguf_key(f, "t.u16", TEST_GGUF_U16);
    test_file_number(f, 65535, 2);
    test_gguf_key(f, "t.i16", TEST_GGUF_I16);
    test_file_number(f, 0x8000, 2);
    test_gguf_key(f, "t.i32", TEST_GGUF_I32);
    test_file_number(f, 0xffffffff, 4);
    test_gguf_key(f, "t.u64", TEST_GGUF_U64);
    test_file_number(f, UINT64_MAX, 8);
    test_gguf_key(f, "t.i64", TEST_GGUF_I64);
    test_file_number(f, (uint64_t)INT64_MIN, 8);
    test_gguf_key(f, "t.f64", TEST_GGUF_F64);
    test_file_number(f, UINT64_C(0x3FB999999999999A), 8); /* 0.1 */
    test_gguf_i32s(f, "t.numbers", (int32_t[]){24, -20, 20, 0}, 4);
    test_gguf_key(f, "t.strings", TEST_GGUF_ARRAY);
    test_file_number(f, TEST_GGUF_STRING, 4);
    test_file_number(f, 2, 8);
    test_gguf_text(f, "a\"b");
    test_gguf_text(f, "\xc3\xa9\xff\n");
    test_gguf_key(f, "t.nested", TEST_GGUF_ARRAY);
    test_file_number(f, TEST_GGUF_ARRAY, 4);
    test_file_number(f, 2, 8);
    for (uint64_t i = 0; i < 2; i++) {
        test_file_number(f, TEST_GGUF_U8, 4);
        test_file_number(f, 2, 8);
        test_file_number(f, 7, 1);
        test_file_number(f, i, 1);
    }
    test_gguf_weight(f, "a.weight", 2, (uint64_t[]){4, 3}, TEST_GGML_F32, 0);
    test_gguf_weight(f, "q", 2, (uint64_t[]){256, 2}, TEST_GGML_Q4_K, 64);
    test_gguf_weight(f, "b", 1, (uint64_t[]){5}, TEST_GGML_BF16, 352);
    test_gguf_end(f, 32);
    for (int i = 0; i < 362; i++)
        test_file_number(f, (uint64_t)i & 0xff, 1);
}

static pe_checkpoint *parse(const test_file *f)
{
    pe_checkpoint *checkpoint = NULL;
    pe_error error = {0};
    if (pe_checkpoint_parse(&checkpoint, PE_FORMAT_AUTO, f->data, f->size, NULL,
                            &error) != PE_OK)
        fail_msg("%s", error.message);
    return checkpoint;
}

static const pe_setting *get(const pe_checkpoint *checkpoint, const char *path)
{
    const pe_setting *setting = pe_checkpoint_find_setting(checkpoint, path);
    if (setting == NULL)
        fail_msg("%s is not there", path);
    return setting;
}

static void expect_integer(const pe_checkpoint *c, const char *path, int64_t value,
                           const char *text)
{
    const pe_setting *setting = get(c, path);
    assert_int_equal(setting->type, PE_SETTING_INTEGER);
    assert_true(setting->integer == value);
    assert_true(setting->number == (double)value);
    assert_string_equal(setting->text, text);
}

static void check_whole(const test_file *f)
{
    pe_checkpoint *c = parse(f);
    assert_int_equal(pe_checkpoint_num_settings(c), 15);
    assert_string_equal(pe_checkpoint_setting(c, 0)->path, "general.architecture");
    assert_string_equal(get(c, "general.architecture")->text, "llama");
    assert_int_equal(get(c, "general.architecture")->type, PE_SETTING_STRING);
    expect_integer(c, "llama.block_count", 2, "2");
    assert_int_equal(get(c, "llama.rope.freq_base")->type, PE_SETTING_NUMBER);
    assert_true(get(c, "llama.rope.freq_base")->number == 500000.0);
    assert_string_equal(get(c, "llama.rope.freq_base")->text, "500000");
    assert_int_equal(get(c, "llama.causal")->type, PE_SETTING_BOOL);
    assert_int_equal(get(c, "llama.causal")->integer, 1);
    assert_string_equal(get(c, "llama.causal")->text, "true");
    expect_integer(c, "t.u8", 200, "200");
    expect_integer(c, "t.i8", -3, "-3");
    expect_integer(c, "t.u16", 65535, "65535");
    expect_integer(c, "t.i16", -32768, "-32768");
    expect_integer(c, "t.i32", -1, "-1");
    expect_integer(c, "t.i64", INT64_MIN, "-9223372036854775808");
    assert_int_equal(get(c, "t.u64")->type, PE_SETTING_NUMBER);
    assert_true(get(c, "t.u64")->number == 0x1p64);
    assert_string_equal(get(c, "t.u64")->text, "18446744073709551615");
    assert_true(get(c, "t.f64")->number == 0.1);
    assert_string_equal(get(c, "t.f64")->text, "0.1");
    const pe_setting *numbers = get(c, "t.numbers");
    assert_int_equal(numbers->type, PE_SETTING_ARRAY);
    assert_string_equal(numbers->text, "[24, -20, 20, 0]");
    assert_int_equal(numbers->num_numbers, 4);
    assert_true(numbers->numbers[1] == -20);
    assert_string_equal(get(c, "t.strings")->text,
                        "[\"a\\\"b\", \"\xc3\xa9\\xff\\x0a\"]");
    assert_int_equal(get(c, "t.strings")->num_numbers, 0);
    assert_string_equal(get(c, "t.nested")->text, "[[7, 0], [7, 1]]");
    assert_null(get(c, "t.nested")->numbers);

    assert_int_equal(pe_checkpoint_num_weights(c), 3);
    const unsigned char *base = f->data + f->size - 362;
    const pe_weight *a = pe_checkpoint_weight(c, 0);
    assert_string_equal(a->name, "a.weight");
    assert_string_equal(a->dtype_name, "F32");
    assert_int_equal(a->dtype, f->big_endian ? 0 : PE_F32);
    assert_int_equal(a->rank, 2);
    assert_int_equal(a->shape[0], 3); /* rows: the slowest axis first */
    assert_int_equal(a->shape[1], 4);
    assert_int_equal(a->size, 48);
    assert_ptr_equal(a->data, base);
    const pe_weight *q = pe_checkpoint_find_weight(c, "q");
    assert_string_equal(q->dtype_name, "Q4_K");
    assert_int_equal(q->dtype, 0);
    assert_int_equal(q->size, 288);
    assert_ptr_equal(q->data, base + 64);
    const pe_weight *b = pe_checkpoint_find_weight(c, "b");
    assert_int_equal(b->size, 10);
    assert_ptr_equal(b->data, base + 352);
    assert_null(pe_checkpoint_find_weight(c, "c"));
    pe_checkpoint_destroy(c);
}

static void reads_every_type_in_both_versions_and_endiannesses(void **state)
{
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        for (int big_endian = 0; big_endian < 2; big_endian++) {
            test_file f;
            make_whole(&f, version, big_endian);
            check_whole(&f);
            test_file_free(&f);
        }
    }
}

static void expect_error(const test_file *f, pe_status status, int64_t offset,
                         const char *message)
{
    pe_checkpoint *checkpoint = NULL;
    pe_error error = {0};
    assert_int_equal(pe_checkpoint_parse(&checkpoint, PE_FORMAT_GGUF, f->data, f->size,
                                         NULL, &error),
                     status);
    assert_null(checkpoint);
    assert_string_equal(error.message, message);
    assert_int_equal(error.offset, offset);
}

static void fails_at_every_cut(void **state)
{
    (void)state;
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        test_file whole;
        make_whole(&whole, 3, big_endian);
        for (size_t size = 0; size < whole.size; size++) {
            test_file cut = {.big_endian = big_endian};
            test_file_bytes(&cut, whole.data, size);
            test_file_cut(&cut, size);
            pe_checkpoint *checkpoint = NULL;
            pe_error error = {0};
            assert_int_equal(pe_checkpoint_parse(&checkpoint, PE_FORMAT_GGUF, cut.data,
                                                 cut.size, NULL, &error),
                             PE_E_FORMAT);
            assert_true(error.offset >= 0 && (size_t)error.offset <= size);
            test_file_free(&cut);
        }
        test_file_free(&whole);
    }
}

static void names_what_is_wrong_in_the_header(void **state)
{
    (void)state;
    test_file f = {0};
    test_file_bytes(&f, "GGML", 4);
    expect_error(&f, PE_E_FORMAT, 0, "a GGUF file begins with GGUF");
    test_file_free(&f);

    test_gguf_begin(&f, 1);
    expect_error(&f, PE_E_UNSUPPORTED, 4, "GGUF has version 1, must be 2 or 3");
    test_file_patch(&f, 4, 0x04000000, 4);
    expect_error(&f, PE_E_UNSUPPORTED, 4, "GGUF has version 4, must be 2 or 3");
    test_file_patch(&f, 4, 3, 4);
    test_file_patch(&f, 8, UINT64_MAX, 8);
    expect_error(&f, PE_E_FORMAT, 8,
                 "GGUF has 18446744073709551615 weights and 0 settings, the 0 bytes "
                 "left cannot hold them");
    test_file_patch(&f, 8, 0, 8);
    test_file_patch(&f, 16, 1, 8);
    expect_error(&f, PE_E_FORMAT, 16,
                 "GGUF has 0 weights and 1 settings, the 0 bytes left cannot hold "
                 "them");
    test_file_free(&f);
}

/* A file with one setting of key "k" and type, whose value is at 37. */
static void begin_one(test_file *f, uint32_t type)
{
    *f = (test_file){0};
    test_gguf_begin(f, 3);
    test_gguf_key(f, "k", type);
}

static void names_what_is_wrong_in_a_setting(void **state)
{
    (void)state;
    test_file f;
    begin_one(&f, 13);
    test_file_number(&f, 0, 8);
    test_gguf_end(&f, 32);
    expect_error(&f, PE_E_FORMAT, 33, "k has type 13, must be in 0..12");
    test_file_patch(&f, 24, 0, 8);
    expect_error(&f, PE_E_FORMAT, 32, "a key is empty");
    test_file_patch(&f, 24, 1, 8);
    test_file_patch(&f, 32, 0, 1);
    expect_error(&f, PE_E_FORMAT, 32, "a key has a NUL in it");
    test_file_patch(&f, 32, 0x80, 1);
    expect_error(&f, PE_E_FORMAT, 32, "a key is not UTF-8");
    test_file_patch(&f, 24, UINT64_MAX, 8);
    expect_error(&f, PE_E_FORMAT, 32,
                 "GGUF ends inside a key: 18446744073709551615 bytes wanted at byte "
                 "32, 13 are left");
    test_file_free(&f);

    begin_one(&f, TEST_GGUF_BOOL);
    test_file_number(&f, 2, 1);
    test_gguf_end(&f, 32);
    expect_error(&f, PE_E_FORMAT, 37, "k is a bool of value 2, must be 0 or 1");
    test_file_free(&f);

    begin_one(&f, TEST_GGUF_STRING);
    test_gguf_text(&f, "ab\xc0\xaf");
    test_gguf_end(&f, 32);
    expect_error(&f, PE_E_FORMAT, 47, "k is not UTF-8");
    test_file_patch(&f, 46, 0, 1);
    expect_error(&f, PE_E_FORMAT, 46, "k has a NUL in its string");
    test_file_patch(&f, 37, 1000, 8);
    expect_error(&f, PE_E_FORMAT, 45,
                 "GGUF ends inside k: 1000 bytes wanted at byte 45, 4 are left");
    test_file_free(&f);

    test_gguf_begin(&f, 3);
    test_gguf_u32(&f, "k", 1);
    test_gguf_u32(&f, "k", 1);
    test_gguf_end(&f, 32);
    expect_error(&f, PE_E_FORMAT, 54, "k is set twice");
    test_file_free(&f);
}

static void names_what_is_wrong_in_an_array(void **state)
{
    (void)state;
    test_file f;
    begin_one(&f, TEST_GGUF_ARRAY);
    test_file_number(&f, TEST_GGUF_U32, 4);
    test_file_number(&f, 3, 8);
    test_file_number(&f, 0, 8);
    test_gguf_end(&f, 32);
    expect_error(&f, PE_E_FORMAT, 41,
                 "k has 3 elements, the 8 bytes left cannot hold them");
    test_file_patch(&f, 41, UINT64_C(1) << 62, 8);
    expect_error(&f, PE_E_FORMAT, 41,
                 "k has 4611686018427387904 elements, the 8 bytes left cannot hold "
                 "them");
    test_file_patch(&f, 37, 99, 4);
    expect_error(&f, PE_E_FORMAT, 37, "k is an array of type 99, must be in 0..12");
    test_file_free(&f);

    begin_one(&f, TEST_GGUF_ARRAY);
    for (int depth = 0; depth < 12; depth++) {
        test_file_number(&f, TEST_GGUF_ARRAY, 4);
        test_file_number(&f, 1, 8);
    }
    test_gguf_end(&f, 32);
    expect_error(&f, PE_E_LIMIT, 37 + 8 * 12, "k is nested deeper than 8 arrays");
    test_file_free(&f);
}

/* One F32 weight of 8 elements; its name is at 24, rank at 33, dims at 37, type at 45,
 * offset at 49, data at 64. */
static void one_weight(test_file *f)
{
    *f = (test_file){0};
    test_gguf_begin(f, 3);
    test_gguf_weight(f, "w", 1, (uint64_t[]){8}, TEST_GGML_F32, 0);
    test_gguf_end(f, 32);
    for (int i = 0; i < 32; i++)
        test_file_number(f, 0, 1);
}

static void names_what_is_wrong_with_a_weight(void **state)
{
    (void)state;
    test_file f;
    one_weight(&f);
    pe_checkpoint_destroy(parse(&f));
    test_file_patch(&f, 37, 9, 8);
    expect_error(&f, PE_E_FORMAT, 24,
                 "weight w has 36 bytes from 0 on, the file has 32 bytes of data");
    test_file_patch(&f, 37, UINT64_C(1) << 63, 8);
    expect_error(&f, PE_E_FORMAT, 37,
                 "weight w has an axis of 9223372036854775808 elements");
    test_file_patch(&f, 37, UINT64_C(1) << 61, 8);
    expect_error(&f, PE_E_FORMAT, 45, "weight w has more bytes than 2^63");
    test_file_patch(&f, 37, 8, 8);
    test_file_patch(&f, 33, 9, 4);
    expect_error(&f, PE_E_FORMAT, 33, "weight w has 9 axes, at most 8 are allowed");
    test_file_patch(&f, 33, 8, 4);
    expect_error(&f, PE_E_FORMAT, 37,
                 "GGUF ends inside the tensor directory: 76 bytes wanted at byte 37, "
                 "59 are left");
    test_file_patch(&f, 33, 1, 4);
    test_file_patch(&f, 45, TEST_GGML_Q4_K, 4);
    expect_error(&f, PE_E_FORMAT, 45,
                 "weight w has rows of 8 elements, Q4_K needs a multiple of 256");
    test_file_patch(&f, 45, 0, 4);
    test_file_patch(&f, 49, 16, 8);
    expect_error(&f, PE_E_FORMAT, 49,
                 "weight w lies at 16, must be a multiple of the alignment (32)");
    test_file_patch(&f, 49, UINT64_MAX - 31, 8);
    expect_error(&f, PE_E_FORMAT, 24,
                 "weight w has 32 bytes from 18446744073709551584 on, the file has 32 "
                 "bytes of data");
    test_file_free(&f);

    test_gguf_begin(&f, 3);
    test_gguf_weight(&f, "v", 1, (uint64_t[]){16}, TEST_GGML_F32, 0);
    test_gguf_weight(&f, "w", 1, (uint64_t[]){8}, TEST_GGML_F32, 32);
    test_gguf_end(&f, 32);
    for (int i = 0; i < 64; i++)
        test_file_number(&f, 0, 1);
    expect_error(&f, PE_E_FORMAT, 57, "weights v and w overlap");
    test_file_patch(&f, 37, 8, 8);
    pe_checkpoint_destroy(parse(&f));
    test_file_patch(&f, 65, 'v', 1);
    expect_error(&f, PE_E_FORMAT, 57, "weight v is there twice");
    test_file_free(&f);
}

static void keeps_a_weight_of_a_newer_type_without_its_size(void **state)
{
    (void)state;
    test_file f;
    one_weight(&f);
    test_file_patch(&f, 45, 77, 4);
    pe_checkpoint *c = parse(&f);
    const pe_weight *w = pe_checkpoint_find_weight(c, "w");
    assert_string_equal(w->dtype_name, "type 77");
    assert_int_equal(w->dtype, 0);
    assert_int_equal(w->size, 0);
    assert_null(w->data);
    pe_checkpoint_destroy(c);
    test_file_free(&f);
}

static void obeys_the_alignment(void **state)
{
    (void)state;
    static const uint32_t wrong[] = {0, 24, 3};
    static const char *const messages[] = {
        "general.alignment is 0, must be a power of two up to 2^30",
        "general.alignment is 24, must be a power of two up to 2^30",
        "general.alignment is 3, must be a power of two up to 2^30"};
    for (size_t i = 0; i < 3; i++) {
        test_file f = {0};
        test_gguf_begin(&f, 3);
        test_gguf_u32(&f, "general.alignment", wrong[i]);
        test_gguf_end(&f, 32);
        expect_error(&f, PE_E_FORMAT, 53, messages[i]);
        test_file_free(&f);
    }
    test_file f = {0};
    test_gguf_begin(&f, 3);
    test_gguf_u32(&f, "general.alignment", 256);
    test_gguf_weight(&f, "w", 1, (uint64_t[]){2}, TEST_GGML_F32, 256);
    test_gguf_end(&f, 256);
    const size_t base = f.size;
    assert_int_equal(base % 256, 0);
    for (int i = 0; i < 264; i++)
        test_file_number(&f, 0, 1);
    pe_checkpoint *c = parse(&f);
    assert_ptr_equal(pe_checkpoint_weight(c, 0)->data, f.data + base + 256);
    pe_checkpoint_destroy(c);
    test_file_free(&f);
}

typedef struct failing {
    int64_t left; /* calls that succeed */
    int64_t live;
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

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    test_file f;
    make_whole(&f, 3, 0);
    pe_status status = PE_E_NO_MEMORY;
    int64_t calls = 0;
    for (; status != PE_OK && calls < 100; calls++) {
        failing allocator = {.left = calls};
        const pe_env env = {.struct_size = sizeof env,
                            .allocator = {failing_alloc, failing_release, &allocator}};
        pe_checkpoint *c = NULL;
        pe_error error = {0};
        status = pe_checkpoint_parse(&c, PE_FORMAT_AUTO, f.data, f.size, &env, &error);
        if (status != PE_OK)
            assert_int_equal(status, PE_E_NO_MEMORY);
        pe_checkpoint_destroy(c);
        assert_int_equal(allocator.live, 0);
    }
    assert_int_equal(status, PE_OK);
    assert_true(calls > 2);
    test_file_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_type_in_both_versions_and_endiannesses),
        cmocka_unit_test(fails_at_every_cut),
        cmocka_unit_test(names_what_is_wrong_in_the_header),
        cmocka_unit_test(names_what_is_wrong_in_a_setting),
        cmocka_unit_test(names_what_is_wrong_in_an_array),
        cmocka_unit_test(names_what_is_wrong_with_a_weight),
        cmocka_unit_test(keeps_a_weight_of_a_newer_type_without_its_size),
        cmocka_unit_test(obeys_the_alignment),
        cmocka_unit_test(survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
