/* SPDX-License-Identifier: MIT
 *
 * avx512.c - kernels for AVX-512 F, BW, DQ, VL
 *
 * Target attributes instead of flags, so that one compiler line builds all files. */
#include "kernels/kernels.h"
#include "kernels/sincos.h"

#if defined(__x86_64__)

#  include "kernels/vec_avx512.h"
#  include "kernels/vec_avx512_half.h"

enum { UNROLL = 4 };
#  define ISA      avx512
#  define ISA_ENUM PE_ISA_AVX512
#  define ISA_NAME "avx512"
#  include "kernels/table.inc"

#  include "kernels/int8.inc"

#  include "kernels/instances.inc"

#  include "kernels/vec_end.h"

#endif
