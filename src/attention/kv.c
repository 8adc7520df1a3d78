/* SPDX-License-Identifier: MIT
 *
 * kv.c - one sequence's rotated keys and values: creation, copies and what is shown
 */
#include "attention/kv.h"

#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/spec.h"
#include "base/tensor.h"
#include "rope/plan.h"

#include <string.h>

/* ---------------------------------------------------------------------- creation --- */

static pe_status check_spec(const pe_kv_spec *s, pe_error *error)
{
    const struct {
        const char *name;
        int64_t value, max;
    } fields[] = {{"num_kv_heads", s->num_kv_heads, PE_MAX_ATTENTION_HEADS},
                  {"head_dim", s->head_dim, PE_MAX_VECTOR_DIM},
                  {"v_head_dim", s->v_head_dim, PE_MAX_VECTOR_DIM},
                  {"capacity", s->capacity, (int64_t)1 << 40}};
    for (size_t i = 0; i < PE_COUNT(fields); i++)
        if (fields[i].value < 1 || fields[i].value > fields[i].max)
            return pe_fail(error, PE_E_ARGUMENT, "%s is %lld, must be in 1 .. %lld",
                           fields[i].name, (long long)fields[i].value,
                           (long long)fields[i].max);
    if (s->rope != NULL && s->rope->info.head_dim != s->head_dim)
        return pe_fail(error, PE_E_INCOMPATIBLE,
                       "rope has head_dim %d, must be head_dim (%d)",
                       s->rope->info.head_dim, s->head_dim);
    return PE_OK;
}

int64_t pe_kv_row_size(const pe_tensor *x)
{
    return pe_tensor_bytes(x, x->dim);
}

typedef struct {
    unsigned char *base;
    int64_t used; /* -1: too much */
} arena;

static void *take(arena *a, int64_t count, int64_t size)
{
    int64_t bytes, end;
    if (a->used < 0 || !pe_mul_i64(count, size, &bytes) ||
        !pe_add_i64(bytes, 63, &bytes) || !pe_add_i64(a->used, bytes / 64 * 64, &end)) {
        a->used = -1;
        return NULL;
    }
    void *p = a->base == NULL ? NULL : a->base + a->used;
    a->used = end;
    return p;
}

/* A tensor over the whole capacity; data and scales NULL while only sizes are taken. */
static void place_tensor(pe_tensor *x, arena *a, const pe_kv_spec *s, pe_dtype dtype,
                         const pe_codec *codec, int64_t dim)
{
    pe_tensor_bhsd(x, dtype, NULL, 1, s->num_kv_heads, s->capacity, dim);
    x->codec = codec;
    const int64_t rows = s->num_kv_heads * s->capacity;
    x->data = take(a, rows, pe_kv_row_size(x));
    if (dtype == PE_I8)
        x->scales = take(a, rows, sizeof(float));
}

/* Lays a cache and its arrays out; the struct itself is first in the block. */
static void place(pe_kv *kv, arena *a, const pe_kv_spec *s)
{
    const int64_t axes = s->rope != NULL ? s->rope->info.num_axes : 1;
    const int64_t runs = (s->capacity + PE_KEY_BLOCK - 1) / PE_KEY_BLOCK;
    take(a, 1, sizeof *kv);
    *kv = (pe_kv){.spec = *s, .num_axes = axes, .num_runs = runs};
    place_tensor(&kv->k, a, s, s->k_dtype, s->k_codec, s->head_dim);
    place_tensor(&kv->v, a, s, s->v_dtype, s->v_codec, s->v_head_dim);
    kv->ids = take(a, axes * s->capacity, sizeof *kv->ids);
    kv->errors = take(a, s->capacity, sizeof *kv->errors);
    kv->norms = take(a, runs * s->num_kv_heads, sizeof *kv->norms);
    kv->packed_norms = take(a, runs * s->num_kv_heads, sizeof *kv->packed_norms);
    kv->turned =
        take(a, (int64_t)PE_KV_CHUNK * s->num_kv_heads * s->head_dim, sizeof(float));
}

/* Codecs and dtypes are checked by the tensors they make. */
static pe_status check_dtype(pe_dtype dtype, const pe_codec *codec, int64_t dim,
                             const char *name, pe_error *error)
{
    float any = 0;
    pe_tensor x;
    pe_tensor_bshd(&x, dtype, &any, 1, 1, 1, dim);
    x.codec = codec;
    x.scales = &any;
    return pe_tensor_check(&x, PE_OUTPUT, name, error);
}

