/* SPDX-License-Identifier: MIT
 *
 * memory.c - env, allocator, executor
 */
#include "base/memory.h"

#include "base/error.h"
#include "base/isa.h"
#include "base/spec.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static void *default_alloc(void *ctx, size_t size, size_t alignment)
{
    (void)ctx;
    const size_t rounded = (size + alignment - 1) / alignment * alignment;
    return rounded < size ? NULL : aligned_alloc(alignment, rounded);
}

static void default_release(void *ctx, void *ptr, size_t size, size_t alignment)
{
    (void)ctx;
    (void)size;
    (void)alignment;
    free(ptr);
}

pe_status pe_env_resolve(pe_env *full, const pe_env *env, pe_error *error)
{
    memset(full, 0, sizeof *full);
    if (env != NULL) {
        pe_status status =
            pe_spec_read(full, sizeof *full, env, PE_ENV_SIZE_V1, "pe_env", error);
        if (status != PE_OK)
            return status;
    }
    if ((full->allocator.alloc == NULL) != (full->allocator.release == NULL))
        return pe_fail(error, PE_E_ARGUMENT,
                       "allocator.alloc and allocator.release must be set together");
    if (full->allocator.alloc == NULL) {
        full->allocator.alloc = default_alloc;
        full->allocator.release = default_release;
    }
    if (full->executor.run != NULL && full->executor.num_workers < 1)
        return pe_fail(error, PE_E_ARGUMENT,
                       "executor.num_workers is %d, must be at least 1",
                       full->executor.num_workers);
    if (full->executor.reserved != 0)
        return pe_fail(error, PE_E_ARGUMENT, "executor.reserved is %d, must be 0",
                       full->executor.reserved);
    if (full->isa == PE_ISA_AUTO)
        full->isa = pe_isa_best();
    if (!pe_isa_available(full->isa))
        return pe_fail(error, PE_E_UNSUPPORTED, "isa is %d (%s), not available here",
                       full->isa, pe_isa_name(full->isa));
    return PE_OK;
}

void *pe_alloc(const pe_env *full, size_t size)
{
    void *ptr = full->allocator.alloc(full->allocator.ctx, size, ALIGNMENT);
    if (ptr != NULL)
        memset(ptr, 0, size);
    return ptr;
}

void pe_release(const pe_env *full, void *ptr, size_t size)
{
    if (ptr != NULL)
        full->allocator.release(full->allocator.ctx, ptr, size, ALIGNMENT);
}

void pe_run(const pe_env *full, int64_t count, int64_t grain, pe_work_fn work,
            void *arg)
{
    if (count <= 0)
        return;
    if (full->executor.run == NULL || count <= grain)
        work(arg, 0, 0, count);
    else
        full->executor.run(full->executor.ctx, count, grain, work, arg);
}
