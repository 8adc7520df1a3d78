/* SPDX-License-Identifier: MIT
 *
 * fuzz_kv.c - bytes -> a cache and what is done to it, beside full recomputation
 *
 * Tokens are appended, evicted, turned, forked and rebased.  No crash; a refused call
 * changed nothing; what is held is what was put in, within the bound that is reported. */
#include "bytes.h"
#include "codec.h"
#include "posenc/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 3, DIMS = 4, DIM = 8 * DIMS, SOURCES = 100, CAPACITY = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bytes input;
static float keys[SOURCES * HEADS * DIM], values[SOURCES * HEADS * DIM];
static float got[CAPACITY * HEADS * DIM], exact[CAPACITY * HEADS * DIM];

/* What must be held: token t is source[t] at position[t]. */
typedef struct model {
    int64_t source[CAPACITY], position[CAPACITY], len;
    const pe_rope *rope;
    int knows_positions; /* they are in the range where turns add up */
} model;

static int64_t whole(int64_t low, int64_t high)
{
    return take_whole(&input, 248, low, high);
}

static int64_t bounded(int64_t low, int64_t high)
{
    return take_within(&input, low, high);
}

/* Plans are made once: their tables take longer than all else here. */
static const pe_rope *rope_of(int64_t dim, int64_t pairing, int64_t rule)
{
    static pe_rope *made[DIMS + 1][3][3];
    pe_rope **rope = &made[dim / 8][pairing][rule];
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = (int32_t)dim,
        .pairs = {.pairing = (pe_pairing)pairing,
                  .rotary_dim = rule == 2 ? (int32_t)dim / 2 : 0},
        .freqs = {.rope_type = rule == 1 ? PE_ROPE_YARN : PE_ROPE_DEFAULT,
                  .rope_theta = 100,
                  .factor = rule == 1 ? 4 : 0,
                  .original_max_position_embeddings = rule == 1 ? 64 : 0}};
    if (*rope == NULL && pe_rope_create(rope, &spec, NULL, NULL) != PE_OK)
        abort();
    return *rope;
}

/* ------------------------------------------------------------------------ judging --- */

static double length_of(const float *x, const float *minus, int64_t dim)
{
    double sum = 0;
    for (int64_t d = 0; d < dim; d++) {
        const double e = (double)x[d] - (minus != NULL ? (double)minus[d] : 0);
        sum += e * e;
    }
    return sqrt(sum);
}

static void judge_keys(const pe_kv_info *info, const model *m)
{
    const int64_t heads = info->k.num_heads, dim = info->k.dim;
    const int64_t runs = (m->len + 63) / 64;
    const pe_positions at = {.ids = m->position};
    pe_tensor held, turned;
    double worst = 0;
    for (int64_t t = 0; t < m->len; t++)
        for (int64_t h = 0; h < heads; h++)
            memcpy(exact + (t * heads + h) * dim,
                   keys + (m->source[t] * HEADS + h) * DIM,
                   (size_t)dim * sizeof *exact);
    pe_tensor_bshd(&held, PE_F32, got, 1, m->len, heads, dim);
    pe_tensor_bshd(&turned, PE_F32, exact, 1, m->len, heads, dim);
    if (pe_tensor_copy(&info->k, &held, NULL, NULL) != PE_OK)
        abort();
    if (m->rope != NULL && pe_rope_apply(m->rope, &at, &turned, &turned, NULL) != PE_OK)
        abort();
    for (int64_t i = 0; i < m->len * heads; i++) {
        const double lost = length_of(got + i * dim, exact + i * dim, dim);
        const double length = length_of(got + i * dim, NULL, dim);
        worst = lost > worst || isnan(lost) ? lost : worst;
        if ((double)info->k_norms[i % heads * runs + i / heads / 64] < length)
            abort();
    }
    if (m->knows_positions && worst > info->k_error)
        abort();
}

static void judge(const pe_kv *kv, const model *m)
{
    const pe_kv_info *info = pe_kv_get_info(kv);
    if (info->len != m->len || info->k.seq_len != m->len || info->v.seq_len != m->len)
        abort();
    for (int64_t t = 0; t < m->len; t++)
        if (info->at.ids[t] != m->position[t])
            abort();
    judge_keys(info, m);
    if (info->v.dtype != PE_F32)
        return;
    for (int64_t t = 0; t < m->len; t++)
        for (int64_t h = 0; h < info->v.num_heads; h++) {
            const float *v = (const float *)info->v.data + t * info->v.seq_stride +
                             h * info->v.head_stride;
            if (memcmp(v, values + (m->source[t] * HEADS + h) * DIM,
                       (size_t)info->v.dim * sizeof *v) != 0)
                abort();
        }
}

