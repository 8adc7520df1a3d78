/* SPDX-License-Identifier: MIT
 *
 * vec_pairs.h - interleaved pairs in memory to two vectors and back, in any vocabulary
 *
 * For a vocabulary and type that have nothing better: by way of V_unzip and V_zip, which
 * exchange the two orders between registers. */
#ifndef PE_VEC_PAIRS_H
#define PE_VEC_PAIRS_H

/* V_unzip_type(p, a, b): the first and the second elements of V_LEN pairs at p. */
#define VEC_UNZIP(V, LEN, TYPE, type)                                \
  static inline void V##_unzip_##type(const TYPE *p, V *a, V *b)     \
  {                                                                  \
    V##_unzip(V##_load_##type(p), V##_load_##type(p + (LEN)), a, b); \
  }

/* V_zip_type(p, a, b) writes them back. */
#define VEC_ZIP(V, LEN, TYPE, type)                    \
  static inline void V##_zip_##type(TYPE *p, V a, V b) \
  {                                                    \
    V lo, hi;                                          \
    V##_zip(a, b, &lo, &hi);                           \
    V##_store_##type(p, lo);                           \
    V##_store_##type(p + (LEN), hi);                   \
  }

#endif /* PE_VEC_PAIRS_H */
