/* SPDX-License-Identifier: MIT
 *
 * plans.h - rotations of narrow heads, each made once: a table takes as long as twenty calls
 */
#ifndef FUZZ_PLANS_H
#define FUZZ_PLANS_H

#include "posenc/posenc.h"

enum { FUZZ_MOST_DIM = 32 };

/* NULL where the library refuses: odd head_dim, say.  pairing is 1 or 2. */
static pe_rope *rope_of(int64_t head_dim, int64_t pairing)
{
    static pe_rope *made[FUZZ_MOST_DIM + 1][3];
    pe_rope **rope = &made[head_dim][pairing];
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = (int32_t)head_dim,
                               .pairs = {.pairing = (pe_pairing)pairing},
                               .freqs = {.rope_theta = 100}};
    if (*rope == NULL)
        (void)pe_rope_create(rope, &spec, NULL, NULL);
    return *rope;
}

#endif /* FUZZ_PLANS_H */
