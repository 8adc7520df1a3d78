/* SPDX-License-Identifier: MIT
 *
 * kernels.c - from an instruction set to its table
 */
#include "kernels/kernels.h"

const pe_kernels *pe_kernels_get(pe_isa isa)
{
    (void)isa; /* scalar is the only table of this build */
    return &pe_kernels_scalar;
}
