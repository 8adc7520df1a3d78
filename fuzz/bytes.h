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
