/* SPDX-License-Identifier: MIT
 *
 * kv.c - one sequence's rotated keys and values, and what has been done to them
 *
 * Keys lie head by head, so that decoding streams.  Every change of a key goes through a
 * few rows of floats, so that what storing it lost is measured, not guessed. */
#include "attention/attention_plan.h"

#include "base/at.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/spec.h"
#include "base/tensor.h"
#include "rope/plan.h"

#include <math.h>
#include <string.h>

enum { CHUNK = PE_KEY_BLOCK };

struct pe_kv {
    pe_kv_info info;
    pe_env env;
    pe_kv_spec spec;
    size_t size; /* of the one block that holds all of it */
    int64_t num_axes, num_runs;
    pe_tensor k, v;         /* the whole capacity */
    int64_t *ids;           /* [num_axes][capacity] */
    double *errors;         /* [capacity]: bound on |key - exact key| over the heads */
    float *norms;           /* [num_runs of capacity][heads] */
    float *packed_norms;    /* [heads][runs in use], what info shows */
    float *turned, *stored; /* [CHUNK][heads][head_dim] */
};

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

/* Bytes of one head vector. */
static int64_t row_size(const pe_tensor *x)
{
    return x->dtype == PE_CODED ? x->dim / x->codec->block_len * x->codec->block_size
                                : x->dim * pe_dtype_size(x->dtype);
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
    x->data = take(a, rows, row_size(x));
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
    kv->turned = take(a, (int64_t)CHUNK * s->num_kv_heads * s->head_dim, sizeof(float));
    kv->stored = take(a, (int64_t)CHUNK * s->num_kv_heads * s->head_dim, sizeof(float));
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

static void refresh(pe_kv *kv);

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
    refresh(kv);
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
    memcpy(to->data, from->data, (size_t)(rows * row_size(from)));
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
    refresh(copy);
    return PE_OK;
}

/* --------------------------------------------------------------------------- info --- */

static void refresh(pe_kv *kv)
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
        info->k_error = kv->errors[t] > info->k_error ? kv->errors[t] : info->k_error;
}

const pe_kv_info *pe_kv_get_info(const pe_kv *kv)
{
    return kv != NULL ? &kv->info : NULL;
}

/* ------------------------------------------------------------------- storing keys --- */

/* Tokens [token, token + count) of a cache. */
static pe_tensor slice(const pe_tensor *x, int64_t token, int64_t count)
{
    pe_tensor part = *x;
    part.seq_len = count;
    part.data = (unsigned char *)x->data + token * row_size(x);
    if (x->scales != NULL)
        part.scales = x->scales + token;
    return part;
}

static pe_tensor rows_of(const pe_kv *kv, float *data, int64_t count)
{
    pe_tensor x;
    pe_tensor_bshd(&x, PE_F32, data, 1, count, kv->spec.num_kv_heads,
                   kv->spec.head_dim);
    return x;
}

/* |stored - turned| and |stored| of one head vector; NaN if either is not finite. */
static void measure(const pe_kv *kv, int64_t row, double *lost, double *length)
{
    const float *a = kv->stored + row * kv->spec.head_dim;
    const float *b = kv->turned + row * kv->spec.head_dim;
    double difference = 0, square = 0;
    for (int64_t d = 0; d < kv->spec.head_dim; d++) {
        const double x = (double)a[d] - (double)b[d];
        difference += x * x;
        square += (double)a[d] * (double)a[d];
    }
    *lost = sqrt(difference);
    *length = sqrt(square);
}

static float above(double x)
{
    const float f = (float)(x * (1 + 0x1p-40)); /* sqrt and the sum were rounded */
    return (double)f < x ? pe_f32_from_bits(pe_f32_bits(f) + 1) : f;
}

static void raise_norm(pe_kv *kv, int64_t token, int64_t head, double length)
{
    float *run = kv->norms + token / PE_KEY_BLOCK * kv->spec.num_kv_heads + head;
    if (!(length <= (double)*run)) /* NaN wins */
        *run = above(length);
}

