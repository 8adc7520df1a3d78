/* SPDX-License-Identifier: MIT
 *
 * safetensors.c - 8 bytes of length, a JSON header, then the data of all tensors
 *
 * The header is {"__metadata__": {key: text}, name: {"dtype", "shape",
 * "data_offsets"}}, offsets counted from its end.  Only the header is touched. */
#include "model/safetensors.h"

#include "base/checked.h"
#include "base/error.h"
#include "model/json_scan.h"

#include <string.h>

typedef struct dtype {
    const char *name;
    pe_dtype dtype; /* 0: not one of ours */
    int32_t bits;
} dtype;

static const dtype dtypes[] = {
    {"F32", PE_F32, 32}, {"F16", PE_F16, 16},   {"BF16", PE_BF16, 16},
    {"F64", 0, 64},      {"I8", 0, 8},          {"I16", 0, 16},
    {"I32", 0, 32},      {"I64", 0, 64},        {"U8", 0, 8},
    {"U16", 0, 16},      {"U32", 0, 32},        {"U64", 0, 64},
    {"BOOL", 0, 8},      {"F8_E4M3", 0, 8},     {"F8_E5M2", 0, 8},
    {"F8_E8M0", 0, 8},   {"F8_E4M3FNUZ", 0, 8}, {"F8_E5M2FNUZ", 0, 8},
    {"F4", 0, 4},        {"F6_E2M3", 0, 6},     {"F6_E3M2", 0, 6},
    {"C64", 0, 64},
};

enum { PREFIX = 8, DTYPE_MAX = 32, MEMBERS = 3 };
static const char *const members[MEMBERS] = {"dtype", "shape", "data_offsets"};

typedef struct reader {
    pe_checkpoint *checkpoint;
    pe_scan scan;
    uint64_t room; /* bytes of data */
    const char *data;
    int32_t file;
    int32_t with_settings;
} reader;

int pe_safetensors_is(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t length = 0;
    if (size < 10 || bytes[8] != '{')
        return 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[i];
    return length <= PE_SAFETENSORS_HEADER_MAX || length <= size - PREFIX;
}

static pe_status no_memory(const reader *r, const char *what)
{
    return pe_scan_fail(&r->scan, PE_E_NO_MEMORY, r->scan.pos, "has no memory for %s",
                        what);
}

static pe_status read_metadata(reader *r)
{
    static const char prefix[] = "__metadata__.";
    char path[PE_SETTING_PATH_MAX + 1], text[PE_SETTING_TEXT_MAX + 4];
    pe_status status = pe_scan_expect(&r->scan, '{');
    int more = status == PE_OK && !pe_scan_accept(&r->scan, '}');
    strcpy(path, prefix);
    while (status == PE_OK && more) {
        size_t size = 0, text_size = 0;
        const size_t capacity = sizeof path - sizeof prefix;
        const size_t start = r->scan.pos;
        status = pe_scan_string(&r->scan, path + sizeof prefix - 1, capacity, &size);
        if (status == PE_OK && size > capacity)
            return pe_scan_fail(&r->scan, PE_E_LIMIT, start,
                                "has a key of %llu bytes in __metadata__",
                                (unsigned long long)size);
        if (status == PE_OK)
            status = pe_scan_expect(&r->scan, ':');
        if (status != PE_OK)
            return status;
        (void)pe_scan_peek(&r->scan);
        const size_t value = r->scan.base + r->scan.pos;
        status = pe_scan_string(&r->scan, text, sizeof text - 1, &text_size);
        if (status == PE_OK && r->with_settings) {
            pe_entry *entry = pe_settings_add(
                &r->checkpoint->settings, path, text,
                text_size < sizeof text - 1 ? text_size : strlen(text), (int64_t)value);
            if (entry == NULL)
                return no_memory(r, "__metadata__");
            entry->setting.type = PE_SETTING_STRING;
        }
        if (status == PE_OK)
            status = pe_scan_next(&r->scan, '}', &more);
    }
    return status;
}

static pe_status read_dtype(reader *r, pe_weight *weight, int32_t *bits)
{
    char name[DTYPE_MAX + 1];
    size_t size = 0;
    const size_t start = r->scan.pos;
    pe_status status = pe_scan_string(&r->scan, name, DTYPE_MAX, &size);
    if (status != PE_OK)
        return status;
    if (size == 0 || size > DTYPE_MAX)
        return pe_scan_fail(&r->scan, PE_E_FORMAT, start,
                            "has a dtype of %llu bytes for %.80s",
                            (unsigned long long)size, weight->name);
    for (size_t i = 0; i < PE_COUNT(dtypes); i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            weight->dtype_name = dtypes[i].name;
            weight->dtype = dtypes[i].dtype;
            *bits = dtypes[i].bits;
            return PE_OK;
        }
    }
    weight->dtype_name = pe_arena_copy(&r->checkpoint->arena, name, size);
    return weight->dtype_name == NULL ? no_memory(r, weight->name) : PE_OK;
}

