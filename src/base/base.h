/* SPDX-License-Identifier: MIT
 *
 * base.h - what every room of the library includes first
 *
 * Sets the visibility of public symbols and the floating-point rules that the bits of
 * every table rest on: doubles evaluated as doubles, round to nearest, no a * b + c
 * fused where the compiler chose it.  Knows nothing of encodings. */
#ifndef PE_BASE_H
#define PE_BASE_H

#if defined(__GNUC__)
#  define PE_API __attribute__((visibility("default")))
#endif

#include "posenc/env.h"
#include "posenc/posenc.h"

#include <float.h>

#if defined(__FAST_MATH__)
#  error "posenc: compile without -ffast-math or -Ofast, reordered sums change the bits"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#  error \
      "posenc: doubles must be evaluated as doubles (32-bit x86: -msse2 -mfpmath=sse)"
#endif
/* Each compiler ignores the other's pragma; neither is reliable alone (clang's
 * -ffp-contract=fast overrides its pragma), so the build passes -ffp-contract=off, too,
 * and pe_keep() guards the products whose rounding is part of a contract. */
#if defined(__clang__)
#  pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#  pragma GCC optimize("fp-contract=off")
#endif

/* Passes a product through an empty asm, which no compiler can fuse across. */
#if defined(__x86_64__)
#  define PE_KEEP(x) __asm__("" : "+x"(x))
#elif defined(__aarch64__)
#  define PE_KEEP(x) __asm__("" : "+w"(x))
#else
#  define PE_KEEP(x) ((void)(x)) /* no fused multiply-add to contract to */
#endif

/* The same for everything that has been stored in an array, so that the loops before and
 * after it can be vectors. */
#if defined(__GNUC__)
#  define PE_KEEP_ARRAY(array) __asm__ volatile("" : : "r"(array) : "memory")
#else
#  define PE_KEEP_ARRAY(array) ((void)(array))
#endif

/* Between two looks at what another thread will write. */
#if defined(__x86_64__)
#  define PE_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#  define PE_PAUSE() __asm__ volatile("yield")
#else
#  define PE_PAUSE() ((void)0)
#endif

#if defined(__GNUC__)
#  define PE_PRINTF(string, first) __attribute__((format(printf, string, first)))
#else
#  define PE_PRINTF(string, first)
#endif

#define PE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif /* PE_BASE_H */