/* ------------------------------------------------------------------------- changes --- */

static void append(pe_kv *kv, model *m)
{
    const pe_kv_info *info = pe_kv_get_info(kv);
    const int64_t count = bounded(0, 70), first = bounded(0, SOURCES - 70);
    const int64_t start = whole(-50, 190);
    const pe_positions at = {.start = start};
    pe_tensor k, v;
    pe_tensor_bshd(&k, PE_F32, keys + first * HEADS * DIM, 1, count, HEADS, DIM);
    pe_tensor_bshd(&v, PE_F32, values + first * HEADS * DIM, 1, count, HEADS, DIM);
    k.num_heads = v.num_heads = info->k.num_heads;
    k.dim = info->k.dim;
    v.dim = info->v.dim;
    if (pe_kv_append(kv, &at, &k, &v, NULL) != PE_OK)
        return;
    for (int64_t t = 0; t < count; t++) {
        m->source[m->len] = first + t;
        m->position[m->len++] = start + t;
    }
    if (start > (int64_t)1 << 40 || start < -((int64_t)1 << 40))
        m->knows_positions = 0;
}

static void evict(pe_kv *kv, model *m)
{
    const int64_t first = whole(0, 20), count = whole(0, 60);
    const pe_gap gap = (pe_gap)whole(1, 2);
    if (pe_kv_evict(kv, first, count, gap, NULL) != PE_OK)
        return;
    const int64_t rest = m->len - first - count;
    memmove(m->source + first, m->source + first + count,
            (size_t)rest * sizeof *m->source);
    memmove(m->position + first, m->position + first + count,
            (size_t)rest * sizeof *m->position);
    m->len = first + rest;
    for (int64_t t = first; t < m->len && gap == PE_GAP_CLOSE; t++)
        m->position[t] = (int64_t)((uint64_t)m->position[t] - (uint64_t)count);
}

static void change(pe_kv **kv, model *m, int64_t dim)
{
    const pe_rope *rope;
    pe_kv *copy;
    switch (take(&input, 1) % 8) {
    case 0:
    case 1:
        evict(*kv, m);
        break;
    case 2:
        rope = rope_of(dim, bounded(1, 2), bounded(0, 2));
        if (pe_kv_rebase(*kv, rope, NULL) == PE_OK)
            m->rope = rope;
        break;
    case 3:
        if (pe_kv_fork(&copy, *kv, NULL) != PE_OK)
            abort();
        pe_kv_destroy(*kv);
        *kv = copy;
        break;
    default:
        append(*kv, m);
    }
    judge(*kv, m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static model m;
    pe_kv *kv = NULL;
    pe_error error;
    input = (struct bytes){data, size};
    for (int i = 0; i < SOURCES * HEADS * DIM; i++) {
        keys[i] = (float)(i * 7919 % 997) / 499 - 1;
        values[i] = (float)(i * 7907 % 991) / 499 - 1;
    }
    if (bounded(0, 9) == 0)
        keys[take(&input, 2) % (SOURCES * HEADS * DIM)] =
            take(&input, 1) % 2 ? NAN : INFINITY;
    const int64_t dim = 8 * bounded(1, DIMS);
    memset(&m, 0, sizeof m);
    m.knows_positions = 1;
    m.rope = bounded(0, 3) ? rope_of(dim, bounded(1, 2), bounded(0, 2)) : NULL;
    const pe_kv_spec spec = {.struct_size = sizeof spec,
                             .num_kv_heads = (int32_t)bounded(1, HEADS),
                             .head_dim = (int32_t)dim,
                             .v_head_dim = (int32_t)(8 * bounded(0, DIMS)),
                             .k_dtype = (pe_dtype)whole(1, 5),
                             .v_dtype = (pe_dtype)whole(1, 5),
                             .k_codec = &fuzz_codec,
                             .v_codec = &fuzz_codec,
                             .rope = m.rope,
                             .capacity = bounded(0, CAPACITY)};
    if (pe_kv_create(&kv, &spec, NULL, &error) != PE_OK) {
        if (kv != NULL || error.message[0] == 0)
            abort();
        return 0;
    }
    for (int i = 0; i < 12 && input.size > 0; i++)
        change(&kv, &m, dim);
    pe_kv_destroy(kv);
    return 0;
}
