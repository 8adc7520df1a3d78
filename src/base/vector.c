/* SPDX-License-Identifier: MIT
 *
 * vector.c - one vector of any dtype to and from float, an element at a time
 */
#include "base/dtype.h"
#include "base/int8.h"
#include "base/tensor.h"

static const unsigned char *bytes_at(const pe_tensor *x, int64_t element)
{
    return (const unsigned char *)x->data + pe_tensor_bytes(x, element);
}

void pe_vector_load(const pe_tensor *x, int64_t element, int64_t begin, int64_t count,
                    float *out)
{
    const int64_t e = element + begin;
    switch (x->dtype) {
    case PE_F32:
        memcpy(out, (const float *)x->data + e, (size_t)count * sizeof *out);
        break;
    case PE_F16:
        for (int64_t i = 0; i < count; i++)
            out[i] = pe_f16_to_f32(((const uint16_t *)x->data)[e + i]);
        break;
    case PE_BF16:
        for (int64_t i = 0; i < count; i++)
            out[i] = pe_bf16_to_f32(((const uint16_t *)x->data)[e + i]);
        break;
    case PE_I8: {
        const int64_t group = pe_tensor_group(x);
        for (int64_t i = 0; i < count; i++)
            out[i] =
                (float)((const int8_t *)x->data)[e + i] * x->scales[(e + i) / group];
        break;
    }
    default:
        x->codec->decode(x->codec->ctx, bytes_at(x, e), out, count);
    }
}

void pe_vector_store(const pe_tensor *y, int64_t element, int64_t begin, int64_t count,
                     const float *in)
{
    const int64_t e = element + begin;
    switch (y->dtype) {
    case PE_F32:
        memcpy((float *)y->data + e, in, (size_t)count * sizeof *in);
        break;
    case PE_F16:
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)y->data)[e + i] = pe_f16_from_f32(in[i]);
        break;
    case PE_BF16:
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)y->data)[e + i] = pe_bf16_from_f32(in[i]);
        break;
    case PE_I8: {
        const int64_t group = pe_tensor_group(y);
        pe_i8_store(in, group, (int8_t *)y->data + e, y->scales + e / group, count);
        break;
    }
    default:
        y->codec->encode(y->codec->ctx, in, (void *)(uintptr_t)bytes_at(y, e), count);
    }
}

void pe_vector_copy(const pe_tensor *x, int64_t ex, const pe_tensor *y, int64_t ey,
                    int64_t count)
{
    if (x->dtype == PE_I8) {
        const int64_t group = pe_tensor_group(x);
        memmove(y->scales + ey / group, x->scales + ex / group,
                (size_t)(count / group) * sizeof *y->scales);
    }
    memmove((void *)(uintptr_t)bytes_at(y, ey), bytes_at(x, ex),
            (size_t)pe_tensor_bytes(x, count));
}
