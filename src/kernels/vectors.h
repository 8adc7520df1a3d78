/* SPDX-License-Identifier: MIT
 *
 * vectors.h - pe_vector_load and pe_vector_store with an instruction set's conversions
 *
 * The bits are those of base/vector.c, which converts f16 and bf16 one at a time. */
#ifndef PE_KERNELS_VECTORS_H
#define PE_KERNELS_VECTORS_H

#include "base/tensor.h"
#include "kernels/kernels.h"

/* The index of x's dtype, PE_F32 to PE_BF16. */
static inline int pe_kernels_kind(const pe_tensor *x)
{
    return x->dtype - PE_F32 + PE_K_F32;
}

static inline void pe_kernels_load(const pe_kernels *kernels, const pe_tensor *x,
                                   int64_t element, int64_t begin, int64_t count,
                                   float *out)
{
    if (x->dtype == PE_F16 || x->dtype == PE_BF16)
        kernels->load[x->dtype == PE_F16 ? PE_K_F16 : PE_K_BF16](
            (const uint16_t *)x->data + element + begin, out, count);
    else
        pe_vector_load(x, element, begin, count, out);
}

static inline void pe_kernels_store(const pe_kernels *kernels, const pe_tensor *y,
                                    int64_t element, int64_t begin, int64_t count,
                                    const float *in)
{
    if (y->dtype == PE_F16 || y->dtype == PE_BF16)
        kernels->store[y->dtype == PE_F16 ? PE_K_F16 : PE_K_BF16](
            in, (uint16_t *)y->data + element + begin, count);
    else
        pe_vector_store(y, element, begin, count, in);
}

#endif /* PE_KERNELS_VECTORS_H */
