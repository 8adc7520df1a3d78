/* SPDX-License-Identifier: MIT
 *
 * random.c - Philox4x32-10 and what is drawn from it
 *
 * Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
 * The key is the seed; the block counter holds the caller's counter and, above it, the
 * stream, so no two streams ever meet. */
#include "random.h"

#include <math.h>

static void round_once(uint32_t x[4], const uint32_t key[2])
{
    const uint64_t a = (uint64_t)x[0] * 0xd2511f53u, b = (uint64_t)x[2] * 0xcd9e8d57u;
    const uint32_t x1 = x[1], x3 = x[3];
    x[0] = (uint32_t)(b >> 32) ^ x1 ^ key[0];
    x[1] = (uint32_t)b;
    x[2] = (uint32_t)(a >> 32) ^ x3 ^ key[1];
    x[3] = (uint32_t)a;
}

void lab_random_block(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k[2] = {key[0], key[1]};
    for (int i = 0; i < 4; i++)
        out[i] = counter[i];
    for (int round = 0; round < 10; round++) {
        round_once(out, k);
        k[0] += 0x9e3779b9u;
        k[1] += 0xbb67ae85u;
    }
}

static void draw(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t out[2])
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t block[4] = {(uint32_t)counter, (uint32_t)(counter >> 32),
                               (uint32_t)stream, (uint32_t)(stream >> 32)};
    uint32_t words[4];
    lab_random_block(key, block, words);
    out[0] = words[0] | (uint64_t)words[1] << 32;
    out[1] = words[2] | (uint64_t)words[3] << 32;
}

uint64_t lab_random_bits(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint64_t bits[2];
    draw(seed, stream, counter, bits);
    return bits[0];
}

/* The high 64 of the 128 bits of a product. */
static uint64_t multiply_high(uint64_t a, uint64_t b)
{
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t low = a0 * b0, cross = a1 * b0 + (low >> 32);
    const uint64_t middle = a0 * b1 + (uint32_t)cross;
    return a1 * b1 + (cross >> 32) + (middle >> 32);
}

int64_t lab_random_below(uint64_t seed, uint64_t stream, uint64_t counter,
                         int64_t bound)
{
    return (int64_t)multiply_high(lab_random_bits(seed, stream, counter),
                                  (uint64_t)bound);
}

static double unit_of(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

double lab_random_unit(uint64_t seed, uint64_t stream, uint64_t counter)
{
    return unit_of(lab_random_bits(seed, stream, counter));
}

double lab_random_normal(uint64_t seed, uint64_t stream, uint64_t counter)
{
    static const double two_pi = 6.283185307179586476925286766559;
    uint64_t bits[2];
    draw(seed, stream, counter, bits);
    /* In (0, 1]: the logarithm is finite. */
    const double radius = sqrt(-2 * log(1 - unit_of(bits[0])));
    return radius * cos(two_pi * unit_of(bits[1]));
}
