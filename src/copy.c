/* SPDX-License-Identifier: MIT
 *
 * copy.c - pe_tensor_copy: any dtype and layout into any other
 *
 * Floats on either side are read or written where they lie. */
#include "base/error.h"
#include "base/memory.h"
#include "kernels/vectors.h"

typedef struct {
    const pe_kernels *kernels;
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
    const pe_kernels *kernels = job->kernels;
    if (x->dtype == PE_F32) { /* no conversion on the way in */
        pe_kernels_store(kernels, y, ey, 0, x->dim, (const float *)x->data + ex);
        return;
    }
    if (y->dtype == PE_F32) {
        pe_kernels_load(kernels, x, ex, 0, x->dim, (float *)y->data + ey);
        return;
    }
    float buffer[CHUNK];
    /* One run when a vector fits; else whole groups of both sides at a time. */
    const int64_t groups = pe_tensor_group(x) * pe_tensor_group(y);
    const int64_t chunk = x->dim <= CHUNK ? x->dim : CHUNK / groups * groups;
    for (int64_t i = 0; i < x->dim; i += chunk) {
        const int64_t count = x->dim - i < chunk ? x->dim - i : chunk;
        pe_kernels_load(kernels, x, ex, i, count, buffer);
        pe_kernels_store(kernels, y, ey, i, count, buffer);
    }
}

/* All heads of a token at once where they lie side by side as floats. */
static int copy_heads(const copy_job *job, int64_t b, int64_t t)
{
    const pe_tensor *x = job->x, *y = job->y;
    int64_t ex, ey;
    if (x->dtype != PE_F32 || y->dtype != PE_I8 ||
        (x->num_heads > 1 && x->head_stride != x->dim))
        return 0;
    if (pe_tensor_at(x, b, t, 0, &ex) && pe_tensor_at(y, b, t, 0, &ey))
        pe_kernels_store_heads(job->kernels, y, ey, x->num_heads,
                               (const float *)x->data + ex);
    return 1;
}

static void copy_tokens(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const copy_job *job = arg;
    (void)worker;
    end = pe_tensor_cut(&job->y, 1, end);
    for (int64_t i = pe_tensor_cut(&job->y, 1, begin); i < end; i++) {
        const int64_t b = i / job->x->seq_len, t = i % job->x->seq_len;
        if (copy_heads(job, b, t))
            continue;
        for (int64_t h = 0; h < job->x->num_heads; h++)
            copy_vector(job, b, t, h);
    }
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
    copy_job job = {pe_kernels_get(full.isa), x, y};
    pe_run(&full, x->batch * x->seq_len, 16, copy_tokens, &job);
    return PE_OK;
}
