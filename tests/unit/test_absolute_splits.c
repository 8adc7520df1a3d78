/* SPDX-License-Identifier: MIT
 *
 * test_absolute_splits.c - the same bits however the work is cut, from one allocation
 *
 * Table row and row computed on the fly; the whole tensor and its slices; one thread and
 * several; vectors too wide for one piece; in place and not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../support/executor.h"
#include "../support/rng.h"
#include "../support/sinusoid_reference.h"
#include "posenc/env.h"

enum { BATCH = 3, TOKENS = 901, DIM = 30, ROWS = 200, WIDE = 9001, NUM_KINDS = 5 };

static float weight[ROWS * DIM];

/* The executors of the tests, counting that they were asked. */
static int num_runs;

static void counted_run(void *ctx, int64_t count, int64_t grain, pe_work_fn work,
                        void *arg)
{
    const pe_executor *inner = ctx;

    num_runs++;
    inner->run(inner->ctx, count, grain, work, arg);
}

static pe_env counted_env(int n)
{
    static pe_executor inner[2];

    inner[n] = n ? test_executor_threads : test_executor_backwards;
    return (pe_env){.struct_size = sizeof(pe_env),
                    .executor = {counted_run, &inner[n], inner[n].num_workers, 0}};
}

static pe_sinusoidal_spec sinusoidal_of(int kind)
{
    pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                               .order = (pe_sinusoid_order)(1 + kind % 3),
                               .model_dim = DIM,
                               .embed_scale = 1.7,
                               .value_scale = 0.3};
    spec.num_axes = kind == 1 ? 3 : 1;
    spec.angles = kind == 2 ? PE_ANGLES_HF_F32 : PE_ANGLES_EXACT;
    spec.has_padding = kind == 3;
    return spec;
}

/* Kinds 0 to 3 are sinusoidal, 4 is learned. */
static pe_absolute *create(int kind, int64_t table_len, const pe_env *env)
{
    pe_absolute *plan = NULL;
    pe_status status;
    pe_error error;
    pe_tensor table;

    if (kind < 4) {
        pe_sinusoidal_spec spec = sinusoidal_of(kind);
        spec.table_len = table_len;
        status = pe_sinusoidal_create(&plan, &spec, env, &error);
    } else {
        pe_tensor_bshd(&table, PE_F32, weight, 1, ROWS, 1, DIM);
        const pe_learned_spec spec = {
            .struct_size = sizeof spec, .weight = &table, .embed_scale = 1.7};
        status = pe_learned_create(&plan, &spec, env, &error);
    }
    if (status != PE_OK)
        fail_msg("%s", error.message);
    return plan;
}

static int64_t ids[BATCH * TOKENS];
static float x[BATCH * TOKENS * DIM];

static void set_input(void)
{
    test_rng r = {4};

    for (int i = 0; i < ROWS * DIM; i++)
        weight[i] = test_rng_float(&r);
    for (int i = 0; i < BATCH * TOKENS * DIM; i++)
        x[i] = test_rng_float(&r);
    for (int i = 0; i < BATCH * TOKENS; i++)
        ids[i] = test_rng_int(&r, 0, ROWS - 1);
}

static void add(const pe_absolute *plan, float *out)
{
    const pe_positions at = {.ids = ids, .batch_stride = TOKENS};
    pe_tensor x_t, y;
    pe_error error;

    pe_tensor_bshd(&x_t, PE_F32, x, BATCH, TOKENS, 1, DIM);
    pe_tensor_bshd(&y, PE_F32, out, BATCH, TOKENS, 1, DIM);
    if (pe_absolute_add(plan, &at, &x_t, &y, &error) != PE_OK)
        fail_msg("%s", error.message);
}

