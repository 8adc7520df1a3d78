/* SPDX-License-Identifier: MIT
 *
 * test_error.c - status names, messages, version
 */
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void names_every_status(void **state)
{
    (void)state;
    assert_string_equal(pe_status_name(PE_OK), "PE_OK");
    assert_string_equal(pe_status_name(PE_E_ARGUMENT), "PE_E_ARGUMENT");
    assert_string_equal(pe_status_name(PE_E_SHAPE), "PE_E_SHAPE");
    assert_string_equal(pe_status_name(PE_E_DTYPE), "PE_E_DTYPE");
    assert_string_equal(pe_status_name(PE_E_POSITION), "PE_E_POSITION");
    assert_string_equal(pe_status_name(PE_E_NO_MEMORY), "PE_E_NO_MEMORY");
    assert_string_equal(pe_status_name(PE_E_WORKSPACE), "PE_E_WORKSPACE");
    assert_string_equal(pe_status_name(PE_E_UNSUPPORTED), "PE_E_UNSUPPORTED");
    assert_string_equal(pe_status_name(PE_E_IO), "PE_E_IO");
    assert_string_equal(pe_status_name(PE_E_FORMAT), "PE_E_FORMAT");
    assert_string_equal(pe_status_name(PE_E_NOT_FOUND), "PE_E_NOT_FOUND");
    assert_string_equal(pe_status_name(PE_E_LIMIT), "PE_E_LIMIT");
    assert_string_equal(pe_status_name(PE_E_INCOMPATIBLE), "PE_E_INCOMPATIBLE");
}

static void names_no_other_status(void **state)
{
    (void)state;
    const pe_status others[] = {1, PE_E_INCOMPATIBLE - 1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < PE_COUNT(others); i++)
        assert_string_equal(pe_status_name(others[i]), "unknown status");
}

static void writes_status_message_and_offset(void **state)
{
    (void)state;
    pe_error error;
    memset(&error, 0xff, sizeof error);
    assert_int_equal(pe_fail(&error, PE_E_SHAPE, "dim is %d", 7), PE_E_SHAPE);
    assert_int_equal(error.status, PE_E_SHAPE);
    assert_int_equal(error.reserved, 0);
    assert_int_equal(error.offset, 0);
    assert_string_equal(error.message, "dim is 7");

    assert_int_equal(pe_fail_at(&error, PE_E_FORMAT, 1LL << 40, "x"), PE_E_FORMAT);
    assert_int_equal(error.offset, 1LL << 40);
    assert_string_equal(error.message, "x");

    assert_int_equal(pe_fail(NULL, PE_E_IO, "x"), PE_E_IO);
}

static void cuts_long_messages(void **state)
{
    (void)state;
    pe_error error;
    pe_fail(&error, PE_E_ARGUMENT, "%500d", 1);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

static void reports_the_version_of_the_header(void **state)
{
    (void)state;
    assert_int_equal(pe_version_number(), PE_VERSION_NUMBER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_every_status),
        cmocka_unit_test(names_no_other_status),
        cmocka_unit_test(writes_status_message_and_offset),
        cmocka_unit_test(cuts_long_messages),
        cmocka_unit_test(reports_the_version_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
