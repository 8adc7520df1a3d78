/* SPDX-License-Identifier: MIT
 *
 * test_spec.c - structs from callers older and newer than the library
 *
 * Three releases of one struct stand for the real ones, none of which has grown yet.
 */
#include "base/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct old_spec {
    uint32_t struct_size;
    int32_t a;
} old_spec;

typedef struct own_spec {
    uint32_t struct_size;
    int32_t a;
    int64_t b;
} own_spec;

typedef struct new_spec {
    uint32_t struct_size;
    int32_t a;
    int64_t b, c;
} new_spec;

enum { MIN_SIZE = sizeof(old_spec) };

static pe_status read_spec(own_spec *own, const void *spec, pe_error *error)
{
    memset(own, 0xff, sizeof *own);
    return pe_spec_read(own, sizeof *own, spec, MIN_SIZE, "own_spec", error);
}

static void reads_an_older_struct_as_unset_beyond_its_end(void **state)
{
    (void)state;
    own_spec own;
    const old_spec spec = {.struct_size = sizeof spec, .a = -3};
    assert_int_equal(read_spec(&own, &spec, NULL), PE_OK);
    assert_int_equal(own.struct_size, sizeof own);
    assert_int_equal(own.a, -3);
    assert_int_equal(own.b, 0);
}

static void reads_a_newer_struct_whose_new_fields_are_unset(void **state)
{
    (void)state;
    own_spec own;
    const new_spec spec = {.struct_size = sizeof spec, .a = 4, .b = 5};
    assert_int_equal(read_spec(&own, &spec, NULL), PE_OK);
    assert_int_equal(own.struct_size, sizeof own);
    assert_int_equal(own.a, 4);
    assert_int_equal(own.b, 5);
}

static void refuses_a_field_it_does_not_know(void **state)
{
    (void)state;
    own_spec own;
    pe_error error;
    const new_spec spec = {.struct_size = sizeof spec, .c = (int64_t)1 << 56};
    assert_int_equal(read_spec(&own, &spec, &error), PE_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "at byte "));
}

static void refuses_null_and_too_small(void **state)
{
    (void)state;
    own_spec own;
    pe_error error;
    assert_int_equal(read_spec(&own, NULL, &error), PE_E_ARGUMENT);
    assert_string_equal(error.message, "own_spec is NULL");
    const uint32_t sizes[] = {0, 1, MIN_SIZE - 1};
    for (size_t i = 0; i < PE_COUNT(sizes); i++) {
        const own_spec spec = {.struct_size = sizes[i]};
        assert_int_equal(read_spec(&own, &spec, &error), PE_E_ARGUMENT);
        assert_non_null(strstr(error.message, "own_spec.struct_size is "));
    }
}

/* A size that was never set: the bytes that it counts are not there. */
static void refuses_a_size_that_no_struct_has(void **state)
{
    (void)state;
    own_spec own;
    pe_error error;
    const uint32_t sizes[] = {4097, 0x7ffe1234, UINT32_MAX};
    for (size_t i = 0; i < PE_COUNT(sizes); i++) {
        own_spec spec = {.struct_size = sizes[i]};
        assert_int_equal(read_spec(&own, &spec, &error), PE_E_UNSUPPORTED);
        assert_non_null(strstr(error.message, "own_spec.struct_size is "));
        assert_int_equal(
            pe_spec_write(&spec, &own, sizeof own, MIN_SIZE, "own_spec", &error),
            PE_E_UNSUPPORTED);
    }
}

static void writes_as_much_as_the_caller_knows(void **state)
{
    (void)state;
    const own_spec own = {.struct_size = sizeof own, .a = 6};
    old_spec older = {.struct_size = sizeof older, .a = 1};
    assert_int_equal(
        pe_spec_write(&older, &own, sizeof own, MIN_SIZE, "old_spec", NULL), PE_OK);
    assert_int_equal(older.struct_size, sizeof older);
    assert_int_equal(older.a, 6);

    new_spec newer = {.struct_size = sizeof newer, .a = 1, .b = 2, .c = 3};
    assert_int_equal(
        pe_spec_write(&newer, &own, sizeof own, MIN_SIZE, "new_spec", NULL), PE_OK);
    assert_int_equal(newer.struct_size, sizeof newer);
    assert_int_equal(newer.a, 6);
    assert_int_equal(newer.b, 0);
    assert_int_equal(newer.c, 0);
}

static void refuses_to_write_what_does_not_fit(void **state)
{
    (void)state;
    const own_spec own = {.struct_size = sizeof own, .a = 6, .b = 1};
    old_spec older = {.struct_size = sizeof older, .a = 1};
    pe_error error;
    assert_int_equal(
        pe_spec_write(&older, &own, sizeof own, MIN_SIZE, "old_spec", &error),
        PE_E_UNSUPPORTED);
    assert_int_equal(older.a, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_an_older_struct_as_unset_beyond_its_end),
        cmocka_unit_test(reads_a_newer_struct_whose_new_fields_are_unset),
        cmocka_unit_test(refuses_a_field_it_does_not_know),
        cmocka_unit_test(refuses_null_and_too_small),
        cmocka_unit_test(refuses_a_size_that_no_struct_has),
        cmocka_unit_test(writes_as_much_as_the_caller_knows),
        cmocka_unit_test(refuses_to_write_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
