/* SPDX-License-Identifier: MIT
 *
 * test_bias_bad.c - wrong specs and wrong calls are refused in words and write nothing
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/refusal.h"
#include "posenc/env.h"

enum { HEADS = 4, Q = 2, K = 3, B = 2, COUNT = B * HEADS * Q * K };

#define ARG   PE_E_ARGUMENT
#define SHAPE PE_E_SHAPE

static float numbers[8 * HEADS] = {1, 1, 1, 1, 1, 1, 1, 1};
static const float bad_numbers[HEADS] = {1, NAN, 1, 1};
static const float zero_numbers[HEADS] = {1, 1, 0, 1};
static const float big_numbers[HEADS] = {1, 1, 2, 2.5f};

static pe_bias_spec good(pe_bias_type type)
{
    pe_bias_spec spec = {.struct_size = sizeof spec,
                         .type = type,
                         .form = PE_BIAS_CAUSAL,
                         .num_heads = HEADS};
    if (type == PE_BIAS_T5) {
        spec.num_buckets = 8;
        spec.table = numbers;
    }
    if (type >= PE_BIAS_KERPLE_LOG)
        spec.kerple_p = spec.kerple_a = numbers;
    return spec;
}

static void refused(int line, const pe_bias_spec *spec, pe_status status,
                    const char *words)
{
    pe_bias *bias = (pe_bias *)&status; /* must become NULL */
    pe_error error;

    const pe_status got = pe_bias_create(&bias, spec, NULL, &error);
    const char *complaint = test_refusal(&error, got, status, words);
    if (got == PE_OK)
        pe_bias_destroy(bias);
    else if (bias != NULL)
        fail_msg("line %d: a plan came out", line);
    if (complaint != NULL)
        fail_msg("line %d: %s", line, complaint);
    assert_int_equal(pe_bias_create(&bias, spec, NULL, NULL), status);
}

/* SPEC(type, status, words, changes to the spec s) */
#define SPEC(type, status, words, ...)    \
  do {                                    \
    pe_bias_spec s = good(type);          \
    __VA_ARGS__;                          \
    refused(__LINE__, &s, status, words); \
  } while (0)

