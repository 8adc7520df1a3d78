/* SPDX-License-Identifier: MIT
 *
 * corpus_parts.h - between the sources of text and what a corpus is made of
 */
#ifndef POSENC_LAB_CORPUS_PARTS_H
#define POSENC_LAB_CORPUS_PARTS_H

#include "corpus.h"

typedef struct lab_bytes {
    uint8_t *data; /* malloc */
    size_t size;
} lab_bytes;

/* All that a descriptor gives, at most 4 GiB; subject begins the message. */
pe_status lab_bytes_read(lab_bytes *out, int fd, const char *subject, pe_error *error);

/* Hashes the bytes and divides them by the rule of corpus.h for texts.  out is
 * overwritten; bytes stay the caller's. */
pe_status lab_corpus_split(lab_corpus *out, const lab_bytes *bytes, const char *name,
                           pe_error *error);

#endif /* POSENC_LAB_CORPUS_PARTS_H */
