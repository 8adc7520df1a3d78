/* SPDX-License-Identifier: MIT
 *
 * test_absolute_refusals.c - every wrong spec and call is refused in words
 *
 * What was to be written must be as before, to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../support/refusal.h"
#include "posenc/env.h"

enum { DIM = 12, ROWS = 10, SEQ = 4 };

#define ARG PE_E_ARGUMENT

static float table[ROWS * DIM], x[2 * SEQ * DIM], y[2 * SEQ * DIM];

static void complain(int line, const char *complaint)
{
    if (complaint != NULL)
        fail_msg("line %d: %s", line, complaint);
}

static void sinusoidal_refused(int line, const pe_sinusoidal_spec *spec,
                               pe_status status, const char *words)
{
    pe_absolute *plan = (pe_absolute *)&status;
    pe_error error;

    const pe_status got = pe_sinusoidal_create(&plan, spec, NULL, &error);
    const char *complaint = test_refusal(&error, got, status, words);
    if (got == PE_OK)
        pe_absolute_destroy(plan);
    complain(line, complaint);
    assert_null(plan);
    assert_int_equal(pe_sinusoidal_create(&plan, spec, NULL, NULL), status);
}

#define SINUSOIDAL(status, words, ...)                                             \
  do {                                                                             \
    pe_sinusoidal_spec spec = {                                                    \
        .struct_size = sizeof spec, .order = PE_SIN_COS_HALVES, .model_dim = DIM}; \
    __VA_ARGS__;                                                                   \
    sinusoidal_refused(__LINE__, &spec, status, words);                            \
  } while (0)

static void test_sinusoidal_spec(void **state)
{
    const pe_sinusoidal_spec good = {
        .struct_size = sizeof good, .order = PE_SIN_COS_HALVES, .model_dim = DIM};
    const pe_env env = {.struct_size = sizeof env, .isa = 99};
    pe_absolute *plan = (pe_absolute *)&table;

    (void)state;
    assert_int_equal(pe_sinusoidal_create(NULL, &good, NULL, NULL), ARG);
    assert_int_equal(pe_sinusoidal_create(&plan, &good, &env, NULL), PE_E_UNSUPPORTED);
    assert_null(plan);
    sinusoidal_refused(__LINE__, NULL, ARG, "pe_sinusoidal_spec|NULL");
    SINUSOIDAL(ARG, "struct_size", spec.struct_size -= 8);
    SINUSOIDAL(ARG, "order|not set", spec.order = 0);
    SINUSOIDAL(ARG, "order|4|COS_SIN_HALVES", spec.order = 4);
    SINUSOIDAL(ARG, "order|-1", spec.order = -1);
    SINUSOIDAL(ARG, "model_dim|0", spec.model_dim = 0);
    SINUSOIDAL(ARG, "model_dim|-3", spec.model_dim = -3);
    SINUSOIDAL(ARG, "model_dim|2147483647|65536", spec.model_dim = INT32_MAX);
    SINUSOIDAL(ARG, "num_axes|5|12", spec.num_axes = 5);
    SINUSOIDAL(ARG, "num_axes|-1", spec.num_axes = -1);
    SINUSOIDAL(ARG, "model_dim|12|at least 2|12 axes", spec.num_axes = 12;
               spec.order = PE_COS_SIN_HALVES);
    SINUSOIDAL(ARG, "model_dim|1|at least 2", spec.model_dim = 1;
               spec.order = PE_COS_SIN_HALVES);
    SINUSOIDAL(ARG, "base|-5", spec.base = -5);
    SINUSOIDAL(ARG, "base|nan", spec.base = (double)NAN);
    SINUSOIDAL(ARG, "base|inf", spec.base = (double)INFINITY);
    SINUSOIDAL(ARG, "base|e-300", spec.base = 1e-300);
    SINUSOIDAL(ARG, "position_scale|-1", spec.position_scale = -1);
    SINUSOIDAL(ARG, "position_scale|nan", spec.position_scale = (double)NAN);
    SINUSOIDAL(ARG, "position_scale|2^41|2^40", spec.position_scale = 0x1p41);
    SINUSOIDAL(ARG, "value_scale|inf", spec.value_scale = -(double)INFINITY);
    SINUSOIDAL(ARG, "value_scale|e+30", spec.value_scale = -1e30);
    SINUSOIDAL(ARG, "embed_scale|nan", spec.embed_scale = (double)NAN);
    SINUSOIDAL(ARG, "downscale_freq_shift|6|half|(6)", spec.downscale_freq_shift = 6);
    SINUSOIDAL(ARG, "downscale_freq_shift|nan",
               spec.downscale_freq_shift = (double)NAN);
    SINUSOIDAL(ARG, "frequency 5|2^|-1000", spec.downscale_freq_shift = 5.99999);
    SINUSOIDAL(ARG, "frequency 5|2^40", spec.base = 1e-10;
               spec.downscale_freq_shift = 2);
    SINUSOIDAL(ARG, "angles|3", spec.angles = 3);
    SINUSOIDAL(PE_E_UNSUPPORTED, "PE_ANGLES_GGML_F32",
               spec.angles = PE_ANGLES_GGML_F32);
    SINUSOIDAL(PE_E_UNSUPPORTED, "num_axes|2|PE_ANGLES_HF_F32",
               spec.angles = PE_ANGLES_HF_F32;
               spec.num_axes = 2);
    SINUSOIDAL(PE_E_UNSUPPORTED, "position_scale|0.5|PE_ANGLES_HF_F32",
               spec.angles = PE_ANGLES_HF_F32;
               spec.position_scale = 0.5);
    SINUSOIDAL(ARG, "has_padding|2", spec.has_padding = 2);
    SINUSOIDAL(ARG, "padding_position|1|has_padding", spec.padding_position = 1);
    SINUSOIDAL(PE_E_UNSUPPORTED, "has_padding|num_axes 2", spec.has_padding = 1;
               spec.num_axes = 2);
    SINUSOIDAL(ARG, "table_len|-1", spec.table_len = -1);
    SINUSOIDAL(ARG, "table_len|no size", spec.table_len = INT64_MAX);
}

static void learned_refused(int line, const pe_learned_spec *spec, pe_status status,
                            const char *words)
{
    pe_absolute *plan = (pe_absolute *)&status;
    pe_error error;

    const pe_status got = pe_learned_create(&plan, spec, NULL, &error);
    const char *complaint = test_refusal(&error, got, status, words);
    if (got == PE_OK)
        pe_absolute_destroy(plan);
    complain(line, complaint);
    assert_null(plan);
}

#define LEARNED(status, words, ...)                                         \
  do {                                                                      \
    pe_tensor weight;                                                       \
    pe_tensor_bshd(&weight, PE_F32, table, 1, ROWS, 1, DIM);                \
    pe_learned_spec spec = {.struct_size = sizeof spec, .weight = &weight}; \
    __VA_ARGS__;                                                            \
    learned_refused(__LINE__, &spec, status, words);                        \
  } while (0)

static void test_learned_spec(void **state)
{
    static const int32_t pages[ROWS];

    (void)state;
    learned_refused(__LINE__, NULL, ARG, "pe_learned_spec|NULL");
    LEARNED(ARG, "struct_size", spec.struct_size = 4);
    LEARNED(ARG, "weight|NULL", spec.weight = NULL);
    LEARNED(ARG, "weight.data", weight.data = NULL);
    LEARNED(PE_E_DTYPE, "weight.dtype|0", weight.dtype = 0);
    LEARNED(PE_E_SHAPE, "weight|(2, 10, 1, 12)|model_dim", weight.batch = 2);
    LEARNED(PE_E_SHAPE, "weight|(1, 10, 3, 12)", weight.num_heads = 3);
    LEARNED(PE_E_SHAPE, "weight|(1, 0, 1, 12)", weight.seq_len = 0);
    LEARNED(ARG, "weight.page_table", weight.page_table = pages; weight.page_len = 1;
            weight.page_stride = DIM; weight.capacity = ROWS * DIM);
    LEARNED(ARG, "position_offset|-1|0 .. 9|10 rows", spec.position_offset = -1);
    LEARNED(ARG, "position_offset|10|0 .. 9|10 rows", spec.position_offset = 10);
    LEARNED(ARG, "embed_scale|inf", spec.embed_scale = (double)INFINITY);
}

/* --------------------------------------------------------------------- calls --- */

