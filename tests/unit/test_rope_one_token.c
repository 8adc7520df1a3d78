/* SPDX-License-Identifier: MIT
 *
 * test_rope_one_token.c - the short way of one token beside the way of all tensors
 *
 * A plan with an executor never takes the short way.  Both plans must do the same to the
 * same bytes, and refuse the same in the same words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "../support/rng.h"
#include "posenc/env.h"
#include "posenc/posenc.h"

static void run_at_once(void *ctx, int64_t count, int64_t grain, pe_work_fn task,
                        void *arg)
{
    (void)ctx;
    (void)grain;
    task(arg, 0, 0, count);
}

typedef struct {
    pe_rope *plain, *general;
} plans;

static plans create(const pe_rope_spec *spec)
{
    const pe_env env = {.struct_size = sizeof env,
                        .executor = {.run = run_at_once, .num_workers = 1}};
    plans p;
    pe_error error;
    if (pe_rope_create(&p.plain, spec, NULL, &error) != PE_OK ||
        pe_rope_create(&p.general, spec, &env, &error) != PE_OK)
        fail_msg("%s", error.message);
    return p;
}

static void destroy(plans *p)
{
    pe_rope_destroy(p->plain);
    pe_rope_destroy(p->general);
}

enum { BYTES = 1 << 16 };

/* Calls both on memory of the same bytes, which must be so afterwards; x2 NULL: apply. */
static void check(const plans *p, const pe_positions *at, const pe_tensor *x,
                  const pe_tensor *y, const pe_tensor *x2, const pe_tensor *y2,
                  unsigned char *memory)
{
    static unsigned char before[BYTES], after[BYTES];
    pe_error errors[2];
    pe_status status[2];
    memset(errors, 0, sizeof errors);
    memcpy(before, memory, BYTES);
    for (int way = 0; way < 2; way++) {
        const pe_rope *rope = way ? p->general : p->plain;
        memcpy(memory, before, BYTES);
        status[way] = x2 == NULL
                          ? pe_rope_apply(rope, at, x, y, &errors[way])
                          : pe_rope_apply_qk(rope, at, x, y, x2, y2, &errors[way]);
        if (way == 0)
            memcpy(after, memory, BYTES);
    }
    assert_int_equal(status[0], status[1]);
    assert_string_equal(errors[0].message, errors[1].message);
    assert_memory_equal(after, memory, BYTES);
    assert_true(status[0] == PE_OK || memcmp(before, memory, BYTES) == 0);
    memcpy(memory, before, BYTES);
}

static int64_t size_of(pe_dtype dtype)
{
    return dtype == PE_F32 ? 4 : 2;
}

/* A token somewhere in memory, with room between its heads. */
static void draw(test_rng *r, pe_tensor *x, pe_dtype dtype, unsigned char *memory,
                 int64_t heads, int64_t dim)
{
    pe_tensor_bshd(x, dtype, memory, 1, 1, heads, dim);
    x->head_stride = dim + test_rng_int(r, 0, 2) * test_rng_int(r, 0, 9);
    const int64_t span = ((heads - 1) * x->head_stride + dim) * size_of(dtype);
    const int64_t room = (BYTES - span) / size_of(dtype);
    x->data = memory + test_rng_int(r, 0, room) * size_of(dtype);
}

static pe_rope_spec random_spec(test_rng *r, int32_t dim)
{
    pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = dim,
        .table_len = test_rng_int(r, 0, 1) * 40,
        .pairs = {.pairing = (pe_pairing)test_rng_int(r, PE_HALF_SPLIT, PE_INTERLEAVED),
                  .out_pairing =
                      (pe_pairing)test_rng_int(r, PE_HALF_SPLIT, PE_INTERLEAVED),
                  .reversed = test_rng_int(r, 0, 5) == 0},
        .freqs = {.rope_theta = 10000}};
    if (test_rng_int(r, 0, 2) == 0) {
        spec.pairs.rotary_dim = 2 * (int32_t)test_rng_int(r, 1, dim / 2);
        spec.pairs.rotary_start =
            (int32_t)test_rng_int(r, 0, dim - spec.pairs.rotary_dim);
    }
    return spec;
}

