/* SPDX-License-Identifier: MIT
 *
 * arena.h - many small strings and arrays that live and die together
 *
 * Nothing is freed alone, so pointers into it stay good for the life of its owner.
 */
#ifndef PE_ARENA_H
#define PE_ARENA_H

#include "base/base.h"

struct pe_chunk;

typedef struct pe_arena {
    const pe_env *env; /* resolved; outlives the arena */
    struct pe_chunk *chunks;
    size_t used; /* bytes of the newest chunk */
    int out_of_memory;
} pe_arena;

/* Zeroed, aligned to 16 bytes.  NULL once memory is out; out_of_memory then stays 1, so
 * that a run of calls can be checked once. */
void *pe_arena_alloc(pe_arena *arena, size_t size);
/* size bytes of text and a NUL. */
char *pe_arena_copy(pe_arena *arena, const char *text, size_t size);
char *pe_arena_format(pe_arena *arena, const char *format, ...) PE_PRINTF(2, 3);
/* An array of used items of item_size moved to one with room for at least one more;
 * *capacity grows.  The old array stays until the arena goes. */
void *pe_arena_grow(pe_arena *arena, void *items, int64_t used, int64_t *capacity,
                    size_t item_size);
void pe_arena_release(pe_arena *arena);

#endif /* PE_ARENA_H */