struct call {
    pe_positions at;
    pe_tensor x, y;
    const pe_tensor *x_arg, *y_arg;
    const pe_positions *at_arg;
};

static pe_absolute *learned_plan(void)
{
    pe_tensor weight;
    pe_absolute *plan = NULL;
    pe_tensor_bshd(&weight, PE_F32, table, 1, ROWS, 1, DIM);
    const pe_learned_spec spec = {
        .struct_size = sizeof spec, .weight = &weight, .position_offset = 2};

    assert_int_equal(pe_learned_create(&plan, &spec, NULL, NULL), PE_OK);
    return plan;
}

static pe_absolute *sinusoidal_plan(void)
{
    const pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                                     .order = PE_SIN_COS_INTERLEAVED,
                                     .model_dim = DIM,
                                     .num_axes = 2};
    pe_absolute *plan = NULL;

    assert_int_equal(pe_sinusoidal_create(&plan, &spec, NULL, NULL), PE_OK);
    return plan;
}

static struct call good_call(void)
{
    struct call c = {{0}, {0}, {0}, NULL, NULL, NULL};

    pe_tensor_bshd(&c.x, PE_F32, x, 2, SEQ, 1, DIM);
    pe_tensor_bshd(&c.y, PE_F32, y, 2, SEQ, 1, DIM);
    return c;
}

