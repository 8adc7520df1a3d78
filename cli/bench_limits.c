/* SPDX-License-Identifier: MIT
 *
 * bench_limits.c - the limit loops for each instruction set
 *
 * Intrinsics, because what a compiler makes of plain loops differs by its level and its
 * tuning; where there are none, plain loops must do. */
#include "bench_limits.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* clang-format off */

static inline float f16_value(uint16_t h)
{
    uint32_t bits = (uint32_t)(h & 0x7fff) << 13;
    float x;
    memcpy(&x, &bits, sizeof x);
    x *= 0x1p112f;
    return h & 0x8000 ? -x : x;
}
static inline uint16_t f16_bits(float x) /* for sizes that f16 holds as normal */
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rebased = (bits & 0x7fffffffu) - (112u << 23);
    return (uint16_t)((bits >> 16 & 0x8000u) |
                      (rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13);
}
static inline float bf16_value(uint16_t h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline uint16_t bf16_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#define ISA scalar
#define ISA_ENUM PE_ISA_SCALAR
#define TARGET
#define V float
#define LANES 1
#define SET1(x) ((float)(x))
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#define LOAD_F16(p) f16_value(*(p))
#define STORE_F16(p, v) (*(p) = f16_bits(v))
#define LOAD_BF16(p) bf16_value(*(p))
#define STORE_BF16(p, v) (*(p) = bf16_bits(v))
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define FMA(a, b, c) ((a) * (b) + (c))
#define ROUND(a) rintf(a)
#define TIMES_POWER(p, n) ldexpf(p, (int)(n))
#include "bench_limits.inc"

#if defined(__x86_64__)
#  include <immintrin.h>

#  undef ISA
#  undef ISA_ENUM
#  undef TARGET
#  undef V
#  undef LANES
#  undef SET1
#  undef LOAD
#  undef STORE
#  undef LOAD_F16
#  undef STORE_F16
#  undef LOAD_BF16
#  undef STORE_BF16
#  undef ADD
#  undef MUL
#  undef MAX
#  undef FMA
#  undef ROUND
#  undef TIMES_POWER

#  define BF16_ROUND(and, add, srl, set1, bits)                                        \
      srl(add(bits, add(set1(0x7fff), and(srl(bits, 16), set1(1)))), 16)

#  define ISA avx2
#  define ISA_ENUM PE_ISA_AVX2
#  define TARGET __attribute__((target("avx2,fma,f16c")))
#  define V __m256
#  define LANES 8
#  define SET1(x) _mm256_set1_ps(x)
#  define LOAD(p) _mm256_loadu_ps(p)
#  define STORE(p, v) _mm256_storeu_ps(p, v)
#  define LOAD_F16(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p)))
#  define STORE_F16(p, v)                                                              \
      _mm_storeu_si128((__m128i *)(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT))
#  define LOAD_BF16(p)                                                                 \
      _mm256_castsi256_ps(_mm256_slli_epi32(                                           \
          _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p))), 16))
#  define STORE_BF16(p, v) store_bf16_avx2(p, v)
#  define ADD(a, b) _mm256_add_ps(a, b)
#  define MUL(a, b) _mm256_mul_ps(a, b)
#  define MAX(a, b) _mm256_max_ps(a, b)
#  define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#  define ROUND(a) _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#  define TIMES_POWER(p, n)                                                            \
      _mm256_castsi256_ps(_mm256_add_epi32(                                            \
          _mm256_castps_si256(p), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)))
TARGET static inline void store_bf16_avx2(uint16_t *p, __m256 v)
{
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i h = BF16_ROUND(_mm256_and_si256, _mm256_add_epi32, _mm256_srli_epi32,
                                 _mm256_set1_epi32, bits);
    const __m256i packed = _mm256_packus_epi32(h, h);
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(
                                       _mm256_permute4x64_epi64(packed, 0x08)));
}
#  include "bench_limits.inc"

#  undef ISA
#  undef ISA_ENUM
#  undef TARGET
#  undef V
#  undef LANES
#  undef SET1
#  undef LOAD
#  undef STORE
#  undef LOAD_F16
#  undef STORE_F16
#  undef LOAD_BF16
#  undef STORE_BF16
#  undef ADD
#  undef MUL
#  undef MAX
#  undef FMA
#  undef ROUND
#  undef TIMES_POWER

#  define ISA avx512
#  define ISA_ENUM PE_ISA_AVX512
#  define TARGET                                                                       \
      __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#  define V __m512
#  define LANES 16
#  define SET1(x) _mm512_set1_ps(x)
#  define LOAD(p) _mm512_loadu_ps(p)
#  define STORE(p, v) _mm512_storeu_ps(p, v)
#  define LOAD_F16(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p)))
#  define STORE_F16(p, v)                                                              \
      _mm256_storeu_si256(                                                             \
          (__m256i *)(p),                                                              \
          _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#  define LOAD_BF16(p)                                                                 \
      _mm512_castsi512_ps(_mm512_slli_epi32(                                           \
          _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p))), 16))
#  define STORE_BF16(p, v)                                                             \
      _mm256_storeu_si256(                                                             \
          (__m256i *)(p),                                                              \
          _mm512_cvtepi32_epi16(BF16_ROUND(_mm512_and_si512, _mm512_add_epi32,         \
                                           _mm512_srli_epi32, _mm512_set1_epi32,       \
                                           _mm512_castps_si512(v))))
#  define ADD(a, b) _mm512_add_ps(a, b)
#  define MUL(a, b) _mm512_mul_ps(a, b)
#  define MAX(a, b) _mm512_max_ps(a, b)
#  define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#  define ROUND(a) _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT)
#  define TIMES_POWER(p, n) _mm512_scalef_ps(p, n)
#  include "bench_limits.inc"

static const bench_limits *const vectors[] = {&limits_avx2, &limits_avx512};
#else
static const bench_limits *const vectors[] = {&limits_scalar};
#endif

/* clang-format on */

volatile float bench_one = 1;

void bench_scale(const bench_limits *limits, pe_dtype dtype, void *x, int64_t count)
{
    limits->scale(x, dtype == PE_F32 ? count : count / 2, bench_one);
}

void bench_convert(const bench_limits *limits, pe_dtype dtype, void *x, int64_t count)
{
    (dtype == PE_F16 ? limits->scale_f16 : limits->scale_bf16)(x, count, bench_one);
}

const bench_limits *bench_limits_get(pe_isa isa)
{
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        if (vectors[i]->isa == isa)
            return vectors[i];
    return &limits_scalar;
}
