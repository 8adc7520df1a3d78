/* SPDX-License-Identifier: MIT
 *
 * random.h - numbers that depend on seed, stream and counter and on nothing else
 *
 * Philox4x32-10 (Salmon et al. 2011): the n-th number of a stream needs none before it,
 * so any thread can make any of them and a resumed run goes on with the same. */
#ifndef POSENC_LAB_RANDOM_H
#define POSENC_LAB_RANDOM_H

#include "lab.h"

enum {
    LAB_STREAM_WEIGHTS = 1, /* plus 16 * the index of the parameter */
    LAB_STREAM_OFFSETS = 2, /* counter: step * batch + row */
    LAB_STREAM_COPY = 3     /* the copy language */
};

/* One block of the published generator; the rest is made of it. */
void lab_random_block(const uint32_t key[2], const uint32_t counter[4],
                      uint32_t out[4]);

uint64_t lab_random_bits(uint64_t seed, uint64_t stream, uint64_t counter);
/* Uniform in [0, bound), without bias to 2^-64 of it; bound at least 1. */
int64_t lab_random_below(uint64_t seed, uint64_t stream, uint64_t counter,
                         int64_t bound);
/* Uniform in [0, 1). */
double lab_random_unit(uint64_t seed, uint64_t stream, uint64_t counter);
/* Standard normal (Box-Muller). */
double lab_random_normal(uint64_t seed, uint64_t stream, uint64_t counter);

#endif /* POSENC_LAB_RANDOM_H */
