/* SPDX-License-Identifier: MIT
 *
 * cmocka.h - the few calls of cmocka that unit tests use, for targets without cmocka
 *
 * The first failure ends the program with status 1. */
#ifndef SHIM_CMOCKA_H
#define SHIM_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*test)(void **state);
};
#define cmocka_unit_test(f) \
  {                         \
#    f, f                   \
  }
#define cmocka_run_group_tests(tests, setup, teardown) \
  shim_run(tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

/* setup's state is what every test starts with. */
static inline int shim_run(const struct CMUnitTest *tests, size_t count,
                           int (*setup)(void **state), int (*teardown)(void **state))
{
    void *shared = NULL;
    if (setup != NULL && setup(&shared) != 0)
        return 1;
    for (size_t i = 0; i < count; i++) {
        void *state = shared;
        tests[i].test(&state);
    }
    if (teardown != NULL && teardown(&shared) != 0)
        return 1;
    printf("%zu passed, 0 failed\n", count);
    return 0;
}

#define print_message printf
#define shim_fail(...) \
  (printf("%s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), printf("\n"), exit(1))
#define fail()                 shim_fail("failed")
#define fail_msg(...)          shim_fail(__VA_ARGS__)
#define assert_true(c)         ((c) ? (void)0 : shim_fail("%s", #c))
#define assert_false(c)        assert_true(!(c))
#define assert_null(p)         assert_true((p) == NULL)
#define assert_non_null(p)     assert_true((p) != NULL)
#define assert_ptr_equal(a, b) assert_true((const void *)(a) == (const void *)(b))
#define assert_int_equal(a, b)      \
  ((long long)(a) == (long long)(b) \
       ? (void)0                    \
       : shim_fail("%s is %lld, not %lld", #a, (long long)(a), (long long)(b)))
#define assert_int_not_equal(a, b) assert_true((long long)(a) != (long long)(b))
#define assert_string_equal(a, b) \
  (strcmp(a, b) == 0 ? (void)0 : shim_fail("\"%s\" is not \"%s\"", a, b))
#define assert_memory_equal(a, b, size)     assert_true(memcmp(a, b, size) == 0)
#define assert_memory_not_equal(a, b, size) assert_true(memcmp(a, b, size) != 0)
#define assert_string_not_equal(a, b)       assert_true(strcmp(a, b) != 0)
#define assert_ptr_not_equal(a, b)          assert_true((const void *)(a) != (const void *)(b))
#define assert_in_range(v, low, high)       assert_true((v) >= (low) && (v) <= (high))

#endif /* SHIM_CMOCKA_H */
