/* SPDX-License-Identifier: MIT
 *
 * lab_fixture.h - a small model as PyTorch saw it: weights, logits, gradients, steps
 *
 * tests/data/lab/METHOD.safetensors; the names in it are those of lab/weights.h behind
 * "w." and "g.". */
#ifndef LAB_FIXTURE_H
#define LAB_FIXTURE_H

#include "lab/trainer.h"
#include "posenc/model.h"

typedef struct {
    pe_checkpoint *file;
    lab_state state; /* weights of the file; the settings of the reference */
    void *copies[96];
    int num_copies;
} lab_fixture;

/* config holds sizes; its method is set. */
void lab_fixture_open(lab_fixture *out, const char *path, const char *method,
                      const lab_config *config);
void lab_fixture_close(lab_fixture *fixture);
/* Data of a tensor that has to be there with that many elements: a copy, for files do
 * not align it, that lives until close. */
const void *lab_fixture_data(lab_fixture *fixture, const char *name, int64_t count);
/* The largest |got - want| over the largest |want|. */
double lab_relative(const float *got, const float *want, int64_t count);

#endif /* LAB_FIXTURE_H */
