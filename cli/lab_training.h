/* SPDX-License-Identifier: MIT
 *
 * lab_training.h - one run, from wherever its folder stands to its last step
 */
#ifndef POSENC_CLI_LAB_TRAINING_H
#define POSENC_CLI_LAB_TRAINING_H

#include "lab_record.h"

#include "lab/checkpoint.h"

enum { CLI_LAB_SAVE_EVERY = 200 };

typedef struct cli_lab_training {
    const lab_config *config;
    const lab_corpus *corpus;
    const pe_env *env;
    const char *folder;      /* of this run, made if need be */
    const char *again;       /* the command that goes on with it, for the reader */
    const lab_state *from;   /* what to begin with instead of random weights; or NULL */
    const char *from_sha256; /* of what that was made from; "": random weights */
    int64_t save_every;      /* steps */
    int32_t threads;         /* for the record */
    int32_t resume;          /* a run that is there goes on; a finished one is fine */
    int32_t force;           /* a run that is there is begun again */
    int32_t is_batch;        /* lab run: it has no --force and no --from */
} cli_lab_training;

/* Trains, with a bar on stderr, and leaves checkpoint.safetensors and train.json in the
 * folder.  A signal saves, says how to go on, and ends the command.  Says what is wrong
 * and returns an exit code; out and record are the caller's to release if CLI_DONE. */
int cli_lab_train(const cli_lab_training *training, lab_state *out,
                  cli_lab_record *record);

#endif /* POSENC_CLI_LAB_TRAINING_H */
