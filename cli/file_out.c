/* SPDX-License-Identifier: MIT
 *
 * file_out.c - writing a file piece by piece
 */
#include "file_out.h"

#include "input.h"
#include "pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail_write(const cli_file_out *out)
{
    int reason = errno;
    if (out->file == stdout && reason == EPIPE)
        return CLI_FAILED;
    return cli_fail(CLI_FAILED, "%s could not be written: %s", out->path,
                    reason ? strerror(reason) : "write error");
}

int cli_file_create(cli_file_out *out, const char *path, int is_binary)
{
    *out = (cli_file_out){0};
    if (strcmp(path, "-") != 0 && cli_input_is(path))
        return cli_fail(CLI_USAGE, "%s is an input; choose another output", path);
    out->path = strdup(strcmp(path, "-") == 0 ? "standard output" : path);
    if (strcmp(path, "-") == 0) {
        out->file = stdout;
        if (out->path != NULL && is_binary && isatty(STDOUT_FILENO)) {
            cli_file_discard(out);
            return cli_fail(CLI_USAGE, "-o - writes binary data: redirect it");
        }
    } else if (cli_pending_is_special(path)) {
        out->file = fopen(path, "wb");
    } else {
        out->temporary = cli_pending_add(path);
        if (out->temporary != NULL)
            out->file = fopen(out->temporary, "wbx");
        else
            errno = ENOMEM;
    }
    if (out->path == NULL) {
        cli_file_discard(out);
        return cli_fail(CLI_FAILED, "out of memory");
    }
    int status = out->file ? CLI_DONE : fail_write(out);
    if (status != CLI_DONE)
        cli_file_discard(out);
    return status;
}

int cli_file_write(cli_file_out *out, const void *data, size_t size)
{
    errno = 0;
    return fwrite(data, 1, size, out->file) == size ? CLI_DONE : fail_write(out);
}

int cli_file_commit(cli_file_out *out)
{
    int status = CLI_DONE;
    errno = 0;
    int failed = ferror(out->file);
    failed |= out->file == stdout ? fflush(stdout) : fclose(out->file);
    if (failed == 0 && out->temporary != NULL)
        failed = cli_pending_rename(out->temporary, out->path);
    if (failed != 0)
        status = fail_write(out);
    out->file = NULL;
    cli_file_discard(out);
    return status;
}

void cli_file_discard(cli_file_out *out)
{
    if (out->file != NULL && out->file != stdout)
        (void)fclose(out->file);
    cli_pending_drop(out->temporary);
    free(out->path);
    *out = (cli_file_out){0};
}

static int stat_output(const char *path, struct stat *info)
{
    return strcmp(path, "-") == 0 ? fstat(STDOUT_FILENO, info) : stat(path, info);
}

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The folder in which path would be made. */
static int stat_folder(const char *path, struct stat *info)
{
    char folder[4096];
    const size_t size = (size_t)(last_name(path) - path);
    if (size >= sizeof folder)
        return -1;
    memcpy(folder, path, size);
    folder[size] = '\0';
    return stat(size > 0 ? folder : ".", info);
}

int cli_file_is_same(const char *a, const char *b)
{
    struct stat x, y;
    const int has_a = stat_output(a, &x) == 0, has_b = stat_output(b, &y) == 0;
    if (!has_a && !has_b && strcmp(last_name(a), last_name(b)) == 0) {
        if (stat_folder(a, &x) != 0 || stat_folder(b, &y) != 0)
            return strcmp(a, b) == 0;
    } else if (!has_a || !has_b) {
        return 0;
    }
    return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