static void test_specs(void **state)
{
    const pe_bias_type A = PE_BIAS_ALIBI, T = PE_BIAS_T5, L = PE_BIAS_KERPLE_LOG,
                       P = PE_BIAS_KERPLE_POWER;
    pe_error error;
    (void)state;
    refused(__LINE__, NULL, ARG, "pe_bias_spec");
    assert_int_equal(pe_bias_create(NULL, NULL, NULL, &error), ARG);
    SPEC(A, ARG, "struct_size|8", s.struct_size = 8);
    SPEC(A, ARG, "type is 0|PE_BIAS_ALIBI (1)", s.type = 0);
    SPEC(A, ARG, "type is 5|PE_BIAS_KERPLE_POWER (4)", s.type = 5);
    SPEC(A, ARG, "form is 0|PE_BIAS_CAUSAL (1)|PE_BIAS_KEY_ONLY (3)", s.form = 0);
    SPEC(A, ARG, "form is 4", s.form = 4);
    SPEC(T, ARG, "form is PE_BIAS_KEY_ONLY (3)|PE_BIAS_T5", s.form = PE_BIAS_KEY_ONLY);
    SPEC(L, ARG, "form is PE_BIAS_KEY_ONLY (3)|PE_BIAS_KERPLE_LOG",
         s.form = PE_BIAS_KEY_ONLY);
    SPEC(A, ARG, "num_heads is 0|1 .. 65536", s.num_heads = 0);
    SPEC(A, ARG, "num_heads is -3", s.num_heads = -3);
    SPEC(A, ARG, "num_heads is 65537", s.num_heads = 65537);
    SPEC(A, ARG, "head_start is 4|num_heads (4)|whole model", s.head_start = 4);
    SPEC(A, ARG, "head_start is -1", s.head_start = -1);
    SPEC(A, ARG, "scale is nan", s.scale = NAN);
    SPEC(A, ARG, "scale is -1|over 0", s.scale = -1);
    SPEC(A, ARG, "scale is inf", s.scale = INFINITY);
    SPEC(A, ARG, "max_bias is -8|126", s.max_bias = -8);
    SPEC(A, ARG, "max_bias is 127|126", s.max_bias = 127);
    SPEC(A, ARG, "max_bias is nan", s.max_bias = NAN);
    SPEC(A, ARG, "slope_recipe is 2", s.slope_recipe = 2);
    SPEC(A, ARG, "round_to is 4|PE_BF16 (3)", s.round_to = PE_I8);
    SPEC(A, ARG, "slopes[1] is nan|finite", s.slopes = bad_numbers);
    SPEC(A, ARG, "slopes|max_bias", s.slopes = numbers, s.max_bias = 8);
    SPEC(A, ARG, "slopes|slope_recipe", s.slopes = numbers, s.slope_recipe = 1);
    SPEC(A, ARG, "num_buckets|PE_BIAS_ALIBI", s.num_buckets = 32);
    SPEC(A, ARG, "max_distance|PE_BIAS_ALIBI", s.max_distance = 128);
    SPEC(A, ARG, "table|PE_BIAS_ALIBI", s.table = numbers);
    SPEC(A, ARG, "kerple_p|PE_BIAS_ALIBI", s.kerple_p = numbers);
    SPEC(T, ARG, "kerple_a|PE_BIAS_T5", s.kerple_a = numbers);
    SPEC(T, ARG, "slopes|PE_BIAS_T5", s.slopes = numbers);
    SPEC(L, ARG, "round_to|PE_BIAS_KERPLE_LOG", s.round_to = PE_BF16);
    SPEC(P, ARG, "max_bias|PE_BIAS_KERPLE_POWER", s.max_bias = 8);
    SPEC(T, ARG, "table is NULL|[num_buckets][num_heads]", s.table = NULL);
    SPEC(T, ARG, "table[1] is nan", s.num_heads = 1, s.table = bad_numbers,
         s.num_buckets = 4);
    SPEC(T, ARG, "num_buckets is 1|2 .. 4096", s.num_buckets = 1);
    SPEC(T, ARG, "num_buckets is -8", s.num_buckets = -8);
    SPEC(T, ARG, "num_buckets is 3|4 .. 4096|bidirectional", s.num_buckets = 3,
         s.form = PE_BIAS_BIDIRECTIONAL);
    SPEC(T, ARG, "num_buckets is 4097", s.num_buckets = 4097);
    SPEC(T, ARG, "max_distance is 4|over 4", s.max_distance = 4);
    SPEC(T, ARG, "max_distance is -1", s.max_distance = -1);
    SPEC(T, ARG, "max_distance|2^52", s.max_distance = ((int64_t)1 << 52) + 1);
    SPEC(L, ARG, "kerple_p is NULL", s.kerple_p = NULL);
    SPEC(L, ARG, "kerple_a is NULL", s.kerple_a = NULL);
    SPEC(L, ARG, "kerple_p[1] is nan", s.kerple_p = bad_numbers);
    SPEC(L, ARG, "kerple_a[2] is 0|over 0", s.kerple_a = zero_numbers);
    SPEC(P, ARG, "kerple_p[3] is 2.5|at most 2", s.kerple_p = big_numbers);
}

/* What a case may change before the call. */
struct call {
    const pe_bias *bias;
    pe_tensor x, y;
    const pe_tensor *x_arg, *y_arg;
    pe_positions q_at, k_at;
    const pe_positions *q_arg, *k_arg;
    double scale;
    pe_mask mask;
    float *grad;
};

static pe_bias *whole, *slice;
static float x_data[COUNT], y_data[COUNT], y_before[COUNT], grad[HEADS], scales[COUNT];
static const int64_t far_ids[B * K] = {0, 1, 2, 0, 1, ((int64_t)1 << 52) + 1};

static int set_up(void **state)
{
    pe_bias_spec spec = good(PE_BIAS_ALIBI);
    (void)state;
    if (pe_bias_create(&whole, &spec, NULL, NULL) != PE_OK)
        return -1;
    spec.head_start = 2;
    if (pe_bias_create(&slice, &spec, NULL, NULL) != PE_OK)
        return -1;
    for (int i = 0; i < COUNT; i++)
        y_before[i] = y_data[i] = (float)i + 0.5f;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pe_bias_destroy(whole);
    pe_bias_destroy(slice);
    return 0;
}

