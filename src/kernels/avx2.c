/* SPDX-License-Identifier: MIT
 *
 * avx2.c - kernels for AVX2 with FMA and F16C
 *
 * Target attributes instead of flags, so that one compiler line builds all files. */
#include "kernels/kernels.h"
#include "kernels/sincos.h"

#if defined(__x86_64__)

#  include "kernels/vec_avx2.h"

enum { UNROLL = 4 };
#  define ISA      avx2
#  define ISA_ENUM PE_ISA_AVX2
#  define ISA_NAME "avx2"
#  include "kernels/table.inc"

#  include "kernels/int8.inc"

#  include "kernels/instances.inc"

#  include "kernels/vec_end.h"

#endif
