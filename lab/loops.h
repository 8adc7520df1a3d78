/* SPDX-License-Identifier: MIT
 *
 * loops.h - what is done to activations and weights one element or row at a time
 *
 * Plain C that compilers turn into vector code, compiled once for each instruction set
 * (loops_*.c), chosen at run time.  Arrays of one call do not overlap unless they are
 * the same argument.  Results of different instruction sets agree to rounding. */
#ifndef POSENC_LAB_LOOPS_H
#define POSENC_LAB_LOOPS_H

#include "lab.h"

typedef struct lab_adamw_rates {
    float clip; /* what gradients are multiplied by */
    float keep; /* what weights are multiplied by first: decay */
    float rate; /* of the step, divided by 1 - beta1^step */
    float root; /* 1 / sqrt(1 - beta2^step) */
    float beta1, beta2, epsilon;
} lab_adamw_rates;

typedef struct lab_loops {
    /* y = x r gain with r = 1 / sqrt(mean(x^2) + 1e-5), kept in root if not NULL. */
    void (*norm)(int64_t rows, int64_t width, const float *x, const float *gain,
                 float *y, float *root);
    /* dx += gradient of x given dy; dgain += that of gain. */
    void (*norm_back)(int64_t rows, int64_t width, const float *x, const float *gain,
                      const float *root, const float *dy, float *dx, float *dgain);
    /* y = x Phi(x): GELU with the error function, |error of Phi| <= 3e-7.  slope, if not
     * NULL: its derivative, which may replace x. */
    void (*gelu)(int64_t count, const float *x, float *y, float *slope);
    /* x *= y. */
    void (*multiply)(int64_t count, float *x, const float *y);
    /* Cross-entropy of rows of 256 logits: nll, and the logarithm of the sum. */
    void (*loss)(int64_t rows, const float *logits, const uint8_t *targets, float *nll,
                 float *log_sum);
    /* dlogits = scale (softmax - target). */
    void (*loss_back)(int64_t rows, const float *logits, const uint8_t *targets,
                      const float *log_sum, float scale, float *dlogits);
    /* y += x. */
    void (*add)(int64_t count, float *y, const float *x);
    double (*sum_of_squares)(int64_t count, const float *x);
    void (*adamw)(const lab_adamw_rates *rates, int64_t count, float *w, float *m,
                  float *v, const float *g);
} lab_loops;

/* PE_ISA_AUTO: the fastest.  Sets without loops of their own get the plain ones. */
const lab_loops *lab_loops_get(pe_isa isa);

/* By file; NULL where the compiler does not make that instruction set. */
extern const lab_loops lab_loops_plain;
extern const lab_loops *const lab_loops_avx2, *const lab_loops_avx512;

#endif /* POSENC_LAB_LOOPS_H */
