/* SPDX-License-Identifier: MIT
 *
 * test_attention_skip.c - leaving blocks out changes no bit, on any instruction set
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/attention_case.h"
#include "../support/attention_problem.h"

static const pe_isa isas[] = {PE_ISA_SCALAR, PE_ISA_AVX2, PE_ISA_AVX512, PE_ISA_NEON,
                              PE_ISA_WASM128};

enum { HEADS = 4, KV_HEADS = 2, DIM = 32 };

/* What a run left behind. */
struct results {
    float *out, *lse;
    int64_t visited, skipped;
};

static struct results results_of(const attention_problem *p)
{
    const size_t rows = (size_t)(p->q_len * HEADS);
    const struct results r = {case_array((int64_t)rows * DIM, sizeof(float)),
                              case_array((int64_t)rows, sizeof(float)), p->blocks[0],
                              p->blocks[1]};

    memcpy(r.out, p->out, rows * DIM * sizeof(float));
    memcpy(r.lse, p->lse, rows * sizeof(float));
    return r;
}

/* Bit for bit but for the sign of zero; NaN where NaN was. */
static void must_be_same(const struct results *a, const attention_problem *p,
                         const char *how, uint64_t seed, pe_isa isa)
{
    for (int64_t i = 0; i < p->q_len * HEADS * DIM; i++)
        if (!(a->out[i] == p->out[i] || (isnan(a->out[i]) && isnan(p->out[i]))))
            fail_msg("seed %llu, %s, %s: out[%lld] is %.9g, without skipping %.9g",
                     (unsigned long long)seed, pe_isa_name(isa), how, (long long)i,
                     (double)a->out[i], (double)p->out[i]);
    assert_memory_equal(a->lse, p->lse, (size_t)(p->q_len * HEADS) * sizeof(float));
}

/* Key lengths that grow, fall or jump with distance; values only where nothing should
 * matter. */
static void draw(attention_problem *p, test_rng *r, uint64_t seed)
{
    const int64_t row = KV_HEADS * DIM;

    for (int64_t j = 0; j < p->k_len; j++) {
        const double far = (double)(p->k_len - j) / (double)p->k_len;
        const double size = seed % 4 == 0   ? 1
                            : seed % 4 == 1 ? 1 + 60 * far * far
                            : seed % 4 == 2 ? (test_rng_int(r, 0, 200) ? 0.5 : 150)
                                            : exp(5 * far) / 3;
        for (int64_t d = 0; d < row; d++) {
            p->k[j * row + d] *= (float)size;
            if (seed % 2 && far < 0.3)
                p->v[j * row + d] = 0;
        }
    }
}

static void set_up(attention_problem *p, test_rng *r, uint64_t seed, int64_t q_len,
                   int64_t k_len)
{
    attention_problem_init(p, r, q_len, k_len, HEADS, KV_HEADS, DIM);
    if (seed % 5 == 0)
        p->spec.softcap = 20;
    if (seed % 7 == 0)
        p->spec.visible = (pe_visibility){
            .mask = PE_MASK_CAUSAL, .window = k_len / 2 + 1, .num_sinks = 3};
    if (seed % 2 == 0 && seed % 3 != 2)
        p->spec.visible.mask = PE_MASK_NONE;
    draw(p, r, seed);
}

/* Left out by the caller's norms, by the call's own, or not at all.  Returns what the
 * caller's norms left out; own += what the call's did. */
static int64_t check(uint64_t seed, pe_isa isa, int64_t q_len, int64_t k_len,
                     int64_t *own)
{
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    test_rng r = {seed};
    attention_problem p;
    pe_rope *rope = attention_problem_rope(DIM);
    pe_bias *bias = attention_problem_alibi(HEADS, (pe_bias_form)(1 + seed % 3), 12);

    set_up(&p, &r, seed, q_len, k_len);
    p.spec.bias[0] = bias;
    p.spec.q_rope = p.spec.k_rope = seed % 6 == 1 ? rope : NULL;
    attention_problem_norms(&p);
    attention_problem_run(&p, &env);
    struct results given = results_of(&p);
    p.args.k_norms = NULL;
    attention_problem_run(&p, &env);
    struct results made = results_of(&p);
    p.spec.no_skip = 1;
    attention_problem_run(&p, &env);
    assert_int_equal(p.blocks[1], 0);
    assert_int_equal(p.blocks[0], given.visited + given.skipped);
    assert_int_equal(p.blocks[0], made.visited + made.skipped);
    must_be_same(&given, &p, "caller's norms", seed, isa);
    must_be_same(&made, &p, "own norms", seed, isa);
    *own += made.skipped;
    free(given.out);
    free(given.lse);
    free(made.out);
    free(made.lse);
    pe_bias_destroy(bias);
    pe_rope_destroy(rope);
    attention_problem_free(&p);
    return given.skipped;
}

