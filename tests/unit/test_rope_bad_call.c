/* SPDX-License-Identifier: MIT
 *
 * test_rope_bad_call.c - every wrong call is refused in words and writes nothing
 *
 * y is checked byte for byte after each refusal; x and y are tensors of 2 rows, 3
 * tokens, 2 heads of 16 elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../support/box.h"
#include "../support/refusal.h"
#include "posenc/env.h"

enum {
    BATCH = 2,
    TOKENS = 3,
    HEADS = 2,
    DIM = 16,
    SIZE = BATCH * TOKENS * HEADS * DIM
};

#define ARG   PE_E_ARGUMENT
#define SHAPE PE_E_SHAPE

/* What a case may change before the call. */
struct call {
    pe_tensor x, y;
    pe_positions at;
    const pe_rope *rope;
    const pe_tensor *x_arg, *y_arg;
    const pe_positions *at_arg;
};

static pe_rope *plain, *three_axes;
static float x_data[SIZE], y_data[SIZE], y_before[SIZE], scales[SIZE];
static int32_t pages[BATCH * TOKENS] = {0, 1, 2, 3, 4, 5};

static pe_rope *create(const pe_rope_spec *spec)
{
    pe_rope *rope = NULL;
    pe_error error;

    if (pe_rope_create(&rope, spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    return rope;
}

static int set_up(void **state)
{
    pe_rope_spec spec = {.struct_size = sizeof spec,
                         .head_dim = DIM,
                         .table_len = 8,
                         .pairs = {.pairing = PE_HALF_SPLIT},
                         .freqs = {.rope_theta = 10000}};

    (void)state;
    plain = create(&spec);
    spec.axes = (pe_axes){.map = PE_AXIS_CHUNKED, .section = {2, 3, 3}};
    three_axes = create(&spec);
    for (int i = 0; i < SIZE; i++)
        y_before[i] = y_data[i] = (float)i + 0.5f;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pe_rope_destroy(plain);
    pe_rope_destroy(three_axes);
    return 0;
}

static void begin(struct call *c)
{
    memset(c, 0, sizeof *c);
    pe_tensor_bshd(&c->x, PE_F32, x_data, BATCH, TOKENS, HEADS, DIM);
    pe_tensor_bshd(&c->y, PE_F32, y_data, BATCH, TOKENS, HEADS, DIM);
    c->rope = plain;
    c->x_arg = &c->x;
    c->y_arg = &c->y;
    c->at_arg = &c->at;
}

static void check(int line, const struct call *c, pe_status status, const char *words)
{
    pe_error error;

    const pe_status got = pe_rope_apply(c->rope, c->at_arg, c->x_arg, c->y_arg, &error);
    const char *complaint = test_refusal(&error, got, status, words);
    if (complaint != NULL)
        fail_msg("line %d: %s", line, complaint);
    assert_int_equal(pe_rope_apply(c->rope, c->at_arg, c->x_arg, c->y_arg, NULL),
                     status);
    assert_int_equal(pe_rope_transpose(c->rope, c->at_arg, c->x_arg, c->y_arg, NULL),
                     status);
    assert_int_equal(pe_rope_inverse(c->rope, c->at_arg, c->x_arg, c->y_arg, NULL),
                     status);
    if (memcmp(y_data, y_before, sizeof y_data) != 0)
        fail_msg("line %d: y was written", line);
}

/* REFUSED(status, words, changes to the call c) */
#define REFUSED(status, words, ...)     \
  do {                                  \
    struct call c;                      \
    begin(&c);                          \
    __VA_ARGS__;                        \
    check(__LINE__, &c, status, words); \
  } while (0)

static void test_missing(void **state)
{
    (void)state;
    REFUSED(ARG, "rope", c.rope = NULL);
    REFUSED(ARG, "at", c.at_arg = NULL);
    REFUSED(ARG, "x", c.x_arg = NULL);
    REFUSED(ARG, "y", c.y_arg = NULL);
    REFUSED(ARG, "x|data", c.x.data = NULL);
    REFUSED(ARG, "y|data", c.y.data = NULL);
}

static void test_shapes(void **state)
{
    (void)state;
    REFUSED(SHAPE, "batch|0", c.x.batch = c.y.batch = 0);
    REFUSED(SHAPE, "batch|-2", c.x.batch = c.y.batch = -2);
    REFUSED(SHAPE, "seq_len|-1", c.x.seq_len = c.y.seq_len = -1);
    REFUSED(SHAPE, "num_heads|0", c.x.num_heads = c.y.num_heads = 0);
    REFUSED(SHAPE, "dim|0", c.x.dim = c.y.dim = 0);
    REFUSED(SHAPE, "dim|8|16", c.x.dim = c.y.dim = 8);
    REFUSED(SHAPE, "y|14|16", c.y.dim = 14);
    REFUSED(SHAPE, "y|(1, |(2, ", c.y.batch = 1);
    REFUSED(SHAPE, "y|2, 2, 2, 16|2, 3, 2, 16", c.y.seq_len = 2);
    REFUSED(SHAPE, "y|2, 3, 1, 16", c.y.num_heads = 1);
    REFUSED(SHAPE, "y|2, 3, 1, 16", c.x.num_heads = 1);
}

/* Products of sizes and strides that leave int64, alone or on the way to bytes. */
static void test_overflow(void **state)
{
    (void)state;
    REFUSED(SHAPE, "x", c.x.batch_stride = INT64_MAX);
    REFUSED(SHAPE, "x", c.x.seq_stride = INT64_MAX);
    REFUSED(SHAPE, "x", c.x.head_stride = INT64_MAX);
    REFUSED(SHAPE, "x", c.x.seq_stride = INT64_MIN);
    REFUSED(SHAPE, "y", c.y.batch_stride = INT64_MAX / 2);
    REFUSED(SHAPE, "", c.x.seq_len = c.y.seq_len = INT64_MAX);
    REFUSED(SHAPE, "", c.x.batch = c.y.batch = INT64_MAX);
    REFUSED(SHAPE, "", c.x.num_heads = c.y.num_heads = INT64_MAX);
    REFUSED(SHAPE, "", c.x.batch = c.y.batch = (int64_t)1 << 32;
            c.x.seq_len = c.y.seq_len = (int64_t)1 << 32);
}

static void test_dtypes(void **state)
{
    static const pe_codec no_decode = {.block_len = 8, .block_size = 20};
    static pe_codec bad = {0};

    (void)state;
    REFUSED(PE_E_DTYPE, "x|dtype|0", c.x.dtype = 0);
    REFUSED(PE_E_DTYPE, "y|dtype|6", c.y.dtype = 6);
    REFUSED(PE_E_DTYPE, "x|dtype|-1", c.x.dtype = -1);
    REFUSED(ARG, "x|reserved|1", c.x.reserved = 1);
    REFUSED(ARG, "y|scales", c.y.dtype = PE_I8);
    REFUSED(SHAPE, "y.dim|16|5", c.y.dtype = PE_I8; c.y.scales = scales;
            c.y.scale_len = 5);
    REFUSED(SHAPE, "y|scale_len|-16", c.y.dtype = PE_I8; c.y.scales = scales;
            c.y.scale_len = -16);
    REFUSED(SHAPE, "y.head_stride|24|16", c.y.dtype = PE_I8; c.y.scales = scales;
            c.y.head_stride = 24);
    REFUSED(ARG, "x|codec", c.x.dtype = PE_CODED);
    REFUSED(ARG, "x|codec|decode", c.x.dtype = PE_CODED; c.x.codec = &no_decode);
    bad = test_codec;
    bad.encode = NULL;
    REFUSED(ARG, "y|codec|encode", c.y.dtype = PE_CODED; c.y.codec = &bad);
    bad = test_codec;
    bad.block_len = 0;
    REFUSED(ARG, "x|block_len|0", c.x.dtype = PE_CODED; c.x.codec = &bad);
    bad.block_len = -8;
    REFUSED(ARG, "x|block_len|-8", c.x.dtype = PE_CODED; c.x.codec = &bad);
    bad = test_codec;
    bad.block_size = 0;
    REFUSED(ARG, "x|block_size|0", c.x.dtype = PE_CODED; c.x.codec = &bad);
    bad = test_codec;
    bad.block_len = 5;
    REFUSED(SHAPE, "x.dim|16|5", c.x.dtype = PE_CODED; c.x.codec = &bad);
    REFUSED(SHAPE, "x.seq_stride|36|8", c.x.dtype = PE_CODED; c.x.codec = &test_codec;
            c.x.seq_stride = 36);
}

static void make_paged(pe_tensor *t)
{
    /* Six slots of a token each, of which row b owns three. */
    pe_tensor_paged(t, PE_F32, t->data, BATCH * TOKENS, 1, HEADS, DIM, pages, BATCH,
                    TOKENS);
}

static void test_pages(void **state)
{
    (void)state;
    REFUSED(PE_E_POSITION, "y|page|5", make_paged(&c.y); c.y.capacity -= 1);
    REFUSED(SHAPE, "y|page_len|0", make_paged(&c.y); c.y.page_len = 0);
    REFUSED(SHAPE, "y|page_len|-1", make_paged(&c.y); c.y.page_len = -1);
    REFUSED(SHAPE, "y|capacity|-1", make_paged(&c.y); c.y.capacity = -1);
    pages[4] = 6;
    REFUSED(PE_E_POSITION, "y|page|6", make_paged(&c.y));
    REFUSED(PE_E_POSITION, "x|page|6", make_paged(&c.x));
    pages[4] = INT32_MAX;
    REFUSED(PE_E_POSITION, "y|page|2147483647", make_paged(&c.y));
    pages[4] = 4;
    REFUSED(PE_E_POSITION, "y.page_table|capacity", make_paged(&c.y);
            c.y.page_stride = INT64_MAX);
}

static void test_positions(void **state)
{
    static const int64_t ids[3 * SIZE] = {0}, late_starts[] = {0, INT64_MAX - 1};
    static double values[SIZE];

    (void)state;
    REFUSED(ARG, "ids|values", c.at.ids = ids; c.at.values = values);
    REFUSED(ARG, "starts|ids", c.at.ids = ids; c.at.starts = ids);
    REFUSED(ARG, "start", c.at.ids = ids; c.at.start = 5);
    REFUSED(ARG, "reserved|1", c.at.reserved = 1);
    REFUSED(ARG, "num_axes|-1", c.at.num_axes = -1);
    REFUSED(ARG, "num_axes|3|1", c.at.ids = ids; c.at.num_axes = 3;
            c.at.axis_stride = 6);
    REFUSED(ARG, "num_axes|2|3", c.rope = three_axes; c.at.ids = ids; c.at.num_axes = 2;
            c.at.axis_stride = 6);
    REFUSED(ARG, "axis_stride", c.rope = three_axes; c.at.ids = ids; c.at.num_axes = 3);
    REFUSED(PE_E_POSITION, "start|9223372036854775806", c.at.start = INT64_MAX - 1);
    REFUSED(PE_E_POSITION, "starts[1]|9223372036854775806", c.at.starts = late_starts);
    for (int i = 0; i < 4; i++) {
        static const double bad[] = {NAN, INFINITY, -INFINITY, 0x1.0000000000001p52};
        memset(values, 0, sizeof values);
        values[4] = bad[i];
        REFUSED(PE_E_POSITION, "values", c.at.values = values; c.at.batch_stride = 3);
        REFUSED(PE_E_POSITION, "values", c.rope = three_axes; c.at.values = values;
                c.at.batch_stride = 3);
    }
    values[4] = 0x1p52;
    struct call c;
    begin(&c);
    c.at.values = values;
    c.at.batch_stride = 3;
    assert_int_equal(pe_rope_apply(plain, &c.at, &c.x, &c.y, NULL), PE_OK);
    memcpy(y_data, y_before, sizeof y_data);
}

/* No tokens: nothing to do, nothing written, and data may be anything but absent. */
static void test_no_tokens(void **state)
{
    struct call c;

    (void)state;
    begin(&c);
    c.x.seq_len = c.y.seq_len = 0;
    assert_int_equal(pe_rope_apply(plain, &c.at, &c.x, &c.y, NULL), PE_OK);
    assert_memory_equal(y_data, y_before, sizeof y_data);
}

static void test_qk(void **state)
{
    struct call c;
    pe_error error;
    pe_tensor k, k_out;

    (void)state;
    begin(&c);
    k = c.x;
    k_out = c.y;
    k.num_heads = k_out.num_heads = 1;
    k.dtype = 9; /* k is wrong: q must not be written either */
    assert_int_equal(pe_rope_apply_qk(plain, &c.at, &c.x, &c.y, &k, &k_out, &error),
                     PE_E_DTYPE);
    assert_non_null(strstr(error.message, "k"));
    k.dtype = PE_F32;
    k.seq_len = k_out.seq_len = 2;
    assert_int_equal(pe_rope_apply_qk(plain, &c.at, &c.x, &c.y, &k, &k_out, &error),
                     SHAPE);
    assert_int_equal(pe_rope_apply_qk(plain, &c.at, &c.x, &c.y, NULL, &k_out, &error),
                     ARG);
    assert_memory_equal(y_data, y_before, sizeof y_data);
}

static void test_incompatible(void **state)
{
    struct call c;
    pe_error error;
    pe_rope_spec spec = {.struct_size = sizeof spec,
                         .head_dim = DIM,
                         .pairs = {.pairing = PE_HALF_SPLIT},
                         .freqs = {.rope_theta = 500}};
    pe_rope *others[4];

    (void)state;
    begin(&c);
    spec.pairs.pairing = PE_INTERLEAVED;
    others[0] = create(&spec);
    spec.pairs.pairing = PE_HALF_SPLIT;
    spec.pairs.rotary_dim = 8;
    others[1] = create(&spec);
    spec.pairs.rotary_dim = 0;
    spec.head_dim = 18;
    others[2] = create(&spec);
    spec.head_dim = DIM;
    spec.pairs.out_pairing = PE_INTERLEAVED;
    others[3] = create(&spec);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(
            pe_rope_rebase(plain, &c.at, others[i], &c.at, &c.x, &c.y, &error),
            PE_E_INCOMPATIBLE);
        assert_int_not_equal(error.message[0], 0);
        pe_rope_destroy(others[i]);
    }
    assert_int_equal(pe_rope_rebase(plain, &c.at, NULL, &c.at, &c.x, &c.y, &error),
                     ARG);
    assert_int_equal(pe_rope_rebase(plain, &c.at, plain, NULL, &c.x, &c.y, &error),
                     ARG);
    assert_memory_equal(y_data, y_before, sizeof y_data);
}

static void test_table(void **state)
{
    struct call c;
    pe_error error;

    (void)state;
    begin(&c);
    c.x.num_heads = c.y.num_heads = 1;
    c.x.dim = c.y.dim = 7;
    assert_int_equal(pe_rope_table(plain, &c.at, &c.x, &c.y, &error), SHAPE);
    assert_non_null(strstr(error.message, "dim"));
    c.x.dim = c.y.dim = 8;
    c.x.num_heads = c.y.num_heads = 2;
    assert_int_equal(pe_rope_table(plain, &c.at, &c.x, &c.y, &error), SHAPE);
    assert_int_equal(pe_rope_table(plain, &c.at, NULL, &c.y, &error), ARG);
    c.x.num_heads = c.y.num_heads = 1;
    assert_int_equal(pe_rope_table(plain, NULL, &c.x, &c.y, &error), ARG);
    assert_int_equal(pe_rope_table(plain, &c.at, &c.y, &c.y, &error), ARG);
    assert_memory_equal(y_data, y_before, sizeof y_data);
}

static void test_permutation(void **state)
{
    int64_t rows[32];
    pe_error error;
    pe_pairs pairs = {.pairing = PE_INTERLEAVED, .out_pairing = PE_HALF_SPLIT};

    (void)state;
    memset(rows, 0x5a, sizeof rows);
    assert_int_equal(pe_pairs_permutation(NULL, 2, 16, rows, &error), ARG);
    assert_int_equal(pe_pairs_permutation(&pairs, 2, 16, NULL, &error), ARG);
    assert_int_equal(pe_pairs_permutation(&pairs, 0, 16, rows, &error), ARG);
    assert_int_equal(pe_pairs_permutation(&pairs, -1, 16, rows, &error), ARG);
    assert_int_equal(pe_pairs_permutation(&pairs, INT64_MAX, 16, rows, &error), ARG);
    assert_int_equal(pe_pairs_permutation(&pairs, 2, 15, rows, &error), ARG);
    assert_non_null(strstr(error.message, "15"));
    pairs.pairing = 0;
    assert_int_equal(pe_pairs_permutation(&pairs, 2, 16, rows, &error), ARG);
    assert_non_null(strstr(error.message, "pairing"));
    for (int i = 0; i < 32; i++)
        assert_int_equal(rows[i], 0x5a5a5a5a5a5a5a5a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),      cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_overflow),     cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_pages),        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_no_tokens),    cmocka_unit_test(test_qk),
        cmocka_unit_test(test_incompatible), cmocka_unit_test(test_table),
        cmocka_unit_test(test_permutation),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
