/* SPDX-License-Identifier: MIT
 *
 * input.c - a file, a folder or standard input as a checkpoint
 */
#include "input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Files that were opened, as long as the process lives. */
typedef struct identity {
    dev_t device;
    ino_t inode;
} identity;
static identity *opened;
static size_t num_opened, room;

static void remember(const struct stat *info)
{
    if (!S_ISREG(info->st_mode))
        return;
    if (num_opened == room) {
        const size_t wanted = room == 0 ? 16 : 2 * room;
        identity *more = realloc(opened, wanted * sizeof *more);
        if (more == NULL)
            return;
        opened = more;
        room = wanted;
    }
    opened[num_opened++] = (identity){info->st_dev, info->st_ino};
}

void cli_input_add(const char *path)
{
    struct stat info;
    if (stat(path, &info) == 0)
        remember(&info);
}

int cli_input_is(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return 0;
    for (size_t i = 0; i < num_opened; i++)
        if (opened[i].device == info.st_dev && opened[i].inode == info.st_ino)
            return 1;
    return 0;
}

int cli_input_open(pe_checkpoint **out, const char **name, const char *path)
{
    struct stat info;
    pe_error error;
    int is_stdin = strcmp(path, "-") == 0;
    *out = NULL;
    *name = is_stdin ? "standard input" : path;
    if (!is_stdin && stat(path, &info) != 0)
        return cli_fail(CLI_FAILED, "%s: %s", path, strerror(errno));
    if (pe_checkpoint_load(out, is_stdin ? "/dev/stdin" : path, NULL, &error) != PE_OK)
        return cli_fail_with(*name, &error);
    if (!is_stdin)
        remember(&info);
    return CLI_DONE;
}
