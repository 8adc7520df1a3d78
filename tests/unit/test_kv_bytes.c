/* SPDX-License-Identifier: MIT
 *
 * test_kv_bytes.c - what a cache holds in int8 or blocks is not coded a second time
 *
 * Codes are drawn, not made from values: no encoder would give them back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/bits16.h"
#include "../support/box.h"
#include "posenc/attention.h"

enum { HEADS = 2, DIM = 64, LEN = 150, BLOCK = 32 };

/* q8_0: 32 int8 and a half-precision scale. */
typedef struct q8_0 {
    uint16_t scale;
    int8_t codes[BLOCK];
} q8_0;

static void q8_0_decode(void *ctx, const void *src, float *dst, int64_t count)
{
    const q8_0 *block = src;

    (void)ctx;
    for (int64_t i = 0; i < count; i++)
        dst[i] = (float)(test_f16_value(block[i / BLOCK].scale) *
                         block[i / BLOCK].codes[i % BLOCK]);
}

static void q8_0_encode(void *ctx, const float *src, void *dst, int64_t count)
{
    q8_0 *block = dst;

    (void)ctx;
    for (int64_t i = 0; i < count; i += BLOCK, block++, src += BLOCK) {
        float top = 0;
        for (int j = 0; j < BLOCK; j++)
            top = fmaxf(top, fabsf(src[j]));
        block->scale = test_f16_nearest((double)top / 127);
        const double scale = test_f16_value(block->scale);
        for (int j = 0; j < BLOCK; j++)
            block->codes[j] =
                (int8_t)fmin(127, scale > 0 ? rint((double)src[j] / scale) : 0);
    }
}

static const pe_codec q8_0_codec = {.block_len = BLOCK,
                                    .block_size = sizeof(q8_0),
                                    .decode = q8_0_decode,
                                    .encode = q8_0_encode};

/* Keys or values of LEN tokens: int8 with a scale a vector, or q8_0. */
static union {
    int8_t codes[LEN * HEADS * DIM];
    q8_0 blocks[LEN * HEADS * DIM / BLOCK];
} source;
static float scales[LEN * HEADS];

static void draw(pe_dtype dtype)
{
    test_rng r = {41};

    for (int i = 0; i < LEN * HEADS; i++)
        scales[i] = 0.01f + 0.003f * test_rng_float(&r);
    if (dtype == PE_I8)
        for (int i = 0; i < LEN * HEADS * DIM; i++)
            source.codes[i] = (int8_t)test_rng_int(&r, -90, 90);
    for (int i = 0; dtype == PE_CODED && i < LEN * HEADS * DIM / BLOCK; i++) {
        source.blocks[i].scale =
            test_f16_nearest(0.01 + 0.003 * (double)test_rng_float(&r));
        for (int j = 0; j < BLOCK; j++)
            source.blocks[i].codes[j] = (int8_t)test_rng_int(&r, -90, 90);
    }
}

static pe_tensor tokens(pe_dtype dtype, int64_t first, int64_t count)
{
    pe_tensor x;

    pe_tensor_bshd(&x, dtype, &source, 1, count, HEADS, DIM);
    x.codec = dtype == PE_CODED ? &q8_0_codec : NULL;
    x.scales = dtype == PE_I8 ? scales + first * HEADS : NULL;
    x.data = dtype == PE_I8 ? (void *)(source.codes + first * HEADS * DIM)
                            : (void *)(source.blocks + first * HEADS * DIM / BLOCK);
    return x;
}

/* Turns the first rotary_dim elements; 0: no rope. */
static pe_rope *make_rope(int32_t rotary_dim, double theta)
{
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = DIM,
        .pairs = {.pairing = PE_HALF_SPLIT, .rotary_dim = rotary_dim},
        .freqs = {.rope_theta = theta}};
    pe_rope *rope = NULL;

    if (rotary_dim > 0)
        assert_int_equal(pe_rope_create(&rope, &spec, NULL, NULL), PE_OK);
    return rope;
}

