/* SPDX-License-Identifier: MIT
 *
 * corpus_copy.c - a language whose best possible loss is known
 *
 * Symbol t is the one distance before it with probability 0.9, else uniform over 16.  So
 * it repeats with probability q = 0.9 + 0.1 / 16, and each of the 15 others has 0.1 / 16:
 * the entropy given all that went before is -q ln q - 15 (0.1 / 16) ln(0.1 / 16).  A
 * window knows nothing of what precedes it; until it is distance long, every symbol in
 * it costs ln 16. */
#include "corpus_parts.h"

#include "random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SYMBOLS = 16, TRAIN = 1000000, VALIDATION = 200000, TEXT_SEED = 0 };

static const double kept = 0.9;

static double entropy_after(void)
{
    const double other = (1 - kept) / SYMBOLS, same = kept + other;
    return -same * log(same) - (SYMBOLS - 1) * other * log(other);
}

static void write_text(uint8_t *text, int64_t size, int64_t distance)
{
    for (int64_t t = 0; t < size; t++) {
        const uint64_t counter = 2 * (uint64_t)t;
        const int is_copy = t >= distance &&
                            lab_random_unit(TEXT_SEED, LAB_STREAM_COPY, counter) < kept;
        text[t] = is_copy ? text[t - distance]
                          : (uint8_t)lab_random_below(TEXT_SEED, LAB_STREAM_COPY,
                                                      counter + 1, SYMBOLS);
    }
}

pe_status lab_corpus_copy(lab_corpus *out, int64_t distance, pe_error *error)
{
    if (distance < 1 || distance > TRAIN)
        return lab_fail(error, PE_E_ARGUMENT,
                        "copy distance is %lld, must be from 1 to %d",
                        (long long)distance, TRAIN);
    /* One array: the hash is of the text as a whole. */
    uint8_t *text = malloc(TRAIN + VALIDATION);
    lab_corpus corpus = {.train = malloc(TRAIN),
                         .validation = malloc(VALIDATION),
                         .train_size = TRAIN,
                         .validation_size = VALIDATION,
                         .chunk_size = VALIDATION,
                         .floor_after = entropy_after(),
                         .copy_distance = distance};
    if (text == NULL || corpus.train == NULL || corpus.validation == NULL) {
        free(text);
        lab_corpus_release(&corpus);
        return lab_fail(error, PE_E_NO_MEMORY, "no memory for %d symbols",
                        TRAIN + VALIDATION);
    }
    write_text(text, TRAIN + VALIDATION, distance);
    for (int64_t t = 0; t < TRAIN; t++)
        corpus.train[t] = text[t];
    for (int64_t t = 0; t < VALIDATION; t++)
        corpus.validation[t] = text[TRAIN + t];
    lab_sha256(text, TRAIN + VALIDATION, corpus.sha256);
    free(text);
    (void)snprintf(corpus.name, sizeof corpus.name, "copy%lld", (long long)distance);
    *out = corpus;
    return PE_OK;
}

double lab_corpus_floor(const lab_corpus *corpus, int64_t length)
{
    if (corpus->copy_distance == 0)
        return 0;
    /* Target t is symbol t + 1 of a window: the source of the first distance - 1 lies
     * before it. */
    const int64_t unknown =
        corpus->copy_distance - 1 < length ? corpus->copy_distance - 1 : length;
    return ((double)unknown * log(SYMBOLS) +
            (double)(length - unknown) * corpus->floor_after) /
           (double)length;
}
