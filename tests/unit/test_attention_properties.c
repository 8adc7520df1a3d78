/* SPDX-License-Identifier: MIT
 *
 * test_attention_properties.c - what attention must keep whatever the numbers are
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/attention_case.h"
#include "../support/executor.h"
#include "posenc/env.h"

static void *new_array(int64_t count, size_t size)
{
    void *p = calloc((size_t)count + 1, size);

    assert_non_null(p);
    return p;
}

/* A plain problem in dense float arrays, [token][head][dim]. */
struct problem {
    int64_t q_len, k_len;
    pe_attention_spec spec;
    pe_attention_args args;
    pe_tensor q_t, k_t, v_t, out_t;
    float *q, *k, *v, *out, *lse, *norms;
    int64_t blocks[2];
    pe_positions q_at, k_at;
};

static void init(struct problem *p, test_rng *r, int64_t q_len, int64_t k_len,
                 int32_t heads, int32_t kv_heads, int32_t dim)
{
    *p = (struct problem){.q_len = q_len, .k_len = k_len};
    p->spec = (pe_attention_spec){.struct_size = sizeof p->spec,
                                  .num_heads = heads,
                                  .num_kv_heads = kv_heads,
                                  .head_dim = dim,
                                  .visible = {.mask = PE_MASK_CAUSAL}};
    p->q = new_array(q_len * heads * dim, sizeof(float));
    p->k = new_array(k_len * kv_heads * dim, sizeof(float));
    p->v = new_array(k_len * kv_heads * dim, sizeof(float));
    p->out = new_array(q_len * heads * dim, sizeof(float));
    p->lse = new_array(q_len * heads, sizeof(float));
    p->norms = new_array(kv_heads * ((k_len + 63) / 64), sizeof(float));
    for (int64_t i = 0; i < q_len * heads * dim; i++)
        p->q[i] = test_rng_float(r);
    for (int64_t i = 0; i < k_len * kv_heads * dim; i++) {
        p->k[i] = test_rng_float(r);
        p->v[i] = test_rng_float(r);
    }
    pe_tensor_bshd(&p->q_t, PE_F32, p->q, 1, q_len, heads, dim);
    pe_tensor_bshd(&p->k_t, PE_F32, p->k, 1, k_len, kv_heads, dim);
    pe_tensor_bshd(&p->v_t, PE_F32, p->v, 1, k_len, kv_heads, dim);
    pe_tensor_bshd(&p->out_t, PE_F32, p->out, 1, q_len, heads, dim);
    p->q_at.start = k_len - q_len;
    p->args = (pe_attention_args){.struct_size = sizeof p->args,
                                  .q = &p->q_t,
                                  .k = &p->k_t,
                                  .v = &p->v_t,
                                  .out = &p->out_t,
                                  .q_at = &p->q_at,
                                  .k_at = &p->k_at,
                                  .lse = p->lse,
                                  .num_blocks = p->blocks};
}

static void drop(struct problem *p)
{
    free(p->q);
    free(p->k);
    free(p->v);
    free(p->out);
    free(p->lse);
    free(p->norms);
}

static void measure_norms(struct problem *p)
{
    const int64_t runs = (p->k_len + 63) / 64, dim = p->spec.head_dim;
    const int64_t heads = p->spec.num_kv_heads;

    for (int64_t h = 0; h < heads; h++)
        for (int64_t j = 0; j < p->k_len; j++) {
            double sum = 0;
            for (int64_t d = 0; d < dim; d++)
                sum += pow((double)p->k[(j * heads + h) * dim + d], 2);
            const float norm = nextafterf((float)sqrt(sum), INFINITY);
            float *run = p->norms + h * runs + j / 64;
            *run = norm > *run ? norm : *run;
        }
    p->args.k_norms = p->norms;
}