static void begin(struct call *c)
{
    memset(c, 0, sizeof *c);
    c->bias = whole;
    pe_tensor_bhsd(&c->x, PE_F32, x_data, B, HEADS, Q, K);
    pe_tensor_bhsd(&c->y, PE_F32, y_data, B, HEADS, Q, K);
    c->x_arg = &c->x;
    c->y_arg = &c->y;
    c->q_arg = &c->q_at;
    c->k_arg = &c->k_at;
    c->scale = 1;
    c->mask = PE_MASK_CAUSAL;
    c->grad = grad;
}

enum { FILL = 1, ADD = 2, SOFTMAX = 4, BACKWARD = 8, WITH_X = 6, WITH_Y = 7, ALL = 15 };

static pe_status run(const struct call *c, int which, pe_error *error)
{
    switch (which) {
    case FILL:
        return pe_bias_fill(c->bias, c->q_arg, c->k_arg, c->y_arg, error);
    case ADD:
        return pe_bias_add(c->bias, c->q_arg, c->k_arg, c->x_arg, c->y_arg, error);
    case SOFTMAX:
        return pe_bias_softmax(c->bias, c->scale, c->mask, c->q_arg, c->k_arg, c->x_arg,
                               c->y_arg, error);
    default:
        return pe_bias_backward(c->bias, c->q_arg, c->k_arg, c->x_arg, c->grad, error);
    }
}

static void check(int line, const struct call *c, int calls, pe_status status,
                  const char *words)
{
    static const float no_grad[HEADS];
    for (int which = FILL; which <= BACKWARD; which *= 2) {
        if (!(calls & which))
            continue;
        pe_error error;
        const pe_status got = run(c, which, &error);
        const char *complaint = test_refusal(&error, got, status, words);
        if (complaint != NULL)
            fail_msg("line %d, call %d: %s", line, which, complaint);
        assert_int_equal(run(c, which, NULL), status);
    }
    if (memcmp(y_data, y_before, sizeof y_data) != 0 ||
        memcmp(grad, no_grad, sizeof grad) != 0)
        fail_msg("line %d: something was written", line);
}

/* CALL(calls, status, words, changes to the call c) */
#define CALL(calls, status, words, ...)        \
  do {                                         \
    struct call c;                             \
    begin(&c);                                 \
    __VA_ARGS__;                               \
    check(__LINE__, &c, calls, status, words); \
  } while (0)