/* Stores count turned rows as keys from token on.  Turning rounds each element by 2 u
 * (|x c| + |y s|), so a vector by at most 4 u of its length; storing loses what reading
 * back shows. */
static void store_keys(pe_kv *kv, int64_t token, int64_t count)
{
    const int64_t heads = kv->spec.num_kv_heads;
    const pe_tensor keys = slice(&kv->k, token, count);
    const pe_tensor turned = rows_of(kv, kv->turned, count);
    const pe_tensor stored = rows_of(kv, kv->stored, count);
    pe_tensor_copy(&turned, &keys, &kv->env, NULL);
    pe_tensor_copy(&keys, &stored, &kv->env, NULL);
    for (int64_t t = 0; t < count; t++) {
        double worst = 0;
        for (int64_t h = 0; h < heads; h++) {
            double lost, length;
            measure(kv, t * heads + h, &lost, &length);
            lost += (length + lost) * 0x1p-22;
            worst = lost <= worst ? worst : lost; /* NaN wins */
            raise_norm(kv, token + t, h, length);
        }
        kv->errors[token + t] += worst;
    }
}

/* Norms of runs from that of token on start again. */
static void forget_norms(pe_kv *kv, int64_t token)
{
    const int64_t run = (token + PE_KEY_BLOCK - 1) / PE_KEY_BLOCK;
    const int64_t heads = kv->spec.num_kv_heads;
    if (run < kv->num_runs)
        memset(kv->norms + run * heads, 0,
               (size_t)((kv->num_runs - run) * heads) * sizeof *kv->norms);
}

/* ------------------------------------------------------------------------- append --- */

static pe_status check_append(const pe_kv *kv, const pe_positions *at,
                              const pe_tensor *k, const pe_tensor *v, pe_error *error)
{
    pe_status status;
    const pe_kv_spec *s = &kv->spec;
    if ((status = pe_tensor_check(k, PE_INPUT, "k", error)) != PE_OK ||
        (status = pe_tensor_check(v, PE_INPUT, "v", error)) != PE_OK)
        return status;
    const pe_tensor *const tensors[] = {k, v};
    const int32_t dims[] = {s->head_dim, s->v_head_dim};
    for (int i = 0; i < 2; i++)
        if (tensors[i]->batch != 1 || tensors[i]->num_heads != s->num_kv_heads ||
            tensors[i]->dim != dims[i])
            return pe_fail(error, PE_E_SHAPE,
                           "%s has batch %lld, num_heads %lld and dim %lld, must have "
                           "1, %d and %d",
                           i ? "v" : "k", (long long)tensors[i]->batch,
                           (long long)tensors[i]->num_heads, (long long)tensors[i]->dim,
                           s->num_kv_heads, dims[i]);
    if (v->seq_len != k->seq_len)
        return pe_fail(error, PE_E_SHAPE, "v.seq_len is %lld, must be that of k (%lld)",
                       (long long)v->seq_len, (long long)k->seq_len);
    if ((status = pe_at_check(at, 1, k->seq_len, (int32_t)kv->num_axes, 0, "at",
                              error)) != PE_OK)
        return status;
    if (k->seq_len > s->capacity - kv->info.len)
        return pe_fail(
            error, PE_E_LIMIT, "%lld tokens and %lld more exceed capacity (%lld)",
            (long long)kv->info.len, (long long)k->seq_len, (long long)s->capacity);
    return PE_OK;
}

/* Tokens [begin, begin + count) of a caller's tensor, paged ones too. */
static pe_status load_keys(pe_kv *kv, const pe_tensor *k, int64_t begin, int64_t count,
                           pe_error *error)
{
    const int64_t heads = kv->spec.num_kv_heads, dim = kv->spec.head_dim;
    const pe_tensor turned = rows_of(kv, kv->turned, count);
    for (int64_t t = 0; t < count; t++)
        for (int64_t h = 0; h < heads; h++) {
            float *row = kv->turned + (t * heads + h) * dim;
            int64_t element;
            memset(row, 0, (size_t)dim * sizeof *row);
            if (pe_tensor_at(k, 0, begin + t, h, &element))
                pe_vector_load(k, element, 0, dim, row);
        }
    if (kv->spec.rope == NULL)
        return PE_OK;
    const int64_t first = kv->info.len + begin;
    const pe_positions own = {.ids = kv->ids + first,
                              .axis_stride = kv->num_axes > 1 ? kv->spec.capacity : 0,
                              .num_axes = (int32_t)kv->num_axes};
    return pe_rope_apply(kv->spec.rope, &own, &turned, &turned, error);
}

