/* SPDX-License-Identifier: MIT
 *
 * loops.c - which instruction set's loops run
 */
#include "loops.h"

const lab_loops *lab_loops_get(pe_isa isa)
{
    const int any = isa == PE_ISA_AUTO;
    if ((any || isa == PE_ISA_AVX512) && lab_loops_avx512 != NULL &&
        pe_isa_available(PE_ISA_AVX512))
        return lab_loops_avx512;
    if ((any || isa == PE_ISA_AVX2) && lab_loops_avx2 != NULL &&
        pe_isa_available(PE_ISA_AVX2))
        return lab_loops_avx2;
    return &lab_loops_plain;
}
