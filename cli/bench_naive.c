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
TARGET static inline uint16_t to_f16(float x)
{
    return _cvtss_sh(x, 0);
}
#else
#  define TARGET
static inline uint16_t to_f16(float x) /* for sizes that f16 holds as normal */
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rebased = (bits & 0x7fffffffu) - (112u << 23);
    return (uint16_t)((bits >> 16 & 0x8000u) |
                      (rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13);
}
#endif

static float f16_values[1 << 16];

void bench_naive_start(void)
{
    for (uint32_t h = 0; h < 1u << 16; h++) {
        const uint32_t bits = (h & 0x7fffu) << 13;
        float x;
        memcpy(&x, &bits, sizeof x);
        x *= 0x1p112f; /* infinities become numbers; the data have none */
        f16_values[h] = h & 0x8000 ? -x : x;
    }
}

static inline float from_f16(uint16_t h)
{
    return f16_values[h];
}

static inline float from_bf16(uint16_t h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint16_t to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
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
