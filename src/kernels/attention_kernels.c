/* SPDX-License-Identifier: MIT
 *
 * attention_kernels.c - from an instruction set to its table
 */
#include "kernels/attention.h"

const pe_attention_kernels *pe_attention_kernels_get(pe_isa isa)
{
#if defined(__x86_64__)
    if (isa == PE_ISA_AVX512)
        return &pe_attention_kernels_avx512;
    if (isa == PE_ISA_AVX2)
        return &pe_attention_kernels_avx2;
#endif
    (void)isa;
    return &pe_attention_kernels_scalar;
}