static void call_refused(int line, const struct call *c, const pe_absolute *plan,
                         pe_status status, const char *words)
{
    pe_error error;

    memset(y, 0x5a, sizeof y);
    const pe_status got = pe_absolute_add(plan, c->at_arg, c->x_arg, c->y_arg, &error);
    complain(line, test_refusal(&error, got, status, words));
    for (size_t i = 0; i < sizeof y; i++)
        assert_int_equal(((const unsigned char *)y)[i], 0x5a);
}

#define CALL(plan, status, words, ...)               \
  do {                                               \
    struct call c = good_call();                     \
    c.x_arg = &c.x;                                  \
    c.y_arg = &c.y;                                  \
    c.at_arg = &c.at;                                \
    __VA_ARGS__;                                     \
    call_refused(__LINE__, &c, plan, status, words); \
  } while (0)

static void test_calls(void **state)
{
    static const int64_t ids[4 * SEQ] = {0, 1, 2, 3, 4, 5, 8, 0};
    static const int64_t low[SEQ] = {-2, -1, 0, -3};
    static const int64_t starts[2] = {0, 5};
    static const double values[4 * SEQ] = {0, 1, 2, 3, 4, (double)NAN};
    pe_absolute *learned = learned_plan(), *sinusoidal = sinusoidal_plan();

    (void)state;
    CALL(NULL, ARG, "plan|NULL", c.at.start = 0);
    CALL(learned, ARG, "y|NULL", c.y_arg = NULL);
    CALL(learned, ARG, "x|NULL", c.x_arg = NULL);
    CALL(learned, ARG, "at|NULL", c.at_arg = NULL);
    CALL(learned, PE_E_SHAPE, "y.num_heads|2", c.y.num_heads = 2);
    CALL(learned, PE_E_SHAPE, "y.dim|11|12", c.y.dim = 11);
    CALL(learned, PE_E_SHAPE, "(2, 3, 1, 12)|(2, 4, 1, 12)", c.x.seq_len = 3);
    CALL(learned, ARG, "overlaps", c.x.data = y + 5);
    CALL(learned, ARG, "y|weight", c.y.data = table; c.x.data = table;
         c.x.batch = c.y.batch = 1);
    CALL(learned, ARG, "y|weight|overlaps", c.x.data = c.y.data = table + DIM;
         c.x.batch = c.y.batch = 1);
    CALL(learned, ARG, "values|whole", c.at.values = values);
    /* Table rows, offset, batch row and first bad token, each by its number. */
    CALL(learned, PE_E_POSITION, "position is 8|row 0, token 3|-2 .. 7|10 rows|is 2",
         c.at.start = 5);
    CALL(learned, PE_E_POSITION, "position is 8|row 1, token 3|10 rows",
         c.at.starts = starts);
    CALL(learned, PE_E_POSITION, "position is 8|row 1, token 2", c.at.ids = ids;
         c.at.batch_stride = SEQ);
    CALL(learned, PE_E_POSITION, "position is -3|row 0, token 3|-2 .. 7",
         c.at.ids = low);
    CALL(learned, PE_E_POSITION, "position is -9223372036854775808|token 0",
         c.at.start = INT64_MIN);
    CALL(learned, ARG, "num_axes|2", c.at.ids = ids; c.at.num_axes = 2;
         c.at.axis_stride = 1);
    CALL(sinusoidal, ARG, "num_axes|3|(2)", c.at.ids = ids; c.at.num_axes = 3;
         c.at.axis_stride = SEQ);
    CALL(sinusoidal, ARG, "axis_stride", c.at.ids = ids; c.at.num_axes = 2);
    CALL(sinusoidal, PE_E_POSITION, "values|row 1, token 1|nan", c.at.values = values;
         c.at.batch_stride = SEQ);
    CALL(sinusoidal, ARG, "2 sources", c.at.values = values; c.at.start = 1);
    pe_absolute_destroy(learned);
    pe_absolute_destroy(sinusoidal);
    assert_true(pe_absolute_capacity(NULL) == 0);
}

