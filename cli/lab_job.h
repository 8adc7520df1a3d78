/* SPDX-License-Identifier: MIT
 *
 * lab_job.h - one method and seed, trained and read, in a folder of its own
 */
#ifndef POSENC_CLI_LAB_JOB_H
#define POSENC_CLI_LAB_JOB_H

#include "lab_measure.h"
#include "lab_store.h"

#include "posenc/threads.h"

typedef struct cli_lab_bench { /* what all runs of a process use */
    const lab_corpus *corpus;
    pe_env env;
    const char *again; /* the command that goes on after a signal */
    int32_t threads;
} cli_lab_bench;

/* Adds the results of the run in output/METHOD-seedN, where what is not there yet is
 * trained and read first.  Says what is wrong and returns an exit code. */
int cli_lab_job(const cli_lab_bench *bench, const lab_config *config,
                const cli_lab_plan *plan, const char *output, lab_results *results);

#endif /* POSENC_CLI_LAB_JOB_H */
