/* SPDX-License-Identifier: MIT
 *
 * memory.h - what one pass or trainer has allocated, its plans included
 */
#ifndef POSENC_LAB_MEMORY_H
#define POSENC_LAB_MEMORY_H

#include "lab.h"

typedef struct lab_memory {
    size_t held, most; /* bytes now, and at the worst */
} lab_memory;

/* An env whose plans are counted in memory, which must outlive them. */
pe_env lab_memory_env(lab_memory *memory, pe_isa isa);
/* Aligned to a cache line, not cleared; NULL: out of memory, or the size overflows. */
void *lab_memory_take(lab_memory *memory, int64_t count, size_t size);
/* count and size as they were taken; ptr NULL is fine. */
void lab_memory_return(lab_memory *memory, void *ptr, int64_t count, size_t size);

#endif /* POSENC_LAB_MEMORY_H */
