/* SPDX-License-Identifier: MIT
 *
 * bench_draw.c - queries and keys as long as a model's, with the norms of the keys
 *
 * How many blocks can be left out depends on lengths alone.  Directions are random, so
 * that scores spread by norm_product / sqrt(128).  Heads differ by up to a fifth either
 * way, tokens of a head by up to a sixth. */
#include "bench_attend.h"

#include <math.h>
#include <stdlib.h>

enum { RUN = 64 }; /* keys that share a norm */

/* In [-1, 1). */
static float next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(int32_t)*state * 0x1p-31f;
}

/* Neighbouring heads have slopes alike, not lengths. */
static double length_of_head(int64_t head, int64_t heads)
{
    return heads > 1 ? 0.8 + 0.4 * (double)(head * 5 % heads) / (double)(heads - 1) : 1;
}

/* One head's vectors; norms[i] above the lengths of vectors 64 i and on, NULL: none. */
static void draw_head(float *x, int64_t count, double length, uint32_t *state,
                      float *norms)
{
    for (int64_t t = 0; t < count; t++, x += BENCH_HEAD_DIM) {
        const double wanted = length * (1 + (double)next(state) / 6);
        double sum = 0;
        for (int d = 0; d < BENCH_HEAD_DIM; d++) {
            x[d] = next(state);
            sum += (double)x[d] * (double)x[d];
        }
        const double times = wanted / sqrt(sum);
        for (int d = 0; d < BENCH_HEAD_DIM; d++)
            x[d] = (float)((double)x[d] * times);
        /* An f16 is within 2^-11 of it. */
        const float above = (float)(wanted * 1.001);
        if (norms != NULL && (t % RUN == 0 || norms[t / RUN] < above))
            norms[t / RUN] = above;
    }
}

static void draw(bench *b, pe_tensor *t, double length, uint32_t state, float *norms)
{
    const int64_t runs = (t->seq_len + RUN - 1) / RUN;
    float *room = bench_alloc(b, PE_F32, t->seq_len * BENCH_HEAD_DIM);
    pe_error error;
    for (int64_t h = 0; h < t->num_heads && b->status == CLI_DONE; h++) {
        pe_tensor from, to = *t;
        draw_head(room, t->seq_len, length * length_of_head(h, t->num_heads), &state,
                  norms != NULL ? norms + h * runs : NULL);
        pe_tensor_bhsd(&from, PE_F32, room, 1, 1, t->seq_len, BENCH_HEAD_DIM);
        to.num_heads = 1;
        to.data = (char *)t->data + h * t->head_stride * (t->dtype == PE_F32 ? 4 : 2);
        if (pe_tensor_copy(&from, &to, NULL, &error) != PE_OK)
            bench_failed(b, &error);
    }
    free(room);
}

void bench_attend_draw(bench *b, bench_attend *w, const bench_attention_shape *s)
{
    const double length = sqrt(s->norm_product * sqrt((double)BENCH_HEAD_DIM));
    const int64_t runs = (s->k_len + RUN - 1) / RUN;
    w->norms = bench_alloc(b, PE_F32, runs * s->kv_heads);
    draw(b, &w->q, length, 1, NULL);
    draw(b, &w->k, length, 2, w->norms);
    w->args.k_norms = w->norms;
}
