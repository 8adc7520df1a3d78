/* SPDX-License-Identifier: MIT
 *
 * test_kv.c - the cache helper against full recomputation
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/box.h"
#include "../support/refusal.h"
#include "posenc/attention.h"

enum { HEADS = 2, DIM = 32, V_DIM = 16, LEN = 300 };

static float keys[LEN * HEADS * DIM], values[LEN * HEADS * V_DIM];

static pe_rope *make_rope(double factor)
{
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = DIM,
        .pairs = {.pairing = PE_HALF_SPLIT},
        .freqs = {.rope_type = factor > 1 ? PE_ROPE_YARN : PE_ROPE_DEFAULT,
                  .rope_theta = 10000,
                  .factor = factor > 1 ? factor : 0,
                  .original_max_position_embeddings = factor > 1 ? 64 : 0}};
    pe_rope *rope;
    pe_error error;

    if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    return rope;
}

static void fill(void)
{
    test_rng r = {3};

    for (int i = 0; i < LEN * HEADS * DIM; i++)
        keys[i] = test_rng_float(&r);
    for (int i = 0; i < LEN * HEADS * V_DIM; i++)
        values[i] = test_rng_float(&r);
}

static pe_kv *make_kv(const pe_rope *rope, pe_dtype dtype)
{
    const pe_codec *codec = dtype == PE_CODED ? &test_codec : NULL;
    const pe_kv_spec spec = {.struct_size = sizeof spec,
                             .num_kv_heads = HEADS,
                             .head_dim = DIM,
                             .v_head_dim = V_DIM,
                             .k_dtype = dtype,
                             .v_dtype = dtype,
                             .k_codec = codec,
                             .v_codec = codec,
                             .rope = rope,
                             .capacity = LEN};
    pe_kv *kv;
    pe_error error;

    if (pe_kv_create(&kv, &spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    return kv;
}

static pe_status append(pe_kv *kv, int64_t token, int64_t count, int64_t position,
                        pe_error *error)
{
    const pe_positions at = {.start = position};
    pe_tensor k, v;

    pe_tensor_bshd(&k, PE_F32, keys + token * HEADS * DIM, 1, count, HEADS, DIM);
    pe_tensor_bshd(&v, PE_F32, values + token * HEADS * V_DIM, 1, count, HEADS, V_DIM);
    return pe_kv_append(kv, &at, &k, &v, error);
}

/* The cache holds source token source[t] at position position[t] as its token t. */
static void check(const pe_kv *kv, const pe_rope *rope, int64_t len,
                  const int64_t *source, const int64_t *position, double factor)
{
    static float exact[LEN * HEADS * DIM], got[LEN * HEADS * DIM];
    static float got_v[LEN * HEADS * V_DIM];
    const pe_kv_info *info = pe_kv_get_info(kv);
    const int64_t runs = (len + 63) / 64;
    pe_tensor e, g, gv;

    assert_int_equal(info->len, len);
    for (int64_t t = 0; t < len; t++) {
        memcpy(exact + t * HEADS * DIM, keys + source[t] * HEADS * DIM,
               HEADS * DIM * sizeof(float));
        assert_int_equal(info->at.ids[t], position[t]);
    }
    pe_tensor_bshd(&e, PE_F32, exact, 1, len, HEADS, DIM);
    pe_tensor_bshd(&g, PE_F32, got, 1, len, HEADS, DIM);
    pe_tensor_bshd(&gv, PE_F32, got_v, 1, len, HEADS, V_DIM);
    const pe_positions at = {.ids = position};
    if (rope != NULL)
        assert_int_equal(pe_rope_apply(rope, &at, &e, &e, NULL), PE_OK);
    assert_int_equal(pe_tensor_copy(&info->k, &g, NULL, NULL), PE_OK);
    assert_int_equal(pe_tensor_copy(&info->v, &gv, NULL, NULL), PE_OK);
    double worst = 0;
    for (int64_t t = 0; t < len; t++)
        for (int64_t h = 0; h < HEADS; h++) {
            double lost = 0, length = 0;
            for (int64_t d = 0; d < DIM; d++) {
                const int64_t i = (t * HEADS + h) * DIM + d;
                lost += pow((double)got[i] - (double)exact[i], 2);
                length += pow((double)got[i], 2);
            }
            worst = fmax(worst, sqrt(lost));
            assert_true((double)info->k_norms[h * runs + t / 64] >= sqrt(length));
            for (int64_t d = 0; d < V_DIM; d++)
                assert_true(
                    fabs((double)(got_v[(t * HEADS + h) * V_DIM + d] -
                                  values[(source[t] * HEADS + h) * V_DIM + d])) < 5e-3);
        }
    assert_true(worst <= info->k_error);
    /* And the bound is of some use. */
    assert_true(info->k_error <= 20 * worst + 3e-6 * factor);
    for (int64_t i = 0; i < HEADS * runs; i++)
        assert_true(info->k_norms[i] < 2 * sqrtf(DIM) * (float)factor);
}

