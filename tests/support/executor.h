/* SPDX-License-Identifier: MIT
 *
 * executor.h - an executor that does everything an executor may do
 */
#ifndef PE_TESTS_EXECUTOR_H
#define PE_TESTS_EXECUTOR_H

#include "posenc/env.h"

enum { TEST_NUM_WORKERS = 4 };

/* Pieces of one item, last first, on the calling thread; every worker has its turn. */
extern const pe_executor test_executor_backwards;

/* Pieces of uneven size, taken by TEST_NUM_WORKERS pthreads as they come free. */
extern const pe_executor test_executor_threads;

#endif /* PE_TESTS_EXECUTOR_H */
