/* SPDX-License-Identifier: MIT
 *
 * isa.c - names of the instruction sets, and which of them run here
 *
 * On x86 the compiler's own CPU detection asks CPUID and whether the system saves the
 * wide registers; elsewhere the build decides. */
#include "base/isa.h"

#ifndef PE_ISA_MAX /* the build may leave out the instruction sets past one */
#  define PE_ISA_MAX PE_ISA_WASM128
#endif

static const char *const names[] = {"auto", "scalar", "neon",
                                    "avx2", "avx512", "wasm128"};

const char *pe_isa_name(pe_isa isa)
{
    return isa < 0 || isa >= (pe_isa)PE_COUNT(names) ? "unknown" : names[isa];
}

#if defined(__x86_64__)

static int runs_here(pe_isa isa)
{
    __builtin_cpu_init();
    /* No CPU has AVX2 and FMA without F16C, which clang 14 cannot ask for. */
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (isa == PE_ISA_AVX2)
        return avx2;
    return isa == PE_ISA_AVX512 && avx2 && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

#elif defined(__aarch64__)

static int runs_here(pe_isa isa)
{
    return isa == PE_ISA_NEON;
}

#elif defined(__wasm_simd128__)

static int runs_here(pe_isa isa)
{
    return isa == PE_ISA_WASM128;
}

#else

static int runs_here(pe_isa isa)
{
    (void)isa;
    return 0;
}

#endif

int32_t pe_isa_available(pe_isa isa)
{
    return isa == PE_ISA_AUTO || isa == PE_ISA_SCALAR ||
           (isa <= PE_ISA_MAX && runs_here(isa));
}

pe_isa pe_isa_best(void)
{
    static const pe_isa fastest_first[] = {PE_ISA_AVX512, PE_ISA_AVX2, PE_ISA_NEON,
                                           PE_ISA_WASM128};
    for (size_t i = 0; i < PE_COUNT(fastest_first); i++)
        if (pe_isa_available(fastest_first[i]))
            return fastest_first[i];
    return PE_ISA_SCALAR;
}
