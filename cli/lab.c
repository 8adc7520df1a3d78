/* SPDX-License-Identifier: MIT
 *
 * lab.c - posenc lab: the verbs of the experiment, each in a file of its own
 */
#include "lab_verbs.h"
#include "verbs.h"

static const cli_verb *const members[] = {&cli_verb_lab_run, &cli_verb_lab_train,
                                          &cli_verb_lab_eval, &cli_verb_lab_report,
                                          &cli_verb_lab_inspect};

const cli_verb cli_verb_lab = {
    .name = "lab",
    .summary = "train short, test long: which method reads past its length",
    .operands = "",
    .about = "Trains small causal transformers that differ in their positional method\n"
             "only, and tests them on text longer than they were trained on.",
    .examples =
        "posenc lab train --method rope --config B --copy 16 --steps 40 -o try\n"
        "posenc lab inspect try/rope-seed0",
    .members = members,
    .num_members = CLI_COUNT(members),
};
