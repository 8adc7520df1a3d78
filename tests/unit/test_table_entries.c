/* SPDX-License-Identifier: MIT
 *
 * test_table_entries.c - stored entries, rounded by MPFR, bit for bit
 *
 * tests/data/table_entries.txt is what `rule_accuracy --emit` printed. */
#include "support/rope_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pe_rope *plan_of(const char *name)
{
    int count;
    const rope_rule_case *cases = rope_rules(&count);
    for (int k = 0; k < count; k++)
        if (strcmp(cases[k].name, name) == 0) {
            pe_rope *rope;
            assert_int_equal(pe_rope_create(&rope, &cases[k].spec, NULL, NULL), PE_OK);
            return rope;
        }
    fail_msg("no rule named %s", name);
    return NULL;
}

static void entries_are_correctly_rounded(void **state)
{
    (void)state;
    FILE *file = fopen("tests/data/table_entries.txt", "r");
    assert_non_null(file);
    char line[200];
    int entries = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *name = strtok(line, "|");
        const double p = strtod(strtok(NULL, "|"), NULL);
        const long pair = strtol(strtok(NULL, "|"), NULL, 10);
        const uint32_t want_cos = (uint32_t)strtoul(strtok(NULL, "|"), NULL, 16);
        const uint32_t want_sin = (uint32_t)strtoul(strtok(NULL, "|"), NULL, 16);
        pe_rope *rope = plan_of(name);
        const int n = pe_rope_get_info(rope)->num_pairs;
        float *cos = calloc((size_t)n, sizeof *cos),
              *sin = calloc((size_t)n, sizeof *sin);
        pe_tensor c, s;
        pe_positions at = {.values = &p};
        if (p == (double)(int64_t)p)
            at = (pe_positions){.start = (int64_t)p};
        pe_tensor_bshd(&c, PE_F32, cos, 1, 1, 1, n);
        pe_tensor_bshd(&s, PE_F32, sin, 1, 1, 1, n);
        assert_int_equal(pe_rope_table(rope, &at, &c, &s, NULL), PE_OK);
        uint32_t got_cos, got_sin;
        memcpy(&got_cos, cos + pair, sizeof got_cos);
        memcpy(&got_sin, sin + pair, sizeof got_sin);
        if (got_cos != want_cos || got_sin != want_sin)
            fail_msg("%s at %.17g pair %ld: got %08x %08x, want %08x %08x", name, p,
                     pair, got_cos, got_sin, want_cos, want_sin);
        free(cos);
        free(sin);
        pe_rope_destroy(rope);
        entries += 2;
    }
    fclose(file);
    assert_int_equal(entries, 2400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(entries_are_correctly_rounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
