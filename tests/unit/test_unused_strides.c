/* SPDX-License-Identifier: MIT
 *
 * test_unused_strides.c - a stride whose count is 1 may be anything
 *
 * Every call on one token of one head, with strides that overflow if they are multiplied,
 * gives the bits that it gives with those of the layout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../support/lines.h"
#include "../support/rng.h"
#include "posenc/attention.h"
#include "posenc/env.h"

enum { DIM = 64, KEYS = 33 };

typedef struct {
    _Alignas(64) unsigned char bytes[4 * DIM * KEYS];
    float scales[KEYS];
    pe_tensor t;
} holder;

static int spoils;

static const pe_tensor *hold(holder *h, pe_dtype dtype, int64_t keys, int64_t dim)
{
    pe_tensor_bshd(&h->t, dtype, h->bytes, 1, keys, 1, dim);
    h->t.scales = h->scales;
    if (spoils)
        lines_spoil_unused(&h->t);
    return &h->t;
}

static void draw(holder *h, test_rng *r, pe_dtype dtype)
{
    for (int i = 0; i < DIM * KEYS; i++) {
        const float x = test_rng_float(r);
        const uint16_t half = (uint16_t)test_rng_int(r, 0x3800, 0x3c00);
        if (dtype == PE_F32)
            memcpy(h->bytes + 4 * i, &x, 4);
        else if (dtype == PE_I8)
            h->bytes[i] = (unsigned char)test_rng_int(r, 0, 255);
        else
            memcpy(h->bytes + 2 * i, &half, 2);
    }
    for (int i = 0; i < KEYS; i++)
        h->scales[i] = 0.01f;
}

static void ok(pe_status status, const pe_error *error)
{
    if (status != PE_OK)
        fail_msg("%s", error->message);
}

/* Inputs and results of all calls. */
typedef struct {
    holder x, k, v, weight, y[10];
} calls;

static void turn(calls *c, pe_dtype dtype, const pe_env *env)
{
    const pe_positions at = {.start = 5}, to = {.start = 9};
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = DIM,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .freqs = {.rope_theta = 10000}};
    const pe_tensor *x = hold(&c->x, dtype, 1, DIM);
    pe_rope *rope;
    pe_error e;
    ok(pe_rope_create(&rope, &spec, env, &e), &e);
    ok(pe_rope_apply(rope, &at, x, hold(&c->y[0], PE_F32, 1, DIM), &e), &e);
    ok(pe_rope_shift(rope, 7, x, hold(&c->y[1], PE_I8, 1, DIM), &e), &e);
    ok(pe_rope_rebase(rope, &at, rope, &to, x, hold(&c->y[2], PE_F16, 1, DIM), &e), &e);
    ok(pe_rope_table(rope, &at, hold(&c->y[3], PE_F32, 1, DIM / 2),
                     hold(&c->y[4], PE_F32, 1, DIM / 2), &e),
       &e);
    ok(pe_tensor_copy(x, hold(&c->y[5], PE_BF16, 1, DIM), env, &e), &e);
    pe_rope_destroy(rope);
}

static void add(calls *c, pe_dtype dtype, const pe_env *env)
{
    const pe_positions first = {0};
    const pe_learned_spec spec = {.struct_size = sizeof spec,
                                  .weight = hold(&c->weight, PE_F32, 1, DIM)};
    const pe_bias_spec alibi = {.struct_size = sizeof alibi,
                                .type = PE_BIAS_ALIBI,
                                .form = PE_BIAS_CAUSAL,
                                .num_heads = 1};
    const pe_tensor *x = hold(&c->x, dtype, 1, DIM);
    pe_absolute *rows;
    pe_bias *bias;
    pe_error e;
    ok(pe_learned_create(&rows, &spec, env, &e), &e);
    ok(pe_absolute_add(rows, &first, x, hold(&c->y[6], PE_F32, 1, DIM), &e), &e);
    pe_absolute_destroy(rows);
    if (dtype == PE_I8)
        return;
    ok(pe_bias_create(&bias, &alibi, env, &e), &e);
    ok(pe_bias_add(bias, &first, &first, x, hold(&c->y[7], PE_F32, 1, DIM), &e), &e);
    ok(pe_bias_softmax(bias, 1, PE_MASK_NONE, &first, &first, x,
                       hold(&c->y[8], PE_F32, 1, DIM), &e),
       &e);
    pe_bias_destroy(bias);
}

static void attend(calls *c, pe_dtype dtype, int64_t keys, const pe_env *env)
{
    const pe_attention_spec spec = {.struct_size = sizeof spec,
                                    .num_heads = 1,
                                    .num_kv_heads = 1,
                                    .head_dim = DIM,
                                    .visible = {.mask = PE_MASK_CAUSAL}};
    const pe_attention_args args = {.struct_size = sizeof args,
                                    .q = hold(&c->x, dtype, 1, DIM),
                                    .k = hold(&c->k, dtype, keys, DIM),
                                    .v = hold(&c->v, dtype, keys, DIM),
                                    .out = hold(&c->y[9], PE_F32, 1, DIM)};
    pe_attention *plan;
    pe_error e;
    size_t size = 0;
    ok(pe_attention_create(&plan, &spec, env, &e), &e);
    ok(pe_attention_workspace(plan, &args, &size, NULL, &e), &e);
    void *work = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(work);
    ok(pe_attention_forward(plan, &args, work, size, &e), &e);
    free(work);
    pe_attention_destroy(plan);
}

static void test_one_of_each(void **state)
{
    static calls honest, spoiled;
    test_rng r = {17};
    (void)state;
    for (pe_isa isa = PE_ISA_AUTO; isa <= PE_ISA_WASM128; isa++)
        for (pe_dtype dtype = PE_F32; dtype <= PE_I8 && pe_isa_available(isa); dtype++)
            for (int64_t keys = 1; keys <= KEYS; keys += KEYS - 1) {
                const pe_env env = {.struct_size = sizeof env, .isa = isa};
                draw(&honest.x, &r, dtype);
                draw(&honest.k, &r, dtype);
                draw(&honest.v, &r, dtype);
                draw(&honest.weight, &r, PE_F32);
                spoiled = honest;
                for (spoils = 0; spoils < 2; spoils++) {
                    calls *c = spoils ? &spoiled : &honest;
                    turn(c, dtype, &env);
                    add(c, dtype, &env);
                    attend(c, dtype, keys, &env);
                }
                for (int i = 0; i < 10; i++) {
                    assert_memory_equal(honest.y[i].bytes, spoiled.y[i].bytes,
                                        sizeof honest.y[i].bytes);
                    assert_memory_equal(honest.y[i].scales, spoiled.y[i].scales,
                                        sizeof honest.y[i].scales);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_of_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