static void test_splits(void **state)
{
    static float whole[BATCH * TOKENS * DIM], other[BATCH * TOKENS * DIM];

    (void)state;
    set_input();
    for (int kind = 0; kind < NUM_KINDS; kind++) {
        pe_absolute *plan = create(kind, 0, NULL);
        add(plan, whole);
        for (int n = 0; n < 2; n++) { /* threads, with a table and without */
            const pe_env env = counted_env(n);
            num_runs = 0;
            pe_absolute *threaded = create(kind, 150 * n, &env);
            add(threaded, other);
            assert_int_equal(num_runs, n && kind < 4 ? 2 : 1);
            assert_memory_equal(whole, other, sizeof whole);
            pe_absolute_destroy(threaded);
        }
        pe_absolute *tabulated = create(kind, 133, NULL);
        memcpy(other, x, sizeof other);
        for (int64_t b = 0; b < BATCH; b++)
            for (int64_t t = 0; t < TOKENS; t += 70) { /* slices, in place */
                const int64_t n = TOKENS - t < 70 ? TOKENS - t : 70;
                const pe_positions at = {.ids = ids + b * TOKENS + t};
                pe_tensor y;
                pe_tensor_bshd(&y, PE_F32, other + (b * TOKENS + t) * DIM, 1, n, 1,
                               DIM);
                assert_int_equal(pe_absolute_add(tabulated, &at, &y, &y, NULL), PE_OK);
            }
        assert_memory_equal(whole, other, sizeof whole);
        pe_absolute_destroy(tabulated);
        pe_absolute_destroy(plan);
    }
}

/* Wide enough for the kernels to work in vectors, on every instruction set here. */
static void test_instruction_sets(void **state)
{
    enum { D = 390, N = 70 };
    static float scalar[N * D], other[N * D];
    const pe_positions at = {.start = 99950};
    pe_tensor y;
    int num_others = 0;

    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (pe_isa isa = PE_ISA_SCALAR; isa <= PE_ISA_WASM128; isa++) {
            const pe_env env = {.struct_size = sizeof env, .isa = isa};
            pe_sinusoidal_spec spec = sinusoidal_of(kind);
            pe_absolute *plan = NULL;
            if (!pe_isa_available(isa))
                continue;
            spec.model_dim = D;
            pe_tensor_bshd(&y, PE_F32, isa == PE_ISA_SCALAR ? scalar : other, 1, N, 1,
                           D);
            assert_int_equal(pe_sinusoidal_create(&plan, &spec, &env, NULL), PE_OK);
            assert_int_equal(pe_absolute_fill(plan, &at, &y, NULL), PE_OK);
            pe_absolute_destroy(plan);
            if (isa == PE_ISA_SCALAR)
                continue;
            assert_memory_equal(scalar, other, sizeof scalar);
            num_others++;
        }
    print_message("%d plans of other instruction sets agree with scalar\n", num_others);
}

/* Wide enough for the workers to share the columns. */
static void test_gradient_splits(void **state)
{
    enum { D = 300, R = 7, N = 90 };
    static float table[R * D], upstream[N * D], first[R * D], other[R * D];
    const pe_positions at = {.ids = ids};
    pe_tensor table_t, dy, dweight;
    test_rng r = {5};

    (void)state;
    for (int i = 0; i < N * D; i++)
        upstream[i] = test_rng_float(&r);
    for (int i = 0; i < N; i++)
        ids[i] = test_rng_int(&r, 0, R - 1);
    pe_tensor_bshd(&table_t, PE_F32, table, 1, R, 1, D);
    pe_tensor_bshd(&dy, PE_F32, upstream, 1, N, 1, D);
    const pe_learned_spec spec = {.struct_size = sizeof spec, .weight = &table_t};
    for (int n = 0; n < 3; n++) {
        const pe_env env = counted_env(n > 1);
        pe_absolute *plan = NULL;
        pe_tensor_bshd(&dweight, PE_F32, n == 0 ? first : other, 1, R, 1, D);
        memset(other, 0, sizeof other);
        num_runs = 0;
        assert_int_equal(pe_learned_create(&plan, &spec, n == 0 ? NULL : &env, NULL),
                         PE_OK);
        assert_int_equal(pe_absolute_backward(plan, &at, &dy, &dweight, NULL), PE_OK);
        assert_int_equal(num_runs, n > 0);
        if (n > 0)
            assert_memory_equal(first, other, sizeof first);
        pe_absolute_destroy(plan);
    }
    /* In token order, one float addition after another. */
    for (int i = 0; i < R * D; i++) {
        float sum = 0;
        for (int t = 0; t < N; t++)
            if (ids[t] == i / D)
                sum += upstream[t * D + i % D];
        assert_true(first[i] == sum);
    }
}

