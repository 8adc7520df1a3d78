/* SPDX-License-Identifier: MIT
 *
 * convert_file.c - one safetensors file into another whose q and k rows have moved
 *
 * Rows move inside blocks, mostly heads.  As many whole blocks as fit are read, put in
 * order and written; where not even one fits, each row is read by itself. */
#include "convert_file.h"

#include "input.h"
#include "progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_SIZE = 8 << 20, PREFIX = 8 };

typedef struct copier {
    const cli_convert_file *file;
    const char *out_name;
    int out;
    char *from, *to; /* BUFFER_SIZE each */
    int64_t *rows;
    cli_progress progress;
} copier;

static int fail_io(const cli_convert_file *file, const char *what)
{
    return cli_fail(CLI_FAILED, "%s: %s: %s", file->name, what,
                    errno ? strerror(errno) : "it became shorter");
}

static int read_at(const cli_convert_file *file, int fd, char *data, int64_t size,
                   int64_t offset)
{
    while (size > 0) {
        errno = 0;
        const ssize_t got = pread(fd, data, (size_t)size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return fail_io(file, "cannot be read");
        data += got;
        offset += got;
        size -= got;
    }
    return CLI_DONE;
}

static int write_all(const copier *c, const char *data, int64_t size)
{
    while (size > 0) {
        errno = 0;
        const ssize_t put = write(c->out, data, (size_t)size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return cli_fail(CLI_FAILED, "%s could not be written: %s", c->out_name,
                            strerror(errno ? errno : EIO));
        data += put;
        size -= put;
    }
    return CLI_DONE;
}

/* Inside the kernel where that works, else through the buffer. */
static int copy_range(copier *c, int64_t offset, int64_t size)
{
    int status = CLI_DONE;
    off_t at = (off_t)offset;
    const int64_t end = offset + size;
    while (at < end) {
        const size_t chunk = (size_t)(end - at < 1 << 30 ? end - at : 1 << 30);
        const ssize_t put = copy_file_range(c->file->fd, &at, c->out, NULL, chunk, 0);
        if (put <= 0)
            break;
        cli_progress_add(&c->progress, put);
    }
    while (at < end && status == CLI_DONE) {
        const int64_t chunk = end - at < BUFFER_SIZE ? end - at : BUFFER_SIZE;
        status = read_at(c->file, c->file->fd, c->from, chunk, at);
        if (status == CLI_DONE)
            status = write_all(c, c->from, chunk);
        at += chunk;
        cli_progress_add(&c->progress, chunk);
    }
    return status;
}

static void gather(const cli_convert_tensor *t, const int64_t *rows, int64_t first,
                   int64_t count, const char *from, char *to)
{
    const size_t size = (size_t)t->row_size;
    for (int64_t r = first; r < first + count; r++)
        memcpy(to + (size_t)(r - first) * size, from + (size_t)(rows[r] - first) * size,
               size);
}

/* A row at a time, in pieces if it is larger than the buffer. */
static int move_single_rows(copier *c, const cli_convert_tensor *t)
{
    int status = CLI_DONE;
    for (int64_t r = 0; r < t->num_rows && status == CLI_DONE; r++) {
        const int64_t begin = t->offset + c->rows[r] * t->row_size;
        for (int64_t at = 0; at < t->row_size && status == CLI_DONE;
             at += BUFFER_SIZE) {
            const int64_t left = t->row_size - at;
            const int64_t chunk = left < BUFFER_SIZE ? left : BUFFER_SIZE;
            status = read_at(c->file, c->file->fd, c->from, chunk, begin + at);
            if (status == CLI_DONE)
                status = write_all(c, c->from, chunk);
        }
        cli_progress_add(&c->progress, t->row_size);
    }
    return status;
}

static int64_t rows_at_once(const cli_convert_tensor *t)
{
    const int64_t block = t->block_rows * t->row_size;
    return block > BUFFER_SIZE ? 0 : BUFFER_SIZE / block * t->block_rows;
}

static int move_rows(copier *c, const cli_convert_tensor *t)
{
    int status = cli_convert_rows(t, 0, c->rows);
    const int64_t step = rows_at_once(t);
    if (status == CLI_DONE && step == 0)
        return move_single_rows(c, t);
    for (int64_t r = 0; r < t->num_rows && status == CLI_DONE; r += step) {
        const int64_t count = t->num_rows - r < step ? t->num_rows - r : step;
        const int64_t size = count * t->row_size;
        status =
            read_at(c->file, c->file->fd, c->from, size, t->offset + r * t->row_size);
        if (status != CLI_DONE)
            break;
        gather(t, c->rows, r, count, c->from, c->to);
        status = write_all(c, c->to, size);
        cli_progress_add(&c->progress, size);
    }
    return status;
}

static int moves(const cli_convert_tensor *t)
{
    return t->kind != CLI_ROWS_KEPT && t->kind != CLI_ROWS_SKIPPED;
}

static int copier_open(copier *c, const cli_convert_file *file, int fd)
{
    int64_t most = 1;
    for (int64_t i = 0; i < file->num_tensors; i++)
        if (moves(&file->tensors[i]) && file->tensors[i].num_rows > most)
            most = file->tensors[i].num_rows;
    *c = (copier){.file = file, .out = fd};
    c->from = malloc(BUFFER_SIZE);
    c->to = malloc(BUFFER_SIZE);
    c->rows = calloc((size_t)most, 2 * sizeof *c->rows);
    if (c->from == NULL || c->to == NULL || c->rows == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    return CLI_DONE;
}

static void copier_close(copier *c)
{
    free(c->from);
    free(c->to);
    free(c->rows);
}

int cli_convert_write(const cli_convert_file *file, int fd, const char *out_name)
{
    copier c;
    int64_t done = 0;
    int status = copier_open(&c, file, fd);
    c.out_name = out_name;
    cli_progress_start(&c.progress, file->name, file->size);
    for (int64_t i = 0; i < file->num_tensors && status == CLI_DONE; i++) {
        const cli_convert_tensor *t = &file->tensors[i];
        if (!moves(t))
            continue;
        status = copy_range(&c, done, t->offset - done);
        if (status == CLI_DONE)
            status = move_rows(&c, t);
        done = t->offset + (int64_t)t->weight->size;
    }
    if (status == CLI_DONE)
        status = copy_range(&c, done, file->size - done);
    cli_progress_end(&c.progress);
    copier_close(&c);
    return status;
}

static int fail_check(const cli_convert_file *file, int64_t offset)
{
    return cli_fail(CLI_FAILED, "%s: check failed: byte %lld does not come back",
                    file->name, (long long)offset);
}

static int check_range(copier *c, int64_t offset, int64_t size)
{
    int status = CLI_DONE;
    while (c->out >= 0 && size > 0 && status == CLI_DONE) {
        const int64_t chunk = size < BUFFER_SIZE ? size : BUFFER_SIZE;
        status = read_at(c->file, c->file->fd, c->from, chunk, offset);
        if (status == CLI_DONE)
            status = read_at(c->file, c->out, c->to, chunk, offset);
        if (status == CLI_DONE && memcmp(c->from, c->to, (size_t)chunk) != 0)
            return fail_check(c->file, offset);
        offset += chunk;
        size -= chunk;
    }
    return status;
}

/* Row r of what comes back is row back[r] of the copy. */
static int check_rows(copier *c, const cli_convert_tensor *t)
{
    int64_t *back = c->rows + t->num_rows;
    int status = cli_convert_rows(t, 0, c->rows);
    if (status == CLI_DONE)
        status = cli_convert_rows(t, 1, back);
    for (int64_t r = 0; r < t->num_rows && status == CLI_DONE; r++) {
        if (c->rows[back[r]] != r)
            return cli_fail(CLI_FAILED, "%s: check failed: row %lld of %s",
                            c->file->name, (long long)r, t->weight->name);
        if (c->out < 0)
            continue;
        for (int64_t at = 0; at < t->row_size && status == CLI_DONE;
             at += BUFFER_SIZE) {
            const int64_t left = t->row_size - at;
            const int64_t chunk = left < BUFFER_SIZE ? left : BUFFER_SIZE;
            const int64_t source = t->offset + r * t->row_size + at;
            status = read_at(c->file, c->file->fd, c->from, chunk, source);
            if (status == CLI_DONE)
                status = read_at(c->file, c->out, c->to, chunk,
                                 t->offset + back[r] * t->row_size + at);
            if (status == CLI_DONE && memcmp(c->from, c->to, (size_t)chunk) != 0)
                return fail_check(c->file, source);
        }
    }
    return status;
}

int cli_convert_check(const cli_convert_file *file, int fd)
{
    copier c;
    struct stat info;
    int64_t done = 0;
    int status = copier_open(&c, file, fd);
    if (status == CLI_DONE && fd >= 0 &&
        (fstat(fd, &info) != 0 || info.st_size != file->size))
        status = fail_check(file, file->size);
    for (int64_t i = 0; i < file->num_tensors && status == CLI_DONE; i++) {
        const cli_convert_tensor *t = &file->tensors[i];
        if (!moves(t))
            continue;
        status = check_range(&c, done, t->offset - done);
        if (status == CLI_DONE)
            status = check_rows(&c, t);
        done = t->offset + (int64_t)t->weight->size;
    }
    if (status == CLI_DONE)
        status = check_range(&c, done, file->size - done);
    copier_close(&c);
    return status;
}

static int by_offset(const void *a, const void *b)
{
    const cli_convert_tensor *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Data follow the header without a gap, so the first of them tells where all are. */
static void place(cli_convert_file *file, int64_t data_begin)
{
    const char *base = NULL;
    for (int64_t i = 0; i < file->num_tensors; i++) {
        const char *data = file->tensors[i].weight->data;
        base = base == NULL || data < base ? data : base;
    }
    for (int64_t i = 0; i < file->num_tensors; i++) {
        const char *data = file->tensors[i].weight->data;
        file->tensors[i].offset = data_begin + (data - base);
    }
    qsort(file->tensors, (size_t)file->num_tensors, sizeof *file->tensors, by_offset);
}

static int plan(cli_convert_file *file, const cli_convert_rule *rule)
{
    unsigned char length[PREFIX];
    int64_t header = 0;
    int status = read_at(file, file->fd, (char *)length, PREFIX, 0);
    for (int i = PREFIX - 1; i >= 0; i--)
        header = header << 8 | length[i];
    file->num_tensors = pe_checkpoint_num_weights(file->checkpoint);
    file->tensors = calloc((size_t)file->num_tensors + 1, sizeof *file->tensors);
    if (file->tensors == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    for (int64_t i = 0; i < file->num_tensors && status == CLI_DONE; i++) {
        cli_convert_tensor *t = &file->tensors[i];
        status = cli_convert_plan(t, rule, file->name,
                                  pe_checkpoint_weight(file->checkpoint, i));
        if (status == CLI_DONE && moves(t)) {
            file->num_changed++;
            file->changed_size += (int64_t)t->weight->size;
        }
    }
    if (status == CLI_DONE)
        place(file, PREFIX + header);
    return status;
}

int cli_convert_open(cli_convert_file *out, const char *path,
                     const cli_convert_rule *rule)
{
    struct stat info;
    *out = (cli_convert_file){.name = path, .fd = -1};
    int status = cli_input_open(&out->checkpoint, &out->name, path);
    if (status != CLI_DONE)
        return status;
    out->fd = open(path, O_RDONLY | O_CLOEXEC);
    errno = errno ? errno : EIO;
    if (out->fd < 0 || fstat(out->fd, &info) != 0)
        return fail_io(out, "cannot be opened");
    out->size = info.st_size;
    if (!S_ISREG(info.st_mode) || out->size < PREFIX ||
        pe_checkpoint_num_weights(out->checkpoint) == 0 ||
        pe_checkpoint_weight(out->checkpoint, 0)->data == NULL)
        return cli_fail(CLI_FAILED, "%s: is not a safetensors file with weights", path);
    return plan(out, rule);
}

void cli_convert_close(cli_convert_file *file)
{
    if (file->checkpoint != NULL && file->fd >= 0)
        (void)close(file->fd);
    free(file->tensors);
    pe_checkpoint_destroy(file->checkpoint);
    *file = (cli_convert_file){.fd = -1};
}
