/* SPDX-License-Identifier: MIT
 *
 * neon.c - kernels for AArch64
 */
#include "kernels/kernels.h"
#include "kernels/sincos.h"

#if defined(__aarch64__)

#  include "kernels/vec_neon.h"

enum { UNROLL = 4 };
#  define ISA      neon
#  define ISA_ENUM PE_ISA_NEON
#  define ISA_NAME "neon"
#  include "kernels/table.inc"

#  include "kernels/int8.inc"

#  include "kernels/instances.inc"

#endif
