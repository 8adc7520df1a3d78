/* SPDX-License-Identifier: MIT
 *
 * unroll.h - said before loops of constant length whose bodies must stand side by side
 *
 * Not where clang checks for undefined behaviour: a check in every operation of an
 * unrolled body makes it work for minutes on one file.  The results are the same. */
#ifndef PE_KERNELS_UNROLL_H
#define PE_KERNELS_UNROLL_H

#if defined(__clang__)
#  if __has_feature(undefined_behavior_sanitizer)
#    define PE_UNROLL
#    define PE_UNROLL_TWICE
#  else
#    define PE_UNROLL       _Pragma("clang loop unroll(full)")
#    define PE_UNROLL_TWICE _Pragma("clang loop unroll_count(2)")
#  endif
#elif defined(__GNUC__)
#  define PE_UNROLL       _Pragma("GCC unroll 16")
#  define PE_UNROLL_TWICE _Pragma("GCC unroll 2")
#else
#  define PE_UNROLL
#  define PE_UNROLL_TWICE
#endif

#endif /* PE_KERNELS_UNROLL_H */
