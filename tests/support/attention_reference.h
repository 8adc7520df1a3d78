/* SPDX-License-Identifier: MIT
 *
 * attention_reference.h - attention by the textbook: every score kept, all in double
 *
 * Works on dot products and biases that the test has made, so that it knows nothing of
 * positions.  Arrays are [batch][heads][q_len][k_len] unless said otherwise. */
#ifndef PE_TESTS_ATTENTION_REFERENCE_H
#define PE_TESTS_ATTENTION_REFERENCE_H

#include "posenc/attention.h"

typedef struct ref_attention {
    int64_t batch, heads, kv_heads, q_len, k_len, v_dim;
    double scale, softcap;
    const double *factors; /* [batch][q_len] query temperature, or NULL */
    pe_visibility visible;
    const int64_t *k_lens; /* [batch], or NULL */
    int32_t num_seqs;      /* packed */
    const int32_t *q_cu, *k_cu;
    const float *sinks;          /* [heads], or NULL */
    const unsigned char *absent; /* [batch][kv_heads][k_len]: keys that do not exist */
    const double *dots;          /* q . k, rotated, not scaled */
    const double *bias;          /* everything added, masks too */
    const double *v;             /* [batch][kv_heads][k_len][v_dim] */
} ref_attention;

/* 1: query token i of row b sees key token j. */
int ref_attention_sees(const ref_attention *ref, int64_t b, int64_t i, int64_t j);

/* probs, out [batch][heads][q_len][v_dim], lse [batch][heads][q_len]. */
void ref_attention_forward(const ref_attention *ref, double *probs, double *out,
                           double *lse);

/* From dout, laid out as out: dscores (with respect to the scores after scale and cap,
 * which is also what biases get), ddots, dv laid out as v, dsinks [heads]. */
void ref_attention_backward(const ref_attention *ref, const double *probs,
                            const double *out, const double *lse, const double *dout,
                            double *dscores, double *ddots, double *dv, double *dsinks);

#endif /* PE_TESTS_ATTENTION_REFERENCE_H */