static pe_kv *make_kv(const pe_rope *rope, pe_dtype dtype)
{
    const pe_codec *codec = dtype == PE_CODED ? &q8_0_codec : NULL;
    const pe_kv_spec spec = {.struct_size = sizeof spec,
                             .num_kv_heads = HEADS,
                             .head_dim = DIM,
                             .k_dtype = dtype,
                             .v_dtype = dtype,
                             .k_codec = codec,
                             .v_codec = codec,
                             .rope = rope,
                             .capacity = LEN};
    pe_kv *kv;

    assert_int_equal(pe_kv_create(&kv, &spec, NULL, NULL), PE_OK);
    return kv;
}

static void append(pe_kv *kv, pe_dtype dtype, int64_t first, int64_t count)
{
    const pe_positions at = {.start = first};
    const pe_tensor x = tokens(dtype, first, count);

    assert_int_equal(pe_kv_append(kv, &at, &x, &x, NULL), PE_OK);
}

/* Elements [begin, DIM) of token t are the bytes of source token from[t]. */
static void check_bytes(const pe_tensor *x, const int64_t *from, int64_t begin)
{
    for (int64_t t = 0; t < x->seq_len; t++)
        for (int64_t h = 0; h < HEADS; h++) {
            const int64_t e = t * x->seq_stride + h * x->head_stride;
            const int64_t s = (from[t] * HEADS + h) * DIM;
            if (x->dtype == PE_CODED) {
                assert_memory_equal((const q8_0 *)x->data + (e + begin) / BLOCK,
                                    source.blocks + (s + begin) / BLOCK,
                                    (size_t)((DIM - begin) / BLOCK) * sizeof(q8_0));
                continue;
            }
            assert_memory_equal((const int8_t *)x->data + e + begin,
                                source.codes + s + begin, (size_t)(DIM - begin));
            assert_memory_equal(x->scales + e / DIM, scales + s / DIM, sizeof(float));
        }
}

/* Keys keep their bytes from element kept on, values all of them, through everything
 * that a cache does. */
static void check_cache(pe_dtype dtype, int32_t rotary_dim, int64_t kept)
{
    int64_t from[LEN];
    pe_rope *rope = make_rope(rotary_dim, 10000),
            *other = make_rope(rotary_dim, 500000);
    pe_kv *kv = make_kv(rope, dtype), *fork;

    draw(dtype);
    for (int64_t t = 0; t < LEN; t++)
        from[t] = t;
    append(kv, dtype, 0, 1);
    append(kv, dtype, 1, 70);
    append(kv, dtype, 71, LEN - 71);
    const pe_kv_info *info = pe_kv_get_info(kv);
    for (int step = 0; step < 5; step++) {
        if (kept < DIM)
            check_bytes(&info->k, from, kept);
        check_bytes(&info->v, from, 0);
        if (rotary_dim == 0)
            assert_true(info->k_error == 0);
        if (step == 2 && rope != NULL)
            assert_int_equal(pe_kv_rebase(kv, other, NULL), PE_OK);
        assert_int_equal(
            pe_kv_evict(kv, 3, 7, step % 2 ? PE_GAP_CLOSE : PE_GAP_KEEP, NULL), PE_OK);
        memmove(from + 3, from + 10, (size_t)(info->len - 3) * sizeof *from);
    }
    assert_int_equal(pe_kv_fork(&fork, kv, NULL), PE_OK);
    const pe_kv_info *copy = pe_kv_get_info(fork);
    check_bytes(&copy->v, from, 0);
    for (int64_t h = 0; h < HEADS; h++) /* rotated ones, too */
        for (int64_t t = 0; t < copy->len; t++) {
            const int64_t e = t * info->k.seq_stride + h * info->k.head_stride;
            if (dtype == PE_I8)
                assert_memory_equal((int8_t *)copy->k.data + e,
                                    (int8_t *)info->k.data + e, DIM);
            else
                assert_memory_equal((q8_0 *)copy->k.data + e / BLOCK,
                                    (q8_0 *)info->k.data + e / BLOCK,
                                    DIM / BLOCK * sizeof(q8_0));
        }
    pe_kv_destroy(fork);
    pe_kv_destroy(kv);
    pe_rope_destroy(rope);
    pe_rope_destroy(other);
}