static void test_skip_is_no_skip(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        int64_t prefill = 0, decode = 0, own = 0, own_decode = 0;
        if (!pe_isa_available(isas[i]))
            continue;
        for (uint64_t seed = 1; seed <= 30; seed++) {
            const int64_t n = (int64_t)seed;
            prefill += check(seed, isas[i], 30 + n, 1500 + 7 * n, &own);
            decode += check(seed, isas[i], 1 + n % 3, 4000 + 31 * n, &own_decode);
        }
        print_message("%s: left out %lld blocks of prefill, %lld by own norms, and "
                      "%lld of decode\n",
                      pe_isa_name(isas[i]), (long long)prefill, (long long)own,
                      (long long)decode);
        assert_true(prefill > 400);
        assert_true(own > 400);
        assert_true(decode > 500);
    }
}

/* Infinite and NaN keys and values, near and far: the call's own norms hide nothing. */
static void test_odd_numbers(void **state)
{
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f};
    int64_t skipped = 0;
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (uint64_t seed = 1; pe_isa_available(isas[i]) && seed <= 16; seed++) {
            const pe_env env = {.struct_size = sizeof env, .isa = isas[i]};
            test_rng r = {seed};
            attention_problem p;
            pe_bias *bias = attention_problem_alibi(HEADS, PE_BIAS_CAUSAL, 12);
            attention_problem_init(&p, &r, 70, 900, HEADS, KV_HEADS, DIM);
            p.spec.bias[0] = bias;
            for (int n = 0; n < 3; n++)
                (seed % 2 ? p.v : p.k)[test_rng_int(&r, 0, 900 * KV_HEADS * DIM - 1)] =
                    odd[seed / 2 % 4];
            attention_problem_run(&p, &env);
            struct results made = results_of(&p);
            p.spec.no_skip = 1;
            attention_problem_run(&p, &env);
            must_be_same(&made, &p, "odd numbers", seed, isas[i]);
            skipped += made.skipped;
            free(made.out);
            free(made.lse);
            pe_bias_destroy(bias);
            attention_problem_free(&p);
        }
    assert_true(skipped > 100);
}

/* Norms are made where they may pay, and room is asked for only then. */
static void test_workspace(void **state)
{
    (void)state;
    const struct {
        int64_t q_len, k_len;
        double scale;
        int no_skip, makes;
    } calls[] = {{100, 2000, 12, 0, 1},
                 {100, 2000, 12, 1, 0},
                 {1, 2000, 12, 0, 0},      /* streams */
                 {100, 2000, 0.001, 0, 0}, /* nothing gets out of reach */
                 {100, 2000, 40, 0, 1}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        test_rng r = {i};
        attention_problem p;
        size_t size[2];
        pe_bias *bias = attention_problem_alibi(HEADS, PE_BIAS_CAUSAL, calls[i].scale);
        attention_problem_init(&p, &r, calls[i].q_len, calls[i].k_len, HEADS, KV_HEADS,
                               DIM);
        p.spec.bias[0] = bias;
        p.spec.no_skip = calls[i].no_skip;
        attention_problem_norms(&p);
        for (int k = 0; k < 2; k++) {
            pe_attention *plan;
            p.args.k_norms = k ? p.norms : NULL;
            assert_int_equal(pe_attention_create(&plan, &p.spec, NULL, NULL), PE_OK);
            assert_int_equal(
                pe_attention_workspace(plan, &p.args, &size[k], NULL, NULL), PE_OK);
            pe_attention_destroy(plan);
        }
        assert_int_equal(size[0] > size[1], calls[i].makes);
        pe_bias_destroy(bias);
        attention_problem_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skip_is_no_skip),
        cmocka_unit_test(test_odd_numbers),
        cmocka_unit_test(test_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