static void attend_on(struct problem *p, const pe_env *env)
{
    pe_attention *plan = NULL;
    size_t size = 0;
    pe_error error;

    if (pe_attention_create(&plan, &p->spec, env, &error) != PE_OK ||
        pe_attention_workspace(plan, &p->args, &size, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    void *work = aligned_alloc(64, (size + 63) / 64 * 64);
    memset(work, 0xff, size);
    if (pe_attention_forward(plan, &p->args, work, size, &error) != PE_OK)
        fail_msg("%s", error.message);
    free(work);
    pe_attention_destroy(plan);
}

static void attend(struct problem *p)
{
    attend_on(p, NULL);
}

static pe_bias *alibi(int32_t heads, pe_bias_form form, double scale)
{
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = PE_BIAS_ALIBI,
                               .form = form,
                               .num_heads = heads,
                               .scale = scale};
    pe_bias *bias;

    assert_int_equal(pe_bias_create(&bias, &spec, NULL, NULL), PE_OK);
    return bias;
}

static pe_rope *rope(int32_t dim)
{
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = dim,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .freqs = {.rope_theta = 10000}};
    pe_rope *plan;

    assert_int_equal(pe_rope_create(&plan, &spec, NULL, NULL), PE_OK);
    return plan;
}

static void assert_near(const float *a, const float *b, int64_t count, double allowed)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= allowed))
            fail_msg("%lld: %.9g against %.9g", (long long)i, (double)a[i],
                     (double)b[i]);
}

/* --------------------------------------------------------------------- equalities --- */

static void test_threads(void **state)
{
    (void)state;
    const pe_executor *const executors[] = {&test_executor_backwards,
                                            &test_executor_threads};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        attention_case a, b;
        const int flags = seed % 3 ? 0 : CASE_MANY_KEYS | CASE_NO_FAR | CASE_NO_SCORES;
        attention_case_init(&a, seed, flags);
        int64_t blocks_a[2], blocks_b[2];
        a.args.num_blocks = blocks_a;
        assert_null(attention_case_forward(&a, NULL));
        for (size_t i = 0; i < 2; i++) {
            const pe_env env = {.struct_size = sizeof env, .executor = *executors[i]};
            attention_case_init(&b, seed, flags);
            b.args.num_blocks = blocks_b;
            assert_null(attention_case_forward(&b, &env));
            assert_int_equal(a.out.size, b.out.size);
            assert_memory_equal(a.out.bytes, b.out.bytes, a.out.size);
            assert_memory_equal(a.lse, b.lse,
                                (size_t)(a.ref.batch * a.ref.heads * a.ref.q_len) *
                                    sizeof(float));
            assert_memory_equal(blocks_a, blocks_b, sizeof blocks_a);
            attention_case_free(&b);
        }
        attention_case_free(&a);
    }
}

static void test_packed_is_separate(void **state)
{
    (void)state;
    static const int32_t cu[] = {0, 1, 71, 71, 200, 207};
    test_rng r = {5};
    struct problem p;
    pe_rope *turn = rope(40);
    int64_t ids[207];

    init(&p, &r, 207, 207, 4, 2, 40);
    assert_int_equal(pe_positions_packed(cu, 5, ids, NULL), PE_OK);
    p.q_at = p.k_at = (pe_positions){.ids = ids};
    p.spec.q_rope = p.spec.k_rope = turn;
    p.args.num_seqs = 5;
    p.args.q_cu_seqlens = cu;
    attend(&p);
    for (int s = 0; s < 5; s++) {
        const int64_t n = cu[s + 1] - cu[s], row = 4 * 40, kv_row = 2 * 40;
        struct problem one;
        if (n == 0)
            continue;
        init(&one, &r, n, n, 4, 2, 40);
        memcpy(one.q, p.q + cu[s] * row, (size_t)(n * row) * sizeof(float));
        memcpy(one.k, p.k + cu[s] * kv_row, (size_t)(n * kv_row) * sizeof(float));
        memcpy(one.v, p.v + cu[s] * kv_row, (size_t)(n * kv_row) * sizeof(float));
        one.spec.q_rope = one.spec.k_rope = turn;
        attend(&one);
        assert_near(p.out + cu[s] * row, one.out, n * row, 1e-6);
        drop(&one);
    }
    pe_rope_destroy(turn);
    drop(&p);
}

