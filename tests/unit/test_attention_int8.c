/* SPDX-License-Identifier: MIT
 *
 * test_attention_int8.c - decoding over int8 caches is decoding over what they say
 *
 * The same call over floats is the reference: dense by head and by token, paged, with a
 * scale a vector or a group, on every instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/rng.h"
#include "base/base.h"
#include "posenc/attention.h"
#include "posenc/env.h"

enum {
    KEYS = 333,
    PAGE = 9,
    HEADS = 2,
    GROUP = 3,
    DIM = 96,
    V_DIM = 48,
    MOST = 1 << 17
};

static const pe_isa isas[] = {PE_ISA_SCALAR, PE_ISA_AVX2, PE_ISA_AVX512, PE_ISA_NEON,
                              PE_ISA_WASM128};

typedef enum { BY_HEAD, BY_TOKEN, PAGED, NUM_WAYS } way;

typedef struct {
    int8_t bytes[MOST];
    float scales[MOST], floats[MOST];
    int32_t pages[KEYS / PAGE];
    pe_tensor x, exact;
} cache;

static void fill(cache *c, test_rng *r, way by, int64_t dim, int64_t scale_len)
{
    if (by == BY_HEAD)
        pe_tensor_bhsd(&c->x, PE_I8, c->bytes, 1, HEADS, KEYS, dim);
    else
        pe_tensor_bshd(&c->x, PE_I8, c->bytes, 1, KEYS, HEADS, dim);
    if (by == PAGED) {
        for (int32_t i = 0; i < KEYS / PAGE; i++)
            c->pages[i] = (i * 5 + 2) % (KEYS / PAGE);
        pe_tensor_paged(&c->x, PE_I8, c->bytes, KEYS / PAGE, PAGE, HEADS, dim, c->pages,
                        1, KEYS / PAGE);
    }
    c->x.scales = c->scales;
    c->x.scale_len = scale_len;
    for (int64_t i = 0; i < KEYS * HEADS * dim; i++) {
        c->bytes[i] = (int8_t)test_rng_int(r, -127, 127);
        c->scales[i] = (1.5f + test_rng_float(r)) / 127;
    }
    pe_tensor_bshd(&c->exact, PE_F32, c->floats, 1, KEYS, HEADS, dim);
    assert_int_equal(pe_tensor_copy(&c->x, &c->exact, NULL, NULL), PE_OK);
}

static void attend(pe_isa isa, const pe_tensor *k, const pe_tensor *v, int64_t q_len,
                   const float *queries, float *out)
{
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    const pe_attention_spec spec = {.struct_size = sizeof spec,
                                    .num_heads = HEADS * GROUP,
                                    .num_kv_heads = HEADS,
                                    .head_dim = DIM,
                                    .v_head_dim = V_DIM,
                                    .visible = {.mask = PE_MASK_CAUSAL}};
    pe_tensor q, o;
    pe_tensor_bshd(&q, PE_F32, queries, 1, q_len, HEADS * GROUP, DIM);
    pe_tensor_bshd(&o, PE_F32, out, 1, q_len, HEADS * GROUP, V_DIM);
    const pe_attention_args args = {
        .struct_size = sizeof args, .q = &q, .k = k, .v = v, .out = &o};
    pe_attention *plan;
    pe_error error;
    size_t size = 0;
    if (pe_attention_create(&plan, &spec, &env, &error) != PE_OK ||
        pe_attention_workspace(plan, &args, &size, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    void *work = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(work);
    if (pe_attention_forward(plan, &args, work, size, &error) != PE_OK)
        fail_msg("%s", error.message);
    free(work);
    pe_attention_destroy(plan);
}

enum { ROWS = 2 * HEADS * GROUP };

static void draw_queries(test_rng *r, float *q)
{
    for (int i = 0; i < ROWS * DIM; i++)
        q[i] = test_rng_float(r) / 2;
}

static void test_floats_agree(void **state)
{
    (void)state;
    static cache k, v;
    static float q[ROWS * DIM], got[ROWS * V_DIM], want[ROWS * V_DIM];
    static const int64_t k_groups[] = {DIM, 48, 32, 16, 8}, v_groups[] = {V_DIM, 24, 3};
    test_rng r = {21};

    for (size_t i = 0; i < PE_COUNT(isas); i++)
        for (int n = 0; pe_isa_available(isas[i]) && n < 60; n++) {
            const int64_t q_len = 1 + n / 7 % 2;
            fill(&k, &r, (way)(n % NUM_WAYS), DIM, k_groups[n % 5]);
            fill(&v, &r, (way)(n / 3 % NUM_WAYS), V_DIM, v_groups[n / 5 % 3]);
            draw_queries(&r, q);
            attend(isas[i], &k.x, &v.x, q_len, q, got);
            attend(isas[i], &k.exact, &v.exact, q_len, q, want);
            for (int64_t j = 0; j < q_len * HEADS * GROUP * V_DIM; j++)
                assert_true(fabs((double)got[j] - (double)want[j]) < 1e-5);
        }
}

/* A scale that is no number makes NaN of what sees it, and of nothing else. */
static void test_scale_not_a_number(void **state)
{
    (void)state;
    static cache k, v;
    static float q[ROWS * DIM], got[ROWS * V_DIM];
    test_rng r = {22};

    for (size_t i = 0; i < PE_COUNT(isas); i++)
        for (int n = 0; pe_isa_available(isas[i]) && n < 8; n++) {
            cache *bad = n % 2 ? &k : &v;
            const int64_t token = n / 2 % 2 ? KEYS - 1 : 70; /* the last: one query's */
            fill(&k, &r, BY_TOKEN, DIM, DIM);
            fill(&v, &r, n / 4 ? BY_TOKEN : BY_HEAD, V_DIM, V_DIM);
            const int64_t dim = bad->x.dim; /* of kv head 1 */
            bad->scales[(token * bad->x.seq_stride + bad->x.head_stride) / dim] = NAN;
            draw_queries(&r, q);
            attend(isas[i], &k.x, &v.x, 2, q, got);
            for (int64_t row = 0; row < ROWS; row++) {
                const int sees = row % (HEADS * GROUP) >= GROUP &&
                                 (token < KEYS - 1 || row >= HEADS * GROUP);
                for (int64_t d = 0; d < V_DIM; d++)
                    assert_true((isnan(got[row * V_DIM + d]) != 0) == sees);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats_agree),
        cmocka_unit_test(test_scale_not_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
