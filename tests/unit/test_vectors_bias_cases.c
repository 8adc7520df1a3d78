/* SPDX-License-Identifier: MIT
 *
 * test_vectors_bias_cases.c - real problems with slopes, biases and positions, once more
 *
 * Inputs and right values stand in tests/data/problem-cases.json. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "posenc/positions.h"

static json_object *file;
static pe_error error;

static int set_up(void **state)
{
    (void)state;
    file = json_object_from_file("tests/data/problem-cases.json");
    return file == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    json_object_put(file);
    return 0;
}

static json_object *member(json_object *parent, const char *name)
{
    json_object *value = NULL;

    if (!json_object_object_get_ex(parent, name, &value))
        fail_msg("problem-cases.json has no %s", name);
    return value;
}

static json_object *find_case(const char *id)
{
    json_object *cases = member(file, "cases");

    for (size_t i = 0; i < json_object_array_length(cases); i++) {
        json_object *c = json_object_array_get_idx(cases, i);
        if (strcmp(json_object_get_string(member(c, "id")), id) == 0)
            return c;
    }
    fail_msg("no case %s", id);
    return NULL;
}

static int64_t integer(json_object *parent, const char *name)
{
    return json_object_get_int64(member(parent, name));
}

static json_object *item(json_object *list, int64_t i)
{
    if (i >= (int64_t)json_object_array_length(list))
        fail_msg("a list of problem-cases.json is too short");
    return json_object_array_get_idx(list, (size_t)i);
}

/* Every number of a nested list equals those of got, in order; null is anything. */
static int64_t compare(json_object *list, const int64_t *ids, const float *floats,
                       int64_t at)
{
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *value = json_object_array_get_idx(list, i);
        if (json_object_is_type(value, json_type_array)) {
            at = compare(value, ids, floats, at);
            continue;
        }
        if (value != NULL && ids != NULL)
            assert_int_equal(ids[at], json_object_get_int64(value));
        if (value != NULL && floats != NULL)
            assert_true((double)floats[at] == json_object_get_double(value));
        at++;
    }
    return at;
}