static void store_values(pe_kv *kv, const pe_tensor *v, int64_t begin, int64_t count)
{
    const pe_tensor part = slice(&kv->v, kv->info.len + begin, count);
    for (int64_t t = 0; t < count; t++)
        for (int64_t h = 0; h < v->num_heads; h++) {
            float row[PE_MAX_VECTOR_DIM] = {0};
            int64_t from, to;
            if (pe_tensor_at(v, 0, begin + t, h, &from))
                pe_vector_load(v, from, 0, v->dim, row);
            if (pe_tensor_at(&part, 0, t, h, &to))
                pe_vector_store(&part, to, 0, v->dim, row);
        }
}

pe_status pe_kv_append(pe_kv *kv, const pe_positions *at, const pe_tensor *k,
                       const pe_tensor *v, pe_error *error)
{
    pe_status status;
    if (kv == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "kv is NULL");
    if ((status = check_append(kv, at, k, v, error)) != PE_OK)
        return status;
    const int64_t len = kv->info.len;
    for (int64_t a = 0; a < kv->num_axes; a++)
        for (int64_t t = 0; t < k->seq_len; t++)
            kv->ids[a * kv->spec.capacity + len + t] = pe_at_id(at, (int32_t)a, 0, t);
    for (int64_t t = 0; t < k->seq_len; t += CHUNK) {
        const int64_t rest = k->seq_len - t, count = rest < CHUNK ? rest : CHUNK;
        if ((status = load_keys(kv, k, t, count, error)) != PE_OK)
            return status;
        memset(kv->errors + len + t, 0, (size_t)count * sizeof *kv->errors);
        store_keys(kv, len + t, count);
        store_values(kv, v, t, count);
    }
    kv->info.len = len + k->seq_len;
    for (int64_t a = 0; k->seq_len > 0 && a < kv->num_axes; a++) {
        const int64_t last = kv->ids[a * kv->spec.capacity + kv->info.len - 1];
        const int64_t after = last < INT64_MAX ? last + 1 : last; /* none lies beyond */
        kv->info.next = a == 0 || after > kv->info.next ? after : kv->info.next;
    }
    refresh(kv);
    return PE_OK;
}

/* ---------------------------------------------------------------- evict and rebase --- */

static void move_rows(const pe_tensor *x, int64_t from, int64_t to, int64_t count)
{
    const int64_t size = row_size(x), tokens = x->head_stride / x->dim;
    for (int64_t h = 0; h < x->num_heads; h++) {
        unsigned char *head = (unsigned char *)x->data + h * tokens * size;
        memmove(head + to * size, head + from * size, (size_t)(count * size));
        if (x->scales != NULL)
            memmove(x->scales + h * tokens + to, x->scales + h * tokens + from,
                    (size_t)count * sizeof(float));
    }
}

/* Keys that stay as they are: their lengths count for the runs they are now in. */
static void note_norms(pe_kv *kv, int64_t token, int64_t count)
{
    const int64_t heads = kv->spec.num_kv_heads;
    const pe_tensor keys = slice(&kv->k, token, count);
    const pe_tensor stored = rows_of(kv, kv->stored, count);
    pe_tensor_copy(&keys, &stored, &kv->env, NULL);
    for (int64_t i = 0; i < count * heads; i++) {
        double lost, length;
        measure(kv, i, &lost, &length);
        raise_norm(kv, token + i / heads, i % heads, length);
    }
}

static void turn_back(pe_kv *kv, int64_t token, int64_t count, int64_t by)
{
    const pe_tensor keys = slice(&kv->k, token, count);
    const pe_tensor turned = rows_of(kv, kv->turned, count);
    pe_rope_shift(kv->spec.rope, -by, &keys, &turned, NULL);
    store_keys(kv, token, count);
}

