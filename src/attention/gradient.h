/* SPDX-License-Identifier: MIT
 *
 * gradient.h - gradients of whole key heads, by recomputation
 */
#ifndef PE_ATTENTION_GRADIENT_H
#define PE_ATTENTION_GRADIENT_H

#include "attention/call.h"

typedef struct {
    pe_call call;
    pe_attention_grads grads;
} pe_gradient_call;

/* Work of a pe_gradient_call: items are the kv heads of the first document, then of the
 * next.  Stores dq, dk and dv; adds to dmask and to the call's sums. */
void pe_gradient_heads(void *arg, int32_t worker, int64_t begin, int64_t end);

#endif /* PE_ATTENTION_GRADIENT_H */
