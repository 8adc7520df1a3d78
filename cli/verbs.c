/* SPDX-License-Identifier: MIT
 *
 * verbs.c - the list of verbs, for the command and for the generator of its manual
 */
#include "verbs.h"

const cli_verb *const cli_verbs[] = {
    &cli_verb_inspect, &cli_verb_diff,    &cli_verb_extend,  &cli_verb_presets,
    &cli_verb_freqs,   &cli_verb_table,   &cli_verb_apply,   &cli_verb_shift,
    &cli_verb_rebase,  &cli_verb_slopes,  &cli_verb_bias,    &cli_verb_positions,
    &cli_verb_attend,  &cli_verb_compare, &cli_verb_convert, &cli_verb_identify,
    &cli_verb_plot,    &cli_verb_bench,   &cli_verb_cpu,     &cli_verb_lesson,
    &cli_verb_lab};

const size_t cli_num_verbs = CLI_COUNT(cli_verbs);

const cli_verb *cli_verb_at(size_t index)
{
    for (size_t i = 0; i < cli_num_verbs; i++) {
        const cli_verb *verb = cli_verbs[i];
        if (index == 0)
            return verb;
        if (index <= verb->num_members)
            return verb->members[index - 1];
        index -= 1 + verb->num_members;
    }
    return NULL;
}
