/* SPDX-License-Identifier: MIT
 *
 * test_model_safetensors.c - safetensors files, and folders of them
 */
#define _GNU_SOURCE /* mkdtemp */

#include "posenc/env.h"
#include "posenc/model.h"
#include "support/model_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char whole[] =
    "{\"__metadata__\":{\"format\":\"pt\",\"\\u00e9\\ud83d\\ude00\":\"a\\nb\"},\n"
    " \"b.weight\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
    "\"a\":{\"shape\":[2],\"data_offsets\":[0,8],\"dtype\":\"F32\"},"
    "\"none\":{\"dtype\":\"I64\",\"shape\":[0,7],\"data_offsets\":[20,20]},"
    "\"scalar\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[20,21]},"
    "\"four\":{\"dtype\":\"F4\",\"shape\":[6],\"data_offsets\":[21,24]},"
    "\"new\":{\"dtype\":\"F5_X\",\"shape\":[3],\"data_offsets\":[24,26]}} ";

static pe_checkpoint *parse(const test_file *f)
{
    pe_checkpoint *checkpoint = NULL;
    pe_error error = {0};
    if (pe_checkpoint_parse(&checkpoint, PE_FORMAT_AUTO, f->data, f->size, NULL,
                            &error) != PE_OK)
        fail_msg("%s", error.message);
    return checkpoint;
}

static void expect_weight(const pe_weight *w, const char *name, const char *dtype_name,
                          pe_dtype dtype, int32_t rank, uint64_t size, const void *data)
{
    assert_non_null(w);
    assert_string_equal(w->name, name);
    assert_string_equal(w->dtype_name, dtype_name);
    assert_int_equal(w->dtype, dtype);
    assert_int_equal(w->rank, rank);
    assert_int_equal(w->size, size);
    assert_ptr_equal(w->data, data);
}

static void reads_a_header(void **state)
{
    (void)state;
    test_file f = {0};
    test_safetensors(&f, whole, 26);
    const unsigned char *base = f.data + f.size - 26;
    pe_checkpoint *c = parse(&f);
    assert_int_equal(pe_checkpoint_num_settings(c), 2);
    assert_string_equal(pe_checkpoint_find_setting(c, "__metadata__.format")->text,
                        "pt");
    assert_string_equal(pe_checkpoint_setting(c, 1)->path,
                        "__metadata__.\xc3\xa9\xf0\x9f\x98\x80");
    assert_string_equal(pe_checkpoint_setting(c, 1)->text, "a\nb");
    assert_int_equal(pe_checkpoint_num_weights(c), 6);
    const pe_weight *b = pe_checkpoint_weight(c, 0);
    expect_weight(b, "b.weight", "BF16", PE_BF16, 2, 12, base + 8);
    assert_int_equal(b->shape[0], 2);
    assert_int_equal(b->shape[1], 3);
    expect_weight(pe_checkpoint_find_weight(c, "a"), "a", "F32", PE_F32, 1, 8, base);
    expect_weight(pe_checkpoint_weight(c, 2), "none", "I64", 0, 2, 0, base + 20);
    expect_weight(pe_checkpoint_weight(c, 3), "scalar", "U8", 0, 0, 1, base + 20);
    expect_weight(pe_checkpoint_weight(c, 4), "four", "F4", 0, 1, 3, base + 21);
    expect_weight(pe_checkpoint_weight(c, 5), "new", "F5_X", 0, 1, 2, base + 24);
    pe_checkpoint_destroy(c);
    test_file_free(&f);
}

static void fails_at_every_cut(void **state)
{
    (void)state;
    test_file f = {0};
    test_safetensors(&f, whole, 26);
    for (size_t size = 0; size < f.size; size++) {
        test_file cut = {0};
        test_file_bytes(&cut, f.data, size);
        test_file_cut(&cut, size);
        pe_checkpoint *checkpoint = NULL;
        assert_int_equal(pe_checkpoint_parse(&checkpoint, PE_FORMAT_SAFETENSORS,
                                             cut.data, cut.size, NULL, NULL),
                         PE_E_FORMAT);
        test_file_free(&cut);
    }
    test_file_number(&f, 0, 1);
    pe_error error = {0};
    pe_checkpoint *checkpoint = NULL;
    assert_int_equal(pe_checkpoint_parse(&checkpoint, PE_FORMAT_SAFETENSORS, f.data,
                                         f.size, NULL, &error),
                     PE_E_FORMAT);
    assert_string_equal(error.message, "safetensors header describes 26 bytes of data, "
                                       "the file has 27");
    test_file_free(&f);
}

