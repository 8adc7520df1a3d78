/* SPDX-License-Identifier: MIT
 *
 * lab_measure.h - a trained model read in some modes, at some lengths
 */
#ifndef POSENC_CLI_LAB_MEASURE_H
#define POSENC_CLI_LAB_MEASURE_H

#include "cli.h"

#include "lab/evaluate.h"
#include "lab/results.h"
#include "lab/trainer.h"

enum {
    CLI_LAB_MAX_MULTIPLES = 16,
    CLI_LAB_MAX_MODES = 32,
    CLI_LAB_SLIDE_SHARE = 8 /* eval_tokens: this times the bytes of sliding windows */
};

typedef struct cli_lab_plan {
    lab_mode modes[CLI_LAB_MAX_MODES];
    int64_t multiples[CLI_LAB_MAX_MULTIPLES]; /* ascending */
    int32_t num_modes, num_multiples;
    int64_t eval_tokens;
    int64_t slide_tokens; /* 0: no sliding windows */
    int32_t threads;      /* for the record; env says what runs */
    int32_t is_asked; /* modes were named: each is read where it can be, and slides */
} cli_lab_plan;

/* Tokens and threads are the caller's to set.  modes: a list with commas, NULL for those
 * of the report; multiples: a list, NULL for 1,2,4,8,16.  Says what is wrong and returns an
 * exit code. */
int cli_lab_plan_make(cli_lab_plan *out, const lab_config *config, const char *modes,
                      const char *multiples);

/* Whether the text has all the windows of the plan, known before anything is trained;
 * without_slide: the option that leaves sliding windows out, for the message. */
int cli_lab_plan_check(const cli_lab_plan *plan, const lab_config *config,
                       const lab_corpus *corpus, const char *without_slide);

/* The settings of what the plan would find. */
void cli_lab_plan_settings(const cli_lab_plan *plan, const lab_config *config,
                           const lab_corpus *corpus, lab_settings *out);

/* Adds a result for every mode and multiple, and the time of the plain one. */
int cli_lab_measure(const cli_lab_plan *plan, const lab_state *state,
                    const lab_corpus *corpus, const pe_env *env, lab_results *out);

#endif /* POSENC_CLI_LAB_MEASURE_H */
