/* SPDX-License-Identifier: MIT
 *
 * kernels.c - from an instruction set to its table
 */
#include "kernels/kernels.h"

#if defined(__x86_64__)
static const pe_kernels *const tables[] = {&pe_kernels_avx512, &pe_kernels_avx2};
#elif defined(__aarch64__)
static const pe_kernels *const tables[] = {&pe_kernels_neon};
#elif defined(__wasm_simd128__)
static const pe_kernels *const tables[] = {&pe_kernels_wasm128};
#else
static const pe_kernels *const tables[] = {&pe_kernels_scalar};
#endif

const pe_kernels *pe_kernels_get(pe_isa isa)
{
    for (size_t i = 0; i < PE_COUNT(tables); i++)
        if (tables[i]->isa == isa)
            return tables[i];
    return &pe_kernels_scalar;
}