typedef struct wrong {
    const char *header;
    size_t data_size;
    pe_status status;
    int64_t offset;
    const char *message;
} wrong;

#define W(dtype, shape, offsets) \
  "{\"w\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static const wrong wrongs[] = {
    {"", 0, PE_E_FORMAT, 8, "safetensors header ends at byte 8, must have '{' there"},
    {"[]", 0, PE_E_FORMAT, 8,
     "safetensors header has byte 0x5b at 8, must have '{' there"},
    {"{}x", 0, PE_E_FORMAT, 10,
     "safetensors header has byte 0x78 at 10, must have nothing more there"},
    {"{\"w\":1}", 0, PE_E_FORMAT, 13,
     "safetensors header has byte 0x31 at 13, must have '{' there"},
    {"{\"w\":{}}", 0, PE_E_FORMAT, 9, "safetensors header has no dtype for w"},
    {"{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0, PE_E_FORMAT, 28,
     "safetensors header has dtype twice for w"},
    {"{\"w\":{\"type\":\"F32\"}}", 0, PE_E_FORMAT, 14,
     "safetensors header has the key \"type\" for w, must be dtype, shape or "
     "data_offsets"},
    {W("F32", "[2]", "[0,4]"), 4, PE_E_FORMAT, 9,
     "safetensors header gives w 4 bytes, its shape and dtype need 8"},
    {W("F32", "[9223372036854775807,4]", "[0,4]"), 4, PE_E_FORMAT, 9,
     "safetensors header gives w 4 bytes, its shape and dtype need more than "
     "9223372036854775807"},
    {W("F32", "[9223372036854775808]", "[0,4]"), 4, PE_E_FORMAT, 55,
     "safetensors header has a count of more than 2^63 - 1 at byte 55"},
    {W("F32", "[-1]", "[0,4]"), 4, PE_E_FORMAT, 37,
     "safetensors header has byte 0x2d at 37, must have a count there"},
    {W("F32", "[1.5]", "[0,4]"), 4, PE_E_FORMAT, 38,
     "safetensors header has byte 0x2e at 38, must have the end of a count there"},
    {W("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, PE_E_FORMAT, 53,
     "safetensors header has more than 8 numbers in shape of w"},
    {W("F4", "[3]", "[0,2]"), 2, PE_E_FORMAT, 9,
     "safetensors header gives w 2 bytes, its shape and dtype need 1"},
    {W("F32", "[1]", "[0,8]"), 4, PE_E_FORMAT, 55,
     "safetensors header puts w at 0..8, must be a range in the 4 bytes of data"},
    {W("F32", "[1]", "[4,0]"), 4, PE_E_FORMAT, 55,
     "safetensors header puts w at 4..0, must be a range in the 4 bytes of data"},
    {W("F32", "[1]", "[0]"), 4, PE_E_FORMAT, 55,
     "safetensors header puts w at 0..0, must be a range in the 4 bytes of data"},
    {W("F32", "[1]", "[4,8]"), 8, PE_E_FORMAT, 9,
     "safetensors header puts w at 4, leaving a hole from 0 on"},
    {"{\"v\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}",
     5, PE_E_FORMAT, 61,
     "safetensors header puts w at 3, where another weight is until 4"},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
     "\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
     0, PE_E_FORMAT, 61, "weight w is there twice"},
    {"{\"__metadata__\":{\"a\":1}}", 0, PE_E_FORMAT, 29,
     "safetensors header has byte 0x31 at 29, must have a string there"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, PE_E_FORMAT, 27,
     "safetensors header has __metadata__ twice"},
    {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, PE_E_FORMAT, 37,
     "__metadata__.a is set twice"},
    {"{\"\xff\":{}}", 0, PE_E_FORMAT, 10,
     "safetensors header has byte 0xff at 10, must have a character of a string there"},
    {"{\"\\ud800\":{}}", 0, PE_E_FORMAT, 16,
     "safetensors header has byte 0x22 at 16, must have a character of a string there"},
    {"{\"\\u0000\":{}}", 0, PE_E_FORMAT, 16,
     "safetensors header has byte 0x22 at 16, must have a character of a string there"},
    {"{\"\\x\":{}}", 0, PE_E_FORMAT, 11,
     "safetensors header has byte 0x78 at 11, must have a character of a string there"},
};

