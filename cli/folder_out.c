/* SPDX-License-Identifier: MIT
 *
 * folder_out.c - the --output folder of verbs that write several .npy files
 */
#include "folder_out.h"

#include "pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_folder_make(const char *path)
{
    if (cli_pending_folder(path) == 0)
        return CLI_DONE;
    if (errno == ENOTDIR && access(path, F_OK) == 0)
        return cli_fail(CLI_USAGE, "--output is %s, a file, must be a folder", path);
    return cli_fail(CLI_FAILED, "the folder %s could not be made: %s", path,
                    strerror(errno));
}

static int check_inputs(const char *path, const char *const *inputs, size_t num_inputs)
{
    struct stat in, out;
    for (size_t i = 0; i < num_inputs; i++)
        if (inputs[i] != NULL && stat(inputs[i], &in) == 0 && stat(path, &out) == 0 &&
            in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return cli_fail(CLI_USAGE, "%s is an input; choose another --output folder",
                            path);
    return CLI_DONE;
}

int cli_folder_create(cli_file_out *out, const char *folder, const char *name,
                      const pe_weight *like, const char *const *inputs,
                      size_t num_inputs)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    (void)snprintf(path, size, "%s/%s", folder, name);
    int status = check_inputs(path, inputs, num_inputs);
    if (status == CLI_DONE)
        status = cli_npy_create(out, path, like->dtype_name, like->rank, like->shape);
    free(path);
    return status;
}
