/* SPDX-License-Identifier: MIT
 *
 * isa.c - names of the instruction sets, and which of them run here
 */
#include "base/base.h"

static const char *const names[] = {"auto", "scalar", "neon",
                                    "avx2", "avx512", "wasm128"};

const char *pe_isa_name(pe_isa isa)
{
    return isa < 0 || isa >= (pe_isa)PE_COUNT(names) ? "unknown" : names[isa];
}

int32_t pe_isa_available(pe_isa isa)
{
    return isa == PE_ISA_AUTO || isa == PE_ISA_SCALAR;
}
