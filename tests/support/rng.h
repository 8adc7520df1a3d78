/* SPDX-License-Identifier: MIT
 *
 * rng.h - the same random numbers on every machine (splitmix64)
 */
#ifndef PE_TESTS_RNG_H
#define PE_TESTS_RNG_H

#include <stdint.h>

typedef struct test_rng {
    uint64_t state;
} test_rng;

static inline uint64_t test_rng_next(test_rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In [low, high]. */
static inline int64_t test_rng_int(test_rng *r, int64_t low, int64_t high)
{
    return low + (int64_t)(test_rng_next(r) % (uint64_t)(high - low + 1));
}

/* In [-1, 1), a multiple of 2^-23: exact in float. */
static inline float test_rng_float(test_rng *r)
{
    return (float)((int64_t)(test_rng_next(r) >> 40) - (1 << 23)) * 0x1p-23f;
}

#endif /* PE_TESTS_RNG_H */