/* Tensors drawn at random overlap often enough to be refused often enough. */
static void test_same_as_general(void **state)
{
    static unsigned char memory[BYTES];
    test_rng r = {11};
    (void)state;
    for (int i = 0; i < BYTES / 2; i++) /* a number in every dtype */
        ((uint16_t *)(void *)memory)[i] =
            (uint16_t)(0x3000 + test_rng_int(&r, 0, 0xfff));
    for (int round = 0; round < 3000; round++) {
        const int32_t dim = 2 * (int32_t)test_rng_int(&r, 1, 80);
        const pe_rope_spec spec = random_spec(&r, dim);
        const pe_positions at = {.start = test_rng_int(&r, -3, 60)};
        plans p = create(&spec);
        pe_tensor t[4];
        for (int k = 0; k < 4; k += 2) {
            const int64_t heads = test_rng_int(&r, 1, 5);
            for (int side = 0; side < 2; side++)
                draw(&r, &t[k + side], (pe_dtype)test_rng_int(&r, PE_F32, PE_BF16),
                     memory, heads, dim);
        }
        const pe_tensor *const y = test_rng_int(&r, 0, 1) ? &t[0] : &t[1];
        const pe_tensor *const y2 = test_rng_int(&r, 0, 1) ? &t[2] : &t[3];
        check(&p, &at, &t[0], y, NULL, NULL, memory);
        check(&p, &at, &t[0], y, &t[2], y2, memory);
        check(&p, &at, &t[0], y, &t[0], y2, memory);
        destroy(&p);
    }
}

/* One field at a time made wrong, or such that the short way must not serve. */
static void test_fields(void **state)
{
    static unsigned char memory[BYTES];
    static const int64_t starts[1] = {3};
    static const int64_t ids[1] = {5};
    static const double values[1] = {2.5};
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = 64,
                               .table_len = 16,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .freqs = {.rope_theta = 10000}};
    plans p = create(&spec);
    pe_tensor q, k;
    pe_tensor_bshd(&q, PE_F32, memory, 1, 1, 4, 64);
    pe_tensor_bshd(&k, PE_F32, memory + 4096, 1, 1, 2, 64);
    for (int i = 0; i < BYTES / 4; i++)
        ((float *)(void *)memory)[i] = (float)(i % 17) - 8;
    const pe_positions places[] = {{0},
                                   {.start = 7},
                                   {.starts = starts},
                                   {.ids = ids},
                                   {.values = values},
                                   {.start = 1, .starts = starts},
                                   {.reserved = 1},
                                   {.num_axes = 1},
                                   {.num_axes = 2},
                                   {.num_axes = -1},
                                   {.batch_stride = -1},
                                   {.axis_stride = -1},
                                   {.start = INT64_MAX}};
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        check(&p, &places[i], &q, &q, &k, &k, memory);
    check(&p, NULL, &q, &q, &k, &k, memory);
    check(&p, &places[1], NULL, &q, &k, &k, memory);
    check(&p, &places[1], &q, NULL, &k, &k, memory);
    check(&p, &places[1], &q, &q, &k, NULL, memory);
    pe_tensor odd[12];
    for (int i = 0; i < 12; i++)
        odd[i] = k;
    odd[0].dim = 32;
    odd[1].num_heads = 0;
    odd[2].seq_len = 2;
    odd[3].batch = 2;
    odd[4].head_stride = 63;
    odd[5].dtype = 0;
    odd[6].reserved = 1;
    odd[7].data = NULL;
    odd[8].data = memory + 512;
    odd[9].seq_len = 0;
    odd[10].head_stride = -64;
    odd[11] = q;
    for (int i = 0; i < 12; i++) {
        check(&p, &places[1], &q, &q, &odd[i], &odd[i], memory);
        check(&p, &places[1], &q, &q, &k, &odd[i], memory);
        check(&p, &places[1], &odd[i], &odd[i], NULL, NULL, memory);
        check(&p, &places[1], &odd[i], &k, NULL, NULL, memory);
    }
    destroy(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_general),
        cmocka_unit_test(test_fields),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
