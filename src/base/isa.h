/* SPDX-License-Identifier: MIT
 *
 * isa.h - which instruction sets run here
 */
#ifndef PE_ISA_H
#define PE_ISA_H

#include "base/base.h"

/* The fastest that this build has and this CPU runs; never PE_ISA_AUTO. */
pe_isa pe_isa_best(void);

#endif /* PE_ISA_H */