static void test_bytes(void **state)
{
    (void)state;
    check_cache(PE_I8, 0, 0);
    check_cache(PE_CODED, 0, 0);
    check_cache(PE_I8, DIM, DIM);
    check_cache(PE_CODED, DIM, DIM);
    check_cache(PE_CODED, 32, 32);
    check_cache(PE_CODED, 24, 32);
    check_cache(PE_I8, 24, DIM); /* one scale for all: coded again */
}

/* Other scale groups and other formats are converted. */
static void test_unlike(void **state)
{
    (void)state;
    static float group_scales[LEN * HEADS * 2];
    static float got[10 * HEADS * DIM];
    pe_kv *kv = make_kv(NULL, PE_I8);
    const pe_positions at = {.start = 0};
    pe_tensor x, y;

    draw(PE_I8);
    for (int i = 0; i < LEN * HEADS * 2; i++)
        group_scales[i] = 0.01f * (float)(1 + i % 3);
    x = tokens(PE_I8, 0, 10);
    x.scales = group_scales;
    x.scale_len = DIM / 2;
    assert_int_equal(pe_kv_append(kv, &at, &x, &x, NULL), PE_OK);
    const pe_kv_info *info = pe_kv_get_info(kv);
    pe_tensor_bshd(&y, PE_F32, got, 1, 10, HEADS, DIM);
    assert_int_equal(pe_tensor_copy(&info->k, &y, NULL, NULL), PE_OK);
    for (int i = 0; i < 10 * HEADS * DIM; i++) {
        const double exact =
            (double)group_scales[i / (DIM / 2)] * (double)source.codes[i];
        assert_true(fabs((double)got[i] - exact) <= 0.5 * 0.03 * 90 / 127 * 1.01);
    }
    assert_true(info->k_error > 0);
    pe_kv_destroy(kv);
}

/* Ten shifts of a q8_0 cache: the reported bound grows, and holds for each key. */
static void test_q8_0_shifts(void **state)
{
    (void)state;
    static float exact[LEN * HEADS * DIM], got[LEN * HEADS * DIM];
    pe_rope *rope = make_rope(DIM, 10000);
    pe_kv *kv = make_kv(rope, PE_CODED);
    double last = 0;

    draw(PE_CODED);
    append(kv, PE_CODED, 0, LEN);
    const pe_kv_info *info = pe_kv_get_info(kv);
    for (int i = 0; i <= 10; i++) {
        const int64_t gone = 10 * i, len = LEN - gone;
        const pe_tensor sinks = tokens(PE_CODED, 0, 4);
        const pe_tensor rest = tokens(PE_CODED, 4 + gone, len - 4);
        const pe_positions at = {.start = 0};
        pe_tensor e, g;
        double worst = 0;
        pe_tensor_bshd(&e, PE_F32, exact, 1, 4, HEADS, DIM);
        assert_int_equal(pe_tensor_copy(&sinks, &e, NULL, NULL), PE_OK);
        pe_tensor_bshd(&e, PE_F32, exact + 4 * HEADS * DIM, 1, len - 4, HEADS, DIM);
        assert_int_equal(pe_tensor_copy(&rest, &e, NULL, NULL), PE_OK);
        pe_tensor_bshd(&e, PE_F32, exact, 1, len, HEADS, DIM);
        pe_tensor_bshd(&g, PE_F32, got, 1, len, HEADS, DIM);
        assert_int_equal(pe_rope_apply(rope, &at, &e, &e, NULL), PE_OK);
        assert_int_equal(pe_tensor_copy(&info->k, &g, NULL, NULL), PE_OK);
        for (int64_t v = 0; v < len * HEADS; v++) {
            double lost = 0;
            for (int64_t d = v * DIM; d < (v + 1) * DIM; d++)
                lost += pow((double)got[d] - (double)exact[d], 2);
            worst = fmax(worst, sqrt(lost));
        }
        assert_true(worst <= info->k_error && info->k_error <= 20 * worst);
        assert_true(info->k_error > last);
        last = info->k_error;
        assert_int_equal(pe_kv_evict(kv, 4, 10, PE_GAP_CLOSE, NULL), PE_OK);
    }
    pe_kv_destroy(kv);
    pe_rope_destroy(rope);
}