static pe_bias *create(pe_bias_form form, int32_t num_heads)
{
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = PE_BIAS_ALIBI,
                               .form = form,
                               .num_heads = num_heads};
    pe_bias *bias = NULL;

    if (pe_bias_create(&bias, &spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    return bias;
}

static void test_c21_slopes(void **state)
{
    json_object *c = find_case("c21"), *tolerance = member(c, "tolerance");
    json_object *counts = member(member(c, "input"), "head_counts");
    json_object *expected = member(member(c, "expect"), "slopes");
    const double abs_tol = json_object_get_double(member(tolerance, "f32_abs"));
    const double rel_tol = json_object_get_double(member(tolerance, "f32_rel"));
    (void)state;
    assert_true(json_object_array_length(counts) > 0);
    for (size_t i = 0; i < json_object_array_length(counts); i++) {
        const int32_t n = json_object_get_int(json_object_array_get_idx(counts, i));
        char name[16];
        snprintf(name, sizeof name, "%d", (int)n);
        json_object *slopes = member(expected, name);
        pe_bias *bias = create(PE_BIAS_CAUSAL, n);
        for (int32_t h = 0; h < n; h++) {
            const double exact = json_object_get_double(item(slopes, h));
            const double got = (double)pe_bias_slopes(bias)[h];
            assert_true(fabs(got - exact) <= abs_tol + rel_tol * exact);
            assert_true(pe_bias_slopes(bias)[h] == (float)exact);
        }
        pe_bias_destroy(bias);
    }
}

/* The row of one query over the keys, [heads][keys]. */
static void fill_row(pe_bias_form form, int32_t heads, int64_t query,
                     const pe_positions *k_at, int64_t keys, float *row)
{
    const pe_positions q_at = {.start = query};
    pe_bias *bias = create(form, heads);
    pe_tensor t;

    pe_tensor_bhsd(&t, PE_F32, row, 1, heads, 1, keys);
    if (pe_bias_fill(bias, &q_at, k_at, &t, &error) != PE_OK)
        fail_msg("%s", error.message);
    pe_bias_destroy(bias);
}

static void test_c23_rows(void **state)
{
    enum { MAX = 64 };
    json_object *c = find_case("c23"), *in = member(c, "input");
    json_object *expect = member(c, "expect");
    const int32_t heads = (int32_t)integer(in, "n_heads");
    const int64_t keys = integer(in, "keys"), pad = integer(in, "left_pad");
    const int64_t query = integer(in, "decode_query_position");
    const pe_positions from_0 = {0};
    float relative[MAX], by_key[MAX], row[MAX];
    uint8_t mask[MAX];
    int64_t ids[MAX], next;
    (void)state;
    assert_true(heads * keys <= MAX);
    fill_row(PE_BIAS_CAUSAL, heads, query, &from_0, keys, relative);
    compare(member(expect, "relative_causal_row"), NULL, relative, 0);
    fill_row(PE_BIAS_KEY_ONLY, heads, query, &from_0, keys, by_key);
    compare(member(expect, "key_position_row"), NULL, by_key, 0);
    for (int32_t h = 0; h < heads; h++)
        for (int64_t j = 0; j < keys; j++)
            assert_true((double)by_key[h * keys + j] - (double)relative[h * keys + j] ==
                        json_object_get_double(
                            item(member(expect, "constant_between_forms"), h)));
    fill_row(PE_BIAS_BIDIRECTIONAL, heads, integer(in, "bidirectional_query"), &from_0,
             keys, row);
    compare(member(expect, "bidirectional_row"), NULL, row, 0);

    for (int64_t t = 0; t < keys; t++)
        mask[t] = t >= pad;
    assert_int_equal(pe_positions_from_mask(mask, 1, keys, 0, ids, &next, &error),
                     PE_OK);
    compare(member(expect, "left_pad_positions"), ids, NULL, 0);
    const pe_positions padded = {.ids = ids};
    fill_row(PE_BIAS_CAUSAL, heads, next - 1, &padded, keys, row);
    compare(member(expect, "left_pad_relative_row"), NULL, row, 0);
}

static void test_c27_positions(void **state)
{
    enum { MAX = 64 };
    json_object *c = find_case("c27"), *in = member(c, "input");
    json_object *expect = member(c, "expect");
    int32_t cu_seqlens[MAX] = {0};
    int64_t ids[MAX], rows[MAX], next[MAX], count = 0;
    uint8_t masks[MAX];
    (void)state;

    json_object *lengths = member(in, "packed_lengths");
    const int64_t num_seqs = (int64_t)json_object_array_length(lengths);
    for (int64_t s = 0; s < num_seqs; s++)
        cu_seqlens[s + 1] = cu_seqlens[s] + json_object_get_int(item(lengths, s));
    assert_int_equal(pe_positions_packed(cu_seqlens, num_seqs, ids, &error), PE_OK);
    assert_int_equal(compare(member(expect, "packed"), ids, NULL, 0),
                     cu_seqlens[num_seqs]);

    json_object *padded = member(in, "left_padded_masks");
    const int64_t batch = (int64_t)json_object_array_length(padded);
    const int64_t len = (int64_t)json_object_array_length(item(padded, 0));
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < len; t++)
            masks[count++] = (uint8_t)json_object_get_int(item(item(padded, b), t));
    assert_int_equal(pe_positions_from_mask(masks, batch, len, 0, ids, next, &error),
                     PE_OK);
    assert_int_equal(compare(member(expect, "left_padded"), ids, NULL, 0), count);
    compare(member(expect, "next_decode_position"), next, NULL, 0);

    json_object *parallel = member(in, "context_parallel");
    const int64_t seq_len = integer(parallel, "seq"), cp = integer(parallel, "cp");
    for (int64_t rank = 0; rank < cp; rank++) {
        assert_int_equal(
            pe_positions_shard(PE_SHARD_ZIGZAG, seq_len, rank, cp, ids, &error), PE_OK);
        assert_int_equal(
            compare(item(member(expect, "zigzag_rank_positions"), rank), ids, NULL, 0),
            seq_len / cp);
    }

    json_object *packed = member(in, "cp_packed"), *ends = member(packed, "cu_seqlens");
    const int64_t num_packed = (int64_t)json_object_array_length(ends) - 1;
    for (int64_t s = 0; s <= num_packed; s++)
        cu_seqlens[s] = json_object_get_int(item(ends, s));
    assert_int_equal(pe_positions_shard_packed(PE_SHARD_ZIGZAG, cu_seqlens, num_packed,
                                               0, integer(packed, "cp"), rows, ids,
                                               &error),
                     PE_OK);
    compare(member(expect, "cp_packed_rank0_rows"), rows, NULL, 0);
    compare(member(expect, "cp_packed_rank0_positions"), ids, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c21_slopes),
        cmocka_unit_test(test_c23_rows),
        cmocka_unit_test(test_c27_positions),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
