/* SPDX-License-Identifier: MIT
 *
 * codec.h - blocks of four bytes, each a value in sixty-fourths
 */
#ifndef FUZZ_CODEC_H
#define FUZZ_CODEC_H

#include "posenc/posenc.h"

static void fuzz_decode(void *ctx, const void *src, float *dst, int64_t count)
{
    (void)ctx;
    for (int64_t i = 0; i < count; i++)
        dst[i] = (float)((const int8_t *)src)[i] / 64;
}

static void fuzz_encode(void *ctx, const float *src, void *dst, int64_t count)
{
    (void)ctx;
    for (int64_t i = 0; i < count; i++) /* NaN compares false: 0 */
        ((int8_t *)dst)[i] = (int8_t)(src[i] >= -2 && src[i] < 1.98f ? src[i] * 64 : 0);
}

static const pe_codec fuzz_codec = {4, 4, fuzz_decode, fuzz_encode, NULL};

#endif /* FUZZ_CODEC_H */
