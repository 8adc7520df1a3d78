/* SPDX-License-Identifier: MIT
 *
 * stop.c - a signal that asks long work to stop where it can be gone on with
 */
#include "stop.h"

#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t came;

static void remember(int number)
{
    came = number;
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

static void mask(int how)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < CLI_COUNT(signals); i++)
        (void)sigaddset(&set, signals[i]);
    (void)sigprocmask(how, &set, NULL);
}

void cli_stop_hold(void)
{
    mask(SIG_BLOCK);
}

/* One that is ignored stays so. */
static void set(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        (void)sigaction(number, &action, NULL);
}

void cli_stop_watch(void)
{
    for (size_t i = 0; i < CLI_COUNT(signals); i++)
        set(signals[i], remember, SA_RESTART | (int)SA_RESETHAND);
    mask(SIG_UNBLOCK);
}

int cli_stop_wanted(void)
{
    return came;
}

void cli_stop_end(void)
{
    for (size_t i = 0; i < CLI_COUNT(signals); i++)
        set(signals[i], SIG_DFL, 0);
    mask(SIG_UNBLOCK);
    if (came == 0)
        return;
    (void)fflush(stdout);
    (void)raise(came);
}
