/* SPDX-License-Identifier: MIT
 *
 * lines.h - an executor that cuts anywhere, and looks which lines each piece wrote
 *
 * Pieces run one after the other; a line of the output that two of them changed would go
 * to and fro between two cores. */
#ifndef PE_TESTS_LINES_H
#define PE_TESTS_LINES_H

#include <stddef.h>

#include "posenc/env.h"
#include "posenc/posenc.h"
#include "rng.h"

enum { LINES_ROOM = 1 << 18, LINES_SIZE = 64 };

typedef struct {
    test_rng *r;
    const unsigned char *data; /* begins a line */
    size_t size;               /* at most LINES_ROOM */
    unsigned char before[LINES_ROOM];
    int owner[LINES_ROOM / LINES_SIZE]; /* piece, from 1 */
    int shared, at_work;                /* lines of two pieces; pieces that wrote */
} line_watch;

/* pe_executor.run; ctx is a line_watch. */
void line_watch_run(void *ctx, int64_t count, int64_t grain, pe_work_fn work,
                    void *arg);

/* Strides that one sequence, token or head does not use become what overflows if it is
 * used, whole lines by their looks. */
void lines_spoil_unused(pe_tensor *t);

#endif /* PE_TESTS_LINES_H */
