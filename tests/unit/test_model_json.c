/* SPDX-License-Identifier: MIT
 *
 * test_model_json.c - what a JSON file becomes, and what hostile ones get
 *
 * Every refused input names its byte: the offsets are counted by hand. */
#include "posenc/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct refusal {
    const char *text;
    size_t size; /* 0: strlen */
    pe_status status;
    int64_t offset;
    const char *message;
} refusal;

static const refusal refusals[] = {
    {"", 0, PE_E_FORMAT, 0, "JSON is empty, must be an object"},
    {" \n\t ", 0, PE_E_FORMAT, 4, "JSON is empty, must be an object"},
    {"[1]", 0, PE_E_FORMAT, 0, "JSON begins with byte 0x5b, must be an object"},
    {"\xef\xbb\xbf{}", 0, PE_E_FORMAT, 0,
     "JSON begins with byte 0xef, must be an object"},
    {"{\"a\": 1", 0, PE_E_FORMAT, 7, "JSON ends inside a value, after 7 bytes"},
    {"{\"a\": tru", 0, PE_E_FORMAT, 9, "JSON ends inside a value, after 9 bytes"},
    {"{\"a\": \"x", 0, PE_E_FORMAT, 8, "JSON ends inside a value, after 8 bytes"},
    {"{\"a\": 1} x", 0, PE_E_FORMAT, 9,
     "JSON is malformed at byte 9: unexpected character"},
    {"{\"a\": 1,}", 0, PE_E_FORMAT, 8,
     "JSON is malformed at byte 8: unexpected character"},
    {"{\"a\" 1}", 0, PE_E_FORMAT, 5,
     "JSON is malformed at byte 5: object property name separator ':' expected"},
    {"{a: 1}", 0, PE_E_FORMAT, 1,
     "JSON is malformed at byte 1: quoted object property name expected"},
    {"{\"a\": 'x'}", 0, PE_E_FORMAT, 6,
     "JSON is malformed at byte 6: unexpected character"},
    {"{\"a\": 01}", 0, PE_E_FORMAT, 8, "JSON is malformed at byte 8: number expected"},
    {"{\"a\": 1.}", 0, PE_E_FORMAT, 8, "a has no digit after the point"},
    {"{\"a\": \"\xff\"}", 0, PE_E_FORMAT, 7,
     "JSON is malformed at byte 7: invalid utf-8 string"},
    {"{\"a\": 1, \"a\": 2}", 0, PE_E_FORMAT, 9, "key \"a\" occurs twice in the file"},
    {"{\"a\": 1, \"\\u0061\": 2}", 0, PE_E_FORMAT, 9,
     "key \"a\" occurs twice in the file"},
    {"{\"r\": {\"b\": 1, \"c\": 2, \"b\": 1}}", 0, PE_E_FORMAT, 23,
     "key \"b\" occurs twice in r"},
    {"{\"a.b\": 1, \"a\": {\"b\": 2}}", 0, PE_E_FORMAT, 22, "a.b is set twice"},
    {"{\"a\": NaN}", 0, PE_E_FORMAT, 6, "a is NaN, must be a finite number"},
    {"{\"a\": Infinity}", 0, PE_E_FORMAT, 6, "a is Infinity, must be a finite number"},
    {"{\"a\": -Infinity}", 0, PE_E_FORMAT, 7,
     "a is -Infinity, must be a finite number"},
    {"{\"a\": {\"b\": [1, NaN]}}", 0, PE_E_FORMAT, 16,
     "a.b is NaN, must be a finite number"},
    {"{\"a\": \"x\\u0000y\"}", 0, PE_E_FORMAT, 6, "a has a NUL in its string"},
    {"{\"a\\u0000b\": 1}", 0, PE_E_FORMAT, 1, "a key has a NUL in it"},
    {"{\"a\": 1\0}", 9, PE_E_FORMAT, 7, "JSON has a NUL byte"},
};

static void hostile_text_names_its_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        const size_t size = r->size != 0 ? r->size : strlen(r->text);
        char *exact = malloc(size + (size == 0)); /* no NUL behind, for sanitizers */
        pe_checkpoint *checkpoint = (pe_checkpoint *)&checkpoint;
        pe_error error = {0};
        assert_non_null(exact);
        memcpy(exact, r->text, size);
        pe_status status =
            pe_checkpoint_parse(&checkpoint, PE_FORMAT_JSON, exact, size, NULL, &error);
        free(exact);
        if (status != r->status || error.offset != r->offset ||
            strcmp(error.message, r->message) != 0)
            fail_msg("%s\n  got %s at %lld: %s\n  want %s at %lld: %s", r->text,
                     pe_status_name(status), (long long)error.offset, error.message,
                     pe_status_name(r->status), (long long)r->offset, r->message);
        assert_null(checkpoint);
    }
}