/* Sinusoids wider than a piece: entries by the textbook, and the table's are the same. */
static void test_wide_sinusoids(void **state)
{
    static float got[2 * WIDE], cached[2 * WIDE];
    const pe_positions at = {.start = 7};
    pe_tensor y;

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        pe_sinusoidal_spec spec = sinusoidal_of(kind);
        pe_absolute *plan = NULL;
        spec.model_dim = WIDE;
        spec.num_axes = 1;
        spec.angles = PE_ANGLES_EXACT;
        assert_int_equal(pe_sinusoidal_create(&plan, &spec, NULL, NULL), PE_OK);
        pe_tensor_bshd(&y, PE_F32, got, 1, 2, 1, WIDE);
        assert_int_equal(pe_absolute_fill(plan, &at, &y, NULL), PE_OK);
        pe_absolute_destroy(plan);
        for (int64_t n = 0; n < 2 * WIDE; n++) {
            const long double position = 7 + n / WIDE;
            const double exact = (double)ref_sinusoid(&spec, n % WIDE, &position);
            if (got[n] != (float)exact)
                fail_msg("order %d, %d: %.9g, expected %.9g", spec.order, (int)n,
                         (double)got[n], exact);
        }
        spec.table_len = 9;
        assert_int_equal(pe_sinusoidal_create(&plan, &spec, NULL, NULL), PE_OK);
        y.data = cached;
        assert_int_equal(pe_absolute_fill(plan, &at, &y, NULL), PE_OK);
        pe_absolute_destroy(plan);
        assert_memory_equal(got, cached, sizeof got);
    }
}

/* Pieces that end within a pair: groups of three make them odd. */
static void test_wide_groups(void **state)
{
    enum { D = 9003, GROUP = 3 };
    static float single[D], scales[2][D / GROUP];
    static int8_t got[D], expected[D];
    const pe_positions at = {.start = 12345};
    pe_tensor y[2], single_t;

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        pe_sinusoidal_spec spec = sinusoidal_of(kind);
        pe_absolute *plan = NULL;
        spec.model_dim = D;
        spec.num_axes = 1;
        assert_int_equal(pe_sinusoidal_create(&plan, &spec, NULL, NULL), PE_OK);
        for (int i = 0; i < 2; i++) {
            pe_tensor_bshd(&y[i], PE_I8, i ? expected : got, 1, 1, 1, D);
            y[i].scales = scales[i];
            y[i].scale_len = GROUP;
        }
        pe_tensor_bshd(&single_t, PE_F32, single, 1, 1, 1, D);
        assert_int_equal(pe_absolute_fill(plan, &at, &single_t, NULL), PE_OK);
        assert_int_equal(pe_absolute_fill(plan, &at, &y[0], NULL), PE_OK);
        pe_absolute_destroy(plan);
        assert_int_equal(pe_tensor_copy(&single_t, &y[1], NULL, NULL), PE_OK);
        assert_memory_equal(got, expected, sizeof got);
        assert_memory_equal(scales[0], scales[1], sizeof scales[0]);
    }
}

