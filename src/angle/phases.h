/* SPDX-License-Identifier: MIT
 *
 * phases.h - phases of one row, summed from terms: what tables of positions cannot do
 */
#ifndef PE_PHASES_H
#define PE_PHASES_H

#include "angle/turns.h"

typedef struct {
    uint64_t hi[PE_MAX_PAIRS], lo[PE_MAX_PAIRS]; /* as in turns.h */
    double farthest; /* of all pairs, what |x| must exceed (sincos.h) */
    int num_lost;
    int16_t lost[3 * PE_MAX_PAIRS]; /* entries that only the software float can do */
} pe_phases;

/* One or two terms. */
void pe_phases_sum(pe_phases *sum, const pe_angle_term *terms, int num_terms);

#endif /* PE_PHASES_H */
