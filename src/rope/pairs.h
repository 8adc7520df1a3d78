/* SPDX-License-Identifier: MIT
 *
 * pairs.h - which elements form a pair, and which part of the head turns
 */
#ifndef PE_PAIRS_H
#define PE_PAIRS_H

#include "base/base.h"

/* Fills *resolved with defaults applied (out_pairing, rotary_dim), or says what does not
 * fit a head of head_dim elements. */
pe_status pe_pairs_resolve(const pe_pairs *pairs, int64_t head_dim, pe_pairs *resolved,
                           pe_error *error);

/* Places of the two elements of pair i in a window of num_pairs pairs. */
static inline int64_t pe_pair_first(pe_pairing pairing, int64_t i)
{
    return pairing == PE_INTERLEAVED ? 2 * i : i;
}

static inline int64_t pe_pair_second(pe_pairing pairing, int64_t i, int64_t num_pairs)
{
    return pairing == PE_INTERLEAVED ? 2 * i + 1 : i + num_pairs;
}

#endif /* PE_PAIRS_H */
