/* SPDX-License-Identifier: MIT
 *
 * progress.c - a bar on stderr for work that takes longer than a second
 *
 * Drawn at most ten times a second, with a carriage return and no colour. */
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_MS = 1000, EVERY_MS = 100, WIDTH = 30 };

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void cli_progress_start(cli_progress *progress, const char *label, int64_t total)
{
    *progress = (cli_progress){.label = label,
                               .total = total,
                               .start_ms = now_ms(),
                               .enabled = isatty(STDERR_FILENO)};
}

void cli_progress_add(cli_progress *progress, int64_t count)
{
    static const char full[] = "##############################";
    progress->done += count;
    if (!progress->enabled || progress->total <= 0)
        return;
    int64_t now = now_ms(), elapsed = now - progress->start_ms;
    if (elapsed < FIRST_MS || now - progress->shown_ms < EVERY_MS)
        return;
    double part = (double)progress->done / (double)progress->total;
    double left = part > 0 ? (double)elapsed * (1 - part) / part / 1000 : 0;
    progress->shown_ms = now;
    (void)fprintf(stderr, "\r%s [%-*.*s] %3.0f%%  %.0f s left  ", progress->label,
                  WIDTH, (int)(part * WIDTH), full, part * 100, left);
}

void cli_progress_end(cli_progress *progress)
{
    if (progress->shown_ms != 0)
        (void)fprintf(stderr, "\r%80s\r", "");
    progress->shown_ms = 0;
}
