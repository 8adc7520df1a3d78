/* SPDX-License-Identifier: MIT
 *
 * fuzz_linear.c - bytes -> linear attention, on small tensors of any numbers
 *
 * No crash; a refused call has written nothing; without positions an output lies among
 * the values that its query sees. */
#include "bytes.h"
#include "plans.h"
#include "posenc/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 3, DIM = 12, TOKENS = 12, ROOM = 2 * HEADS * TOKENS * DIM };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bytes input;
static float q_data[ROOM], k_data[ROOM], v_data[ROOM], out[ROOM], before[ROOM];
static double work[DIM * (DIM + 1) + 3 * DIM + 8];

static int64_t whole(int64_t low, int64_t high)
{
    return take_whole(&input, 248, low, high);
}

static int64_t bounded(int64_t low, int64_t high)
{
    return take_within(&input, low, high);
}

/* Returns whether a number of any size is among them. */
static int fill(float *x, int seed)
{
    for (int i = 0; i < ROOM; i++)
        x[i] = (float)((i + seed) * 7919 % 997) / 249 - 2;
    if (bounded(0, 3) != 0)
        return 0;
    const uint32_t bits = (uint32_t)take(&input, 4);
    memcpy(&x[take(&input, 2) % ROOM], &bits, sizeof bits);
    return 1;
}

/* The largest magnitude of a column of v, NaN if one is NaN; 0 for no keys. */
static float largest(const pe_tensor *v, int64_t b, int64_t head, int64_t i)
{
    float top = 0;
    for (int64_t t = 0; t < v->seq_len; t++) {
        const int64_t row = (b * v->seq_len + t) * v->num_heads + head;
        const float x = fabsf(v_data[row * v->dim + i]);
        top = x > top || isnan(x) ? x : top;
    }
    return top;
}

/* No output is larger than its column of v, rounding aside; NaN only where numbers of any
 * size were given. */
static void judge(const pe_tensor *v, const pe_tensor *o, int is_usual)
{
    const int64_t group = o->num_heads / v->num_heads;
    for (int64_t row = 0; row < o->batch * o->seq_len * o->num_heads; row++)
        for (int64_t i = 0; i < o->dim; i++) {
            const int64_t b = row / o->num_heads / o->seq_len,
                          head = row % o->num_heads / group;
            const float x = fabsf(out[row * o->dim + i]),
                        most = largest(v, b, head, i) * 1.001f;
            if (is_usual ? !(x <= most) : x > most)
                abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pe_tensor q, k, v, o;
    input = (struct bytes){data, size};
    int is_usual = !fill(q_data, 1);
    is_usual &= !fill(k_data, 2);
    is_usual &= !fill(v_data, 3);
    for (int i = 0; i < ROOM; i++)
        out[i] = before[i] = 7;
    const int64_t batch = bounded(1, 2), heads = bounded(1, HEADS);
    const int64_t dim = bounded(1, DIM), v_dim = bounded(1, DIM);
    const int64_t q_len = bounded(0, TOKENS), k_len = bounded(0, TOKENS);
    const int64_t kv = bounded(0, 3) ? heads : bounded(1, HEADS);
    const pe_positions q_at = {.start = whole(-9, 90)}, k_at = {.start = whole(-9, 90)};
    const pe_rope *rope = bounded(0, 1) ? rope_of(dim, bounded(1, 2)) : NULL;
    const pe_mask mask = (pe_mask)whole(1, 2);
    const size_t room = bounded(0, 9) ? sizeof work : (size_t)take(&input, 1) * 8;
    void *aligned = (void *)(((uintptr_t)work + 63) / 64 * 64);
    pe_tensor_bshd(&q, PE_F32, q_data, batch, q_len, heads, dim);
    pe_tensor_bhsd(&k, PE_F32, k_data, batch, kv, k_len, dim);
    pe_tensor_bshd(&v, PE_F32, v_data, batch, k_len, kv, v_dim);
    pe_tensor_bshd(&o, PE_F32, out, batch, q_len, heads, v_dim);
    const size_t after = (size_t)((char *)work + sizeof work - (char *)aligned);
    if (pe_linear_attention(rope, mask, &q_at, &k_at, &q, &k, &v, &o, aligned,
                            room < after ? room : after, NULL) != PE_OK) {
        if (memcmp(out, before, sizeof out) != 0)
            abort();
    } else if (rope == NULL) {
        judge(&v, &o, is_usual);
    }
    return 0;
}
