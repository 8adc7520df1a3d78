/* SPDX-License-Identifier: MIT
 *
 * input.c - a file, a folder or standard input as a checkpoint
 */
#include "input.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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
    return CLI_DONE;
}
