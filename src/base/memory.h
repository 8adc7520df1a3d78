/* SPDX-License-Identifier: MIT
 *
 * memory.h - the caller's env, checked and completed, and allocation through it
 */
#ifndef PE_MEMORY_H
#define PE_MEMORY_H

#include "base/base.h"

/* Fills *full from env (NULL: all defaults): allocator set, isa resolved to one that
 * runs here, executor.run NULL for "the calling thread".
 * PE_E_ARGUMENT, PE_E_UNSUPPORTED. */
pe_status pe_env_resolve(pe_env *full, const pe_env *env, pe_error *error);

/* Zeroed memory aligned to 64 bytes, or NULL. */
void *pe_alloc(const pe_env *full, size_t size);
void pe_release(const pe_env *full, void *ptr, size_t size);

/* Runs work over [0, count) through the executor, or here in one piece. */
void pe_run(const pe_env *full, int64_t count, int64_t grain, pe_work_fn work,
            void *arg);

#endif /* PE_MEMORY_H */