static void count_up(int64_t *x, int64_t n, int64_t from)
{
    for (int64_t t = 0; t < n; t++)
        x[t] = from + t;
}

static void check_dtype(pe_dtype dtype)
{
    pe_rope *rope = make_rope(1), *longer = make_rope(4);
    pe_kv *kv = make_kv(rope, dtype), *fork;
    int64_t source[LEN], position[LEN];
    pe_error error;

    fill();
    for (int64_t t = 0; t < 200;) {
        const int64_t n = t % 3 == 0 ? 1 : 70 < 200 - t ? 70 : 200 - t;
        assert_int_equal(append(kv, t, n, t, &error), PE_OK);
        t += n;
    }
    count_up(source, 200, 0);
    count_up(position, 200, 0);
    check(kv, rope, 200, source, position, 1);
    assert_int_equal(pe_kv_get_info(kv)->next, 200);

    /* StreamingLLM: four sinks stay, the next 90 go, the rest moves up. */
    assert_int_equal(pe_kv_evict(kv, 4, 90, PE_GAP_CLOSE, &error), PE_OK);
    count_up(source + 4, 106, 94);
    check(kv, rope, 110, source, position, 1);
    assert_int_equal(pe_kv_get_info(kv)->next, 110);
    assert_int_equal(pe_kv_fork(&fork, kv, &error), PE_OK);

    /* A sliding window keeps positions. */
    assert_int_equal(pe_kv_evict(kv, 0, 30, PE_GAP_KEEP, &error), PE_OK);
    count_up(source, 80, 120);
    count_up(position, 80, 30);
    check(kv, rope, 80, source, position, 1);
    assert_int_equal(append(kv, 200, 50, 110, &error), PE_OK);
    count_up(source + 80, 50, 200);
    count_up(position + 80, 50, 110);
    check(kv, rope, 130, source, position, 1);

    /* Another plan: LongRoPE's switch. */
    assert_int_equal(pe_kv_rebase(kv, longer, &error), PE_OK);
    check(kv, longer, 130, source, position,
          pe_rope_get_info(longer)->attention_factor);

    /* The fork knows nothing of it. */
    count_up(source, 4, 0);
    count_up(source + 4, 106, 94);
    count_up(position, 110, 0);
    check(fork, rope, 110, source, position, 1);
    pe_kv_destroy(fork);
    pe_kv_destroy(kv);
    pe_rope_destroy(rope);
    pe_rope_destroy(longer);
}

static void test_dtypes(void **state)
{
    (void)state;
    for (pe_dtype dtype = PE_F32; dtype <= PE_CODED; dtype++)
        check_dtype(dtype);
}

/* Ten shifts of an int8 cache: the reported bound grows, and holds. */
static void test_many_shifts(void **state)
{
    (void)state;
    pe_rope *rope = make_rope(1);
    pe_kv *kv = make_kv(rope, PE_I8);
    int64_t source[LEN], position[LEN];
    double last;
    pe_error error;

    fill();
    assert_int_equal(append(kv, 0, LEN, 0, &error), PE_OK);
    last = pe_kv_get_info(kv)->k_error;
    for (int i = 1; i <= 10; i++) {
        assert_int_equal(pe_kv_evict(kv, 4, 20, PE_GAP_CLOSE, &error), PE_OK);
        const int64_t len = LEN - 20 * i;
        count_up(source, 4, 0);
        count_up(source + 4, len - 4, 4 + 20 * i);
        count_up(position, len, 0);
        check(kv, rope, len, source, position, 1);
        assert_true(pe_kv_get_info(kv)->k_error > last);
        last = pe_kv_get_info(kv)->k_error;
    }
    pe_kv_destroy(kv);
    pe_rope_destroy(rope);
}

static void test_unrotated(void **state)
{
    (void)state;
    pe_kv *kv = make_kv(NULL, PE_F16);
    pe_rope *rope = make_rope(1);
    int64_t source[LEN], position[LEN];
    pe_error error;

    fill();
    assert_int_equal(append(kv, 0, 100, 7, &error), PE_OK);
    assert_int_equal(pe_kv_evict(kv, 0, 10, PE_GAP_CLOSE, &error), PE_OK);
    count_up(source, 90, 10);
    count_up(position, 90, 7);
    check(kv, NULL, 90, source, position, 1);
    assert_null(test_refusal(&error, pe_kv_rebase(kv, rope, &error), PE_E_INCOMPATIBLE,
                             "no rope"));
    pe_rope_destroy(rope);
    pe_kv_destroy(kv);
}

