/* SPDX-License-Identifier: MIT
 *
 * gguf_weights.c - the tensor directory of a GGUF file, and where the data lie
 *
 * An entry is a name, the axes from the fastest on, a type and a place.  Whether data
 * fit is known only at the end of the directory, where they begin. */
#include "model/gguf_reader.h"

#include "base/checked.h"
#include "base/error.h"

enum { RANK_MAX = 8 };

/* Bytes of a tensor from its shape, fastest axis first. */
static pe_status tensor_size(const pe_gguf_reader *g, const pe_weight *weight,
                             const pe_gguf_type *type, const int64_t *shape,
                             int64_t offset, uint64_t *out)
{
    int64_t size = type->block_size;
    for (int32_t i = 0; i < weight->rank; i++) {
        int64_t count = shape[i];
        if (i == 0 && count % type->block_len != 0)
            return pe_fail_at(g->error, PE_E_FORMAT, offset,
                              "weight %.100s has rows of %lld elements, %s needs a "
                              "multiple of %d",
                              weight->name, (long long)count, type->name,
                              type->block_len);
        if (i == 0)
            count /= type->block_len;
        if (!pe_mul_i64(size, count, &size))
            return pe_fail_at(g->error, PE_E_FORMAT, offset,
                              "weight %.100s has more bytes than 2^63", weight->name);
    }
    if (weight->rank == 0 && type->block_len != 1)
        return pe_fail_at(g->error, PE_E_FORMAT, offset,
                          "weight %.100s is a scalar of the block type %s",
                          weight->name, type->name);
    *out = (uint64_t)size;
    return PE_OK;
}

static pe_status read_shape(pe_gguf_reader *g, pe_weight *weight, int64_t *shape)
{
    uint64_t rank = 0;
    pe_status status = pe_gguf_take_checked(g, 4, "the tensor directory", &rank);
    if (status != PE_OK)
        return status;
    if (rank > RANK_MAX)
        return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)g->pos - 4,
                          "weight %.120s has %llu axes, at most %d are allowed",
                          weight->name, (unsigned long long)rank, RANK_MAX);
    status = pe_gguf_need(g, 8 * rank + 12, "the tensor directory");
    if (status != PE_OK)
        return status;
    weight->rank = (int32_t)rank;
    for (int32_t i = 0; i < weight->rank; i++) {
        const uint64_t count = pe_gguf_take(g, 8);
        if (count > INT64_MAX)
            return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)g->pos - 8,
                              "weight %.120s has an axis of %llu elements",
                              weight->name, (unsigned long long)count);
        shape[i] = (int64_t)count;
        weight->shape[weight->rank - 1 - i] = shape[i];
    }
    return PE_OK;
}

pe_status pe_gguf_read_weight(pe_gguf_reader *g)
{
    const int64_t start = (int64_t)g->pos;
    const char *name = NULL;
    size_t size = 0;
    int64_t shape[RANK_MAX] = {0};
    pe_weight_entry *entry = NULL;
    pe_status status =
        pe_gguf_take_name(g, "the name of a weight", PE_WEIGHT_NAME_MAX, &name, &size);
    if (status == PE_OK)
        status = pe_weights_add(&g->checkpoint->weights, name, size, start, &entry,
                                g->error);
    if (status == PE_OK)
        status = read_shape(g, &entry->weight, shape);
    if (status != PE_OK)
        return status;
    const int64_t type_at = (int64_t)g->pos;
    const uint32_t id = (uint32_t)pe_gguf_take(g, 4);
    const pe_gguf_type *type = pe_gguf_find_type(id);
    entry->begin = pe_gguf_take(g, 8);
    if (entry->begin % g->alignment != 0)
        return pe_fail_at(g->error, PE_E_FORMAT, type_at + 4,
                          "weight %.120s lies at %llu, must be a multiple of the "
                          "alignment (%u)",
                          entry->weight.name, (unsigned long long)entry->begin,
                          (unsigned)g->alignment);
    if (type == NULL) {
        entry->weight.dtype_name =
            pe_arena_format(&g->checkpoint->arena, "type %u", (unsigned)id);
        if (entry->weight.dtype_name == NULL)
            return pe_fail_at(g->error, PE_E_NO_MEMORY, type_at,
                              "out of memory for a weight");
        return PE_OK;
    }
    entry->weight.dtype_name = type->name;
    entry->weight.dtype = g->swapped ? 0 : type->dtype;
    return tensor_size(g, &entry->weight, type, shape, type_at, &entry->weight.size);
}

pe_status pe_gguf_place_weights(pe_gguf_reader *g)
{
    pe_weights *weights = &g->checkpoint->weights;
    const uint64_t base = (g->pos + g->alignment - 1) / g->alignment * g->alignment;
    const uint64_t room = base < g->size ? g->size - base : 0;
    const int32_t *order = pe_weights_by_place(weights, 0);
    const pe_weight_entry *before = NULL;
    if (order == NULL)
        return pe_fail(g->error, PE_E_NO_MEMORY, "out of memory for %lld weights",
                       (long long)weights->num);
    for (int64_t i = 0; i < weights->num; i++) {
        pe_weight_entry *entry = &weights->entries[order[i]];
        pe_weight *weight = &entry->weight;
        if (entry->begin > room || weight->size > room - entry->begin)
            return pe_fail_at(
                g->error, PE_E_FORMAT, entry->offset,
                "weight %.100s has %llu bytes from %llu on, the file has %llu bytes "
                "of data",
                weight->name, (unsigned long long)weight->size,
                (unsigned long long)entry->begin, (unsigned long long)room);
        if (before != NULL && before->begin + before->weight.size > entry->begin)
            return pe_fail_at(
                g->error, PE_E_FORMAT,
                entry->offset > before->offset ? entry->offset : before->offset,
                "weights %.80s and %.80s overlap", before->weight.name, weight->name);
        if (weight->size > 0) {
            weight->data = g->data + base + entry->begin;
            before = entry;
        }
    }
    return PE_OK;
}