/* A smaller attention factor shrinks what is turned, not the rest and its error. */
static void test_rebase_bound(void **state)
{
    (void)state;
    static float x[LEN * HEADS * DIM], exact[LEN * HEADS * DIM], got[LEN * HEADS * DIM];
    test_rng r = {43};
    pe_rope *ropes[2];
    const pe_positions at = {.start = 0};
    pe_tensor t, e, g;

    for (int i = 0; i < 2; i++) {
        const pe_rope_spec spec = {
            .struct_size = sizeof spec,
            .head_dim = DIM,
            .pairs = {.pairing = PE_HALF_SPLIT, .rotary_dim = 32},
            .freqs = {.rope_type = PE_ROPE_YARN,
                      .rope_theta = 10000,
                      .factor = 4,
                      .original_max_position_embeddings = 256,
                      .attention_factor = i ? 0.5 : 1.5}};
        assert_int_equal(pe_rope_create(&ropes[i], &spec, NULL, NULL), PE_OK);
    }
    for (int i = 0; i < LEN * HEADS * DIM; i++) /* small where it is turned */
        exact[i] = x[i] = test_rng_float(&r) * (i % DIM < 32 ? 0.01f : 1);
    pe_tensor_bshd(&t, PE_F32, x, 1, LEN, HEADS, DIM);
    pe_tensor_bshd(&e, PE_F32, exact, 1, LEN, HEADS, DIM);
    pe_tensor_bshd(&g, PE_F32, got, 1, LEN, HEADS, DIM);
    pe_kv *kv = make_kv(ropes[0], PE_CODED);
    assert_int_equal(pe_kv_append(kv, &at, &t, &t, NULL), PE_OK);
    assert_int_equal(pe_kv_rebase(kv, ropes[1], NULL), PE_OK);
    assert_int_equal(pe_rope_apply(ropes[1], &at, &e, &e, NULL), PE_OK);
    assert_int_equal(pe_tensor_copy(&pe_kv_get_info(kv)->k, &g, NULL, NULL), PE_OK);
    for (int64_t v = 0; v < LEN * HEADS; v++) {
        double lost = 0;
        for (int64_t d = v * DIM; d < (v + 1) * DIM; d++)
            lost += pow((double)got[d] - (double)exact[d], 2);
        assert_true(sqrt(lost) <= pe_kv_get_info(kv)->k_error);
    }
    pe_kv_destroy(kv);
    pe_rope_destroy(ropes[0]);
    pe_rope_destroy(ropes[1]);
}

/* A key that is no number is nobody's bound: not its run's norm, not the error. */
static void test_nan_key(void **state)
{
    (void)state;
    static float x[70 * HEADS * DIM];
    pe_rope *rope = make_rope(DIM, 10000);
    pe_kv *kv = make_kv(rope, PE_F16);
    const pe_positions at = {.start = 0};
    pe_tensor t;

    for (int i = 0; i < 70 * HEADS * DIM; i++)
        x[i] = (float)(i % 17) / 17;
    x[(5 * HEADS + 1) * DIM + 3] = NAN;
    pe_tensor_bshd(&t, PE_F32, x, 1, 70, HEADS, DIM);
    assert_int_equal(pe_kv_append(kv, &at, &t, &t, NULL), PE_OK);
    const pe_kv_info *info = pe_kv_get_info(kv);
    assert_true(isnan(info->k_norms[2]) && isnan(info->k_error));
    assert_true(info->k_norms[0] > 0 && info->k_norms[1] > 0 && info->k_norms[3] > 0);
    assert_int_equal(pe_kv_evict(kv, 0, 6, PE_GAP_CLOSE, NULL), PE_OK);
    assert_true(info->k_norms[0] > 0 && info->k_norms[1] > 0 && info->k_error < 0.1);
    pe_kv_destroy(kv);
    pe_rope_destroy(rope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),       cmocka_unit_test(test_unlike),
        cmocka_unit_test(test_q8_0_shifts), cmocka_unit_test(test_rebase_bound),
        cmocka_unit_test(test_nan_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
