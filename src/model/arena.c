/* SPDX-License-Identifier: MIT
 *
 * arena.c - chunked allocation, released as a whole
 */
#include "model/arena.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ALIGNMENT = 16, CHUNK_SIZE = 8192 };

struct pe_chunk {
    struct pe_chunk *next;
    size_t size; /* whole, with this header */
};

static size_t rounded(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void *pe_arena_alloc(pe_arena *arena, size_t size)
{
    const size_t header = rounded(sizeof(struct pe_chunk));
    if (arena->out_of_memory || size > SIZE_MAX / 4) {
        arena->out_of_memory = 1;
        return NULL;
    }
    size = rounded(size == 0 ? 1 : size);
    if (arena->chunks == NULL || size > arena->chunks->size - arena->used) {
        const size_t whole = header + (size > CHUNK_SIZE ? size : CHUNK_SIZE);
        struct pe_chunk *chunk = pe_alloc(arena->env, whole);
        if (chunk == NULL) {
            arena->out_of_memory = 1;
            return NULL;
        }
        chunk->next = arena->chunks;
        chunk->size = whole;
        arena->chunks = chunk;
        arena->used = header;
    }
    void *at = (char *)arena->chunks + arena->used;
    arena->used += size;
    return at;
}

char *pe_arena_copy(pe_arena *arena, const char *text, size_t size)
{
    char *copy = pe_arena_alloc(arena, size + 1);
    if (copy != NULL && size > 0)
        memcpy(copy, text, size);
    return copy;
}

char *pe_arena_format(pe_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return NULL;
    char *text = pe_arena_alloc(arena, (size_t)length + 1);
    if (text == NULL)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

void *pe_arena_grow(pe_arena *arena, void *items, int64_t used, int64_t *capacity,
                    size_t item_size)
{
    const int64_t wider = *capacity < 8 ? 8 : 2 * *capacity;
    void *moved = pe_arena_alloc(arena, (size_t)wider * item_size);
    if (moved == NULL)
        return NULL;
    if (used > 0)
        memcpy(moved, items, (size_t)used * item_size);
    *capacity = wider;
    return moved;
}

void pe_arena_release(pe_arena *arena)
{
    while (arena->chunks != NULL) {
        struct pe_chunk *next = arena->chunks->next;
        pe_release(arena->env, arena->chunks, arena->chunks->size);
        arena->chunks = next;
    }
    arena->used = 0;
}
