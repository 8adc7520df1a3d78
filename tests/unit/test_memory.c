/* SPDX-License-Identifier: MIT
 *
 * test_memory.c - the caller's env, allocation and execution through it
 */
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct heap {
    size_t live, size;
} heap;

static void *heap_alloc(void *ctx, size_t size, size_t alignment)
{
    heap *h = ctx;
    h->live++;
    h->size = size;
    void *ptr =
        aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    memset(ptr, 0xff, size);
    return ptr;
}

static void heap_release(void *ctx, void *ptr, size_t size, size_t alignment)
{
    heap *h = ctx;
    (void)alignment;
    h->live--;
    h->size -= size;
    free(ptr);
}

static void *no_alloc(void *ctx, size_t size, size_t alignment)
{
    (void)ctx;
    (void)size;
    (void)alignment;
    return NULL;
}

static void allocates_zeroed_and_aligned(void **state)
{
    (void)state;
    pe_env full;
    assert_int_equal(pe_env_resolve(&full, NULL, NULL), PE_OK);
    for (size_t size = 1; size < 300; size += 37) {
        unsigned char *bytes = pe_alloc(&full, size);
        assert_non_null(bytes);
        assert_int_equal((uintptr_t)bytes % 64, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(bytes[i], 0);
        pe_release(&full, bytes, size);
    }
    pe_release(&full, NULL, 1);
}

static void returns_null_for_a_size_that_overflows(void **state)
{
    (void)state;
    pe_env full;
    assert_int_equal(pe_env_resolve(&full, NULL, NULL), PE_OK);
    assert_null(pe_alloc(&full, SIZE_MAX));
    assert_null(pe_alloc(&full, SIZE_MAX - 62));
}

static void uses_the_callers_allocator(void **state)
{
    (void)state;
    heap h = {0};
    const pe_env env = {.struct_size = sizeof env,
                        .allocator = {heap_alloc, heap_release, &h}};
    pe_env full;
    assert_int_equal(pe_env_resolve(&full, &env, NULL), PE_OK);
    unsigned char *bytes = pe_alloc(&full, 100);
    assert_int_equal(h.live, 1);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(bytes[i], 0);
    pe_release(&full, bytes, 100);
    assert_int_equal(h.live, 0);
    assert_int_equal(h.size, 0);

    const pe_env none = {.struct_size = sizeof none,
                         .allocator = {no_alloc, heap_release, &h}};
    assert_int_equal(pe_env_resolve(&full, &none, NULL), PE_OK);
    assert_null(pe_alloc(&full, 100));
}

static void resolves_the_instruction_set(void **state)
{
    (void)state;
    pe_env full;
    assert_int_equal(pe_env_resolve(&full, NULL, NULL), PE_OK);
    assert_int_not_equal(full.isa, PE_ISA_AUTO);
    assert_true(pe_isa_available(full.isa));
}

static void refused(const pe_env *env, pe_status status, const char *message)
{
    pe_env full;
    pe_error error = {.status = PE_OK};
    assert_int_equal(pe_env_resolve(&full, env, &error), status);
    assert_int_equal(error.status, status);
    assert_non_null(strstr(error.message, message));
}

static void refuses_a_wrong_env(void **state)
{
    (void)state;
    pe_env env = {.struct_size = 4};
    refused(&env, PE_E_ARGUMENT, "pe_env.struct_size is 4, must be at least");
    env = (pe_env){.struct_size = sizeof env, .allocator.alloc = no_alloc};
    refused(&env, PE_E_ARGUMENT, "allocator.release must be set");
    env = (pe_env){.struct_size = sizeof env, .isa = 99};
    refused(&env, PE_E_UNSUPPORTED, "isa is 99");
    env = (pe_env){.struct_size = sizeof env, .isa = -1};
    refused(&env, PE_E_UNSUPPORTED, "isa is -1");
    env = (pe_env){.struct_size = sizeof env, .executor.reserved = 1};
    refused(&env, PE_E_ARGUMENT, "executor.reserved is 1");
}

typedef struct coverage {
    int64_t done[1000];
    int64_t pieces;
} coverage;

static void cover(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    coverage *c = arg;
    assert_in_range(worker, 0, 1);
    for (int64_t i = begin; i < end; i++)
        c->done[i]++;
    c->pieces++;
}

static void run_backwards(void *ctx, int64_t count, int64_t grain, pe_work_fn work,
                          void *arg)
{
    (void)ctx;
    for (int64_t end = count; end > 0; end -= grain)
        work(arg, (int32_t)(end % 2), end > grain ? end - grain : 0, end);
}

static void runs_every_item_once(void **state)
{
    (void)state;
    pe_env env = {.struct_size = sizeof env, .executor = {run_backwards, NULL, 2, 0}};
    for (int threaded = 0; threaded < 2; threaded++) {
        pe_env full;
        assert_int_equal(pe_env_resolve(&full, threaded ? &env : NULL, NULL), PE_OK);
        for (int64_t count = 0; count <= 1000; count += 333) {
            coverage c = {.pieces = 0};
            pe_run(&full, count, 100, cover, &c);
            for (int64_t i = 0; i < 1000; i++)
                assert_int_equal(c.done[i], i < count);
            assert_true(threaded || c.pieces == (count > 0));
        }
    }
    env.executor.num_workers = 0;
    refused(&env, PE_E_ARGUMENT, "num_workers is 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocates_zeroed_and_aligned),
        cmocka_unit_test(returns_null_for_a_size_that_overflows),
        cmocka_unit_test(uses_the_callers_allocator),
        cmocka_unit_test(resolves_the_instruction_set),
        cmocka_unit_test(refuses_a_wrong_env),
        cmocka_unit_test(runs_every_item_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
