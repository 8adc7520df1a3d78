/* SPDX-License-Identifier: MIT
 *
 * turns.h - what a scaling rule did to each pair, and which pairs training saw whole
 */
#ifndef POSENC_CLI_TURNS_H
#define POSENC_CLI_TURNS_H

#include "cli.h"

enum { CLI_MAX_PAIRS = 2048 };

/* Pairs by what became of their frequency.  A pair is kept when it is not slowed,
 * divided when it is slowed by the whole factor, blended in between, still when it does
 * not turn at all. */
typedef struct cli_turns {
    double unscaled[CLI_MAX_PAIRS]; /* inv_freq without the scaling rule */
    double least, most;             /* divisor of the pairs that turn */
    int32_t num_pairs, kept, blended, divided, still;
    int32_t first_blended, last_blended;
    int32_t unfinished; /* pairs that turn less than once within trained_len */
    int32_t first_unfinished, last_unfinished;
} cli_turns;

/* trained_len 0: not known, then nothing is unfinished.  Returns an exit code and says
 * what went wrong. */
int cli_turns_read(cli_turns *out, const pe_rope_spec *spec, const pe_rope_info *info,
                   int64_t trained_len);

/* "29 kept, 6 blended (29-34), 29 divided by 8" into a buffer; "" when the rule changes
 * nothing. */
void cli_turns_describe(char *out, size_t size, const cli_turns *turns);

/* ALiBi: the distance from which on a head's weight is below 2^-24 of that of a token at
 * distance 0 with the same score: e^(-slope * scale * distance).  INT64_MAX: none. */
int64_t cli_horizon(double slope, const pe_bias_spec *spec);

#endif /* POSENC_CLI_TURNS_H */
