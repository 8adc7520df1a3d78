/* SPDX-License-Identifier: MIT
 *
 * build_positions.h - the ids that posenc positions was asked for
 */
#ifndef POSENC_CLI_BUILD_POSITIONS_H
#define POSENC_CLI_BUILD_POSITIONS_H

#include "options.h"

typedef int32_t cli_build_kind;
enum {
    CLI_BUILD_MASK = 1,
    CLI_BUILD_PACKED = 2,
    CLI_BUILD_SHARD = 3,
    CLI_BUILD_GRID = 4,
    CLI_BUILD_MROPE = 5,
    CLI_BUILD_SELF_EXTEND = 6,
    CLI_BUILD_STREAMING = 7
};

extern const cli_choice cli_build_names[];

/* What the options say; -1 and NULL: not given. */
typedef struct cli_build_args {
    const char *mask, *lengths, *grid, *runs;
    int64_t seq_len, rank, ranks, merge, group, window, sinks, start, pad;
    int32_t scheme, query;
} cli_build_args;

/* ids[axes][rows][len]. */
typedef struct cli_built {
    cli_build_kind kind;
    const char *axis_names[3];
    int64_t axes, rows, len;
    int64_t *ids;
    int64_t *next;   /* [rows]; NULL: the kind has no next position */
    int64_t *places; /* [len], in the packed tensor; NULL: as they stand */
} cli_built;

/* Says what went wrong and returns an exit code. */
int cli_build(cli_built *out, cli_build_kind kind, const cli_build_args *args);
void cli_built_release(cli_built *built);

#endif /* POSENC_CLI_BUILD_POSITIONS_H */
