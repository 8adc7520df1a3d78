/* SPDX-License-Identifier: MIT
 *
 * attention_kernels.c - from an instruction set to its table
 */
#include "kernels/attention_kernels.h"

#if defined(__x86_64__)
static const pe_attention_kernels *const tables[] = {&pe_attention_kernels_avx512,
                                                     &pe_attention_kernels_avx2};
#elif defined(__aarch64__)
static const pe_attention_kernels *const tables[] = {&pe_attention_kernels_neon};
#elif defined(__wasm_simd128__)
static const pe_attention_kernels *const tables[] = {&pe_attention_kernels_wasm128};
#else
static const pe_attention_kernels *const tables[] = {&pe_attention_kernels_scalar};
#endif

const pe_attention_kernels *pe_attention_kernels_get(pe_isa isa)
{
    for (size_t i = 0; i < PE_COUNT(tables); i++)
        if (tables[i]->isa == isa)
            return tables[i];
    return &pe_attention_kernels_scalar;
}