/* A learned table of GPT-3's kind of width, gathered, trained and stretched. */
static void test_wide_table(void **state)
{
    enum { N = 3 };
    static float table[N * WIDE], got[N * WIDE], ones[N * WIDE];
    const int64_t order[N] = {2, 0, 2};
    const pe_positions at = {.ids = order};
    const pe_resize same = {
        .mode = PE_RESIZE_CUBIC, .from_h = 1, .from_w = N, .to_h = 1, .to_w = N};
    pe_tensor table_t, got_t, ones_t;
    pe_absolute *plan = NULL;
    test_rng r = {8};

    (void)state;
    for (int i = 0; i < N * WIDE; i++) {
        table[i] = test_rng_float(&r);
        ones[i] = 1;
    }
    pe_tensor_bshd(&table_t, PE_F32, table, 1, N, 1, WIDE);
    pe_tensor_bshd(&got_t, PE_F32, got, 1, N, 1, WIDE);
    pe_tensor_bshd(&ones_t, PE_F32, ones, 1, N, 1, WIDE);
    const pe_learned_spec spec = {.struct_size = sizeof spec, .weight = &table_t};
    assert_int_equal(pe_learned_create(&plan, &spec, NULL, NULL), PE_OK);
    assert_int_equal(pe_absolute_fill(plan, &at, &got_t, NULL), PE_OK);
    for (int t = 0; t < N; t++)
        assert_memory_equal(got + t * WIDE, table + order[t] * WIDE,
                            WIDE * sizeof *got);
    memset(got, 0, sizeof got);
    assert_int_equal(pe_absolute_backward(plan, &at, &ones_t, &got_t, NULL), PE_OK);
    for (int i = 0; i < N * WIDE; i++)
        assert_true(got[i] == (i / WIDE == 0 ? 1 : i / WIDE == 1 ? 0 : 2));
    pe_absolute_destroy(plan);
    assert_int_equal(pe_learned_resize(&same, &table_t, &got_t, NULL, NULL), PE_OK);
    assert_memory_equal(got, table, sizeof got);
}

/* ------------------------------------------------------------------ memory --- */

struct heap {
    void *block;
    size_t size;
    int num_calls, fail_at;
};

static void *heap_alloc(void *ctx, size_t size, size_t alignment)
{
    struct heap *heap = ctx;

    if (++heap->num_calls == heap->fail_at)
        return NULL;
    assert_null(heap->block); /* one block is all that a plan needs */
    heap->size = size;
    heap->block =
        aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    memset(heap->block, 0xcd, size);
    return heap->block;
}

static void heap_release(void *ctx, void *ptr, size_t size, size_t alignment)
{
    struct heap *heap = ctx;

    (void)alignment;
    assert_ptr_equal(ptr, heap->block);
    assert_int_equal(size, heap->size);
    free(ptr);
    heap->block = NULL;
}

static void test_memory(void **state)
{
    static float out[BATCH * TOKENS * DIM], expected[BATCH * TOKENS * DIM];
    pe_tensor table;

    (void)state;
    set_input();
    pe_tensor_bshd(&table, PE_F32, weight, 1, ROWS, 1, DIM);
    for (int kind = 0; kind < NUM_KINDS; kind++) {
        struct heap heap = {.fail_at = 1};
        const pe_env env = {.struct_size = sizeof env,
                            .allocator = {heap_alloc, heap_release, &heap}};
        pe_absolute *plan = (pe_absolute *)&heap;
        pe_error error = {0};
        pe_sinusoidal_spec sinusoidal = sinusoidal_of(kind % 4);
        sinusoidal.table_len = 33;
        const pe_learned_spec learned = {.struct_size = sizeof learned,
                                         .weight = &table};
        const pe_status status =
            kind < 4 ? pe_sinusoidal_create(&plan, &sinusoidal, &env, &error)
                     : pe_learned_create(&plan, &learned, &env, &error);
        assert_int_equal(status, PE_E_NO_MEMORY);
        assert_int_equal(error.status, PE_E_NO_MEMORY);
        assert_null(plan);
        assert_null(heap.block);

        plan = create(kind, 33, &env);
        heap.fail_at = heap.num_calls + 1; /* a call that allocates would fail */
        add(plan, out);
        pe_absolute_destroy(plan);
        assert_int_equal(heap.num_calls, 2);
        assert_null(heap.block);
        plan = create(kind, 0, NULL);
        add(plan, expected);
        assert_memory_equal(out, expected, sizeof out);
        pe_absolute_destroy(plan);
    }
    pe_absolute_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splits),          cmocka_unit_test(test_instruction_sets),
        cmocka_unit_test(test_gradient_splits), cmocka_unit_test(test_wide_sinusoids),
        cmocka_unit_test(test_wide_groups),     cmocka_unit_test(test_wide_table),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