static void test_decode_is_prefill(void **state)
{
    (void)state;
    test_rng r = {6};
    struct problem p;
    pe_bias *bias = alibi(6, PE_BIAS_CAUSAL, 1);
    pe_rope *turn = rope(64);
    const int64_t n = 150, row = 6 * 64;

    init(&p, &r, n, n, 6, 2, 64);
    p.spec.bias[0] = bias;
    p.spec.q_rope = p.spec.k_rope = turn;
    attend(&p);
    for (int64_t t = 0; t < n; t++) {
        struct problem step = p;
        float out[6 * 64];
        step.args.q = &step.q_t;
        step.args.k = &step.k_t;
        step.args.v = &step.v_t;
        step.args.out = &step.out_t;
        step.args.q_at = &step.q_at;
        step.args.k_at = &step.k_at;
        step.args.num_blocks = NULL;
        step.args.lse = NULL;
        pe_tensor_bshd(&step.q_t, PE_F32, p.q + t * row, 1, 1, 6, 64);
        pe_tensor_bshd(&step.out_t, PE_F32, out, 1, 1, 6, 64);
        step.k_t.seq_len = step.v_t.seq_len = t + 1;
        step.q_at = (pe_positions){.start = t};
        attend(&step);
        assert_near(out, p.out + t * row, row, 1e-6);
    }
    pe_bias_destroy(bias);
    pe_rope_destroy(turn);
    drop(&p);
}

/* The same keys, in one part and in several. */
static void test_split_is_whole(void **state)
{
    (void)state;
    test_rng r = {7};
    struct problem p;
    const int64_t n = 5000, row = 2 * 32;

    init(&p, &r, 1, n, 4, 2, 32);
    attend(&p);
    /* Three queries are too many rows to stream: the last one is the same query. */
    struct problem tall;
    init(&tall, &r, 3, n, 4, 2, 32);
    memcpy(tall.k, p.k, (size_t)(n * row) * sizeof(float));
    memcpy(tall.v, p.v, (size_t)(n * row) * sizeof(float));
    memcpy(tall.q + 2 * 4 * 32, p.q, 4 * 32 * sizeof(float));
    pe_tensor scores;
    float *all = new_array(4 * n, sizeof *all);
    pe_tensor_bhsd(&scores, PE_F32, all, 1, 4, 1, n);
    tall.args.scores = &scores;
    tall.args.scores_start = 2;
    attend(&tall);
    assert_near(tall.out + 2 * 4 * 32, p.out, 4 * 32, 1e-6);
    assert_near(tall.lse + 2, p.lse, 1, 2e-6);
    for (int h = 0; h < 4; h++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += (double)all[h * n + j];
        assert_true(fabs(sum - 1) < 1e-5);
    }
    free(all);
    drop(&tall);
    drop(&p);
}

/* --------------------------------------------------------------------- symmetries --- */

/* Without positions or mask, queries only shuffle and keys do not matter in order. */
static void test_permutation(void **state)
{
    (void)state;
    test_rng r = {8};
    struct problem p, q;
    const int64_t n = 130, row = 2 * 24;
    int64_t order[130];

    init(&p, &r, n, n, 2, 2, 24);
    p.spec.visible.mask = PE_MASK_NONE;
    attend(&p);
    init(&q, &r, n, n, 2, 2, 24);
    q.spec.visible.mask = PE_MASK_NONE;
    for (int64_t i = 0; i < n; i++)
        order[i] = (i * 37 + 11) % n;
    for (int64_t i = 0; i < n; i++) {
        memcpy(q.q + i * row, p.q + order[i] * row, (size_t)row * sizeof(float));
        memcpy(q.k + i * row, p.k + order[i] * row, (size_t)row * sizeof(float));
        memcpy(q.v + i * row, p.v + order[i] * row, (size_t)row * sizeof(float));
    }
    attend(&q);
    for (int64_t i = 0; i < n; i++)
        assert_near(q.out + i * row, p.out + order[i] * row, row, 1e-6);
    drop(&p);
    drop(&q);
}

static void check_shift(pe_bias *bias, pe_rope *turn, int64_t shift, double allowed)
{
    test_rng r = {9};
    struct problem p;
    const int64_t n = 100, count = n * 4 * 32;

    init(&p, &r, n, n, 4, 4, 32);
    p.spec.bias[0] = bias;
    p.spec.q_rope = p.spec.k_rope = turn;
    attend(&p);
    float *before = new_array(count, sizeof *before);
    memcpy(before, p.out, (size_t)count * sizeof *before);
    p.q_at.start += shift;
    p.k_at.start += shift;
    attend(&p);
    assert_near(before, p.out, count, allowed);
    free(before);
    drop(&p);
}

