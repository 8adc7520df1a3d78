/* SPDX-License-Identifier: MIT
 *
 * positions_arg.h - the value of an option for positions, which may be a file of ids
 */
#ifndef POSENC_CLI_POSITIONS_ARG_H
#define POSENC_CLI_POSITIONS_ARG_H

#include "cli.h"

typedef struct cli_positions {
    const char *name;
    int64_t *ids; /* NULL: start */
    int64_t start;
    int64_t count; /* of ids */
    int32_t rank;
    int64_t shape[3];
} cli_positions;

/* option: its name, "positions".  text: an integer, the position of token 0, or an .npy of int64 or int32 ids with the
 * shape (seq_len), (batch, seq_len), (axes, seq_len) or (axes, batch, seq_len); NULL:
 * from 0.  Says what went wrong and returns an exit code, as the next does. */
int cli_positions_open(cli_positions *out, const char *option, const char *text);
/* For a tensor of that many rows and tokens, and a plan of num_axes. */
int cli_positions_fit(const cli_positions *positions, int64_t batch, int64_t seq_len,
                      int32_t num_axes, pe_positions *at);
/* The largest position of seq_len tokens; -1 if there are none. */
int64_t cli_positions_last(const cli_positions *positions, int64_t seq_len);
void cli_positions_close(cli_positions *positions);

#endif /* POSENC_CLI_POSITIONS_ARG_H */
