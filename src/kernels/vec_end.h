/* SPDX-License-Identifier: MIT
 *
 * vec_end.h - closes the target region that an x86 vec_*.h opened
 */
#if defined(__clang__)
#  pragma clang attribute pop
#else
#  pragma GCC pop_options
#endif