static void test_shift_invariance(void **state)
{
    (void)state;
    pe_rope *turn = rope(32);

    for (pe_bias_form form = PE_BIAS_CAUSAL; form <= PE_BIAS_KEY_ONLY; form++) {
        pe_bias *bias = alibi(4, form, 1);
        check_shift(bias, NULL, (int64_t)1 << 40, 0);
        pe_bias_destroy(bias);
    }
    check_shift(NULL, turn, 1000003, 2e-6);
    check_shift(NULL, turn, (int64_t)1 << 40, 2e-6);
    pe_rope_destroy(turn);
}

/* ---------------------------------------------------------------------- bad numbers --- */

/* NaN and infinity in a token of q, k and v in turn: rows that do not see it stay.  (An infinite value may make infinities, not NaN.) */
static void test_nan_stays(void **state)
{
    (void)state;
    for (int64_t q_len = 1; q_len <= 140; q_len += 139 / 3) {
        const int64_t n = 140, row = 2 * 24;
        for (int which = 0; which < 3; which++)
            for (int k = 0; k < 2; k++) {
                const float bad = k ? INFINITY : NAN;
                test_rng r = {10};
                struct problem p;
                init(&p, &r, q_len, n, 2, 2, 24);
                attend(&p);
                float *before = new_array(q_len * row, sizeof *before);
                memcpy(before, p.out, (size_t)(q_len * row) * sizeof *before);
                const int64_t at = which == 0 ? q_len / 2 : 120;
                float *x = which == 0 ? p.q : which == 1 ? p.k : p.v;
                for (int64_t d = 0; d < row; d++)
                    x[at * row + d] = bad;
                attend(&p);
                for (int64_t i = 0; i < q_len; i++) {
                    const int sees = which == 0 ? i == at : n - q_len + i >= 120;
                    for (int64_t d = 0; d < row; d++)
                        if (sees && !(k && which == 2))
                            assert_true(isnan(p.out[i * row + d]));
                        else if (!sees)
                            assert_true(fabsf(p.out[i * row + d] -
                                              before[i * row + d]) < 1e-6f);
                }
                free(before);
                drop(&p);
            }
    }
}

static void test_nothing_seen(void **state)
{
    (void)state;
    test_rng r = {11};
    struct problem p;
    static const float sinks[2] = {1, -2};
    float *mask = new_array(5 * 70, sizeof *mask);
    pe_tensor mask_t;

    /* More queries than keys: the first have no place. */
    init(&p, &r, 9, 4, 2, 1, 16);
    attend(&p);
    for (int64_t i = 0; i < 9; i++)
        for (int64_t h = 0; h < 2; h++) {
            const float lse = p.lse[h * 9 + i];
            assert_true(i < 5 ? lse == -INFINITY : fabsf(lse) < 10);
            for (int64_t d = 0; d < 16 && i < 5; d++)
                assert_true(p.out[(i * 2 + h) * 16 + d] == 0);
        }
    p.args.sinks = sinks;
    attend(&p);
    assert_true(p.lse[0] == 1 && p.lse[9] == -2 && p.out[0] == 0);
    drop(&p);

    init(&p, &r, 5, 70, 2, 1, 16);
    for (int i = 0; i < 5 * 70; i++)
        mask[i] = -INFINITY;
    mask[3 * 70 + 2] = 0; /* query 3 sees key 2 alone: its output is that value */
    pe_tensor_bhsd(&mask_t, PE_F32, mask, 1, 1, 5, 70);
    p.args.mask = &mask_t;
    attend(&p);
    for (int64_t d = 0; d < 2 * 16; d++) {
        assert_true(p.out[2 * 32 + d] == 0);
        assert_true(p.out[3 * 32 + d] == p.v[2 * 16 + d % 16]);
    }
    assert_true(p.lse[2] == -INFINITY);
    free(mask);
    drop(&p);
}

