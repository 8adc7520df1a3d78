/* SPDX-License-Identifier: MIT
 *
 * progress.c - a bar on stderr for work that takes longer than a second
 *
 * Drawn at most ten times a second, with a carriage return and no colour. */
#include "progress.h"

#include "terminal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
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
    const char *slash = strrchr(label, '/');
    const char *name = slash != NULL ? slash + 1 : label;
    *progress = (cli_progress){
        .total = total, .start_ms = now_ms(), .enabled = isatty(STDERR_FILENO)};
    (void)cli_escape(progress->label, sizeof progress->label, name, strlen(name));
}

void cli_progress_skip(cli_progress *progress, int64_t count)
{
    progress->done += count;
    progress->first += count;
}

void cli_progress_note(cli_progress *progress, const char *format, ...)
{
    va_list arguments;
    if (!progress->enabled)
        return;
    va_start(arguments, format);
    (void)vsnprintf(progress->note, sizeof progress->note, format, arguments);
    va_end(arguments);
}

/* "7 s", "3 min 20 s", "2 h 5 min" */
static void time_text(double seconds, char *out, size_t size)
{
    const int64_t whole = (int64_t)(seconds + 0.5), minutes = whole / 60;
    if (minutes == 0)
        (void)snprintf(out, size, "%d s", (int)whole);
    else if (minutes < 60)
        (void)snprintf(out, size, "%d min %d s", (int)minutes, (int)(whole % 60));
    else
        (void)snprintf(out, size, "%lld h %d min", (long long)(minutes / 60),
                       (int)(minutes % 60));
}

void cli_progress_add(cli_progress *progress, int64_t count)
{
    static const char full[] = "##############################";
    char left[32];
    progress->done += count;
    if (!progress->enabled || progress->total <= 0)
        return;
    int64_t now = now_ms(), elapsed = now - progress->start_ms;
    if (elapsed < FIRST_MS || now - progress->shown_ms < EVERY_MS)
        return;
    const int64_t new = progress->done - progress->first;
    double part = (double)progress->done / (double)progress->total;
    time_text(new > 0 ? (double)elapsed *(double)(progress->total - progress->done) /
                            (double)new / 1000
                      : 0,
              left, sizeof left);
    progress->shown_ms = now;
    (void)fprintf(stderr, "\r%s [%-*.*s] %3.0f%%  %s left  %s ", progress->label, WIDTH,
                  (int)(part * WIDTH), full, part * 100, left, progress->note);
}

void cli_progress_end(cli_progress *progress)
{
    if (progress->shown_ms != 0)
        (void)fprintf(stderr, "\r%80s\r", "");
    progress->shown_ms = 0;
}
