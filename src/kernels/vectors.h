/* SPDX-License-Identifier: MIT
 *
 * vectors.h - pe_vector_load and pe_vector_store with an instruction set's conversions
 *
 * The bits are those of base/vector.c, which converts one at a time. */
#ifndef PE_KERNELS_VECTORS_H
#define PE_KERNELS_VECTORS_H

#include "base/tensor.h"
#include "kernels/kernels.h"

/* The index of x's dtype, PE_F32 to PE_BF16. */
static inline int pe_kernels_kind(const pe_tensor *x)
{
    return x->dtype - PE_F32 + PE_K_F32;
}

/* Elements [e, e + count) of int8, which may begin and end within groups. */
static inline void pe_kernels_load_i8(const pe_kernels *kernels, const pe_tensor *x,
                                      int64_t e, int64_t count, float *out)
{
    const int64_t group = pe_tensor_group(x);
    while (count > 0) {
        const int64_t rest = group - e % group;
        const int64_t run = rest == group && count >= group ? count / group * group
                            : rest < count                  ? rest
                                                            : count;
        kernels->load_i8((const int8_t *)x->data + e, x->scales + e / group,
                         run < group ? run : group, out, run);
        e += run;
        out += run;
        count -= run;
    }
}

static inline void pe_kernels_load(const pe_kernels *kernels, const pe_tensor *x,
                                   int64_t element, int64_t begin, int64_t count,
                                   float *out)
{
    const int64_t e = element + begin;
    if (x->dtype == PE_F16 || x->dtype == PE_BF16)
        kernels->load[x->dtype == PE_F16 ? PE_K_F16 : PE_K_BF16](
            (const uint16_t *)x->data + e, out, count);
    else if (x->dtype == PE_I8)
        pe_kernels_load_i8(kernels, x, e, count, out);
    else
        pe_vector_load(x, element, begin, count, out);
}

static inline void pe_kernels_store(const pe_kernels *kernels, const pe_tensor *y,
                                    int64_t element, int64_t begin, int64_t count,
                                    const float *in)
{
    const int64_t e = element + begin;
    if (y->dtype == PE_F16 || y->dtype == PE_BF16) {
        kernels->store[y->dtype == PE_F16 ? PE_K_F16 : PE_K_BF16](
            in, (uint16_t *)y->data + e, count);
    } else if (y->dtype == PE_I8) {
        const int64_t group = pe_tensor_group(y);
        kernels->store_i8(in, group, count / group, (int8_t *)y->data + e, group,
                          y->scales + e / group, 1);
    } else {
        pe_vector_store(y, element, begin, count, in);
    }
}

/* count rows of floats, side by side, become heads of y from the one at element on. */
static inline void pe_kernels_store_heads(const pe_kernels *kernels, const pe_tensor *y,
                                          int64_t element, int64_t count,
                                          const float *rows)
{
    const int64_t dim = y->dim, stride = count > 1 ? y->head_stride : 0;
    if (y->dtype == PE_I8 && pe_tensor_group(y) == dim) {
        kernels->store_i8(rows, dim, count, (int8_t *)y->data + element, stride,
                          y->scales + element / dim, stride / dim);
        return;
    }
    for (int64_t h = 0; h < count; h++)
        pe_kernels_store(kernels, y, element + h * stride, 0, dim, rows + h * dim);
}

/* Brings bytes from an address on nearer: into the second-level cache.  It may lie
 * anywhere, also where nothing is. */
static inline void pe_ask_for(uintptr_t address, int64_t bytes)
{
#if defined(__GNUC__)
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const void *)(address + (uintptr_t)i), 0, 2);
    __asm__ volatile(""
                     :
                     : "r"(address)); /* else gcc finds that nothing is done here */
#else
    (void)address;
    (void)bytes;
#endif
}

#endif /* PE_KERNELS_VECTORS_H */
