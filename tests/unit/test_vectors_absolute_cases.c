/* SPDX-License-Identifier: MIT
 *
 * test_vectors_absolute_cases.c - what has gone wrong with sinusoidal and learned tables
 *
 * Inputs and right values stand in tests/data/problem-cases.json: c24 (offsets and
 * capacity of learned tables), c25 (one width, four sinusoidal recipes) and c30 (tables
 * stretched to a length). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../support/refusal.h"
#include "posenc/posenc.h"

enum { MAX_NUMBERS = 64, MAX_ROWS = 4096 };

static json_object *file;

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

    if (!json_object_object_get_ex(parent, name, &value) || value == NULL)
        fail_msg("problem-cases.json has no %s here", name);
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

static int numbers(json_object *parent, const char *name, double *out)
{
    json_object *list = member(parent, name);
    const size_t n = json_object_array_length(list);

    assert_true(n > 0 && n <= MAX_NUMBERS);
    for (size_t i = 0; i < n; i++)
        out[i] = json_object_get_double(json_object_array_get_idx(list, i));
    return (int)n;
}

/* ------------------------------------------------------------------- c24 --- */

/* A table one wide whose row r holds r, so that an encoding names its row. */
static pe_absolute *row_table(int64_t rows, int32_t offset)
{
    static float data[MAX_ROWS];
    pe_absolute *plan = NULL;
    pe_tensor weight;
    pe_error error;

    assert_true(rows <= MAX_ROWS);
    for (int i = 0; i < MAX_ROWS; i++)
        data[i] = (float)i;
    pe_tensor_bshd(&weight, PE_F32, data, 1, rows, 1, 1);
    const pe_learned_spec spec = {
        .struct_size = sizeof spec, .weight = &weight, .position_offset = offset};
    if (pe_learned_create(&plan, &spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    return plan;
}

/* Tokens count from 0 where marked; others stand at -1.  ids: rows expected. */
static void check_rows(const int *is_token, int n, int64_t rows, int64_t offset,
                       const double *ids, int64_t capacity)
{
    int64_t positions[MAX_NUMBERS], seen = 0;
    float got[MAX_NUMBERS];
    pe_absolute *plan = row_table(rows, (int32_t)offset);
    const pe_positions at = {.ids = positions};
    pe_tensor y;

    for (int i = 0; i < n; i++)
        positions[i] = is_token[i] ? seen++ : -1;
    pe_tensor_bshd(&y, PE_F32, got, 1, n, 1, 1);
    assert_int_equal(pe_absolute_fill(plan, &at, &y, NULL), PE_OK);
    for (int i = 0; i < n; i++)
        assert_true((double)got[i] == ids[i]);
    assert_true(pe_absolute_capacity(plan) == capacity);
    /* The capacity is what it says: the last position is there, the next is not. */
    const pe_positions last = {.start = capacity - 1}, past = {.start = capacity};
    pe_tensor_bshd(&y, PE_F32, got, 1, 1, 1, 1);
    assert_int_equal(pe_absolute_fill(plan, &last, &y, NULL), PE_OK);
    assert_int_equal(pe_absolute_fill(plan, &past, &y, NULL), PE_E_POSITION);
    pe_absolute_destroy(plan);
}

static void check_out_of_range(json_object *expected, int64_t rows, int64_t start,
                               int64_t n)
{
    static float got[MAX_ROWS];
    const int64_t first_bad = integer(expected, "first_bad");
    const pe_positions at = {.start = start};
    pe_absolute *plan = row_table(rows, 0);
    char words[64];
    pe_tensor y;
    pe_error error;

    assert_string_equal(json_object_get_string(member(expected, "error")),
                        "position-out-of-range");
    pe_tensor_bshd(&y, PE_F32, got, 1, n, 1, 1);
    const pe_status status = pe_absolute_fill(plan, &at, &y, &error);
    snprintf(words, sizeof words, "position is %lld|token %lld|%lld rows",
             (long long)first_bad, (long long)(first_bad - start), (long long)rows);
    const char *complaint = test_refusal(&error, status, PE_E_POSITION, words);
    if (complaint != NULL)
        fail_msg("%s", complaint);
    pe_absolute_destroy(plan);
}

static void test_c24_learned_rows(void **state)
{
    json_object *c = find_case("c24");
    json_object *input = member(c, "input"), *expect = member(c, "expect");
    double list[MAX_NUMBERS], ids[MAX_NUMBERS];
    int is_token[MAX_NUMBERS];

    (void)state;
    json_object *inputs = member(input, "roberta"), *wants = member(expect, "roberta");
    assert_int_equal(json_object_array_length(inputs), json_object_array_length(wants));
    for (size_t i = 0; i < json_object_array_length(inputs); i++) {
        json_object *one = json_object_array_get_idx(inputs, i);
        json_object *want = json_object_array_get_idx(wants, i);
        const int64_t pad = integer(one, "pad_id");
        const int n = numbers(one, "input_ids", list);
        assert_int_equal(numbers(want, "ids", ids), n);
        for (int k = 0; k < n; k++)
            is_token[k] = list[k] != (double)pad;
        check_rows(is_token, n, integer(one, "rows"), pad + 1, ids,
                   integer(want, "max_tokens"));
    }
    json_object *opt = member(input, "opt");
    const int n = numbers(opt, "attention_mask", list);
    assert_int_equal(numbers(member(expect, "opt"), "ids", ids), n);
    for (int k = 0; k < n; k++)
        is_token[k] = list[k] != 0;
    check_rows(is_token, n, integer(opt, "rows"), integer(opt, "offset"), ids,
               integer(member(expect, "opt"), "max_tokens"));

    json_object *bert = member(input, "bert"), *gpt2 = member(input, "gpt2");
    check_out_of_range(member(expect, "bert"), integer(bert, "rows"), 0,
                       integer(bert, "length"));
    check_out_of_range(member(expect, "gpt2"), integer(gpt2, "rows"),
                       integer(gpt2, "past"), integer(gpt2, "new"));
}

/* ------------------------------------------------------------------- c25 --- */

static void test_c25_recipes(void **state)
{
    static const struct {
        const char *name;
        pe_sinusoid_order order;
        double shift;
    } recipes[] = {
        {"paper_interleaved", PE_SIN_COS_INTERLEAVED, 0},
        {"same_frequencies_concatenated", PE_SIN_COS_HALVES, 0},
        {"t2t_whisper_fairseq_concatenated", PE_SIN_COS_HALVES, 1},
        {"diffusers_flip_cos_first", PE_COS_SIN_HALVES, 0},
    };
    json_object *c = find_case("c25");
    json_object *input = member(c, "input"), *expect = member(c, "expect");
    const pe_positions at = {.start = integer(input, "position")};
    const int64_t dim = integer(input, "d_model");
    double exact[MAX_NUMBERS];
    float got[MAX_NUMBERS];
    pe_tensor y;

    (void)state;
    assert_true(dim > 0 && dim <= MAX_NUMBERS);
    pe_tensor_bshd(&y, PE_F32, got, 1, 1, 1, dim);
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        const pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                                         .order = recipes[i].order,
                                         .model_dim = (int32_t)dim,
                                         .downscale_freq_shift = recipes[i].shift};
        pe_absolute *plan = NULL;
        assert_int_equal(pe_sinusoidal_create(&plan, &spec, NULL, NULL), PE_OK);
        assert_int_equal(pe_absolute_fill(plan, &at, &y, NULL), PE_OK);
        pe_absolute_destroy(plan);
        assert_int_equal(numbers(expect, recipes[i].name, exact), dim);
        for (int k = 0; k < dim; k++)
            if (got[k] != (float)exact[k])
                fail_msg("%s[%d]: %.9g, expected %.17g", recipes[i].name, k,
                         (double)got[k], exact[k]);
    }
}

