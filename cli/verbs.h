/* SPDX-License-Identifier: MIT
 *
 * verbs.h - every verb, each in the file of its name
 */
#ifndef POSENC_CLI_VERBS_H
#define POSENC_CLI_VERBS_H

#include "options.h"

extern const cli_verb cli_verb_inspect;
extern const cli_verb cli_verb_diff;
extern const cli_verb cli_verb_extend;
extern const cli_verb cli_verb_presets;
extern const cli_verb cli_verb_freqs;
extern const cli_verb cli_verb_table;
extern const cli_verb cli_verb_apply;
extern const cli_verb cli_verb_slopes;
extern const cli_verb cli_verb_bias;
extern const cli_verb cli_verb_positions;
extern const cli_verb cli_verb_convert;
extern const cli_verb cli_verb_identify;
extern const cli_verb cli_verb_bench;
extern const cli_verb cli_verb_cpu;
extern const cli_verb cli_verb_attend;
extern const cli_verb cli_verb_compare;
extern const cli_verb cli_verb_lesson;
extern const cli_verb cli_verb_plot;
extern const cli_verb cli_verb_shift;
extern const cli_verb cli_verb_rebase;
extern const cli_verb cli_verb_lab;

/* In the order of posenc --help. */
extern const cli_verb *const cli_verbs[];
extern const size_t cli_num_verbs;

/* All of them, a group followed by its members; NULL past the last. */
const cli_verb *cli_verb_at(size_t index);

#endif /* POSENC_CLI_VERBS_H */
