/* SPDX-License-Identifier: MIT
 *
 * corpus.c - bytes to learn from and bytes to test on, from a file
 */
#include "corpus_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LARGEST_CHUNK = 65536,
    SMALLEST_CHUNK = 1024,
    PERIOD = 16, /* one chunk in as many is kept for validation, */
    KEPT = 8     /* namely this one */
};

static const uint64_t max_bytes = UINT64_C(4) << 30;

void lab_sha256(const uint8_t *data, size_t size, char out[65])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, data, size);
    SHA256Final(digest, &context);
    for (size_t i = 0; i < sizeof digest; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[2 * sizeof digest] = '\0';
}

pe_status lab_bytes_read(lab_bytes *out, int fd, const char *subject, pe_error *error)
{
    size_t capacity = 1 << 20;
    lab_bytes bytes = {malloc(capacity), 0};
    for (;;) {
        if (bytes.size == capacity && bytes.data != NULL) {
            uint8_t *larger = realloc(bytes.data, 2 * capacity);
            if (larger == NULL)
                free(bytes.data);
            bytes.data = larger;
            capacity *= 2;
        }
        if (bytes.data == NULL)
            return lab_fail(error, PE_E_NO_MEMORY, "%s: no memory for %zu bytes",
                            subject, capacity);
        const ssize_t got = read(fd, bytes.data + bytes.size, capacity - bytes.size);
        if (got == 0)
            break;
        if (got < 0 && errno == EINTR)
            continue;
        bytes.size += got > 0 ? (size_t)got : 0;
        if (got < 0 || bytes.size > max_bytes) {
            const char *reason =
                got < 0 ? strerror(errno) : "more than 4 GiB, the most there can be";
            free(bytes.data);
            return lab_fail(error, got < 0 ? PE_E_IO : PE_E_LIMIT, "%s: %s", subject,
                            reason);
        }
    }
    *out = bytes;
    return PE_OK;
}

/* The largest power of two of which there are enough; 0: of none. */
static int64_t chunk_size_of(int64_t size)
{
    int64_t chunk = LARGEST_CHUNK;
    while (chunk >= SMALLEST_CHUNK && size / chunk <= KEPT)
        chunk /= 2;
    return chunk >= SMALLEST_CHUNK ? chunk : 0;
}

/* Bytes of a UTF-8 character; 0: none begins there. */
static size_t character_at(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    const size_t length = *c < 0x80                 ? 1
                          : *c >= 0xc2 && *c < 0xe0 ? 2
                          : *c >= 0xe0 && *c < 0xf0 ? 3
                          : *c >= 0xf0 && *c < 0xf5 ? 4
                                                    : 0;
    for (size_t i = 1; i < length; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, and what lies past the last plane. */
    if ((*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] > 0x9f) ||
        (*c == 0xf0 && c[1] < 0x90) || (*c == 0xf4 && c[1] > 0x8f))
        return 0;
    return length;
}

/* As much of a name as fits, as text that JSON takes: what is no character is '?'. */
static void copy_name(char *out, size_t size, const char *name)
{
    size_t used = 0;
    while (*name != '\0') {
        const size_t length = character_at(name), step = length > 0 ? length : 1;
        const int is_text = length > 0 && (unsigned char)*name >= 0x20 && *name != 0x7f;
        if (used + step >= size)
            break;
        if (is_text)
            memcpy(out + used, name, length);
        else
            out[used] = '?';
        used += step;
        name += step;
    }
    out[used] = '\0';
}

pe_status lab_corpus_split(lab_corpus *out, const lab_bytes *bytes, const char *name,
                           pe_error *error)
{
    const int64_t size = (int64_t)bytes->size, chunk = chunk_size_of(size);
    if (chunk == 0)
        return lab_fail(error, PE_E_SHAPE,
                        "%.100s has %lld bytes, must have at least %d", name,
                        (long long)size, (KEPT + 1) * SMALLEST_CHUNK);
    const int64_t count = size / chunk;
    const int64_t kept = (count + PERIOD - 1 - KEPT) / PERIOD;
    lab_corpus corpus = {.chunk_size = chunk,
                         .validation_size = kept * chunk,
                         .train_size = (count - kept) * chunk};
    corpus.train = malloc((size_t)corpus.train_size);
    corpus.validation = malloc((size_t)corpus.validation_size);
    if (corpus.train == NULL || corpus.validation == NULL) {
        lab_corpus_release(&corpus);
        return lab_fail(error, PE_E_NO_MEMORY, "%.100s: no memory for %lld bytes", name,
                        (long long)size);
    }
    uint8_t *train = corpus.train, *validation = corpus.validation;
    for (int64_t i = 0; i < count; i++) {
        uint8_t **to = i % PERIOD == KEPT ? &validation : &train;
        memcpy(*to, bytes->data + i * chunk, (size_t)chunk);
        *to += chunk;
    }
    copy_name(corpus.name, sizeof corpus.name, name);
    lab_sha256(bytes->data, bytes->size, corpus.sha256);
    *out = corpus;
    return PE_OK;
}

pe_status lab_corpus_read(lab_corpus *out, const char *path, pe_error *error)
{
    const char *slash = strrchr(path, '/');
    lab_bytes bytes;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return lab_fail(error, errno == ENOENT ? PE_E_NOT_FOUND : PE_E_IO, "%s: %s",
                        path, strerror(errno));
    pe_status status = lab_bytes_read(&bytes, fd, path, error);
    (void)close(fd);
    if (status != PE_OK)
        return status;
    status = lab_corpus_split(out, &bytes, slash != NULL ? slash + 1 : path, error);
    free(bytes.data);
    return status;
}

void lab_corpus_release(lab_corpus *corpus)
{
    free(corpus->train);
    free(corpus->validation);
    *corpus = (lab_corpus){0};
}
