/* SPDX-License-Identifier: MIT
 *
 * evaluate.h - the loss of a trained model at a multiple of its length
 *
 * Non-overlapping: the first eval_tokens / chunks bytes of each validation chunk in
 * windows of T, one at least, every token scored.  Sliding: windows of T that end at the same places
 * whatever T is, their last L tokens scored, so each has at least T - L of context. */
#ifndef POSENC_LAB_EVALUATE_H
#define POSENC_LAB_EVALUATE_H

#include "corpus.h"
#include "pass.h"

typedef struct lab_eval_spec {
    const lab_config *config;
    const lab_layout *layout;
    const float *weights;
    const lab_corpus *corpus;
    lab_mode mode;
    int64_t multiple,
        max_multiple;    /* T = multiple * L; the second: where slides start */
    int64_t eval_tokens; /* 32768; sliding: 4096 */
    int32_t slide;       /* 1: sliding */
    pe_isa isa;
    const pe_executor *executor; /* NULL: this thread; bits do not depend on it */
} lab_eval_spec;

typedef struct lab_eval {
    double nll; /* mean, nats */
    int64_t count;
    double *by_position; /* [multiple]: mean of each L tokens of the windows, scored or
                          * not; caller's, or NULL */
    double seconds;
    size_t memory; /* of one pass */
} lab_eval;

pe_status lab_evaluate(const lab_eval_spec *spec, lab_eval *out, pe_error *error);
/* Whether the text has such windows and the model such a mode; needs neither layout nor
 * weights. */
pe_status lab_evaluate_check(const lab_eval_spec *spec, pe_error *error);
/* The modes that the report uses for a configuration: reference order, ended by NULL. */
const char *const *lab_modes_of(const lab_config *config);
/* Whether the mode has a number of its own at a multiple: past 1, or what differs from
 * base there; base of a learned table ends at 1. */
int lab_mode_tells(const lab_mode *mode, const lab_config *config, int64_t multiple);
/* Whether the report reads sliding windows in that mode. */
int lab_mode_slides(const lab_mode *mode);

#endif /* POSENC_LAB_EVALUATE_H */