/* An array of at most max counts. */
static pe_status read_counts(reader *r, const pe_weight *weight, const char *what,
                             int32_t max, int64_t *counts, int32_t *num)
{
    pe_status status = pe_scan_expect(&r->scan, '[');
    int more = status == PE_OK && !pe_scan_accept(&r->scan, ']');
    *num = 0;
    while (status == PE_OK && more) {
        if (*num == max)
            return pe_scan_fail(&r->scan, PE_E_FORMAT, r->scan.pos,
                                "has more than %d numbers in %s of %.80s", max, what,
                                weight->name);
        status = pe_scan_count(&r->scan, &counts[(*num)++]);
        if (status == PE_OK)
            status = pe_scan_next(&r->scan, ']', &more);
    }
    return status;
}

static pe_status read_offsets(reader *r, pe_weight_entry *entry)
{
    int64_t range[2] = {0, 0};
    int32_t num = 0;
    (void)pe_scan_peek(&r->scan);
    const size_t start = r->scan.pos;
    pe_status status = read_counts(r, &entry->weight, "data_offsets", 2, range, &num);
    if (status != PE_OK)
        return status;
    if (num != 2 || range[0] > range[1] || (uint64_t)range[1] > r->room)
        return pe_scan_fail(&r->scan, PE_E_FORMAT, start,
                            "puts %.80s at %lld..%lld, must be a range in the %llu "
                            "bytes of data",
                            entry->weight.name, (long long)range[0],
                            (long long)range[1], (unsigned long long)r->room);
    entry->begin = (uint64_t)range[0];
    entry->weight.size = (uint64_t)(range[1] - range[0]);
    entry->weight.data = r->data + range[0];
    return PE_OK;
}

/* Shape and dtype say how many bytes there must be. */
static pe_status check_size(const reader *r, const pe_weight_entry *entry, int32_t bits)
{
    const pe_weight *weight = &entry->weight;
    int64_t size = bits;
    if (bits == 0)
        return PE_OK;
    int fits = 1;
    for (int32_t i = 0; i < weight->rank; i++)
        fits = fits && pe_mul_i64(size, weight->shape[i], &size);
    if (!fits || size % 8 != 0 || (uint64_t)size / 8 != weight->size)
        return pe_scan_fail(&r->scan, PE_E_FORMAT, (size_t)entry->offset - r->scan.base,
                            "gives %.80s %llu bytes, its shape and dtype need %s%lld",
                            weight->name, (unsigned long long)weight->size,
                            fits ? "" : "more than ",
                            fits ? (long long)(size / 8) : (long long)INT64_MAX);
    return PE_OK;
}

static pe_status read_member(reader *r, pe_weight_entry *entry, int32_t *bits,
                             unsigned *seen)
{
    char key[16];
    size_t size = 0;
    int m = 0;
    (void)pe_scan_peek(&r->scan);
    const size_t start = r->scan.pos;
    pe_status status = pe_scan_string(&r->scan, key, sizeof key - 1, &size);
    if (status != PE_OK)
        return status;
    while (m < MEMBERS && strcmp(members[m], key) != 0)
        m++;
    if (m == MEMBERS || size >= sizeof key)
        return pe_scan_fail(&r->scan, PE_E_FORMAT, start,
                            "has the key \"%s\" for %.80s, must be dtype, shape or "
                            "data_offsets",
                            key, entry->weight.name);
    if ((*seen & 1u << m) != 0)
        return pe_scan_fail(&r->scan, PE_E_FORMAT, start, "has %s twice for %.80s", key,
                            entry->weight.name);
    *seen |= 1u << m;
    status = pe_scan_expect(&r->scan, ':');
    if (status != PE_OK)
        return status;
    if (m == 0)
        return read_dtype(r, &entry->weight, bits);
    if (m == 1)
        return read_counts(r, &entry->weight, "shape", 8, entry->weight.shape,
                           &entry->weight.rank);
    return read_offsets(r, entry);
}

static pe_status read_weight(reader *r, const char *name, size_t size, size_t start)
{
    pe_weight_entry *entry = NULL;
    unsigned seen = 0;
    int32_t bits = 0;
    int more = 1;
    pe_status status =
        pe_weights_add(&r->checkpoint->weights, name, size,
                       (int64_t)(r->scan.base + start), &entry, r->scan.error);
    if (status == PE_OK)
        status = pe_scan_expect(&r->scan, '{');
    if (status != PE_OK)
        return status;
    entry->file = r->file;
    if (pe_scan_accept(&r->scan, '}'))
        more = 0;
    while (status == PE_OK && more) {
        status = read_member(r, entry, &bits, &seen);
        if (status == PE_OK)
            status = pe_scan_next(&r->scan, '}', &more);
    }
    if (status != PE_OK)
        return status;
    for (unsigned m = 0; m < MEMBERS; m++) {
        if ((seen & 1u << m) == 0)
            return pe_scan_fail(&r->scan, PE_E_FORMAT, start, "has no %s for %.100s",
                                members[m], name);
    }
    return check_size(r, entry, bits);
}