static void names_what_is_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        test_file f = {0};
        pe_checkpoint *checkpoint = NULL;
        pe_error error = {0};
        test_safetensors(&f, wrongs[i].header, wrongs[i].data_size);
        assert_int_equal(pe_checkpoint_parse(&checkpoint, PE_FORMAT_SAFETENSORS, f.data,
                                             f.size, NULL, &error),
                         wrongs[i].status);
        assert_string_equal(error.message, wrongs[i].message);
        assert_int_equal(error.offset, wrongs[i].offset);
        test_file_free(&f);
    }
}

static void does_not_believe_the_length(void **state)
{
    (void)state;
    test_file f = {0};
    pe_checkpoint *checkpoint = NULL;
    pe_error error = {0};
    test_safetensors(&f, "{}", 0);
    test_file_patch(&f, 0, UINT64_MAX, 8);
    assert_int_equal(pe_checkpoint_parse(&checkpoint, PE_FORMAT_SAFETENSORS, f.data,
                                         f.size, NULL, &error),
                     PE_E_FORMAT);
    assert_string_equal(error.message, "safetensors header has 18446744073709551615 "
                                       "bytes, the file has 2 after its length");
    test_file_free(&f);
}

/* A folder with a config.json, a model.safetensors.index.json and two shards. */
static void make_folder(char *folder, const char *index)
{
    strcpy(folder, "/tmp/posenc-shards-XXXXXX");
    if (mkdtemp(folder) == NULL)
        fail_msg("no folder in /tmp");
    test_file f = {0};
    const char config[] = "{\"model_type\": \"llama\", \"hidden_size\": 64}";
    test_file_bytes(&f, config, strlen(config));
    test_file_write(&f, folder, "config.json");
    test_file_free(&f);
    if (index != NULL) {
        test_file_bytes(&f, index, strlen(index));
        test_file_write(&f, folder, "model.safetensors.index.json");
        test_file_free(&f);
    }
    test_safetensors(&f,
                     "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"U8\","
                     "\"shape\":[3],\"data_offsets\":[0,3]}}",
                     3);
    test_file_write(&f, folder, "one.safetensors");
    test_file_write(&f, folder, "model.safetensors");
    test_file_free(&f);
    test_safetensors(
        &f, "{\"b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]}}", 5);
    test_file_write(&f, folder, "two.safetensors");
    test_file_free(&f);
}

