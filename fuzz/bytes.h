/* SPDX-License-Identifier: MIT
 *
 * bytes.h - a fuzzer's input as numbers
 *
 * Past its end the input reads as zeroes, so that every input means something. */
#ifndef FUZZ_BYTES_H
#define FUZZ_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *data;
    size_t size;
};

static inline uint64_t take(struct bytes *in, size_t count)
{
    uint64_t value = 0;

    for (size_t i = 0; i < count; i++) {
        value = value << 8 | (in->size > 0 ? *in->data : 0);
        if (in->size > 0) {
            in->data++;
            in->size--;
        }
    }
    return value;
}

static inline int64_t take_within(struct bytes *in, int64_t low, int64_t high)
{
    return low + (int64_t)(take(in, 1) % (uint64_t)(high - low + 1));
}

/* In [low, high] for as many values of a byte as are usual; else eight more are it. */
static inline int64_t take_whole(struct bytes *in, unsigned usual, int64_t low,
                                 int64_t high)
{
    const uint64_t pick = take(in, 1);
    return pick < usual ? low + (int64_t)(pick % (uint64_t)(high - low + 1))
                        : (int64_t)take(in, 8);
}

/* A byte picks a usual value, or eight more bytes are the field. */
static inline double take_double(struct bytes *in, const double *usual, size_t count)
{
    const size_t pick = (size_t)take(in, 1);
    double value;

    if (pick < 224)
        return usual[pick % count];
    const uint64_t bits = take(in, 8);
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif /* FUZZ_BYTES_H */
