/* SPDX-License-Identifier: MIT
 *
 * progress.h - a bar on stderr for work that takes longer than a second
 */
#ifndef POSENC_CLI_PROGRESS_H
#define POSENC_CLI_PROGRESS_H

#include "cli.h"

typedef struct cli_progress {
    const char *label;
    int64_t total, done;
    int64_t start_ms, shown_ms; /* shown_ms 0: nothing drawn yet */
    int enabled;                /* stderr is a terminal */
} cli_progress;

void cli_progress_start(cli_progress *progress, const char *label, int64_t total);
void cli_progress_add(cli_progress *progress, int64_t count);
/* Wipes the bar; call before any other line goes to stderr. */
void cli_progress_end(cli_progress *progress);

#endif /* POSENC_CLI_PROGRESS_H */
