/* SPDX-License-Identifier: MIT
 *
 * npy_in.c - reading the elements of a .npy file in order
 */
#include "npy_in.h"

#include "input.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static int fail_read(const cli_npy_in *in)
{
    return cli_fail(CLI_FAILED, "%s: %s", in->name,
                    errno ? strerror(errno) : "became shorter while being read");
}

/* The header was checked when the checkpoint was made; here it is only skipped. */
static int seek_data(cli_npy_in *in)
{
    unsigned char head[12];
    errno = 0;
    if (fread(head, 1, sizeof head, in->file) != sizeof head)
        return fail_read(in);
    off_t begin = head[6] == 1 ? 10 + (off_t)(head[8] | head[9] << 8)
                               : 12 + ((off_t)head[8] | (off_t)head[9] << 8 |
                                       (off_t)head[10] << 16 | (off_t)head[11] << 24);
    return fseeko(in->file, begin, SEEK_SET) == 0 ? CLI_DONE : fail_read(in);
}

int cli_npy_open(cli_npy_in *in, const char *path)
{
    struct stat info;
    *in = (cli_npy_in){0};
    int status = cli_input_open(&in->checkpoint, &in->name, path);
    if (status != CLI_DONE)
        return status;
    in->weight = pe_checkpoint_find_weight(in->checkpoint, "");
    if (in->weight == NULL) {
        status = cli_fail(CLI_FAILED, "%s: is not a .npy file", in->name);
    } else if (strcmp(path, "-") != 0 && stat(path, &info) == 0 &&
               S_ISREG(info.st_mode)) {
        in->file = fopen(path, "rb");
        status = in->file ? seek_data(in) : fail_read(in);
    } else {
        in->next = in->weight->data;
    }
    if (status != CLI_DONE)
        cli_npy_close(in);
    return status;
}

int cli_npy_read(cli_npy_in *in, void *data, size_t size)
{
    if (in->file != NULL) {
        errno = 0;
        return fread(data, 1, size, in->file) == size ? CLI_DONE : fail_read(in);
    }
    if (size > 0)
        memcpy(data, in->next, size);
    in->next += size;
    return CLI_DONE;
}

const char *cli_shape_text(cli_shape *out, int32_t rank, const int64_t *shape)
{
    int used = snprintf(out->text, sizeof out->text, "(");
    for (int32_t i = 0; i < rank && i < 8; i++)
        used += snprintf(out->text + used, sizeof out->text - (size_t)used, "%s%lld",
                         i > 0 ? ", " : "", (long long)shape[i]);
    (void)snprintf(out->text + used, sizeof out->text - (size_t)used, "%s)",
                   rank == 1 ? "," : "");
    return out->text;
}

void cli_npy_close(cli_npy_in *in)
{
    if (in->file != NULL)
        (void)fclose(in->file);
    pe_checkpoint_destroy(in->checkpoint);
    *in = (cli_npy_in){0};
}