static void depth_and_length_have_limits(void **state)
{
    char text[1024];
    pe_checkpoint *checkpoint = NULL;
    pe_error error;
    (void)state;
    memset(text, '[', sizeof text);
    memcpy(text, "{\"a\":", 5);
    assert_int_equal(pe_checkpoint_parse(&checkpoint, PE_FORMAT_AUTO, text, sizeof text,
                                         NULL, &error),
                     PE_E_LIMIT);
    assert_string_equal(error.message, "JSON is nested deeper than 64 levels");

    const size_t size = (4 << 20) + 1;
    char *large = malloc(size);
    assert_non_null(large);
    memset(large, ' ', size);
    memcpy(large, "{}", 2);
    assert_int_equal(
        pe_checkpoint_parse(&checkpoint, PE_FORMAT_AUTO, large, size, NULL, &error),
        PE_E_LIMIT);
    assert_string_equal(error.message,
                        "JSON has 4194305 bytes, at most 4194304 are read");
    assert_int_equal(
        pe_checkpoint_parse(&checkpoint, PE_FORMAT_AUTO, large, size - 1, NULL, &error),
        PE_OK);
    assert_int_equal(pe_checkpoint_num_settings(checkpoint), 0);
    pe_checkpoint_destroy(checkpoint);

    memset(large, ' ', size);
    memcpy(large, "{\"a\": [1", 8);
    for (size_t i = 0; i <= 131072; i++)
        memcpy(large + 8 + 2 * i, ",1", 2);
    assert_int_equal(
        pe_checkpoint_parse(&checkpoint, PE_FORMAT_AUTO, large, size - 1, NULL, &error),
        PE_E_LIMIT);
    assert_string_equal(error.message, "JSON has more than 131072 values");
    /* The 131073rd of them, after the two brackets. */
    assert_int_equal(error.offset, 8 + 2 * (131073 - 3));

    memset(large, 'k', 4096);
    memcpy(large, "{\"", 2);
    memcpy(large + 1100, "\":1}", 4);
    assert_int_equal(
        pe_checkpoint_parse(&checkpoint, PE_FORMAT_AUTO, large, 1104, NULL, &error),
        PE_E_LIMIT);
    free(large);
}

static pe_checkpoint *parsed(const char *text)
{
    pe_checkpoint *checkpoint = NULL;
    pe_error error;
    if (pe_checkpoint_parse(&checkpoint, PE_FORMAT_AUTO, text, strlen(text), NULL,
                            &error) != PE_OK)
        fail_msg("%s: %s", text, error.message);
    return checkpoint;
}

static void settings_are_flat_and_in_file_order(void **state)
{
    static const char *const paths[] = {"z", "a.b", "a.c.d", "e[0].f", "e[1]", "e[2]"};
    (void)state;
    pe_checkpoint *checkpoint =
        parsed("\r\n{\"z\": null, \"a\": {\"b\": true, \"c\": {\"d\": \"\\u00e9\"}, "
               "\"empty\": {}}, \"e\": [{\"f\": -0.5e1}, 7, \"x\"]}\r\n");
    assert_int_equal(pe_checkpoint_num_settings(checkpoint), 6);
    for (int64_t i = 0; i < 6; i++)
        assert_string_equal(pe_checkpoint_setting(checkpoint, i)->path, paths[i]);
    assert_null(pe_checkpoint_setting(checkpoint, -1));
    assert_null(pe_checkpoint_setting(checkpoint, 6));
    assert_null(pe_checkpoint_find_setting(checkpoint, "a"));

    const pe_setting *s = pe_checkpoint_find_setting(checkpoint, "z");
    assert_int_equal(s->type, PE_SETTING_NULL);
    assert_string_equal(s->text, "null");
    s = pe_checkpoint_find_setting(checkpoint, "a.b");
    assert_int_equal(s->type, PE_SETTING_BOOL);
    assert_int_equal(s->integer, 1);
    s = pe_checkpoint_find_setting(checkpoint, "a.c.d");
    assert_int_equal(s->type, PE_SETTING_STRING);
    assert_string_equal(s->text, "\xc3\xa9");
    s = pe_checkpoint_find_setting(checkpoint, "e[0].f");
    assert_int_equal(s->type, PE_SETTING_NUMBER);
    assert_true(s->number == -5.0);
    assert_string_equal(s->text, "-0.5e1");
    assert_int_equal(pe_checkpoint_num_weights(checkpoint), 0);
    assert_null(pe_checkpoint_weight(checkpoint, 0));
    pe_checkpoint_destroy(checkpoint);
}