static void test_too_wide_groups(void **state)
{
    enum { WIDE = 4102 };
    static float scales[1];
    static int8_t wide[WIDE];
    const pe_sinusoidal_spec spec = {
        .struct_size = sizeof spec, .order = PE_SIN_COS_HALVES, .model_dim = WIDE};
    const pe_positions at = {0};
    pe_absolute *plan = NULL;
    pe_tensor out;
    pe_error error;

    (void)state;
    assert_int_equal(pe_sinusoidal_create(&plan, &spec, NULL, NULL), PE_OK);
    pe_tensor_bshd(&out, PE_I8, wide, 1, 1, 1, WIDE);
    out.scales = scales;
    const pe_status got = pe_absolute_fill(plan, &at, &out, &error);
    complain(__LINE__, test_refusal(&error, got, PE_E_LIMIT, "y.dim|4102|4096"));
    pe_absolute_destroy(plan);
}

static void test_backward(void **state)
{
    static float grad[ROWS * DIM];
    pe_absolute *learned = learned_plan(), *sinusoidal = sinusoidal_plan();
    const pe_positions at = {0}, late = {.start = 6};
    pe_tensor dy, dw;
    pe_error error;

    (void)state;
    pe_tensor_bshd(&dy, PE_F32, x, 2, SEQ, 1, DIM);
#define BACKWARD(plan, where, status, words, ...)                              \
  do {                                                                         \
    pe_tensor_bshd(&dw, PE_F32, grad, 1, ROWS, 1, DIM);                        \
    __VA_ARGS__;                                                               \
    const pe_status got = pe_absolute_backward(plan, where, &dy, &dw, &error); \
    complain(__LINE__, test_refusal(&error, got, status, words));              \
  } while (0)
    BACKWARD(NULL, &at, ARG, "plan|NULL", dw.batch = 1);
    BACKWARD(sinusoidal, &at, PE_E_UNSUPPORTED, "sinusoidal|weight", dw.batch = 1);
    BACKWARD(learned, NULL, ARG, "at|NULL", dw.batch = 1);
    BACKWARD(learned, &late, PE_E_POSITION, "position is 8|row 0, token 2|10 rows",
             dw.batch = 1);
    BACKWARD(learned, &at, PE_E_SHAPE, "dweight|(1, 9, 1, 12)|(1, 10, 1, 12)",
             dw.seq_len = 9);
    BACKWARD(learned, &at, PE_E_DTYPE, "dweight.dtype|2|PE_F32", dw.dtype = PE_F16);
    BACKWARD(learned, &at, PE_E_SHAPE, "dweight.seq_stride", dw.seq_stride = 0);
    BACKWARD(learned, &at, ARG, "dweight|dy", dw.data = x);
    BACKWARD(learned, &at, ARG, "dweight|weight", dw.data = table);
    for (int i = 0; i < ROWS * DIM; i++)
        assert_true(grad[i] == 0);
    pe_absolute_destroy(learned);
    pe_absolute_destroy(sinusoidal);
}

