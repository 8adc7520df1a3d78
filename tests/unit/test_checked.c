/* SPDX-License-Identifier: MIT
 *
 * test_checked.c - overflow-checked int64 arithmetic against 128-bit arithmetic
 */
#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

__extension__ typedef __int128 wide;

static const int64_t edges[] = {0,
                                1,
                                2,
                                3,
                                46341,
                                INT32_MAX,
                                (int64_t)1 << 32,
                                3037000499,
                                3037000500,
                                INT64_MAX / 3,
                                INT64_MAX / 2,
                                INT64_MAX / 2 + 1,
                                INT64_MAX - 1,
                                INT64_MAX};

static void agrees(int64_t a, int64_t b)
{
    int64_t got = 77;
    const wide product = (wide)a * b, sum = (wide)a + b;
    const int product_fits = product >= INT64_MIN && product <= INT64_MAX;
    assert_int_equal(pe_mul_i64(a, b, &got), product_fits);
    assert_int_equal(got, product_fits ? (int64_t)product : 77);
    got = 77;
    const int sum_fits = sum >= INT64_MIN && sum <= INT64_MAX;
    assert_int_equal(pe_add_i64(a, b, &got), sum_fits);
    assert_int_equal(got, sum_fits ? (int64_t)sum : 77);
}

static void agrees_at_the_edges(void **state)
{
    (void)state;
    const size_t count = sizeof edges / sizeof edges[0];
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            agrees(edges[i], edges[j]);
            agrees(edges[i], -edges[j] - 1);
            agrees(-edges[i] - 1, edges[j]);
            agrees(-edges[i] - 1, -edges[j] - 1);
        }
}

static void agrees_on_random_numbers_of_every_size(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 100000; i++) {
        int64_t number[2];
        for (int j = 0; j < 2; j++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            number[j] = (int64_t)random >> (random >> 7) % 64;
        }
        agrees(number[0], number[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_at_the_edges),
        cmocka_unit_test(agrees_on_random_numbers_of_every_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
