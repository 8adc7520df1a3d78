/* SPDX-License-Identifier: MIT
 *
 * lab_record.h - train.json: what a run learned from, how it went and how fast
 */
#ifndef POSENC_CLI_LAB_RECORD_H
#define POSENC_CLI_LAB_RECORD_H

#include "report.h"

#include "lab/corpus.h"
#include "lab/trainer.h"

#define CLI_LAB_TRAIN_FILE   "train.json"
#define CLI_LAB_TRAIN_SCHEMA "posenc.lab.train/1"

enum { CLI_LAB_LOG_EVERY = 100 }; /* steps */

typedef struct cli_lab_entry {
    int64_t step;
    double loss; /* lab_state's average after that step */
} cli_lab_entry;

typedef struct cli_lab_record { /* zeroed: of a run that begins */
    cli_lab_entry *entries;     /* every CLI_LAB_LOG_EVERY steps, and the last */
    int64_t count, room;
    double seconds;      /* of training, all sittings together */
    int64_t memory;      /* bytes of the trainer */
    int64_t peak_memory; /* bytes of the process, at the worst */
    int64_t threads;
    int32_t knows_from;   /* what the run began with: older files do not say */
    char from_sha256[65]; /* of those weights, as lab_train.c hashes them; "": random */
} cli_lab_record;

void cli_lab_record_release(cli_lab_record *record);
/* 0: out of memory. */
int cli_lab_record_add(cli_lab_record *record, int64_t step, double loss);
/* What earlier sittings left in a file, as far as step; a file that is not there or not
 * ours leaves the record empty. */
void cli_lab_record_read(cli_lab_record *record, const char *path, int64_t step);
json_object *cli_lab_record_json(const cli_lab_record *record, const lab_state *state,
                                 const lab_corpus *corpus);
/* Tokens a second; 0: no time was taken. */
double cli_lab_record_speed(const cli_lab_record *record, const lab_state *state);

#endif /* POSENC_CLI_LAB_RECORD_H */