static void resize_refused(int line, const pe_resize *how, const pe_tensor *weight,
                           const pe_tensor *out, pe_status status, const char *words)
{
    pe_error error;

    memset(y, 0x5a, sizeof y);
    const pe_status got = pe_learned_resize(how, weight, out, NULL, &error);
    complain(line, test_refusal(&error, got, status, words));
    for (size_t i = 0; i < sizeof y; i++)
        assert_int_equal(((const unsigned char *)y)[i], 0x5a);
}

#define RESIZE(status, words, ...)                             \
  do {                                                         \
    pe_tensor from, to;                                        \
    pe_resize how = {.mode = PE_RESIZE_CUBIC,                  \
                     .prefix_rows = 1,                         \
                     .from_h = 3,                              \
                     .from_w = 3,                              \
                     .to_h = 7,                                \
                     .to_w = 1};                               \
    pe_tensor_bshd(&from, PE_F32, table, 1, ROWS, 1, DIM);     \
    pe_tensor_bshd(&to, PE_F32, y, 1, 8, 1, DIM);              \
    __VA_ARGS__;                                               \
    resize_refused(__LINE__, &how, &from, &to, status, words); \
  } while (0)

static void test_resize(void **state)
{
    pe_tensor t;

    (void)state;
    pe_tensor_bshd(&t, PE_F32, table, 1, ROWS, 1, DIM);
    resize_refused(__LINE__, NULL, &t, &t, ARG, "how|NULL");
    RESIZE(ARG, "mode|not set", how.mode = 0);
    RESIZE(ARG, "mode|3", how.mode = 3);
    RESIZE(ARG, "align_corners|2", how.align_corners = 2);
    RESIZE(ARG, "prefix_rows|-1", how.prefix_rows = -1);
    RESIZE(ARG, "from_h|0", how.from_h = 0);
    RESIZE(ARG, "to_w|0", how.to_w = 0);
    RESIZE(ARG, "to_h|2^30", how.to_h = INT64_MAX);
    RESIZE(ARG, "scale_h|-2", how.scale_h = -2);
    RESIZE(ARG, "scale_w|nan", how.scale_w = (double)NAN);
    RESIZE(ARG, "scale_w|align_corners", how.scale_w = 2; how.align_corners = 1);
    RESIZE(PE_E_SHAPE, "weight|10 rows|3 x 3 + 2 = 11", how.prefix_rows = 2);
    RESIZE(PE_E_SHAPE, "out|8 rows|7 x 2 + 1 = 15", how.to_w = 2);
    RESIZE(PE_E_SHAPE, "out.dim|11|12", to.dim = 11);
    RESIZE(PE_E_SHAPE, "weight|batch 2", from.batch = 2);
    RESIZE(PE_E_DTYPE, "out.dtype|9", to.dtype = 9);
    RESIZE(ARG, "out|weight", to.data = table);
    RESIZE(ARG, "out|overlaps|weight", to.data = table + 3 * DIM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sinusoidal_spec), cmocka_unit_test(test_learned_spec),
        cmocka_unit_test(test_calls),           cmocka_unit_test(test_too_wide_groups),
        cmocka_unit_test(test_backward),        cmocka_unit_test(test_resize),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