pe_status pe_kv_evict(pe_kv *kv, int64_t first, int64_t count, pe_gap gap,
                      pe_error *error)
{
    if (kv == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "kv is NULL");
    const int64_t len = kv->info.len;
    if (gap != PE_GAP_KEEP && gap != PE_GAP_CLOSE)
        return pe_fail(error, PE_E_ARGUMENT,
                       "gap is %d, must be PE_GAP_KEEP (1) or PE_GAP_CLOSE (2)", gap);
    if (first < 0 || count < 0 || first > len || count > len - first)
        return pe_fail(error, PE_E_ARGUMENT,
                       "first is %lld and count %lld, must lie within the %lld tokens "
                       "held",
                       (long long)first, (long long)count, (long long)len);
    if (count == 0)
        return PE_OK;
    const int64_t rest = len - first - count;
    move_rows(&kv->k, first + count, first, rest);
    move_rows(&kv->v, first + count, first, rest);
    memmove(kv->errors + first, kv->errors + first + count,
            (size_t)rest * sizeof *kv->errors);
    for (int64_t a = 0; a < kv->num_axes; a++) {
        int64_t *ids = kv->ids + a * kv->spec.capacity;
        memmove(ids + first, ids + first + count, (size_t)rest * sizeof *ids);
        for (int64_t t = first; gap == PE_GAP_CLOSE && t < first + rest; t++)
            ids[t] = (int64_t)((uint64_t)ids[t] - (uint64_t)count);
    }
    kv->info.len = first + rest;
    if (gap == PE_GAP_CLOSE)
        kv->info.next = (int64_t)((uint64_t)kv->info.next - (uint64_t)count);
    /* The run that first cuts keeps its bound: no key of it that stays is longer. */
    forget_norms(kv, first);
    for (int64_t t = first; t < kv->info.len; t += CHUNK) {
        const int64_t n = kv->info.len - t < CHUNK ? kv->info.len - t : CHUNK;
        if (gap == PE_GAP_CLOSE && kv->spec.rope != NULL)
            turn_back(kv, t, n, count);
        else
            note_norms(kv, t, n);
    }
    refresh(kv);
    return PE_OK;
}

pe_status pe_kv_rebase(pe_kv *kv, const pe_rope *rope, pe_error *error)
{
    if (kv == NULL || rope == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "%s is NULL", kv == NULL ? "kv" : "rope");
    if (kv->spec.rope == NULL)
        return pe_fail(error, PE_E_INCOMPATIBLE,
                       "the cache has no rope, its keys are not rotated");
    if (rope->info.num_axes != kv->num_axes)
        return pe_fail(error, PE_E_INCOMPATIBLE,
                       "rope has %d axes, must have those of the cache (%lld)",
                       rope->info.num_axes, (long long)kv->num_axes);
    pe_status status = PE_OK;
    const double grows =
        fabs(rope->info.attention_factor / kv->spec.rope->info.attention_factor);
    /* Of no tokens first: a plan that does not fit is refused before any key moves. */
    const pe_tensor none = slice(&kv->k, 0, 0), no_rows = rows_of(kv, kv->turned, 0);
    if ((status = pe_rope_rebase(kv->spec.rope, &kv->info.at, rope, &kv->info.at, &none,
                                 &no_rows, error)) != PE_OK)
        return status;
    forget_norms(kv, 0);
    for (int64_t t = 0; t < kv->info.len; t += CHUNK) {
        const int64_t n = kv->info.len - t < CHUNK ? kv->info.len - t : CHUNK;
        const pe_tensor keys = slice(&kv->k, t, n);
        const pe_tensor turned = rows_of(kv, kv->turned, n);
        pe_positions at = kv->info.at;
        at.ids += t;
        pe_rope_rebase(kv->spec.rope, &at, rope, &at, &keys, &turned, NULL);
        for (int64_t i = t; i < t + n; i++)
            kv->errors[i] *= grows;
        store_keys(kv, t, n);
    }
    kv->spec.rope = rope;
    refresh(kv);
    return PE_OK;
}
