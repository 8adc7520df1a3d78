/* SPDX-License-Identifier: MIT
 *
 * bench_naive.c - rotation in the published shape of ggml's work, as a baseline
 */
#include "bench_naive.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#  include <immintrin.h>
#  define TARGET __attribute__((target("avx2,fma,f16c")))
#else
#  define TARGET
#endif

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* To f16 in arithmetic that every CPU has, as ggml does it.  Scaling up and down again
 * makes infinite what is too large, and leaves four times the size; the sum with a power
 * of two 2^13 times as large as its last place in f16 rounds the rest off. */
static inline uint16_t to_f16(float x)
{
    const float size = fabsf(x) * 0x1p112f * 0x1p-110f;
    const uint32_t twice = bits_of(x) << 1, sign = bits_of(x) >> 16 & 0x8000u;
    const uint32_t exponent = twice & 0xff000000u;
    const uint32_t least = 0x71000000u; /* of normal numbers */
    const uint32_t place = (exponent < least ? least : exponent) >> 1;
    const uint32_t sum = bits_of(size + float_of(place + 0x07800000u));
    const uint32_t number = (sum >> 13 & 0x7c00u) + (sum & 0xfffu);
    return (uint16_t)(sign | (twice > 0xff000000u ? 0x7e00u : number));
}

#if defined(__x86_64__)
TARGET static inline uint16_t to_f16_at_once(float x)
{
    return _cvtss_sh(x, 0);
}
#else
#  define to_f16_at_once to_f16
#endif

static float f16_values[1 << 16];

void bench_naive_start(void)
{
    for (uint32_t h = 0; h < 1u << 16; h++) {
        /* Infinities become numbers; the data have none. */
        const float x = float_of((h & 0x7fffu) << 13) * 0x1p112f;
        f16_values[h] = h & 0x8000 ? -x : x;
    }
}

static inline float from_f16(uint16_t h)
{
    return f16_values[h];
}

static inline float from_bf16(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

static inline uint16_t to_bf16(float x)
{
    const uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 64);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float same(float x)
{
    return x;
}

/* One head: pair i is (first(i), first(i) + step). */
#define DEFINE_HEAD(name, type, from, to)                                          \
  TARGET static void name(const type *x, type *y, const float *cache, int64_t dim, \
                          int interleaved)                                         \
  {                                                                                \
    const int64_t step = interleaved ? 1 : dim / 2;                                \
    for (int64_t i = 0; i < dim; i += 2) {                                         \
      const float c = cache[i], s = cache[i + 1];                                  \
      const int64_t first = interleaved ? i : i / 2;                               \
      const float x0 = from(x[first]), x1 = from(x[first + step]);                 \
      y[first] = to(x0 * c - x1 * s);                                              \
      y[first + step] = to(x0 * s + x1 * c);                                       \
    }                                                                              \
  }
DEFINE_HEAD(head_f32, float, same, same)
DEFINE_HEAD(head_f16, uint16_t, from_f16, to_f16)
DEFINE_HEAD(head_f16_at_once, uint16_t, from_f16, to_f16_at_once)
DEFINE_HEAD(head_bf16, uint16_t, from_bf16, to_bf16)

static void fill_cache(float *cache, int64_t dim, double theta, int64_t position)
{
    const float scale = powf((float)theta, -2.0f / (float)dim);
    float angle = (float)position;
    for (int64_t i = 0; i < dim; i += 2) {
        cache[i] = cosf(angle);
        cache[i + 1] = sinf(angle);
        angle *= scale;
    }
}

static void rotate_head(const bench_naive *n, void *data, int64_t element,
                        const float *cache)
{
    const int interleaved = n->pairing == PE_INTERLEAVED;
    float *x32 = (float *)data + element;
    uint16_t *x16 = (uint16_t *)data + element;
    if (n->dtype == PE_F32)
        head_f32(x32, x32, cache, n->head_dim, interleaved);
    else if (n->dtype == PE_F16 && n->converts_at_once)
        head_f16_at_once(x16, x16, cache, n->head_dim, interleaved);
    else if (n->dtype == PE_F16)
        head_f16(x16, x16, cache, n->head_dim, interleaved);
    else
        head_bf16(x16, x16, cache, n->head_dim, interleaved);
}

void bench_naive_run(void *naive)
{
    const bench_naive *n = naive;
    float cache[512];
    for (int k = 0; k < 2; k++)
        for (int64_t t = 0; t < n->tokens; t++) {
            fill_cache(cache, n->head_dim, n->theta, n->start + t);
            for (int64_t h = 0; h < n->num_heads[k]; h++)
                rotate_head(n, n->data[k], (t * n->num_heads[k] + h) * n->head_dim,
                            cache);
        }
}
