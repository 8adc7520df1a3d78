/* SPDX-License-Identifier: MIT
 *
 * test_rope_stream.c - large calls, which write past the caches, beside small ones
 *
 * A call that writes as much as PE_STREAM_BYTES elsewhere than it reads takes other
 * stores.  The same tokens, a few in a call, must give the same bytes, and what lies
 * between the vectors must stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../support/executor.h"
#include "../support/rng.h"
#include "posenc/posenc.h"

enum { TOKENS = 1030, HEADS = 17, DIM = 128, PART = 100, ROOM = 1 << 24, GUARD = 64 };

typedef struct {
    pe_dtype in, out;
    int by_heads; /* (heads, tokens, dim) */
    int64_t gap;  /* elements between heads, or tokens, of y */
    int64_t off;  /* bytes from a line to y */
    int32_t rotary_dim;
    const pe_executor *executor;
} stream_case;

static pe_tensor make(pe_dtype dtype, unsigned char *data, int by_heads, int64_t gap)
{
    pe_tensor t;
    if (by_heads) {
        pe_tensor_bhsd(&t, dtype, data, 1, HEADS, TOKENS, DIM);
        t.seq_stride = DIM + gap;
        t.head_stride = TOKENS * t.seq_stride;
    } else {
        pe_tensor_bshd(&t, dtype, data, 1, TOKENS, HEADS, DIM);
        t.head_stride = DIM + gap;
        t.seq_stride = HEADS * t.head_stride;
    }
    return t;
}

static int64_t size_of(pe_dtype dtype)
{
    return dtype == PE_F32 ? 4 : 2;
}

static void rotate(const pe_rope *rope, int64_t start, const pe_tensor *x,
                   const pe_tensor *y, int back)
{
    const pe_positions at = {.start = start};
    pe_error error;
    const pe_status status = back ? pe_rope_transpose(rope, &at, x, y, &error)
                                  : pe_rope_apply(rope, &at, x, y, &error);
    if (status != PE_OK)
        fail_msg("%s", error.message);
}

static void check(const stream_case *c, int back, unsigned char *x_data,
                  unsigned char *large, unsigned char *small)
{
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = DIM,
        .pairs = {.pairing = PE_HALF_SPLIT, .rotary_dim = c->rotary_dim},
        .freqs = {.rope_theta = 10000}};
    pe_env env = {.struct_size = sizeof env};
    pe_rope *rope;
    pe_error error;
    if (c->executor != NULL)
        env.executor = *c->executor;
    if (pe_rope_create(&rope, &spec, &env, &error) != PE_OK)
        fail_msg("%s", error.message);
    memset(large, 0x5a, ROOM);
    memset(small, 0x5a, ROOM);
    const pe_tensor x = make(c->in, x_data, c->by_heads, 0);
    pe_tensor y = make(c->out, large + GUARD + c->off, c->by_heads, c->gap);
    rotate(rope, 5, &x, &y, back);
    y.data = small + GUARD + c->off;
    for (int64_t t = 0; t < TOKENS; t += PART) {
        pe_tensor from = x, to = y;
        from.seq_len = to.seq_len = TOKENS - t < PART ? TOKENS - t : PART;
        from.data = x_data + t * x.seq_stride * size_of(c->in);
        to.data = (unsigned char *)y.data + t * y.seq_stride * size_of(c->out);
        rotate(rope, 5 + t, &from, &to, back);
    }
    assert_memory_equal(large, small, ROOM);
    pe_rope_destroy(rope);
}

static void test_same_bytes(void **state)
{
    static const stream_case cases[] = {
        {PE_F32, PE_F32, 0, 0, 0, 0, NULL},
        {PE_F32, PE_F32, 1, 0, 0, 0, NULL},
        {PE_F32, PE_F32, 0, 16, 0, 0, &test_executor_threads},
        {PE_F32, PE_F32, 1, 16, 0, 0, &test_executor_threads},
        {PE_F32, PE_F32, 0, 1, 0, 0, NULL},  /* not in whole lines */
        {PE_F32, PE_F32, 0, 0, 4, 0, NULL},  /* nor this, */
        {PE_F32, PE_F32, 0, 0, 0, 64, NULL}, /* and here some is copied */
        {PE_F16, PE_F32, 0, 0, 0, 0, NULL},
        {PE_BF16, PE_F32, 1, 0, 0, 0, NULL},
    };
    unsigned char *x = aligned_alloc(64, ROOM), *large = aligned_alloc(64, ROOM),
                  *small = aligned_alloc(64, ROOM);
    test_rng r = {17};
    (void)state;
    assert_true(x != NULL && large != NULL && small != NULL);
    for (int i = 0; i < ROOM / 2; i++) /* a number in every dtype */
        ((uint16_t *)(void *)x)[i] = (uint16_t)(0x3000 + test_rng_int(&r, 0, 0xfff));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i], i % 2 != 0, x, large, small);
    free(x);
    free(large);
    free(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
