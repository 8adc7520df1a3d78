/* SPDX-License-Identifier: MIT
 *
 * npy_out.c - writing a .npy file piece by piece
 *
 * Format 1.0 (NumPy NEP 1): magic, version, uint16 header length, a Python dict in
 * ASCII padded with spaces to a multiple of 64, then the elements in C order. */
#include "npy_out.h"

#include "pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PREAMBLE = 10, ALIGNMENT = 64 };

static int fail_write(const cli_npy_out *out)
{
    int reason = errno;
    if (out->temporary == NULL && reason == EPIPE)
        return CLI_FAILED;
    return cli_fail(CLI_FAILED, "%s could not be written: %s", out->path,
                    reason ? strerror(reason) : "write error");
}

static int write_header(cli_npy_out *out, const char *descr, int32_t rank,
                        const int64_t *shape)
{
    char header[4 * ALIGNMENT];
    int used = snprintf(header + PREAMBLE, sizeof header - PREAMBLE,
                        "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t i = 0; i < rank; i++)
        used += snprintf(header + PREAMBLE + used,
                         sizeof header - PREAMBLE - (size_t)used, "%lld%s",
                         (long long)shape[i], rank == 1 || i + 1 < rank ? ", " : "");
    used += snprintf(header + PREAMBLE + used, sizeof header - PREAMBLE - (size_t)used,
                     "), }");
    size_t size = (PREAMBLE + (size_t)used + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    memset(header + PREAMBLE + used, ' ', size - PREAMBLE - (size_t)used);
    header[size - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((size - PREAMBLE) & 0xff);
    header[9] = (char)((size - PREAMBLE) >> 8);
    return cli_npy_write(out, header, size);
}

int cli_npy_create(cli_npy_out *out, const char *path, const char *descr, int32_t rank,
                   const int64_t *shape)
{
    *out = (cli_npy_out){0};
    out->path = strdup(strcmp(path, "-") == 0 ? "standard output" : path);
    if (strcmp(path, "-") == 0) {
        out->file = stdout;
        if (out->path != NULL && isatty(STDOUT_FILENO)) {
            cli_npy_discard(out);
            return cli_fail(CLI_USAGE, "-o - writes binary data: redirect it");
        }
    } else {
        out->temporary = cli_pending_add(path);
    }
    if (out->path == NULL || (out->file == NULL && out->temporary == NULL)) {
        cli_npy_discard(out);
        return cli_fail(CLI_FAILED, "out of memory");
    }
    if (out->file == NULL)
        out->file = fopen(out->temporary, "wbx");
    int status = out->file ? write_header(out, descr, rank, shape) : fail_write(out);
    if (status != CLI_DONE)
        cli_npy_discard(out);
    return status;
}

int cli_npy_write(cli_npy_out *out, const void *data, size_t size)
{
    errno = 0;
    return fwrite(data, 1, size, out->file) == size ? CLI_DONE : fail_write(out);
}

int cli_npy_commit(cli_npy_out *out)
{
    int status = CLI_DONE;
    errno = 0;
    if (out->temporary == NULL) {
        if (fflush(out->file) != 0)
            status = fail_write(out);
    } else {
        int failed = fclose(out->file) != 0;
        out->file = NULL;
        if (failed || cli_pending_rename(out->temporary, out->path) != 0)
            status = fail_write(out);
    }
    out->file = NULL;
    cli_npy_discard(out);
    return status;
}

void cli_npy_discard(cli_npy_out *out)
{
    if (out->file != NULL && out->temporary != NULL)
        (void)fclose(out->file);
    cli_pending_drop(out->temporary);
    free(out->path);
    *out = (cli_npy_out){0};
}