pe_status pe_kv_create(pe_kv **out, const pe_kv_spec *spec, const pe_env *env,
                       pe_error *error)
{
    pe_kv_spec s;
    pe_env full;
    pe_status status;
    if (out == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "out is NULL");
    *out = NULL;
    if ((status = pe_spec_read(&s, sizeof s, spec, sizeof s, "pe_kv_spec", error)) !=
            PE_OK ||
        (status = pe_env_resolve(&full, env, error)) != PE_OK)
        return status;
    if (s.v_head_dim == 0)
        s.v_head_dim = s.head_dim;
    if ((status = check_spec(&s, error)) != PE_OK ||
        (status = check_dtype(s.k_dtype, s.k_codec, s.head_dim, "k", error)) != PE_OK ||
        (status = check_dtype(s.v_dtype, s.v_codec, s.v_head_dim, "v", error)) != PE_OK)
        return status;
    arena sizes = {NULL, 0};
    pe_kv nowhere;
    place(&nowhere, &sizes, &s);
    if (sizes.used < 0 || (uint64_t)sizes.used > SIZE_MAX / 2)
        return pe_fail(error, PE_E_ARGUMENT,
                       "capacity is %lld, a cache of that many tokens has no size",
                       (long long)s.capacity);
    arena parts = {pe_alloc(&full, (size_t)sizes.used), 0};
    if (parts.base == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for a cache of %lld bytes",
                       (long long)sizes.used);
    pe_kv *kv = (pe_kv *)(void *)parts.base;
    place(kv, &parts, &s);
    kv->env = full;
    kv->env.struct_size = sizeof full; /* it is handed on as a caller's */
    kv->size = (size_t)sizes.used;
    pe_kv_refresh(kv);
    *out = kv;
    return PE_OK;
}

void pe_kv_destroy(pe_kv *kv)
{
    if (kv != NULL) {
        const pe_env env = kv->env;
        pe_release(&env, kv, kv->size);
    }
}

static void copy_tensor_data(const pe_tensor *from, const pe_tensor *to)
{
    const int64_t rows = from->num_heads * from->head_stride / from->dim;
    memcpy(to->data, from->data, (size_t)(rows * pe_kv_row_size(from)));
    if (from->scales != NULL)
        memcpy(to->scales, from->scales, (size_t)rows * sizeof(float));
}

pe_status pe_kv_fork(pe_kv **out, const pe_kv *kv, pe_error *error)
{
    pe_status status;
    if (out == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "out is NULL");
    *out = NULL;
    if (kv == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "kv is NULL");
    if ((status = pe_kv_create(out, &kv->spec, &kv->env, error)) != PE_OK)
        return status;
    pe_kv *copy = *out;
    copy_tensor_data(&kv->k, &copy->k);
    copy_tensor_data(&kv->v, &copy->v);
    memcpy(copy->ids, kv->ids,
           (size_t)(kv->num_axes * kv->spec.capacity) * sizeof *kv->ids);
    memcpy(copy->errors, kv->errors, (size_t)kv->spec.capacity * sizeof *kv->errors);
    memcpy(copy->norms, kv->norms,
           (size_t)(kv->num_runs * kv->spec.num_kv_heads) * sizeof *kv->norms);
    copy->info.len = kv->info.len;
    copy->info.next = kv->info.next;
    pe_kv_refresh(copy);
    return PE_OK;
}

/* --------------------------------------------------------------------------- info --- */

void pe_kv_refresh(pe_kv *kv)
{
    pe_kv_info *info = &kv->info;
    const int64_t heads = kv->spec.num_kv_heads;
    const int64_t runs = (info->len + PE_KEY_BLOCK - 1) / PE_KEY_BLOCK;
    info->k = kv->k;
    info->v = kv->v;
    info->k.seq_len = info->v.seq_len = info->len;
    info->at = (pe_positions){.ids = kv->ids,
                              .axis_stride = kv->num_axes > 1 ? kv->spec.capacity : 0,
                              .num_axes = (int32_t)kv->num_axes};
    for (int64_t h = 0; h < heads; h++)
        for (int64_t r = 0; r < runs; r++)
            kv->packed_norms[h * runs + r] = kv->norms[r * heads + h];
    info->k_norms = kv->packed_norms;
    info->k_error = 0;
    for (int64_t t = 0; t < info->len; t++)
        info->k_error = pe_larger(info->k_error, kv->errors[t]);
}

const pe_kv_info *pe_kv_get_info(const pe_kv *kv)
{
    return kv != NULL ? &kv->info : NULL;
}
