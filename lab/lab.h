/* SPDX-License-Identifier: MIT
 *
 * lab.h - what every file of the lab includes first
 *
 * The lab trains small causal transformers that differ in their positional method only,
 * and tests them on text longer than they were trained on.  It stands on the public
 * headers, attention forward and backward included, as any other program would. */
#ifndef POSENC_LAB_H
#define POSENC_LAB_H

#define _GNU_SOURCE /* fsync, sigaction, dlopen's RTLD_* in the files that need them */

#include "posenc/env.h"

#include <stddef.h>
#include <stdint.h>

#define LAB_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { LAB_VOCAB = 256 /* bytes */ };

/* Fills *error as the library does and returns status. */
pe_status lab_fail(pe_error *error, pe_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Runs work over [0, count) in pieces of one; executor NULL, or without run: here. */
void lab_run(const pe_executor *executor, int64_t count, pe_work_fn work, void *arg);

double lab_now(void); /* seconds since some moment, by a clock that never goes back */

#endif /* POSENC_LAB_H */
