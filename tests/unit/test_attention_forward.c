/* SPDX-License-Identifier: MIT
 *
 * test_attention_forward.c - random problems against attention in double
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "../support/attention_case.h"
#include "posenc/env.h"

static const pe_isa isas[] = {PE_ISA_SCALAR, PE_ISA_AVX2, PE_ISA_AVX512, PE_ISA_NEON,
                              PE_ISA_WASM128};

static void check_case(uint64_t seed, int flags, pe_isa isa)
{
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    attention_case c;
    const char *bad;

    attention_case_init(&c, seed, flags);
    test_box_mark(&c.q);
    test_box_mark(&c.k);
    test_box_mark(&c.v);
    test_box_mark(&c.out);
    bad = attention_case_forward(&c, &env);
    if (bad == NULL)
        bad = attention_case_compare(&c);
    if (bad == NULL && (!test_box_is_unchanged(&c.q) || !test_box_is_unchanged(&c.k) ||
                        !test_box_is_unchanged(&c.v)))
        bad = "an input changed";
    if (bad == NULL && !test_box_only_elements_changed(&c.out))
        bad = "bytes beside out changed";
    if (bad != NULL)
        fail_msg("seed %llu, flags %d, %s (%lld x %lld, %d/%d heads, %d, %d):%s: %s",
                 (unsigned long long)seed, flags, pe_isa_name(isa),
                 (long long)c.ref.q_len, (long long)c.ref.k_len, c.spec.num_heads,
                 c.spec.num_kv_heads, c.spec.head_dim, c.spec.v_head_dim, c.about, bad);
    attention_case_free(&c);
}

static void check_all(int flags, uint64_t first, uint64_t count)
{
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (uint64_t seed = first; pe_isa_available(isas[i]) && seed < first + count;
             seed++)
            check_case(seed, flags, isas[i]);
}

static void test_plain(void **state)
{
    (void)state;
    check_all(CASE_PLAIN_DTYPES, 1, 150);
}

static void test_mixed_dtypes(void **state)
{
    (void)state;
    check_all(0, 1000, 150);
}

static void test_many_keys(void **state)
{
    (void)state;
    check_all(CASE_MANY_KEYS, 2000, 25);
    check_all(CASE_MANY_KEYS | CASE_NO_FAR | CASE_NO_SCORES, 3000, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_mixed_dtypes),
        cmocka_unit_test(test_many_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
