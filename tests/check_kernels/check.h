/* SPDX-License-Identifier: MIT
 *
 * check.h - what the kernel checks share: guarded memory and counting of failures
 *
 * A strip is memory between two pages that nobody may touch.  A run of bytes in it lies
 * against either page, or at any offset with canaries around it. */
#ifndef PE_CHECK_KERNELS_H
#define PE_CHECK_KERNELS_H

#include "../support/rng.h"
#include "kernels/kernels.h"

typedef struct {
    unsigned char *begin; /* first byte after the lower guard page */
    unsigned char *before, *own;
    size_t size;
} strip;

typedef enum { AT_BEGIN, AT_END, AT_OFFSET, NUM_PLACES } place_kind;

strip strip_new(size_t size);
void strip_free(strip *s);
/* Fills the strip with canaries and gives the address for size bytes; offset counts
 * from 64 bytes past the beginning, and is used by AT_OFFSET only. */
void *strip_place(strip *s, size_t size, place_kind kind, size_t offset);
/* Remembers all bytes; none may change until some are said to be the kernel's own. */
void strip_mark(strip *s);
void strip_own(strip *s, const void *from, size_t size);
/* 1: nothing but own bytes changed since the mark. */
int strip_kept(const strip *s);

/* Names the call that is about to be made, for a fault in it and for failures. */
void say_case(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints what went wrong with the case; the first few per check. */
void fail_case(const char *format, ...) __attribute__((format(printf, 1, 2)));

extern const char *const dtype_names[PE_K_DTYPES];
extern const size_t dtype_sizes[PE_K_DTYPES];

/* Each returns how many calls it made. */
int64_t check_rotate(const pe_kernels *kernels, test_rng *r);
int64_t check_convert(const pe_kernels *kernels, test_rng *r);
int64_t check_int8(const pe_kernels *kernels, test_rng *r);
int64_t check_table(const pe_kernels *kernels, test_rng *r);
int64_t check_sum(const pe_kernels *kernels, test_rng *r);

#endif /* PE_CHECK_KERNELS_H */
