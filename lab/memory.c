/* SPDX-License-Identifier: MIT
 *
 * memory.c - allocation that counts
 */
#include "memory.h"

#include <stdlib.h>

static void *take(void *ctx, size_t size, size_t alignment)
{
    lab_memory *memory = ctx;
    const size_t unit = alignment < sizeof(void *) ? sizeof(void *) : alignment;
    if (size > SIZE_MAX - unit)
        return NULL;
    void *ptr = aligned_alloc(unit, (size + unit - 1) / unit * unit);
    if (ptr == NULL)
        return NULL;
    memory->held += size;
    if (memory->held > memory->most)
        memory->most = memory->held;
    return ptr;
}

static void give_back(void *ctx, void *ptr, size_t size, size_t alignment)
{
    lab_memory *memory = ctx;
    (void)alignment;
    memory->held -= size;
    free(ptr);
}

pe_env lab_memory_env(lab_memory *memory, pe_isa isa)
{
    return (pe_env){.struct_size = sizeof(pe_env),
                    .isa = isa,
                    .allocator = {take, give_back, memory}};
}

void *lab_memory_take(lab_memory *memory, int64_t count, size_t size)
{
    if (count < 0 || (uint64_t)count > SIZE_MAX / 2 / size)
        return NULL;
    return take(memory, (size_t)count * size, 64);
}

void lab_memory_return(lab_memory *memory, void *ptr, int64_t count, size_t size)
{
    if (ptr != NULL)
        give_back(memory, ptr, (size_t)count * size, 64);
}
