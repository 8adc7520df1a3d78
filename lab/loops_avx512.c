/* SPDX-License-Identifier: MIT
 *
 * loops_avx512.c - the loops in AVX-512 F, BW, DQ and VL
 *
 * The build compiles this file for it where the compiler can. */
#if defined(__AVX512VL__)
#  define LOOPS static const lab_loops table
#  include "loops.inc"
const lab_loops *const lab_loops_avx512 = &table;
#else
#  include "loops.h"
const lab_loops *const lab_loops_avx512 = NULL;
#endif
