/* SPDX-License-Identifier: MIT
 *
 * stop.h - a signal that asks long work to stop where it can be gone on with
 *
 * The second signal is not asked about: it ends the command as if there were no
 * handler.  Signals that were ignored at the start stay ignored. */
#ifndef POSENC_CLI_STOP_H
#define POSENC_CLI_STOP_H

#include "cli.h"

/* From now on SIGINT, SIGTERM and SIGHUP are asked about. */
void cli_stop_watch(void);
/* Before files are written by way of pending.h, which takes the signals for itself:
 * they wait until the next cli_stop_watch. */
void cli_stop_hold(void);
/* The signal that came, or 0. */
int cli_stop_wanted(void);
/* The signals end the command again; one that came does so now, as the shell expects it. */
void cli_stop_end(void);

#endif /* POSENC_CLI_STOP_H */
