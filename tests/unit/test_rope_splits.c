/* SPDX-License-Identifier: MIT
 *
 * test_rope_splits.c - the same bits however the work is cut
 *
 * A table row and the row computed on the fly; the whole tensor and its slices by
 * batch, token and head; one thread and several; q and k together or one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "../support/executor.h"
#include "../support/rng.h"
#include "posenc/posenc.h"

enum { BATCH = 3, HEADS = 5, DIM = 38, TOKENS = 23 };
enum { SIZE = BATCH * TOKENS * HEADS * DIM, ROUNDS = 60 };

static const pe_angles all_angles[] = {PE_ANGLES_EXACT, PE_ANGLES_HF_F32,
                                       PE_ANGLES_GGML_F32};

static pe_rope_spec draw_spec(test_rng *r)
{
    pe_rope_spec spec = {.struct_size = sizeof spec, .head_dim = DIM};

    spec.angles = all_angles[test_rng_int(r, 0, 2)];
    spec.pairs.pairing = (pe_pairing)test_rng_int(r, 1, 2);
    spec.pairs.out_pairing = (pe_pairing)test_rng_int(r, 0, 2);
    spec.pairs.rotary_dim = 2 * (int32_t)test_rng_int(r, 3, DIM / 2);
    spec.freqs.rope_theta = 10000;
    if (test_rng_int(r, 0, 1)) {
        spec.freqs.rope_type = PE_ROPE_YARN;
        spec.freqs.factor = 8;
        spec.freqs.original_max_position_embeddings = 64;
    }
    if (test_rng_int(r, 0, 1)) {
        const int32_t third = spec.pairs.rotary_dim / 6;
        spec.axes.map = PE_AXIS_CHUNKED;
        spec.axes.section[0] = spec.pairs.rotary_dim / 2 - 2 * third;
        spec.axes.section[1] = spec.axes.section[2] = third;
    }
    return spec;
}

static pe_rope *create(const pe_rope_spec *spec, const pe_executor *executor)
{
    pe_env env = {.struct_size = sizeof env};
    pe_rope *rope = NULL;
    pe_error error;

    if (executor != NULL)
        env.executor = *executor;
    if (pe_rope_create(&rope, spec, &env, &error) != PE_OK)
        fail_msg("%s", error.message);
    return rope;
}

static void ok(pe_status status, const pe_error *error)
{
    if (status != PE_OK)
        fail_msg("%s", error->message);
}

struct ids {
    int64_t values[3 * BATCH * TOKENS];
    pe_positions at;
};

static void draw_ids(struct ids *ids, test_rng *r, const pe_rope *rope)
{
    const int32_t axes = pe_rope_get_info(rope)->num_axes;

    for (int i = 0; i < 3 * BATCH * TOKENS; i++)
        ids->values[i] = test_rng_int(r, -200, 200);
    ids->at = (pe_positions){.ids = ids->values, .batch_stride = TOKENS};
    if (axes > 1) {
        ids->at.num_axes = axes;
        ids->at.axis_stride = BATCH * TOKENS;
    }
}

static void fill(test_rng *r, float *x)
{
    for (int i = 0; i < SIZE; i++)
        x[i] = test_rng_float(r);
}

static void tensor(pe_tensor *t, const float *data)
{
    pe_tensor_bshd(t, PE_F32, data, BATCH, TOKENS, HEADS, DIM);
}

/* With table_len 0, with one that covers all positions, and with one that ends in the
 * middle of them: one and the same table and rotation. */
static void test_table_is_only_a_cache(void **state)
{
    static float x[SIZE], y[2][SIZE], tables[2][2][BATCH * TOKENS * DIM];
    static const int64_t lengths[] = {300, 100, 1};
    test_rng r = {11};

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pe_rope_spec spec = draw_spec(&r);
        struct ids ids;
        pe_tensor x_t, y_t, cos_t, sin_t;
        pe_error error;

        fill(&r, x);
        for (int cached = 0; cached < 2; cached++) {
            spec.table_len = cached ? lengths[round % 3] : 0;
            pe_rope *rope = create(&spec, NULL);
            const int64_t width = pe_rope_get_info(rope)->num_pairs;
            if (cached == 0)
                draw_ids(&ids, &r, rope);
            tensor(&x_t, x);
            tensor(&y_t, y[cached]);
            ok(pe_rope_apply(rope, &ids.at, &x_t, &y_t, &error), &error);
            pe_tensor_bshd(&cos_t, PE_F32, tables[cached][0], BATCH, TOKENS, 1, width);
            pe_tensor_bshd(&sin_t, PE_F32, tables[cached][1], BATCH, TOKENS, 1, width);
            ok(pe_rope_table(rope, &ids.at, &cos_t, &sin_t, &error), &error);
            pe_rope_destroy(rope);
        }
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        assert_memory_equal(tables[0], tables[1], sizeof tables[0]);
    }
}

