/* SPDX-License-Identifier: MIT
 *
 * vector.c - one vector of any dtype to and from float, and copies between tensors
 */
#include "base/error.h"
#include "base/memory.h"
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

/* The largest magnitude of values; NaN if one is NaN. */
static float largest_magnitude(const float *in, int64_t count)
{
    uint32_t top = 0; /* magnitudes compare as integers, NaNs above all */
    for (int64_t i = 0; i < count; i++) {
        const uint32_t magnitude = pe_f32_bits(in[i]) & 0x7fffffffu;
        top = magnitude > top ? magnitude : top;
    }
    return pe_f32_from_bits(top);
}

/* Symmetric int8: the largest magnitude of a group becomes 127.  A group that holds a
 * NaN or an infinity cannot be told in int8: its scale becomes NaN, so that every value
 * of it reads back as NaN. */
static void store_i8(const pe_tensor *y, int64_t e, int64_t count, const float *in)
{
    const int64_t group = pe_tensor_group(y);
    const float rounder =
        0x1.8p23f; /* adding it rounds to whole numbers, ties to even */
    int8_t *out = (int8_t *)y->data + e;
    for (int64_t g = 0; g < count; g += group) {
        const float top = largest_magnitude(in + g, group);
        const float scale = top <= FLT_MAX ? top / 127 : pe_f32_from_bits(0x7fc00000u);
        /* The reciprocal of a subnormal scale overflows; bring both into range. */
        const float lift = scale < 0x1p-100f ? 0x1p100f : 1;
        const float steps = scale > 0 ? 1 / (scale * lift) : 0;
        y->scales[(e + g) / group] = scale;
        for (int64_t i = g; i < g + group; i++) {
            const float v = scale > 0 ? in[i] * lift * steps + rounder : rounder;
            out[i] = (int8_t)(pe_f32_bits(v) - pe_f32_bits(rounder));
        }
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
    case PE_I8:
        store_i8(y, e, count, in);
        break;
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

/* -------------------------------------------------------------------- copy --- */

typedef struct {
    const pe_tensor *x, *y;
} copy_job;

static void copy_vector(const copy_job *job, int64_t b, int64_t t, int64_t h)
{
    enum { CHUNK = PE_MAX_VECTOR_DIM };
    const pe_tensor *x = job->x, *y = job->y;
    int64_t ex, ey;
    if (!pe_tensor_at(x, b, t, h, &ex) || !pe_tensor_at(y, b, t, h, &ey))
        return;
    if (pe_tensor_same_bytes(x, y)) {
        pe_vector_copy(x, ex, y, ey, x->dim);
        return;
    }
    float buffer[CHUNK];
    /* One run when a vector fits; else whole groups of both sides at a time. */
    const int64_t groups = pe_tensor_group(x) * pe_tensor_group(y);
    const int64_t chunk = x->dim <= CHUNK ? x->dim : CHUNK / groups * groups;
    for (int64_t i = 0; i < x->dim; i += chunk) {
        const int64_t count = x->dim - i < chunk ? x->dim - i : chunk;
        pe_vector_load(x, ex, i, count, buffer);
        pe_vector_store(y, ey, i, count, buffer);
    }
}

static void copy_tokens(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const copy_job *job = arg;
    (void)worker;
    end = pe_tensor_cut(&job->y, 1, end);
    for (int64_t i = pe_tensor_cut(&job->y, 1, begin); i < end; i++)
        for (int64_t h = 0; h < job->x->num_heads; h++)
            copy_vector(job, i / job->x->seq_len, i % job->x->seq_len, h);
}

pe_status pe_tensor_copy(const pe_tensor *x, const pe_tensor *y, const pe_env *env,
                         pe_error *error)
{
    pe_status status;
    pe_env full;
    if ((status = pe_env_resolve(&full, env, error)) != PE_OK ||
        (status = pe_tensor_check(x, PE_INPUT, "x", error)) != PE_OK ||
        (status = pe_tensor_check(y, PE_OUTPUT, "y", error)) != PE_OK ||
        (status = pe_tensor_check_same_shape(x, "x", y, "y", error)) != PE_OK ||
        (status = pe_tensor_check_overlap(x, "x", y, "y", error)) != PE_OK)
        return status;
    if (x->dim > PE_MAX_VECTOR_DIM && !pe_tensor_same_bytes(x, y) &&
        pe_tensor_group(x) > PE_MAX_VECTOR_DIM / pe_tensor_group(y))
        return pe_fail(error, PE_E_LIMIT,
                       "x.dim is %lld, above %d the groups of x and y (%lld and %lld "
                       "elements) must multiply to at most that",
                       (long long)x->dim, PE_MAX_VECTOR_DIM,
                       (long long)pe_tensor_group(x), (long long)pe_tensor_group(y));
    copy_job job = {x, y};
    pe_run(&full, x->batch * x->seq_len, 16, copy_tokens, &job);
    return PE_OK;
}
