/* SPDX-License-Identifier: MIT
 *
 * npy_out.c - the beginning of a .npy file; its elements follow piece by piece
 *
 * Format 1.0 (NumPy NEP 1): magic, version, uint16 header length, a Python dict in
 * ASCII padded with spaces to a multiple of 64, then the elements in C order. */
#include "npy_out.h"

#include <string.h>

enum { PREAMBLE = 10, ALIGNMENT = 64 };

static int write_header(cli_file_out *out, const char *descr, int32_t rank,
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
    return cli_file_write(out, header, size);
}

int cli_npy_create(cli_file_out *out, const char *path, const char *descr, int32_t rank,
                   const int64_t *shape)
{
    int status = cli_file_create(out, path, 1);
    if (status == CLI_DONE)
        status = write_header(out, descr, rank, shape);
    if (status != CLI_DONE)
        cli_file_discard(out);
    return status;
}