/* A run of positions from start, from ids one by one, and a token at a time. */
static void test_runs_are_single_rows(void **state)
{
    enum { PAIRS = DIM / 2 };
    static float run[2][TOKENS * PAIRS], one[2][PAIRS];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pe_rope_spec spec = {.struct_size = sizeof spec,
                             .head_dim = DIM,
                             .angles = all_angles[round % 3],
                             .pairs = {.pairing = PE_HALF_SPLIT},
                             .freqs = {.rope_theta = 10000}};
        static const int64_t starts[] = {0, -11, 2147483640, -2147483660,
                                         1099511627760};
        pe_rope *rope = create(&spec, NULL);
        const pe_positions at = {.start = starts[round % 5]};
        pe_tensor cos_t, sin_t;
        pe_error error;

        pe_tensor_bshd(&cos_t, PE_F32, run[0], 1, TOKENS, 1, PAIRS);
        pe_tensor_bshd(&sin_t, PE_F32, run[1], 1, TOKENS, 1, PAIRS);
        ok(pe_rope_table(rope, &at, &cos_t, &sin_t, &error), &error);
        for (int64_t t = 0; t < TOKENS; t++) {
            const double value = (double)(at.start + t);
            const int64_t id = at.start + t;
            const pe_positions singles[] = {
                {.start = id}, {.ids = &id}, {.values = &value}};
            for (int s = 0; s < 3; s++) {
                pe_tensor_bshd(&cos_t, PE_F32, one[0], 1, 1, 1, PAIRS);
                pe_tensor_bshd(&sin_t, PE_F32, one[1], 1, 1, 1, PAIRS);
                ok(pe_rope_table(rope, &singles[s], &cos_t, &sin_t, &error), &error);
                assert_memory_equal(one[0], run[0] + t * PAIRS, sizeof one[0]);
                assert_memory_equal(one[1], run[1] + t * PAIRS, sizeof one[1]);
            }
        }
        pe_rope_destroy(rope);
    }
}

static void test_slices_are_the_whole(void **state)
{
    static float x[SIZE], whole[SIZE], parts[SIZE];
    test_rng r = {13};

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const pe_rope_spec spec = draw_spec(&r);
        pe_rope *rope = create(&spec, NULL);
        struct ids ids;
        pe_tensor x_t, y_t;
        pe_error error;

        draw_ids(&ids, &r, rope);
        fill(&r, x);
        tensor(&x_t, x);
        tensor(&y_t, whole);
        ok(pe_rope_apply(rope, &ids.at, &x_t, &y_t, &error), &error);
        memset(parts, 0, sizeof parts);
        for (int64_t b = 0; b < BATCH; b++)
            for (int64_t h = 0; h < HEADS; h += 2)
                for (int64_t t = 0; t < TOKENS; t += 7) {
                    const int64_t e =
                        b * x_t.batch_stride + t * x_t.seq_stride + h * x_t.head_stride;
                    pe_tensor x_part = x_t, y_part = y_t;
                    pe_positions at = ids.at;
                    x_part.data = x + e;
                    y_part.data = parts + e;
                    x_part.batch = y_part.batch = 1;
                    x_part.num_heads = y_part.num_heads = h + 2 > HEADS ? 1 : 2;
                    x_part.seq_len = y_part.seq_len = t + 7 > TOKENS ? TOKENS - t : 7;
                    at.ids += b * TOKENS + t;
                    ok(pe_rope_apply(rope, &at, &x_part, &y_part, &error), &error);
                }
        assert_memory_equal(whole, parts, sizeof whole);
        pe_rope_destroy(rope);
    }
}

static void test_executors_agree(void **state)
{
    static const pe_executor *const executors[] = {&test_executor_backwards,
                                                   &test_executor_threads};
    static float x[SIZE], one[SIZE], many[SIZE];
    static float k[SIZE], k_one[SIZE], k_many[SIZE];
    test_rng r = {14};

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pe_rope_spec spec = draw_spec(&r);
        struct ids ids;
        pe_tensor x_t, y_t, k_t, k_out;
        pe_error error;

        spec.table_len = round % 2 ? 100 : 0;
        pe_rope *rope = create(&spec, NULL);
        pe_rope *split = create(&spec, executors[round / 2 % 2]);
        draw_ids(&ids, &r, rope);
        fill(&r, x);
        fill(&r, k);
        tensor(&x_t, x);
        tensor(&y_t, one);
        ok(pe_rope_apply(rope, &ids.at, &x_t, &y_t, &error), &error);
        tensor(&k_t, k);
        tensor(&k_out, k_one);
        k_t.num_heads = k_out.num_heads = 2;
        ok(pe_rope_apply(rope, &ids.at, &k_t, &k_out, &error), &error);
        y_t.data = many;
        k_out.data = k_many;
        ok(pe_rope_apply_qk(split, &ids.at, &x_t, &y_t, &k_t, &k_out, &error), &error);
        assert_memory_equal(one, many, sizeof one);
        assert_memory_equal(k_one, k_many, sizeof k_one);
        ok(pe_rope_apply(split, &ids.at, &x_t, &x_t, &error), &error);
        assert_memory_equal(one, x, sizeof one);
        ok(pe_rope_shift(rope, -17, &x_t, &y_t, &error), &error);
        ok(pe_rope_shift(split, -17, &x_t, &x_t, &error), &error);
        assert_memory_equal(many, x, sizeof many);
        ok(pe_rope_inverse(rope, &ids.at, &x_t, &y_t, &error), &error);
        ok(pe_rope_inverse(split, &ids.at, &x_t, &x_t, &error), &error);
        assert_memory_equal(many, x, sizeof many);
        pe_rope_destroy(rope);
        pe_rope_destroy(split);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_only_a_cache),
        cmocka_unit_test(test_runs_are_single_rows),
        cmocka_unit_test(test_slices_are_the_whole),
        cmocka_unit_test(test_executors_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
