/* SPDX-License-Identifier: MIT
 *
 * case.h - running one check
 */
#ifndef PE_TESTS_VECTORS_CASE_H
#define PE_TESTS_VECTORS_CASE_H

#include <setjmp.h>

#include "vectors.h"

/* 0: passed.  1: failed, and its line has been printed. */
int vec_run(vec_case *c, vec_check check);

#endif /* PE_TESTS_VECTORS_CASE_H */