static void numbers_keep_their_spelling(void **state)
{
    (void)state;
    pe_checkpoint *checkpoint = parsed(
        "{\"i\": 9223372036854775807, \"j\": 9223372036854775808, \"f\": 500000.0, "
        "\"g\": 1E+5, \"h\": 123456789012345678901234567890, \"n\": "
        "-9223372036854775808, \"big\": 1e999}");
    const pe_setting *s = pe_checkpoint_find_setting(checkpoint, "i");
    assert_int_equal(s->type, PE_SETTING_INTEGER);
    assert_true(s->integer == INT64_MAX);
    s = pe_checkpoint_find_setting(checkpoint, "n");
    assert_int_equal(s->type, PE_SETTING_INTEGER);
    assert_true(s->integer == INT64_MIN);
    s = pe_checkpoint_find_setting(checkpoint, "j");
    assert_int_equal(s->type, PE_SETTING_NUMBER);
    assert_true(s->number == 9223372036854775808.0);
    assert_string_equal(s->text, "9223372036854775808");
    s = pe_checkpoint_find_setting(checkpoint, "h");
    assert_int_equal(s->type, PE_SETTING_NUMBER);
    assert_true(s->number == 123456789012345678901234567890.0);
    s = pe_checkpoint_find_setting(checkpoint, "f");
    assert_int_equal(s->type, PE_SETTING_NUMBER);
    assert_string_equal(s->text, "500000.0");
    s = pe_checkpoint_find_setting(checkpoint, "g");
    assert_string_equal(s->text, "1E+5");
    assert_true(s->number == 1e5);
    assert_non_null(pe_checkpoint_find_setting(checkpoint, "big"));
    pe_checkpoint_destroy(checkpoint);
}

static void arrays_of_numbers_are_one_setting(void **state)
{
    (void)state;
    pe_checkpoint *checkpoint =
        parsed("{\"a\": [1, 2.5 ,-3e2], \"e\": [ ], \"s\": [\"x\", \"y\\\"]\"], "
               "\"m\": [[1, 2], [3]]}");
    const pe_setting *s = pe_checkpoint_find_setting(checkpoint, "a");
    assert_int_equal(s->type, PE_SETTING_ARRAY);
    assert_int_equal(s->num_numbers, 3);
    assert_true(s->numbers[0] == 1 && s->numbers[1] == 2.5 && s->numbers[2] == -300);
    assert_string_equal(s->text, "[1, 2.5 ,-3e2]");
    s = pe_checkpoint_find_setting(checkpoint, "e");
    assert_int_equal(s->type, PE_SETTING_ARRAY);
    assert_int_equal(s->num_numbers, 0);
    s = pe_checkpoint_find_setting(checkpoint, "s");
    assert_int_equal(s->type, PE_SETTING_ARRAY);
    assert_null(s->numbers);
    assert_string_equal(s->text, "[\"x\", \"y\\\"]\"]");
    s = pe_checkpoint_find_setting(checkpoint, "m[1]");
    assert_int_equal(s->num_numbers, 1);
    pe_checkpoint_destroy(checkpoint);
}

static void text_is_cut_at_a_character(void **state)
{
    char text[600];
    (void)state;
    /* 119 letters, then two-byte characters: byte 240 is inside one. */
    size_t at = (size_t)snprintf(text, sizeof text, "{\"a\": \"");
    memset(text + at, 'x', 119);
    for (at += 119; at < 500; at += 2)
        memcpy(text + at, "\xc3\xa9", 2);
    snprintf(text + at, sizeof text - at, "\"}");
    pe_checkpoint *checkpoint = parsed(text);
    const pe_setting *s = pe_checkpoint_find_setting(checkpoint, "a");
    assert_int_equal(strlen(s->text), 239);
    assert_memory_equal(s->text + 237, "\xc3\xa9", 2);
    pe_checkpoint_destroy(checkpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_text_names_its_byte),
        cmocka_unit_test(depth_and_length_have_limits),
        cmocka_unit_test(settings_are_flat_and_in_file_order),
        cmocka_unit_test(numbers_keep_their_spelling),
        cmocka_unit_test(arrays_of_numbers_are_one_setting),
        cmocka_unit_test(text_is_cut_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
