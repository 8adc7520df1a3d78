/* SPDX-License-Identifier: MIT
 *
 * trainer.h - steps of AdamW (adamw.h) over random rows of a corpus
 *
 * A batch is cut into chunks of rows, the same whatever the number of threads; each has
 * its own pass and gradients, added in the order of the chunks.  So the same config and
 * corpus give the same bits on any number of threads, stopped and resumed or not. */
#ifndef POSENC_LAB_TRAINER_H
#define POSENC_LAB_TRAINER_H

#include "corpus.h"
#include "pass.h"

typedef struct lab_state { /* all that a checkpoint must hold */
    lab_config config;
    lab_layout layout;
    int64_t step;        /* steps done */
    double loss_average; /* 0.98 of itself and 0.02 of the loss; the first: the loss */
    float *weights, *moment1, *moment2; /* [layout.size] */
} lab_state;

/* Weights and moments 0, for a caller that has the values. */
pe_status lab_state_allocate(lab_state *out, const lab_config *config, pe_error *error);
/* Weights as config's seed makes them, moments 0. */
pe_status lab_state_create(lab_state *out, const lab_config *config, pe_error *error);
void lab_state_release(lab_state *state);

typedef struct lab_step {
    double loss;      /* mean over the batch, before the step */
    double grad_norm; /* before clipping */
    double rate;
} lab_step;

typedef struct lab_trainer lab_trainer;
/* state and corpus are borrowed.  offsets: [steps][batch] starts of rows in the training
 * text instead of random ones, borrowed; NULL: random.  env: its executor runs the
 * chunks; NULL: this thread. */
pe_status lab_trainer_create(lab_trainer **out, lab_state *state,
                             const lab_corpus *corpus, const int64_t *offsets,
                             const pe_env *env, pe_error *error);
void lab_trainer_destroy(lab_trainer *trainer);
/* One step.  A loss or gradient that is not finite leaves state as it was:
 * PE_E_ARGUMENT naming the step and the first tensor. */
pe_status lab_trainer_step(lab_trainer *trainer, lab_step *out, pe_error *error);
size_t lab_trainer_memory(const lab_trainer *trainer);

#endif /* POSENC_LAB_TRAINER_H */