/* ------------------------------------------------------------------- c30 --- */

static void check_stretched(json_object *c, const char *table, int64_t prefix,
                            int64_t to, pe_resize_mode mode, int align_corners,
                            const char *name)
{
    double values[MAX_NUMBERS], exact[MAX_NUMBERS];
    float from[MAX_NUMBERS], got[MAX_NUMBERS];
    const int n = numbers(member(c, "input"), table, values);
    pe_tensor weight, out;
    pe_error error;
    const pe_resize how = {.mode = mode,
                           .align_corners = align_corners,
                           .prefix_rows = prefix,
                           .from_h = 1,
                           .from_w = n - prefix,
                           .to_h = 1,
                           .to_w = to};

    for (int i = 0; i < n; i++)
        from[i] = (float)values[i];
    pe_tensor_bshd(&weight, PE_F32, from, 1, n, 1, 1);
    pe_tensor_bshd(&out, PE_F32, got, 1, prefix + to, 1, 1);
    if (pe_learned_resize(&how, &weight, &out, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    assert_int_equal(numbers(member(c, "expect"), name, exact), prefix + to);
    for (int i = 0; i < prefix + to; i++)
        if (!(fabs((double)got[i] - exact[i]) <= 0x1p-24 * fabs(exact[i]) + 1e-12))
            fail_msg("%s[%d]: %.9g, expected %.17g", name, i, (double)got[i], exact[i]);
}

static void test_c30_stretched_tables(void **state)
{
    json_object *c = find_case("c30");
    const int64_t to = integer(member(c, "input"), "new_rows");
    const int64_t prefix = integer(member(c, "input"), "prefix_rows_kept");
    json_object *trap = member(member(c, "expect"), "rows_from_scale_factor_trap");

    (void)state;
    check_stretched(c, "table", 0, to, PE_RESIZE_LINEAR, 0, "linear_half_pixel");
    check_stretched(c, "table", 0, to, PE_RESIZE_LINEAR, 1, "linear_align_corners");
    check_stretched(c, "table", 0, to, PE_RESIZE_CUBIC, 0,
                    "bicubic_half_pixel_a_-0.75");
    check_stretched(c, "prefix_table", prefix, to, PE_RESIZE_LINEAR, 0,
                    "with_prefix_linear_half_pixel");

    /* 14 * (61 / 14.) falls short of 61; a size that is given cannot. */
    const double grid = (double)integer(trap, "patch_grid");
    const double target = (double)integer(trap, "target");
    float from[14] = {0}, got[61];
    pe_tensor weight, out;
    const pe_resize how = {
        .mode = PE_RESIZE_CUBIC, .from_h = 1, .from_w = 14, .to_h = 1, .to_w = 61};
    assert_true(grid == 14 && target == 61 && grid * (target / grid) < 61);
    from[13] = 5;
    got[60] = 0;
    pe_tensor_bshd(&weight, PE_F32, from, 1, 14, 1, 1);
    pe_tensor_bshd(&out, PE_F32, got, 1, 61, 1, 1);
    assert_int_equal(pe_learned_resize(&how, &weight, &out, NULL, NULL), PE_OK);
    assert_true(got[60] > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c24_learned_rows),
        cmocka_unit_test(test_c25_recipes),
        cmocka_unit_test(test_c30_stretched_tables),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
