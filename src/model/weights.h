/* SPDX-License-Identifier: MIT
 *
 * weights.h - the tensors of a checkpoint: in file order, by name, and by place
 *
 * Readers of formats add to it and check how the data of one file lie; nobody looks at
 * the data themselves. */
#ifndef PE_WEIGHTS_H
#define PE_WEIGHTS_H

#include "model/arena.h"
#include "posenc/model.h"

enum { PE_WEIGHTS_MAX = 1 << 24, PE_WEIGHT_NAME_MAX = 1023 };

typedef struct pe_weight_entry {
    pe_weight weight; /* the public part */
    uint64_t begin;   /* of the data in the file's data section */
    int64_t offset;   /* of what the file says about it */
    int32_t file;     /* index of the file it is in */
    int32_t reserved;
} pe_weight_entry;

typedef struct pe_weights {
    pe_arena *arena;
    pe_weight_entry *entries; /* in file order */
    int64_t num, capacity;
    int32_t *by_name; /* after pe_weights_finish */
} pe_weights;

/* A zeroed entry with the name copied; PE_E_NO_MEMORY, PE_E_LIMIT. */
pe_status pe_weights_add(pe_weights *weights, const char *name, size_t name_size,
                         int64_t offset, pe_weight_entry **out, pe_error *error);
/* The entries from first on, by place of their data, empty ones before others that
 * begin there.  NULL: out of memory. */
int32_t *pe_weights_by_place(const pe_weights *weights, int64_t first);
/* Sorts; a name that occurs twice is PE_E_FORMAT. */
pe_status pe_weights_finish(pe_weights *weights, pe_error *error);
/* After finish; NULL: no such name. */
const pe_weight_entry *pe_weights_find(const pe_weights *weights, const char *name);

#endif /* PE_WEIGHTS_H */
