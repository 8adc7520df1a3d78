/* SPDX-License-Identifier: MIT
 *
 * progress.h - a bar on stderr for work that takes longer than a second
 */
#ifndef POSENC_CLI_PROGRESS_H
#define POSENC_CLI_PROGRESS_H

#include "cli.h"

typedef struct cli_progress {
    char label[25];             /* of a file, the end of its path */
    int64_t total, done, first; /* first: done before the start */
    int64_t start_ms, shown_ms; /* shown_ms 0: nothing drawn yet */
    int enabled;                /* stderr is a terminal */
    char note[24];              /* behind the bar; "": nothing */
} cli_progress;

void cli_progress_start(cli_progress *progress, const char *label, int64_t total);
/* After start, for work of which a part was done earlier. */
void cli_progress_skip(cli_progress *progress, int64_t count);
/* Shown from the next drawing on. */
void cli_progress_note(cli_progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cli_progress_add(cli_progress *progress, int64_t count);
/* Wipes the bar; call before any other line goes to stderr. */
void cli_progress_end(cli_progress *progress);

#endif /* POSENC_CLI_PROGRESS_H */
