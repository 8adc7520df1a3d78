/* SPDX-License-Identifier: MIT
 *
 * test_rope_memory.c - every allocation may fail, and none happens after creation
 *
 * The k-th allocation fails, for every k, in specs of every rule: PE_E_NO_MEMORY, no
 * plan, nothing kept, and what was freed was allocated with that size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>

#include "posenc/env.h"

enum { MAX_BLOCKS = 64, DIM = 32, TOKENS = 9, HEADS = 2 };

struct heap {
    struct {
        void *start, *ptr;
        size_t size, alignment;
    } blocks[MAX_BLOCKS];
    int num_blocks, num_calls, fail_at; /* fail_at 0: never */
};

static void *heap_alloc(void *ctx, size_t size, size_t alignment)
{
    struct heap *heap = ctx;

    if (++heap->num_calls == heap->fail_at)
        return NULL;
    assert_true(heap->num_blocks < MAX_BLOCKS);
    assert_true(size > 0 && alignment > 0 && (alignment & (alignment - 1)) == 0);
    /* Aligned as asked and no better, filled with something that is not zero. */
    unsigned char *start = malloc(size + 2 * alignment);
    assert_non_null(start);
    uintptr_t at = ((uintptr_t)start + alignment) & ~(uintptr_t)(alignment - 1);
    unsigned char *ptr = start + (at - (uintptr_t)start);
    for (size_t i = 0; i < size; i++)
        ptr[i] = 0xcd;
    heap->blocks[heap->num_blocks].start = start;
    heap->blocks[heap->num_blocks].ptr = ptr;
    heap->blocks[heap->num_blocks].size = size;
    heap->blocks[heap->num_blocks++].alignment = alignment;
    return ptr;
}

static void heap_release(void *ctx, void *ptr, size_t size, size_t alignment)
{
    struct heap *heap = ctx;

    for (int i = 0; i < heap->num_blocks; i++)
        if (heap->blocks[i].ptr == ptr) {
            assert_int_equal(heap->blocks[i].size, size);
            assert_int_equal(heap->blocks[i].alignment, alignment);
            free(heap->blocks[i].start);
            heap->blocks[i] = heap->blocks[--heap->num_blocks];
            return;
        }
    fail_msg("%p was not allocated", ptr);
}

static pe_env heap_env(struct heap *heap)
{
    return (pe_env){.struct_size = sizeof(pe_env),
                    .allocator = {heap_alloc, heap_release, heap}};
}

static const double list[DIM / 2] = {1, 2,  3,  4,  5,  6,  7,  8,
                                     9, 10, 11, 12, 13, 14, 15, 16};
static const uint8_t pair_axis[DIM / 2] = {0, 1, 2, 0, 1, 2};

static pe_rope_spec spec_of(pe_rope_type type, pe_angles angles)
{
    pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = DIM,
        .table_len = 50,
        .angles = angles,
        .pairs = {.pairing = PE_HALF_SPLIT, .out_pairing = PE_INTERLEAVED},
        .axes = {.map = PE_AXIS_CUSTOM, .pair_axis = pair_axis},
        .freqs = {.rope_type = type,
                  .rope_theta = 10000,
                  .max_position_embeddings = 4096,
                  .original_max_position_embeddings = 1024,
                  .freq_factors = list}};
    pe_freqs *freqs = &spec.freqs;

    if (type == PE_ROPE_CUSTOM)
        freqs->inv_freq = list;
    else if (type != PE_ROPE_DEFAULT)
        freqs->factor = 4;
    if (type == PE_ROPE_LONGROPE)
        freqs->short_factor = freqs->long_factor = list;
    if (type == PE_ROPE_LLAMA3) {
        freqs->low_freq_factor = 1;
        freqs->high_freq_factor = 4;
    }
    return spec;
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    for (int n = 0; n < 3 * (PE_ROPE_CUSTOM + 1); n++) {
        if (n / 3 == PE_ROPE_CUSTOM && n % 3 == PE_ANGLES_GGML_F32)
            continue; /* refused: ggml has no such rule */
        const pe_rope_spec spec = spec_of(n / 3, n % 3);
        int failures = 0;
        for (int k = 1;; k++) {
            struct heap heap = {.fail_at = k};
            const pe_env env = heap_env(&heap);
            pe_rope *rope = (pe_rope *)&heap;
            pe_error error;
            const pe_status status = pe_rope_create(&rope, &spec, &env, &error);
            if (status == PE_OK) {
                pe_rope_destroy(rope);
                assert_int_equal(heap.num_blocks, 0);
                break;
            }
            if (status != PE_E_NO_MEMORY)
                fail_msg("rope_type %d: %s", spec.freqs.rope_type, error.message);
            assert_null(rope);
            assert_int_equal(heap.num_blocks, 0);
            assert_int_not_equal(error.message[0], 0);
            failures++;
        }
        assert_true(failures > 0);
    }
}

/* Every kind of call on a plan whose allocator has run dry. */
static void test_no_allocation_after_creation(void **state)
{
    static float x[TOKENS * HEADS * DIM], cos_[TOKENS * DIM], sin_[TOKENS * DIM];
    static uint16_t half[TOKENS * HEADS * DIM];

    (void)state;
    for (int n = 0; n < 3 * (PE_ROPE_CUSTOM + 1); n++) {
        if (n / 3 == PE_ROPE_CUSTOM && n % 3 == PE_ANGLES_GGML_F32)
            continue; /* refused: ggml has no such rule */
        const pe_rope_spec spec = spec_of(n / 3, n % 3);
        struct heap heap = {0};
        const pe_env env = heap_env(&heap);
        const pe_positions at = {.start = 45}; /* inside the table and past it */
        pe_tensor x_t, half_t, cos_t, sin_t;
        pe_rope *rope = NULL;
        pe_error error;

        if (pe_rope_create(&rope, &spec, &env, &error) != PE_OK)
            fail_msg("%s", error.message);
        heap.fail_at = heap.num_calls + 1;
        pe_tensor_bshd(&x_t, PE_F32, x, 1, TOKENS, HEADS, DIM);
        pe_tensor_bshd(&half_t, PE_F16, half, 1, TOKENS, HEADS, DIM);
        pe_tensor_bshd(&cos_t, PE_F32, cos_, 1, TOKENS, 1, DIM);
        pe_tensor_bshd(&sin_t, PE_F32, sin_, 1, TOKENS, 1, DIM);
        assert_int_equal(pe_rope_apply(rope, &at, &x_t, &half_t, &error), PE_OK);
        assert_int_equal(
            pe_rope_apply_qk(rope, &at, &x_t, &x_t, &half_t, &half_t, &error), PE_OK);
        assert_int_equal(pe_rope_transpose(rope, &at, &x_t, &x_t, &error), PE_OK);
        assert_int_equal(pe_rope_inverse(rope, &at, &x_t, &x_t, &error), PE_OK);
        assert_int_equal(pe_rope_shift(rope, 3, &half_t, &x_t, &error), PE_OK);
        assert_int_equal(pe_rope_rebase(rope, &at, rope, &at, &x_t, &x_t, &error),
                         PE_OK);
        assert_int_equal(pe_rope_table(rope, &at, &cos_t, &sin_t, &error), PE_OK);
        assert_int_equal(heap.num_calls + 1, heap.fail_at);
        pe_rope_destroy(rope);
        assert_int_equal(heap.num_blocks, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_no_allocation_after_creation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