static pe_status read_entry(reader *r, int *has_metadata)
{
    char name[PE_WEIGHT_NAME_MAX + 1];
    size_t size = 0;
    (void)pe_scan_peek(&r->scan);
    const size_t start = r->scan.pos;
    pe_status status = pe_scan_string(&r->scan, name, PE_WEIGHT_NAME_MAX, &size);
    if (status == PE_OK)
        status = pe_scan_expect(&r->scan, ':');
    if (status != PE_OK)
        return status;
    if (size > PE_WEIGHT_NAME_MAX)
        return pe_scan_fail(&r->scan, PE_E_LIMIT, start,
                            "has a name of %llu bytes, at most %d are read",
                            (unsigned long long)size, PE_WEIGHT_NAME_MAX);
    if (strcmp(name, "__metadata__") != 0)
        return read_weight(r, name, size, start);
    if (*has_metadata)
        return pe_scan_fail(&r->scan, PE_E_FORMAT, start, "has __metadata__ twice");
    *has_metadata = 1;
    return read_metadata(r);
}

/* No byte of the data belongs to two tensors or to none. */
static pe_status check_cover(const reader *r, int64_t first)
{
    const pe_weights *weights = &r->checkpoint->weights;
    const int32_t *order = pe_weights_by_place(weights, first);
    const pe_weight_entry *before = NULL;
    uint64_t end = 0;
    if (order == NULL)
        return no_memory(r, "weights");
    for (int64_t i = 0; i < weights->num - first; i++) {
        const pe_weight_entry *entry = &weights->entries[order[i]];
        if (entry->begin != end) {
            const int64_t at = before != NULL && before->offset > entry->offset
                                   ? before->offset
                                   : entry->offset;
            return pe_scan_fail(&r->scan, PE_E_FORMAT, (size_t)at - r->scan.base,
                                entry->begin < end
                                    ? "puts %.80s at %llu, where another weight is "
                                      "until %llu"
                                    : "puts %.80s at %llu, leaving a hole from %llu on",
                                entry->weight.name, (unsigned long long)entry->begin,
                                (unsigned long long)end);
        }
        end = entry->begin + entry->weight.size;
        before = entry;
    }
    if (end != r->room)
        return pe_scan_fail(&r->scan, PE_E_FORMAT, 0,
                            "describes %llu bytes of data, the file has %llu",
                            (unsigned long long)end, (unsigned long long)r->room);
    return PE_OK;
}

pe_status pe_safetensors_read(pe_checkpoint *checkpoint, const void *data, size_t size,
                              int32_t file, int with_settings, pe_error *error)
{
    const unsigned char *bytes = data;
    uint64_t length = 0;
    if (size < PREFIX)
        return pe_fail_at(error, PE_E_FORMAT, (int64_t)size,
                          "safetensors file ends after %llu bytes, must have 8 of "
                          "length",
                          (unsigned long long)size);
    for (int i = PREFIX - 1; i >= 0; i--)
        length = length << 8 | bytes[i];
    if (length > size - PREFIX)
        return pe_fail_at(error, PE_E_FORMAT, 0,
                          "safetensors header has %llu bytes, the file has %llu after "
                          "its length",
                          (unsigned long long)length,
                          (unsigned long long)(size - PREFIX));
    if (length > PE_SAFETENSORS_HEADER_MAX)
        return pe_fail_at(error, PE_E_LIMIT, 0,
                          "safetensors header has %llu bytes, at most %d are read",
                          (unsigned long long)length, PE_SAFETENSORS_HEADER_MAX);
    reader r = {.checkpoint = checkpoint,
                .scan = {.text = (const char *)data + PREFIX,
                         .size = (size_t)length,
                         .base = PREFIX,
                         .what = "safetensors header",
                         .error = error},
                .room = size - PREFIX - length,
                .data = (const char *)data + PREFIX + length,
                .file = file,
                .with_settings = with_settings};
    const int64_t first = checkpoint->weights.num;
    int has_metadata = 0;
    pe_status status = pe_scan_expect(&r.scan, '{');
    int more = status == PE_OK && !pe_scan_accept(&r.scan, '}');
    while (status == PE_OK && more) {
        status = read_entry(&r, &has_metadata);
        if (status == PE_OK)
            status = pe_scan_next(&r.scan, '}', &more);
    }
    if (status == PE_OK)
        status = pe_scan_end(&r.scan);
    return status == PE_OK ? check_cover(&r, first) : status;
}
