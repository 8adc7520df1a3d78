/* SPDX-License-Identifier: MIT
 *
 * lab_reference.c - one token, one head, one pair at a time
 */
#include "lab_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIM = 256 };

typedef struct {
    const lab_config *config;
    const lab_layout *layout;
    const double *w;
    int64_t tokens, width, heads, head_dim;
    double *x, *qkv; /* [tokens][width], [tokens][3 width] */
} model;

static void norm(const double *x, const double *gain, int64_t width, double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < width; i++)
        sum += x[i] * x[i];
    for (int64_t i = 0; i < width; i++)
        y[i] = x[i] / sqrt(sum / (double)width + 1e-5) * gain[i];
}

/* y = W x, W [rows][columns]. */
static void linear(const double *w, const double *x, int64_t rows, int64_t columns,
                   double *y)
{
    for (int64_t r = 0; r < rows; r++) {
        y[r] = 0;
        for (int64_t c = 0; c < columns; c++)
            y[r] += w[r * columns + c] * x[c];
    }
}

/* ---------------------------------------------------------------------- positions --- */

static void add_position(const model *m, int64_t t, double *x)
{
    for (int64_t i = 0; i < m->width; i++) {
        const double angle =
            (double)t * pow(10000, -(double)(i - i % 2) / (double)m->width);
        if (m->config->input == LAB_SIN)
            x[i] += i % 2 == 0 ? sin(angle) : cos(angle);
        if (m->config->input == LAB_LEARNED)
            x[i] += m->w[m->layout->p + t * m->width + i];
    }
}

static void turn(const model *m, int64_t t, double *head)
{
    const int64_t half = m->head_dim / 2;
    for (int64_t i = 0; i < half; i++) {
        const double angle =
            (double)t * pow(10000, -2 * (double)i / (double)m->head_dim);
        const double a = head[i], b = head[half + i];
        head[i] = a * cos(angle) - b * sin(angle);
        head[half + i] = b * cos(angle) + a * sin(angle);
    }
}

/* 32 causal buckets: 16 exact ones, then logarithmic up to distance 128. */
static int64_t bucket(int64_t distance)
{
    if (distance < 16)
        return distance;
    const int64_t far =
        16 + (int64_t)(log((double)distance / 16) / log(128.0 / 16) * 16);
    return far < 31 ? far : 31;
}

static double bias(const model *m, int32_t layer, int64_t head, int64_t distance)
{
    const lab_layer_offsets *at = &m->layout->layer[layer];
    switch (m->config->layer[layer]) {
    case LAB_ALIBI:
        return -(double)distance *
               (at->slopes >= 0 ? m->w[at->slopes + head]
                                : pow(2, -8 * (double)(head + 1) / (double)m->heads));
    case LAB_T5:
        return m->w[m->layout->t5 + bucket(distance) * m->heads + head];
    case LAB_KERPLE:
        return -m->w[at->kerple + head] *
               log(1 + m->w[at->kerple + m->heads + head] * (double)distance);
    default:
        return 0;
    }
}

/* ------------------------------------------------------------------------- layers --- */

/* out [head_dim]: what query t of a head reads. */
static void attend(const model *m, int32_t layer, int64_t t, int64_t head, double *out)
{
    const int64_t row = 3 * m->width, first = head * m->head_dim;
    const double *q = m->qkv + t * row + first;
    double sum = 0;
    memset(out, 0, (size_t)m->head_dim * sizeof *out);
    for (int64_t k = 0; k <= t; k++) {
        const double *key = m->qkv + k * row + m->width + first;
        const double *value = key + m->width;
        double score = 0;
        for (int64_t i = 0; i < m->head_dim; i++)
            score += q[i] * key[i];
        const double weight =
            exp(score / sqrt((double)m->head_dim) + bias(m, layer, head, t - k));
        sum += weight;
        for (int64_t i = 0; i < m->head_dim; i++)
            out[i] += weight * value[i];
    }
    for (int64_t i = 0; i < m->head_dim; i++)
        out[i] /= sum;
}

static void run_layer(const model *m, int32_t layer)
{
    const lab_layer_offsets *at = &m->layout->layer[layer];
    const int64_t d = m->width;
    double n[MAX_DIM], read[MAX_DIM], inner[4 * MAX_DIM], made[MAX_DIM];
    for (int64_t t = 0; t < m->tokens; t++) {
        double *qkv = m->qkv + t * 3 * d;
        norm(m->x + t * d, m->w + at->n1, d, n);
        linear(m->w + at->qkv, n, 3 * d, d, qkv);
        for (int64_t h = 0; h < 2 * m->heads && m->config->layer[layer] == LAB_ROPE;
             h++)
            turn(m, t, qkv + h * m->head_dim);
    }
    for (int64_t t = 0; t < m->tokens; t++) {
        double *x = m->x + t * d;
        for (int64_t h = 0; h < m->heads; h++)
            attend(m, layer, t, h, read + h * m->head_dim);
        linear(m->w + at->o, read, d, d, made);
        for (int64_t i = 0; i < d; i++)
            x[i] += made[i];
        norm(x, m->w + at->n2, d, n);
        linear(m->w + at->f1, n, 4 * d, d, inner);
        for (int64_t i = 0; i < 4 * d; i++)
            inner[i] *= erfc(-inner[i] / sqrt(2)) / 2;
        linear(m->w + at->f2, inner, d, 4 * d, made);
        for (int64_t i = 0; i < d; i++)
            x[i] += made[i];
    }
}

static double row_loss(const model *m, const uint8_t *ids)
{
    const int64_t d = m->width;
    double loss = 0, n[MAX_DIM], logits[LAB_VOCAB];
    for (int64_t t = 0; t < m->tokens; t++) {
        for (int64_t i = 0; i < d; i++)
            m->x[t * d + i] = sqrt((double)d) * m->w[m->layout->e + ids[t] * d + i];
        add_position(m, t, m->x + t * d);
    }
    for (int32_t i = 0; i < m->config->layers; i++)
        run_layer(m, i);
    for (int64_t t = 0; t < m->tokens; t++) {
        double sum = 0;
        norm(m->x + t * d, m->w + m->layout->n, d, n);
        linear(m->w + m->layout->u, n, LAB_VOCAB, d, logits);
        for (int i = 0; i < LAB_VOCAB; i++)
            sum += exp(logits[i]);
        loss += log(sum) - logits[ids[t + 1]];
    }
    return loss;
}

double lab_reference_loss(const lab_config *config, const lab_layout *layout,
                          const double *weights, const uint8_t *ids, int64_t rows,
                          int64_t tokens)
{
    const size_t size = (size_t)(tokens * config->width);
    model m = {.config = config,
               .layout = layout,
               .w = weights,
               .tokens = tokens,
               .width = config->width,
               .heads = config->heads,
               .head_dim = config->width / config->heads,
               .x = malloc(size * sizeof(double)),
               .qkv = malloc(3 * size * sizeof(double))};
    double loss = 0;
    if (m.x == NULL || m.qkv == NULL || config->width > MAX_DIM)
        abort();
    for (int64_t r = 0; r < rows; r++)
        loss += row_loss(&m, ids + r * (tokens + 1));
    free(m.x);
    free(m.qkv);
    return loss;
}
