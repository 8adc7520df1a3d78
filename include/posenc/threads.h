/* SPDX-License-Identifier: MIT
 *
 * threads.h - an optional thread pool that fills in a pe_executor
 *
 * The library starts no thread unless the program makes a pool:
 *     pe_pool *pool;
 *     pe_env env = {.struct_size = sizeof env};
 *     pe_pool_create(&pool, 0, &error);
 *     pe_pool_executor(pool, &env.executor);
 *     pe_rope_create(&rope, &spec, &env, &error);
 * Its threads spin for some tens of microseconds after a call, then sleep; a call does
 * not wait for a thread that has not woken up, so a busy machine costs speed and never
 * progress.  Signals are left to the program's own threads.  Does not survive fork().
 */
#ifndef POSENC_THREADS_H
#define POSENC_THREADS_H

#include "env.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pe_pool pe_pool;

/* num_threads counts the caller, so 1 starts none; at most 1024; 0: one for each CPU
 * this process may use.  PE_E_ARGUMENT; PE_E_NO_MEMORY, also for threads. */
PE_API pe_status pe_pool_create(pe_pool **out, int32_t num_threads, pe_error *error);
/* After the last call of every plan that uses the pool. */
PE_API void pe_pool_destroy(pe_pool *pool);
/* Borrows the pool.  Calls from several threads take turns; a call from inside a piece
 * of work, of this pool or another, runs on that worker alone. */
PE_API void pe_pool_executor(pe_pool *pool, pe_executor *out);

#ifdef __cplusplus
}
#endif

#endif /* POSENC_THREADS_H */
