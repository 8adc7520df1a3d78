/* SPDX-License-Identifier: MIT
 *
 * loops_avx2.c - the loops in AVX2 and FMA
 *
 * The build compiles this file for it where the compiler can. */
#if defined(__AVX2__)
#  define LOOPS static const lab_loops table
#  include "loops.inc"
const lab_loops *const lab_loops_avx2 = &table;
#else
#  include "loops.h"
const lab_loops *const lab_loops_avx2 = NULL;
#endif
