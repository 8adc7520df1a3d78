/* SPDX-License-Identifier: MIT
 *
 * hf_f32.h - the checks of `posenc-vectors --hf-f32`
 */
#ifndef PE_TESTS_VECTORS_HF_F32_H
#define PE_TESTS_VECTORS_HF_F32_H

#include "vectors.h"

extern const vec_kind vec_hf_freqs_kinds[], vec_hf_cache_kinds[];

/* Prints how many frequencies were equal; 1 if too few. */
int vec_hf_summary(void);

#endif /* PE_TESTS_VECTORS_HF_F32_H */
