/* SPDX-License-Identifier: MIT
 *
 * weights.c - the tensors of a checkpoint: in file order, by name, and by place
 */
#include "model/weights.h"

#include "base/error.h"

#include <string.h>

typedef int compare(const pe_weight_entry *a, const pe_weight_entry *b);

static int by_name(const pe_weight_entry *a, const pe_weight_entry *b)
{
    return strcmp(a->weight.name, b->weight.name);
}

static int by_place(const pe_weight_entry *a, const pe_weight_entry *b)
{
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->weight.size < b->weight.size ? -1 : a->weight.size > b->weight.size;
}

/* Heap sort: no allocation, and no input makes it slow. */
static void sift(const pe_weight_entry *entries, int32_t *order, int64_t root,
                 int64_t end, compare *less)
{
    for (;;) {
        int64_t child = 2 * root + 1;
        if (child >= end)
            return;
        if (child + 1 < end &&
            less(&entries[order[child]], &entries[order[child + 1]]) < 0)
            child++;
        if (less(&entries[order[root]], &entries[order[child]]) >= 0)
            return;
        const int32_t swap = order[root];
        order[root] = order[child];
        order[child] = swap;
        root = child;
    }
}

static int32_t *sorted(const pe_weights *weights, int64_t first, compare *less)
{
    const int64_t num = weights->num - first;
    int32_t *order = pe_arena_alloc(weights->arena, (size_t)num * sizeof *order);
    if (order == NULL)
        return NULL;
    for (int64_t i = 0; i < num; i++)
        order[i] = (int32_t)(first + i);
    for (int64_t root = num / 2; root-- > 0;)
        sift(weights->entries, order, root, num, less);
    for (int64_t end = num; end-- > 1;) {
        const int32_t largest = order[0];
        order[0] = order[end];
        order[end] = largest;
        sift(weights->entries, order, 0, end, less);
    }
    return order;
}

pe_status pe_weights_add(pe_weights *weights, const char *name, size_t name_size,
                         int64_t offset, pe_weight_entry **out, pe_error *error)
{
    if (weights->num == PE_WEIGHTS_MAX)
        return pe_fail_at(error, PE_E_LIMIT, offset, "more than %d weights",
                          PE_WEIGHTS_MAX);
    if (weights->num == weights->capacity) {
        pe_weight_entry *moved =
            pe_arena_grow(weights->arena, weights->entries, weights->num,
                          &weights->capacity, sizeof *weights->entries);
        if (moved == NULL)
            return pe_fail_at(error, PE_E_NO_MEMORY, offset,
                              "out of memory for %lld weights",
                              (long long)(2 * weights->num));
        weights->entries = moved;
    }
    pe_weight_entry *entry = &weights->entries[weights->num];
    memset(entry, 0, sizeof *entry);
    entry->weight.name = pe_arena_copy(weights->arena, name, name_size);
    if (entry->weight.name == NULL)
        return pe_fail_at(error, PE_E_NO_MEMORY, offset,
                          "out of memory for the name of a weight");
    entry->offset = offset;
    weights->num++;
    *out = entry;
    return PE_OK;
}

int32_t *pe_weights_by_place(const pe_weights *weights, int64_t first)
{
    return sorted(weights, first, by_place);
}

pe_status pe_weights_finish(pe_weights *weights, pe_error *error)
{
    weights->by_name = sorted(weights, 0, by_name);
    if (weights->by_name == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for %lld weights",
                       (long long)weights->num);
    for (int64_t i = 1; i < weights->num; i++) {
        const pe_weight_entry *a = &weights->entries[weights->by_name[i - 1]];
        const pe_weight_entry *b = &weights->entries[weights->by_name[i]];
        if (by_name(a, b) == 0)
            return pe_fail_at(error, PE_E_FORMAT,
                              a->offset > b->offset ? a->offset : b->offset,
                              "weight %.160s is there twice", a->weight.name);
    }
    return PE_OK;
}

const pe_weight_entry *pe_weights_find(const pe_weights *weights, const char *name)
{
    int64_t low = 0, high = weights->num;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const pe_weight_entry *entry = &weights->entries[weights->by_name[middle]];
        const int order = strcmp(entry->weight.name, name);
        if (order == 0)
            return entry;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