static void test_refusals(void **state)
{
    (void)state;
    pe_rope *rope = make_rope(1);
    pe_kv *kv = make_kv(rope, PE_F16), *none = kv;
    pe_error error;
    pe_kv_spec spec = {.struct_size = sizeof spec,
                       .num_kv_heads = HEADS,
                       .head_dim = DIM,
                       .k_dtype = PE_F16,
                       .v_dtype = PE_F16};

    fill();
    assert_null(test_refusal(&error, pe_kv_create(&none, &spec, NULL, &error),
                             PE_E_ARGUMENT, "capacity|0"));
    assert_null(none);
    spec.capacity = 10;
    spec.v_dtype = 0;
    assert_null(test_refusal(&error, pe_kv_create(&none, &spec, NULL, &error),
                             PE_E_DTYPE, "v.dtype|0"));
    spec.v_dtype = PE_F32;
    spec.head_dim = DIM + 2;
    spec.rope = rope;
    assert_null(test_refusal(&error, pe_kv_create(&none, &spec, NULL, &error),
                             PE_E_INCOMPATIBLE, "head_dim|32|34"));
    assert_int_equal(append(kv, 0, LEN - 1, 0, &error), PE_OK);
    assert_null(test_refusal(&error, append(kv, 0, 2, 0, &error), PE_E_LIMIT,
                             "299|2|capacity (300)"));
    assert_int_equal(pe_kv_get_info(kv)->len, LEN - 1);
    assert_null(test_refusal(&error, pe_kv_evict(kv, 290, 10, PE_GAP_KEEP, &error),
                             PE_E_ARGUMENT, "first|290|10|299"));
    assert_null(test_refusal(&error, pe_kv_evict(kv, 0, 1, 0, &error), PE_E_ARGUMENT,
                             "gap is 0"));
    pe_kv_destroy(kv);
    pe_rope_destroy(rope);
}

/* Attention over the cache is attention over the same keys. */
static void test_attends(void **state)
{
    (void)state;
    enum { Q_HEADS = 4 };
    pe_rope *rope = make_rope(1);
    pe_kv *kv = make_kv(rope, PE_F32);
    float q[Q_HEADS * DIM], a[Q_HEADS * V_DIM], b[Q_HEADS * V_DIM];
    test_rng r = {4};
    pe_error error;
    pe_tensor q_t, k_t, v_t, a_t, b_t;
    pe_attention *plans[2];

    fill();
    for (int i = 0; i < Q_HEADS * DIM; i++)
        q[i] = test_rng_float(&r);
    assert_int_equal(append(kv, 0, 250, 0, &error), PE_OK);
    pe_tensor_bshd(&q_t, PE_F32, q, 1, 1, Q_HEADS, DIM);
    pe_tensor_bshd(&k_t, PE_F32, keys, 1, 250, HEADS, DIM);
    pe_tensor_bshd(&v_t, PE_F32, values, 1, 250, HEADS, V_DIM);
    pe_tensor_bshd(&a_t, PE_F32, a, 1, 1, Q_HEADS, V_DIM);
    pe_tensor_bshd(&b_t, PE_F32, b, 1, 1, Q_HEADS, V_DIM);
    const pe_positions q_at = {.start = 249}, k_at = {.start = 0};
    for (int i = 0; i < 2; i++) {
        const pe_attention_spec spec = {.struct_size = sizeof spec,
                                        .num_heads = Q_HEADS,
                                        .num_kv_heads = HEADS,
                                        .head_dim = DIM,
                                        .v_head_dim = V_DIM,
                                        .q_rope = rope,
                                        .k_rope = i ? NULL : rope,
                                        .visible = {.mask = PE_MASK_CAUSAL}};
        const pe_kv_info *info = pe_kv_get_info(kv);
        const pe_attention_args args = {.struct_size = sizeof args,
                                        .q = &q_t,
                                        .k = i ? &info->k : &k_t,
                                        .v = i ? &info->v : &v_t,
                                        .out = i ? &b_t : &a_t,
                                        .q_at = &q_at,
                                        .k_at = i ? &info->at : &k_at,
                                        .k_norms = i ? info->k_norms : NULL};
        size_t size;
        assert_int_equal(pe_attention_create(&plans[i], &spec, NULL, &error), PE_OK);
        assert_int_equal(pe_attention_workspace(plans[i], &args, &size, NULL, &error),
                         PE_OK);
        void *work = aligned_alloc(64, (size + 63) / 64 * 64);
        assert_int_equal(pe_attention_forward(plans[i], &args, work, size, &error),
                         PE_OK);
        free(work);
        pe_attention_destroy(plans[i]);
    }
    for (int i = 0; i < Q_HEADS * V_DIM; i++)
        assert_true(fabsf(a[i] - b[i]) < 1e-6f);
    pe_kv_destroy(kv);
    pe_rope_destroy(rope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),    cmocka_unit_test(test_many_shifts),
        cmocka_unit_test(test_unrotated), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_attends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
