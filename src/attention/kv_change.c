/* SPDX-License-Identifier: MIT
 *
 * kv_change.c - keys and values that come, go, move and turn
 *
 * Every change of a key goes through a few rows of floats, so that what storing it lost
 * is measured, not guessed. */
#include "attention/kv.h"

#include "base/at.h"
#include "base/dtype.h"
#include "base/error.h"
#include "kernels/vectors.h"
#include "rope/plan.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------- storing keys --- */

/* Tokens [token, token + count) of a cache. */
static pe_tensor slice(const pe_tensor *x, int64_t token, int64_t count)
{
    pe_tensor part = *x;
    part.seq_len = count;
    part.data = (unsigned char *)x->data + token * pe_kv_row_size(x);
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

/* |stored - turned| and |stored| of one head vector, read back; NaN if either is not
 * finite, 0 where there is nothing. */
static void measure(const pe_kv *kv, const pe_tensor *keys, int64_t t, int64_t h,
                    double *lost, double *length)
{
    const pe_kernels *kernels = pe_kernels_get(kv->env.isa);
    const int64_t dim = kv->spec.head_dim;
    float stored[PE_MAX_VECTOR_DIM];
    int64_t element;
    *lost = *length = 0;
    if (!pe_tensor_at(keys, 0, t, h, &element))
        return;
    pe_kernels_load(kernels, keys, element, 0, dim, stored);
    kernels->distance(stored, kv->turned + (t * kv->spec.num_kv_heads + h) * dim, dim,
                      lost, length);
    *lost = sqrt(*lost);
    *length = sqrt(*length);
}

static void raise_norm(pe_kv *kv, int64_t token, int64_t head, double length)
{
    float *run = kv->norms + token / PE_KEY_BLOCK * kv->spec.num_kv_heads + head;
    /* The square root and the sum were rounded. */
    *run = pe_above(pe_larger(length, (double)*run), 0x1p-40);
}

/* Elements that turning can change: whole groups of the cache's format. */
static void turned_elements(const pe_kv *kv, int64_t *begin, int64_t *end)
{
    const pe_rope *rope = kv->spec.rope;
    const int64_t group = pe_tensor_group(&kv->k);
    *begin = *end = 0;
    if (rope == NULL)
        return;
    const int64_t last = rope->pairs.rotary_start + 2 * rope->turns.n;
    *begin = rope->pairs.rotary_start / group * group;
    *end = (last + group - 1) / group * group;
}

/* Where a key came from: tokens [token, ...) of a caller's tensor, or x NULL: it has been
 * here before. */
typedef struct {
    const pe_tensor *x;
    int64_t token;
} origin;

/* What turning leaves alone keeps its bytes where the formats agree: int8 and blocks are
 * not coded a second time. */
static void store_key(const pe_kv *kv, const origin *from, const pe_tensor *keys,
                      int64_t t, int64_t h)
{
    const float *row = kv->turned + (t * kv->spec.num_kv_heads + h) * kv->spec.head_dim;
    int64_t begin, end, x = 0, y;
    turned_elements(kv, &begin, &end);
    if (!pe_tensor_at(keys, 0, t, h, &y))
        return;
    if (from->x != NULL && pe_tensor_same_bytes(from->x, keys) &&
        pe_tensor_at(from->x, 0, from->token + t, h, &x)) {
        pe_vector_copy(from->x, x, keys, y, begin);
        pe_vector_copy(from->x, x + end, keys, y + end, keys->dim - end);
    } else if (from->x != NULL) { /* nothing is there */
        begin = 0;
        end = keys->dim;
    }
    if (begin < end)
        pe_kernels_store(pe_kernels_get(kv->env.isa), keys, y, begin, end - begin,
                         row + begin);
}

/* Every element comes from the turned rows. */
static int stores_all(const pe_kv *kv, const origin *from)
{
    int64_t begin, end;
    turned_elements(kv, &begin, &end);
    return from->x != NULL ? !pe_tensor_same_bytes(from->x, &kv->k)
                           : begin == 0 && end == kv->k.dim;
}

/* Stores count turned rows as keys from token on.  Turning rounds each element by 2 u
 * (|x c| + |y s|), so a vector by at most 4 u of its length; storing loses what reading
 * back shows. */
static void store_keys(pe_kv *kv, int64_t token, int64_t count, const origin *from)
{
    const int64_t heads = kv->spec.num_kv_heads;
    const double rounding = kv->spec.rope != NULL ? 0x1p-22 : 0;
    const pe_tensor keys = slice(&kv->k, token, count);
    const int all = stores_all(kv, from);
    for (int64_t t = 0; t < count; t++) {
        double worst = 0;
        int64_t element;
        if (all && pe_tensor_at(&keys, 0, t, 0, &element))
            pe_kernels_store_heads(pe_kernels_get(kv->env.isa), &keys, element, heads,
                                   kv->turned + t * heads * keys.dim);
        for (int64_t h = 0; h < heads; h++) {
            double lost, length;
            if (!all)
                store_key(kv, from, &keys, t, h);
            measure(kv, &keys, t, h, &lost, &length);
            lost += (length + lost) * rounding;
            worst = pe_larger(worst, lost);
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

/* Tokens [begin, begin + count) of a caller's tensor as floats, paged ones too. */
static void load_rows(const pe_kv *kv, const pe_tensor *k, int64_t begin, int64_t count)
{
    const int64_t heads = kv->spec.num_kv_heads, dim = kv->spec.head_dim;
    const pe_kernels *kernels = pe_kernels_get(kv->env.isa);
    for (int64_t i = 0; i < count * heads; i++) {
        float *row = kv->turned + i * dim;
        int64_t element;
        if (pe_tensor_at(k, 0, begin + i / heads, i % heads, &element))
            pe_kernels_load(kernels, k, element, 0, dim, row);
        else
            memset(row, 0, (size_t)dim * sizeof *row);
    }
}

/* The same, turned. */
static pe_status load_keys(pe_kv *kv, const pe_tensor *k, int64_t begin, int64_t count,
                           pe_error *error)
{
    const pe_tensor turned = rows_of(kv, kv->turned, count);
    pe_tensor part = turned;
    if (kv->spec.rope != NULL && k->page_table == NULL && pe_dtype_size(k->dtype) > 1) {
        part = *k; /* turned on its way */
        part.data =
            (unsigned char *)k->data + begin * k->seq_stride * pe_dtype_size(k->dtype);
        part.seq_len = count;
    } else {
        load_rows(kv, k, begin, count);
    }
    if (kv->spec.rope == NULL)
        return PE_OK;
    const int64_t first = kv->info.len + begin;
    const pe_positions own = {.ids = kv->ids + first,
                              .axis_stride = kv->num_axes > 1 ? kv->spec.capacity : 0,
                              .num_axes = (int32_t)kv->num_axes};
    return pe_rope_apply(kv->spec.rope, &own, &part, &turned, error);
}

static void store_values(pe_kv *kv, const pe_tensor *v, int64_t begin, int64_t count)
{
    static const float zeroes[PE_MAX_VECTOR_DIM];
    const pe_kernels *kernels = pe_kernels_get(kv->env.isa);
    const pe_tensor part = slice(&kv->v, kv->info.len + begin, count);
    const int side_by_side = v->dtype == PE_F32 && !pe_tensor_same_bytes(v, &part) &&
                             (v->num_heads == 1 || v->head_stride == v->dim);
    for (int64_t t = 0; t < count; t++)
        for (int64_t h = 0; h < v->num_heads; h++) {
            float row[PE_MAX_VECTOR_DIM];
            const float *values = zeroes;
            int64_t from = 0, to;
            const int is_there = pe_tensor_at(v, 0, begin + t, h, &from);
            if (!pe_tensor_at(&part, 0, t, h, &to))
                continue;
            if (is_there && side_by_side) {
                pe_kernels_store_heads(kernels, &part, to, v->num_heads,
                                       (const float *)v->data + from);
                break;
            }
            if (is_there && pe_tensor_same_bytes(v, &part)) {
                pe_vector_copy(v, from, &part, to, v->dim);
                continue;
            }
            if (is_there) {
                pe_kernels_load(kernels, v, from, 0, v->dim, row);
                values = row;
            }
            pe_kernels_store(kernels, &part, to, 0, v->dim, values);
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
    for (int64_t t = 0; t < k->seq_len; t += PE_KV_CHUNK) {
        const int64_t rest = k->seq_len - t,
                      count = rest < PE_KV_CHUNK ? rest : PE_KV_CHUNK;
        const origin from = {k, t};
        if ((status = load_keys(kv, k, t, count, error)) != PE_OK)
            return status;
        memset(kv->errors + len + t, 0, (size_t)count * sizeof *kv->errors);
        store_keys(kv, len + t, count, &from);
        store_values(kv, v, t, count);
    }
    kv->info.len = len + k->seq_len;
    for (int64_t a = 0; k->seq_len > 0 && a < kv->num_axes; a++) {
        const int64_t last = kv->ids[a * kv->spec.capacity + kv->info.len - 1];
        const int64_t after = last < INT64_MAX ? last + 1 : last; /* none lies beyond */
        kv->info.next = a == 0 || after > kv->info.next ? after : kv->info.next;
    }
    pe_kv_refresh(kv);
    return PE_OK;
}

/* ---------------------------------------------------------------- evict and rebase --- */

static void move_rows(const pe_tensor *x, int64_t from, int64_t to, int64_t count)
{
    const int64_t size = pe_kv_row_size(x), tokens = x->head_stride / x->dim;
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
    for (int64_t i = 0; i < count * heads; i++) {
        double lost, length;
        measure(kv, &keys, i / heads, i % heads, &lost, &length);
        raise_norm(kv, token + i / heads, i % heads, length);
    }
}

static void turn_back(pe_kv *kv, int64_t token, int64_t count, int64_t by)
{
    const pe_tensor keys = slice(&kv->k, token, count);
    const pe_tensor turned = rows_of(kv, kv->turned, count);
    const origin here = {NULL, 0};
    pe_rope_shift(kv->spec.rope, -by, &keys, &turned, NULL);
    store_keys(kv, token, count, &here);
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
    for (int64_t t = first; t < kv->info.len; t += PE_KV_CHUNK) {
        const int64_t n =
            kv->info.len - t < PE_KV_CHUNK ? kv->info.len - t : PE_KV_CHUNK;
        if (gap == PE_GAP_CLOSE && kv->spec.rope != NULL)
            turn_back(kv, t, n, count);
        else
            note_norms(kv, t, n);
    }
    pe_kv_refresh(kv);
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
    double grows =
        fabs(rope->info.attention_factor / kv->spec.rope->info.attention_factor);
    if (rope->info.rotary_dim < rope->info.head_dim && grows < 1)
        grows = 1; /* the rest of the vector does not shrink */
    /* Of no tokens first: a plan that does not fit is refused before any key moves. */
    const pe_tensor none = slice(&kv->k, 0, 0), no_rows = rows_of(kv, kv->turned, 0);
    if ((status = pe_rope_rebase(kv->spec.rope, &kv->info.at, rope, &kv->info.at, &none,
                                 &no_rows, error)) != PE_OK)
        return status;
    const origin here = {NULL, 0};
    forget_norms(kv, 0);
    for (int64_t t = 0; t < kv->info.len; t += PE_KV_CHUNK) {
        const int64_t n =
            kv->info.len - t < PE_KV_CHUNK ? kv->info.len - t : PE_KV_CHUNK;
        const pe_tensor keys = slice(&kv->k, t, n);
        const pe_tensor turned = rows_of(kv, kv->turned, n);
        pe_positions at = kv->info.at;
        at.ids += t;
        pe_rope_rebase(kv->spec.rope, &at, rope, &at, &keys, &turned, NULL);
        for (int64_t i = t; i < t + n; i++)
            kv->errors[i] *= grows;
        store_keys(kv, t, n, &here);
    }
    kv->spec.rope = rope;
    pe_kv_refresh(kv);
    return PE_OK;
}
