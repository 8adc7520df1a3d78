/* SPDX-License-Identifier: MIT
 *
 * pass.h - the model, forward and backward, over some rows of one length
 *
 * Pre-RMSNorm (epsilon 1e-5), exact GELU, no biases, untied head:
 *     x = sqrt(width) e[token] + positions
 *     x += o(attention(qkv(n1(x))));  x += f2(gelu(f1(n2(x))))     for each layer
 *     logits = u n(x)
 * A pass owns plans and activations for its shape; it runs on the calling thread alone,
 * so passes of one batch run side by side.  Memory is linear in rows * tokens. */
#ifndef POSENC_LAB_PASS_H
#define POSENC_LAB_PASS_H

#include "mode.h"
#include "weights.h"

typedef struct lab_pass_spec {
    const lab_config *config; /* borrowed */
    const lab_layout *layout; /* borrowed */
    lab_mode mode;
    int64_t rows, tokens;
    int32_t has_backward; /* keep what backward needs; mode must be base */
    pe_isa isa;           /* of the lab's own loops and of attention */
} lab_pass_spec;

typedef struct lab_pass lab_pass;
pe_status lab_pass_create(lab_pass **out, const lab_pass_spec *spec, pe_error *error);
void lab_pass_destroy(lab_pass *pass);

/* ids[row * stride + t], t in [0, tokens]: inputs are all but the last, targets all but
 * the first.  nll [rows][tokens] in nats, or NULL. */
pe_status lab_pass_forward(lab_pass *pass, const float *weights, const uint8_t *ids,
                           int64_t stride, float *nll, pe_error *error);
/* Logits [rows * tokens][256] of the last forward. */
const float *lab_pass_logits(const lab_pass *pass);
/* Gradients of sum(nll) * scale over the last forward with these weights: overwrites
 * grads, laid out as weights, gaps as zeroes. */
pe_status lab_pass_backward(lab_pass *pass, const float *weights, double scale,
                            float *grads, pe_error *error);
/* Bytes that the pass holds. */
size_t lab_pass_memory(const lab_pass *pass);

#endif /* POSENC_LAB_PASS_H */