static void test_huge_scores(void **state)
{
    (void)state;
    test_rng r = {12};
    struct problem p;

    init(&p, &r, 3, 200, 1, 1, 8);
    for (int64_t i = 0; i < 3 * 8; i++)
        p.q[i] *= 1e18f;
    for (int64_t i = 0; i < 200 * 8; i++)
        p.k[i] *= 1e18f;
    attend(&p);
    /* One key wins outright. */
    for (int64_t t = 0; t < 3; t++) {
        int64_t best = -1;
        double top = -INFINITY;
        for (int64_t j = 0; j <= 197 + t; j++) {
            double dot = 0;
            for (int64_t d = 0; d < 8; d++)
                dot += (double)p.q[t * 8 + d] * (double)p.k[j * 8 + d];
            if (dot > top) {
                top = dot;
                best = j;
            }
        }
        assert_near(p.out + t * 8, p.v + best * 8, 8, 0);
    }
    drop(&p);
}

/* --------------------------------------------------------------------------- skip --- */

/* Key lengths that grow, fall or jump with distance; values only where nothing should
 * matter.  Left out or visited, the bits must be the same. */
static int64_t check_skip(uint64_t seed, int64_t q_len, int64_t k_len)
{
    test_rng r = {seed};
    struct problem p;
    const int32_t heads = 4, dim = 32;
    const int64_t count = q_len * heads * dim, kv_row = 2 * dim;
    pe_bias *bias = alibi(heads, (pe_bias_form)(1 + seed % 3), 12);

    init(&p, &r, q_len, k_len, heads, 2, dim);
    p.spec.bias[0] = bias;
    if (seed % 5 == 0)
        p.spec.softcap = 20;
    if (seed % 7 == 0)
        p.spec.visible = (pe_visibility){
            .mask = PE_MASK_CAUSAL, .window = k_len / 2 + 1, .num_sinks = 3};
    if (seed % 2 == 0 && seed % 3 != 2)
        p.spec.visible.mask = PE_MASK_NONE;
    for (int64_t j = 0; j < k_len; j++) {
        const double far = (double)(k_len - j) / (double)k_len;
        const double size = seed % 4 == 0   ? 1
                            : seed % 4 == 1 ? 1 + 60 * far * far
                            : seed % 4 == 2 ? (test_rng_int(&r, 0, 200) ? 0.5 : 150)
                                            : exp(5 * far) / 3;
        for (int64_t d = 0; d < kv_row; d++) {
            p.k[j * kv_row + d] *= (float)size;
            if (seed % 2 && far < 0.3)
                p.v[j * kv_row + d] = 0;
        }
    }
    measure_norms(&p);
    attend(&p);
    const int64_t visited = p.blocks[0], skipped = p.blocks[1];
    float *out = new_array(count, sizeof *out), *lse = new_array(q_len * heads, 4);
    memcpy(out, p.out, (size_t)count * sizeof *out);
    memcpy(lse, p.lse, (size_t)(q_len * heads) * sizeof *lse);
    p.spec.no_skip = 1;
    attend(&p);
    assert_int_equal(p.blocks[1], 0);
    assert_int_equal(p.blocks[0], visited + skipped);
    for (int64_t i = 0; i < count; i++)
        if (!(out[i] == p.out[i]))
            fail_msg("seed %llu: out[%lld] is %.9g, without skipping %.9g",
                     (unsigned long long)seed, (long long)i, (double)out[i],
                     (double)p.out[i]);
    assert_memory_equal(lse, p.lse, (size_t)(q_len * heads) * sizeof *lse);
    free(out);
    free(lse);
    pe_bias_destroy(bias);
    drop(&p);
    return skipped;
}

static void test_skip_is_no_skip(void **state)
{
    (void)state;
    int64_t prefill = 0, decode = 0;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        prefill += check_skip(seed, 300 + (int64_t)seed, 1500 + 7 * (int64_t)seed);
        decode += check_skip(seed, 1 + (int64_t)seed % 3, 6000 + 31 * (int64_t)seed);
    }
    print_message("blocks left out: prefill %lld, decode %lld\n", (long long)prefill,
                  (long long)decode);
    assert_true(prefill > 500);
    assert_true(decode > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_packed_is_separate),
        cmocka_unit_test(test_decode_is_prefill),
        cmocka_unit_test(test_split_is_whole),
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_shift_invariance),
        cmocka_unit_test(test_nan_stays),
        cmocka_unit_test(test_nothing_seen),
        cmocka_unit_test(test_huge_scores),
        cmocka_unit_test(test_skip_is_no_skip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