static void remove_folder(const char *folder)
{
    static const char *const names[] = {"config.json", "model.safetensors.index.json",
                                        "one.safetensors", "two.safetensors",
                                        "model.safetensors"};
    char path[300];
    for (size_t i = 0; i < 5; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void reads_a_folder(void **state)
{
    (void)state;
    char folder[64];
    pe_checkpoint *c = NULL;
    make_folder(folder, "{\"metadata\":{\"total_size\":8,\"x\":[true,null,-1.5e3]},"
                        "\"weight_map\":{\"a\":\"one.safetensors\","
                        "\"b\":\"two.safetensors\"}}");
    assert_int_equal(pe_checkpoint_load(&c, folder, NULL, NULL), PE_OK);
    assert_int_equal(pe_checkpoint_num_settings(c), 2); /* of config.json alone */
    assert_int_equal(pe_checkpoint_num_weights(c), 2);
    assert_int_equal(pe_checkpoint_find_weight(c, "a")->size, 3);
    assert_int_equal(((const char *)pe_checkpoint_find_weight(c, "b")->data)[4], 4);
    pe_checkpoint_destroy(c);
    remove_folder(folder);

    make_folder(folder, NULL); /* model.safetensors alone */
    assert_int_equal(pe_checkpoint_load(&c, folder, NULL, NULL), PE_OK);
    assert_int_equal(pe_checkpoint_num_weights(c), 1);
    assert_non_null(pe_checkpoint_find_weight(c, "a"));
    pe_checkpoint_destroy(c);
    remove_folder(folder);
}

static void distrusts_the_index(void **state)
{
    (void)state;
    static const wrong cases[] = {
        {"{}", 0, PE_E_FORMAT, 2, "safetensors index has no weight_map"},
        {"{\"weight_map\":{\"a\":\"../one.safetensors\"}}", 0, PE_E_FORMAT, 19,
         "safetensors index names the file \"../one.safetensors\", must be one of its "
         "own folder"},
        {"{\"weight_map\":{\"a\":\"..\"}}", 0, PE_E_FORMAT, 19,
         "safetensors index names the file \"..\", must be one of its own folder"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", 0, PE_E_FORMAT, 19,
         "safetensors index names the file \"/etc/passwd\", must be one of its own "
         "folder"},
        {"{\"weight_map\":{\"a\":\"\"}}", 0, PE_E_FORMAT, 19,
         "safetensors index names the file \"\", must be one of its own folder"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"one.safetensors\"}}", 0,
         PE_E_FORMAT, 37,
         "safetensors index has the weight b in one.safetensors, no file has it"},
        {"{\"weight_map\":{\"b\":\"one.safetensors\",\"a\":\"two.safetensors\"}}", 0,
         PE_E_FORMAT, 19,
         "safetensors index has the weight b in one.safetensors, it is in "
         "two.safetensors"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"c\":\"model.safetensors\"}}", 0,
         PE_E_FORMAT, 40, "weight a is there twice"},
        {"{\"m\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
         "}",
         0, PE_E_LIMIT, 37, "safetensors index is nested too deep at byte 37"},
        {"{\"weight_map\":{\"a\":\"model.safetensors.index.json\"}}", 0, PE_E_FORMAT, 0,
         NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char folder[64];
        pe_checkpoint *c = NULL;
        pe_error error = {0};
        make_folder(folder, cases[i].header);
        assert_int_equal(pe_checkpoint_load(&c, folder, NULL, &error), cases[i].status);
        assert_null(c);
        if (cases[i].message != NULL) {
            assert_string_equal(error.message, cases[i].message);
            assert_int_equal(error.offset, cases[i].offset);
        }
        remove_folder(folder);
    }
    char folder[64];
    pe_checkpoint *c = NULL;
    make_folder(folder, "{\"weight_map\":{\"a\":\"three.safetensors\"}}");
    assert_int_equal(pe_checkpoint_load(&c, folder, NULL, NULL), PE_E_IO);
    char link[128];
    (void)snprintf(link, sizeof link, "%s/three.safetensors", folder);
    assert_int_equal(symlink("three.safetensors", link), 0); /* to itself */
    assert_int_equal(pe_checkpoint_load(&c, folder, NULL, NULL), PE_E_IO);
    assert_int_equal(unlink(link), 0);
    remove_folder(folder);
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

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    char folder[64];
    make_folder(folder, "{\"weight_map\":{\"a\":\"one.safetensors\","
                        "\"b\":\"two.safetensors\"}}");
    pe_status status = PE_E_NO_MEMORY;
    int64_t calls = 0;
    for (; status != PE_OK && calls < 100; calls++) {
        failing allocator = {.left = calls};
        const pe_env env = {.struct_size = sizeof env,
                            .allocator = {failing_alloc, failing_release, &allocator}};
        pe_checkpoint *c = NULL;
        status = pe_checkpoint_load(&c, folder, &env, NULL);
        if (status != PE_OK)
            assert_int_equal(status, PE_E_NO_MEMORY);
        pe_checkpoint_destroy(c);
        assert_int_equal(allocator.live, 0);
    }
    assert_int_equal(status, PE_OK);
    assert_true(calls > 5);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_header),
        cmocka_unit_test(fails_at_every_cut),
        cmocka_unit_test(names_what_is_wrong),
        cmocka_unit_test(does_not_believe_the_length),
        cmocka_unit_test(reads_a_folder),
        cmocka_unit_test(distrusts_the_index),
        cmocka_unit_test(survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