static void test_calls(void **state)
{
    (void)state;
    CALL(ALL, ARG, "bias is NULL", c.bias = NULL);
    CALL(ALL, ARG, "q_at is NULL", c.q_arg = NULL);
    CALL(ALL, ARG, "k_at is NULL", c.k_arg = NULL);
    CALL(WITH_X, ARG, "x is NULL", c.x_arg = NULL);
    CALL(BACKWARD, ARG, "dscores is NULL", c.x_arg = NULL);
    CALL(BACKWARD, ARG, "grad is NULL", c.grad = NULL);
    CALL(WITH_Y, ARG, "y is NULL", c.y_arg = NULL);
    CALL(WITH_Y, ARG, "y.data is NULL", c.y.data = NULL);
    CALL(WITH_Y, SHAPE, "num_heads|0", c.y.num_heads = c.x.num_heads = 0);
    CALL(WITH_Y, SHAPE, "dim|-1", c.y.dim = c.x.dim = -1);
    CALL(WITH_X, SHAPE, "y|(2, 2, 4, 2)|(2, 2, 4, 3)", c.y.dim = 2);
    CALL(FILL, SHAPE, "y.num_heads is 4|at most 2|2 .. 3", c.bias = slice);
    CALL(ADD | SOFTMAX, SHAPE, "x.num_heads is 4|at most 2", c.bias = slice);
    CALL(BACKWARD, SHAPE, "dscores.num_heads is 4|at most 2", c.bias = slice);
    CALL(WITH_Y, PE_E_DTYPE, "y.dtype is 4|PE_BF16 (3)", c.y.dtype = PE_I8,
         c.y.scales = scales);
    CALL(WITH_X, PE_E_DTYPE, "x.dtype is 4", c.x.dtype = PE_I8, c.x.scales = scales);
    CALL(WITH_Y, SHAPE, "y.seq_stride is 2|dim (3)", c.y.seq_stride = 2);
    CALL(WITH_X, ARG, "x|y|overlap", c.x.data = y_data + 1);
    CALL(ALL, ARG, "q_at|2 sources", c.q_at.start = 1, c.q_at.ids = far_ids);
    CALL(ALL, ARG, "q_at.num_axes is 3|(1)", c.q_at.num_axes = 3);
    CALL(ALL, ARG, "k_at.reserved", c.k_at.reserved = 1);
    CALL(ALL, ARG, "k_at.values|whole", c.k_at.values = (const double[]){0, 1, 2});
    CALL(ALL, PE_E_POSITION, "k_at of row 1, token 2 is 4503599627370497|2^52",
         c.k_at.ids = far_ids, c.k_at.batch_stride = K);
    CALL(ALL, PE_E_POSITION, "q_at of row 0, token 0|2^52", c.q_at.start = INT64_MIN);
    CALL(ALL, PE_E_POSITION, "q_at of row 1, token 0|-9007199254740992",
         c.q_at.starts = (const int64_t[]){0, -((int64_t)1 << 53)});
    CALL(SOFTMAX, ARG, "scale is nan", c.scale = NAN);
    CALL(SOFTMAX, ARG, "scale is inf", c.scale = INFINITY);
    CALL(SOFTMAX, ARG, "mask is 0|PE_MASK_CAUSAL (2)", c.mask = 0);
    CALL(SOFTMAX, ARG, "mask is 3", c.mask = 3);
}

/* --------------------------------------------------------------- allocation --- */

static int live, allowed;

static void *counted_alloc(void *ctx, size_t size, size_t alignment)
{
    (void)ctx;
    if (allowed-- <= 0)
        return NULL;
    live++;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void counted_release(void *ctx, void *ptr, size_t size, size_t alignment)
{
    (void)ctx;
    (void)size;
    (void)alignment;
    live--;
    free(ptr);
}

static void test_allocation(void **state)
{
    const pe_env env = {.struct_size = sizeof env,
                        .allocator = {counted_alloc, counted_release, NULL}};
    const pe_positions at = {0};
    (void)state;
    for (pe_bias_type type = PE_BIAS_ALIBI; type <= PE_BIAS_KERPLE_POWER; type++) {
        const pe_bias_spec spec = good(type);
        float gradient[8 * HEADS] = {0};
        int k = 0;
        for (;; k++) {
            pe_bias *bias = (pe_bias *)&live;
            pe_error error;
            allowed = k;
            const pe_status status = pe_bias_create(&bias, &spec, &env, &error);
            if (status == PE_OK) {
                pe_tensor t;
                float scores[COUNT] = {0};
                pe_tensor_bhsd(&t, PE_F32, scores, B, HEADS, Q, K);
                allowed = 0; /* and no call allocates */
                assert_int_equal(pe_bias_fill(bias, &at, &at, &t, NULL), PE_OK);
                assert_int_equal(pe_bias_add(bias, &at, &at, &t, &t, NULL), PE_OK);
                assert_int_equal(
                    pe_bias_softmax(bias, 1, PE_MASK_CAUSAL, &at, &at, &t, &t, NULL),
                    PE_OK);
                assert_int_equal(pe_bias_backward(bias, &at, &at, &t, gradient, NULL),
                                 PE_OK);
                pe_bias_destroy(bias);
                break;
            }
            assert_int_equal(status, PE_E_NO_MEMORY);
            assert_null(bias);
            assert_int_equal(live, 0);
            assert_non_null(strstr(error.message, "out of memory"));
        }
        assert_true(k > 0);
        assert_int_equal(live, 0);
    }
    pe_bias_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_specs),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_allocation),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
