/* SPDX-License-Identifier: MIT
 *
 * lab_reference.h - the lab's model once more, in double, written out plainly
 */
#ifndef LAB_REFERENCE_H
#define LAB_REFERENCE_H

#include "lab/weights.h"

/* Sum of nats over rows of tokens, inputs ids[row * (tokens + 1) + t], targets the next;
 * read as trained.  Room for a row's activations is allocated. */
double lab_reference_loss(const lab_config *config, const lab_layout *layout,
                          const double *weights, const uint8_t *ids, int64_t rows,
                          int64_t tokens);

#endif /* LAB_REFERENCE_H */
