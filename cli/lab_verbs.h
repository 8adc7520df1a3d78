/* SPDX-License-Identifier: MIT
 *
 * lab_verbs.h - the verbs of posenc lab, each in the file of its name
 */
#ifndef POSENC_CLI_LAB_VERBS_H
#define POSENC_CLI_LAB_VERBS_H

#include "options.h"

extern const cli_verb cli_verb_lab_train;
extern const cli_verb cli_verb_lab_inspect;
extern const cli_verb cli_verb_lab_eval;
extern const cli_verb cli_verb_lab_run;
extern const cli_verb cli_verb_lab_report;

#endif /* POSENC_CLI_LAB_VERBS_H */
