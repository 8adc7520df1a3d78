/* SPDX-License-Identifier: MIT
 *
 * corpus.h - the bytes to learn from, and those kept for the test
 *
 * Split into chunks of 64 KiB, or the largest smaller power of two of which there are
 * nine; chunk i is for validation if i % 16 == 8, otherwise for training, in order; a
 * tail shorter than a chunk is dropped.  The copy language has
 * its own split: the first 1000000 symbols train, the next 200000 validate as one
 * chunk. */
#ifndef POSENC_LAB_CORPUS_H
#define POSENC_LAB_CORPUS_H

#include "lab.h"

typedef struct lab_corpus {
    uint8_t *train, *validation;
    int64_t train_size, validation_size;
    int64_t chunk_size; /* of validation: windows never straddle two chunks */
    char name[64];      /* "kjv", "copy16", or the file's last component */
    char sha256[65];    /* of the bytes as read, hexadecimal */
    double floor_after; /* copy: nats a symbol that can be copied costs; 0: unknown */
    int64_t copy_distance; /* 0: natural text */
} lab_corpus;

/* Any bytes, at least nine chunks of 1024: one of them is for validation. */
pe_status lab_corpus_read(lab_corpus *out, const char *path, pe_error *error);
/* The King James text of Debian's bible-kjv and bible-kjv-text: one verse a line without
 * its reference, an empty line between chapters, Latin-1.  PE_E_NOT_FOUND names the
 * packages. */
pe_status lab_corpus_kjv(lab_corpus *out, pe_error *error);
/* 16 symbols; each is the one distance before with probability 0.9, else uniform. */
pe_status lab_corpus_copy(lab_corpus *out, int64_t distance, pe_error *error);
void lab_corpus_release(lab_corpus *corpus);
/* The best possible mean loss of windows of that length on the copy language. */
double lab_corpus_floor(const lab_corpus *corpus, int64_t length);

/* The hash of some bytes, hexadecimal. */
void lab_sha256(const uint8_t *data, size_t size, char out[65]);

#endif /* POSENC_LAB_CORPUS_H */
