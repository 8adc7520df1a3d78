/* SPDX-License-Identifier: MIT
 *
 * pending.c - files that do not have their name yet, removed when a signal comes
 */
#include "pending.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PENDING = 4096 };

static char *volatile pending[MAX_PENDING];
static volatile sig_atomic_t num_pending; /* places ever used */
static const char *volatile made_folder;

static void remove_pending(int number)
{
    for (int i = 0; i < num_pending; i++)
        if (pending[i] != NULL)
            (void)unlink(pending[i]);
    if (made_folder != NULL)
        (void)rmdir(made_folder); /* fails where something was finished */
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < CLI_COUNT(signals); i++)
        if (signal(signals[i], remove_pending) == SIG_IGN)
            (void)signal(signals[i], SIG_IGN);
}

static int free_place(void)
{
    int i = 0;
    while (i < num_pending && pending[i] != NULL)
        i++;
    return i;
}

int cli_pending_is_special(const char *path)
{
    struct stat target, link;
    if (stat(path, &target) != 0 || lstat(path, &link) != 0 || S_ISDIR(target.st_mode))
        return 0;
    const int of_system =
        strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
    return !S_ISREG(target.st_mode) || (S_ISLNK(link.st_mode) && of_system);
}

char *cli_pending_add(const char *path)
{
    const int place = free_place();
    const size_t size = strlen(path) + 32;
    char *temporary = place < MAX_PENDING ? malloc(size) : NULL;
    if (temporary == NULL)
        return NULL;
    (void)snprintf(temporary, size, "%s.part-%ld", path, (long)getpid());
    catch_signals();
    pending[place] = temporary;
    if (place == num_pending)
        num_pending = place + 1;
    return temporary;
}

int cli_pending_rename(const char *temporary, const char *path)
{
    return rename(temporary, path);
}

void cli_pending_drop(char *temporary)
{
    if (temporary == NULL)
        return;
    (void)unlink(temporary);
    for (int i = 0; i < num_pending; i++)
        if (pending[i] == temporary)
            pending[i] = NULL;
    free(temporary);
}

int cli_pending_folder(const char *path)
{
    struct stat info;
    if (mkdir(path, 0777) == 0) {
        made_folder = path;
        catch_signals();
        return 0;
    }
    if (errno == EEXIST && stat(path, &info) == 0 && !S_ISDIR(info.st_mode))
        errno = ENOTDIR;
    return errno == EEXIST ? 0 : -1;
}

void cli_pending_end_folder(void)
{
    if (made_folder != NULL)
        (void)rmdir(made_folder);
    made_folder = NULL;
}
