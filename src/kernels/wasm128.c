/* SPDX-License-Identifier: MIT
 *
 * wasm128.c - kernels for WebAssembly SIMD128
 */
#include "kernels/kernels.h"
#include "kernels/sincos.h"

#if defined(__wasm_simd128__)

#  include "kernels/vec_wasm128.h"

enum { UNROLL = 4 };
#  define ISA      wasm128
#  define ISA_ENUM PE_ISA_WASM128
#  define ISA_NAME "wasm128"
#  include "kernels/table.inc"

#  include "kernels/int8.inc"

#  include "kernels/instances.inc"

#endif
