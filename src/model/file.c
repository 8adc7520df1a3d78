/* SPDX-License-Identifier: MIT
 *
 * file.c - open, map, or read to the end
 *
 * A mapping costs nothing until touched, so arrays larger than memory can be streamed.
 * Small files and pipes are read: a file that shrinks while mapped is a SIGBUS. */
#define _POSIX_C_SOURCE 200809L

#include "model/file.h"

#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAPPED_FROM = 4 << 20 };

static pe_status io_failed(pe_error *error, const char *what, const char *path)
{
    const int code = errno;
    return pe_fail(error, PE_E_IO, "cannot %s %.160s: %s", what, path, strerror(code));
}

static pe_status map(pe_file *out, int fd, const char *path, int64_t size,
                     pe_error *error)
{
    if ((uint64_t)size > SIZE_MAX)
        return pe_fail(error, PE_E_LIMIT, "%.160s has %lld bytes, too many to map",
                       path, (long long)size);
    void *data = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return io_failed(error, "map", path);
    out->data = data;
    out->size = (size_t)size;
    return PE_OK;
}

static pe_status widen(pe_file *out, const char *path, const pe_env *env,
                       pe_error *error)
{
    if (out->allocated >= PE_STREAM_SIZE_MAX)
        return pe_fail(error, PE_E_LIMIT, "%.160s delivers more than %d bytes", path,
                       PE_STREAM_SIZE_MAX);
    const size_t wider = out->allocated == 0 ? 65536 : 4 * out->allocated;
    void *data = pe_alloc(env, wider);
    if (data == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory reading %.160s", path);
    if (out->size > 0)
        memcpy(data, out->data, out->size);
    pe_release(env, out->data, out->allocated);
    out->data = data;
    out->allocated = wider;
    return PE_OK;
}

static pe_status read_all(pe_file *out, int fd, const char *path, const pe_env *env,
                          pe_error *error)
{
    for (;;) {
        if (out->size == out->allocated) {
            pe_status status = widen(out, path, env, error);
            if (status != PE_OK)
                return status;
        }
        const ssize_t count =
            read(fd, (char *)out->data + out->size, out->allocated - out->size);
        if (count < 0 && errno != EINTR)
            return io_failed(error, "read", path);
        if (count == 0)
            return PE_OK;
        if (count > 0)
            out->size += (size_t)count;
    }
}

static pe_status open_fd(int *fd, struct stat *st, const char *path, const char *name,
                         pe_error *error)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0 || fstat(*fd, st) != 0)
        return io_failed(error, "open", path);
    if (!S_ISDIR(st->st_mode))
        return PE_OK;
    const int folder = *fd;
    *fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    const int code = errno;
    close(folder);
    errno = code;
    if (*fd < 0 || fstat(*fd, st) != 0)
        return pe_fail(error, PE_E_IO, "cannot open %s in the folder %.140s: %s", name,
                       path, strerror(errno));
    if (S_ISDIR(st->st_mode))
        return pe_fail(error, PE_E_IO, "%s in %.160s is a folder, must be a file", name,
                       path);
    return PE_OK;
}

pe_status pe_file_open(pe_file *out, const char *path, const char *name,
                       const pe_env *env, pe_error *error)
{
    struct stat st;
    int fd = -1;
    memset(out, 0, sizeof *out);
    pe_status status = open_fd(&fd, &st, path, name, error);
    if (status == PE_OK)
        status = S_ISREG(st.st_mode) && st.st_size > MAPPED_FROM
                     ? map(out, fd, path, (int64_t)st.st_size, error)
                     : read_all(out, fd, path, env, error);
    if (fd >= 0)
        close(fd);
    if (status != PE_OK)
        pe_file_close(out, env);
    return status;
}

int pe_file_exists(const char *folder, const char *name)
{
    struct stat st;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int exists = fd >= 0 && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (fd >= 0)
        close(fd);
    return exists;
}

int pe_file_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

void pe_file_close(pe_file *file, const pe_env *env)
{
    if (file->allocated > 0)
        pe_release(env, file->data, file->allocated);
    else if (file->data != NULL)
        munmap(file->data, file->size);
    memset(file, 0, sizeof *file);
}
