/* SPDX-License-Identifier: MIT
 *
 * gguf.c - magic, version, counts, key/values, tensor directory, aligned data
 *
 * Every count and length is compared with the bytes that are left before it is used,
 * so a lying file costs no more than its own size.  Format: ggml's gguf.h. */
#include "model/gguf.h"

#include "base/checked.h"
#include "base/error.h"
#include "model/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TYPE_F32 = 6,
    TYPE_BOOL = 7,
    TYPE_STRING = 8,
    TYPE_ARRAY = 9,
    TYPE_U64 = 10,
    TYPE_I64 = 11,
    TYPE_F64 = 12
};
enum { DEFAULT_ALIGNMENT = 32, DEPTH_MAX = 8, RANK_MAX = 8, TEXT_SIZE = 320 };

typedef struct gguf {
    pe_checkpoint *checkpoint;
    const unsigned char *data;
    size_t size, pos;
    int swapped; /* big endian */
    uint32_t alignment;
    char key[PE_SETTING_PATH_MAX + 1];
    pe_error *error;
} gguf;

/* What an array looks like as text, cut when it is full. */
typedef struct listing {
    char text[TEXT_SIZE];
    size_t used;
} listing;

typedef struct scalar {
    pe_setting_type type;
    int64_t integer;
    double number;
    uint64_t bits;
    uint32_t stored; /* type in the file */
    int32_t reserved;
} scalar;

int pe_gguf_is(const void *data, size_t size)
{
    return size >= 4 && memcmp(data, "GGUF", 4) == 0;
}

static pe_status need(const gguf *g, uint64_t count, const char *what)
{
    if (count <= g->size - g->pos)
        return PE_OK;
    return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)g->pos,
                      "GGUF ends inside %.100s: %llu bytes wanted at byte %llu, "
                      "%llu are left",
                      what, (unsigned long long)count, (unsigned long long)g->pos,
                      (unsigned long long)(g->size - g->pos));
}

/* size bytes at pos, which are there. */
static uint64_t take(gguf *g, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)g->data[g->pos + (g->swapped ? size - 1 - i : i)] << 8 * i;
    g->pos += size;
    return value;
}

static pe_status take_checked(gguf *g, size_t size, const char *what, uint64_t *out)
{
    pe_status status = need(g, size, what);
    if (status == PE_OK)
        *out = take(g, size);
    return status;
}

static pe_status take_string(gguf *g, const char *what, const char **text, size_t *size)
{
    uint64_t length = 0;
    pe_status status = take_checked(g, 8, what, &length);
    if (status == PE_OK)
        status = need(g, length, what);
    if (status != PE_OK)
        return status;
    *text = (const char *)g->data + g->pos;
    *size = (size_t)length;
    g->pos += *size;
    return PE_OK;
}

/* UTF-8 without NUL, of at most max bytes: what becomes a path or a name. */
static pe_status take_name(gguf *g, const char *what, size_t max, const char **text,
                           size_t *size)
{
    const size_t start = g->pos + 8;
    pe_status status = take_string(g, what, text, size);
    if (status != PE_OK)
        return status;
    if (*size == 0)
        return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)start, "%s is empty", what);
    if (*size > max)
        return pe_fail_at(g->error, PE_E_LIMIT, (int64_t)start,
                          "%s has %llu bytes, at most %llu are read", what,
                          (unsigned long long)*size, (unsigned long long)max);
    const size_t valid = pe_utf8_valid(*text, *size);
    const char *nul = memchr(*text, '\0', *size);
    if (valid < *size || nul != NULL)
        return pe_fail_at(g->error, PE_E_FORMAT,
                          (int64_t)(start + (nul ? (size_t)(nul - *text) : valid)),
                          "%s %s", what,
                          nul != NULL ? "has a NUL in it" : "is not UTF-8");
    return PE_OK;
}

/* Bytes of one value of a scalar type; 0: no scalar. */
static size_t scalar_size(uint32_t type)
{
    static const unsigned char sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type < PE_COUNT(sizes) ? sizes[type] : 0;
}

static void shortest(char *text, size_t size, double value, int is_float)
{
    const int least = is_float ? 6 : 15, most = is_float ? 9 : 17;
    for (int digits = least; digits <= most; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        const double back = strtod(text, NULL);
        if (is_float ? (float)back == (float)value : back == value)
            return;
    }
}

/* As the file would spell it; into a buffer of 40. */
static void scalar_text(const scalar *value, char *text)
{
    if (value->stored == TYPE_F32 || value->stored == TYPE_F64)
        shortest(text, 40, value->number, value->stored == TYPE_F32);
    else if (value->stored == TYPE_BOOL)
        strcpy(text, value->bits ? "true" : "false");
    else if (value->stored == TYPE_U64)
        snprintf(text, 40, "%llu", (unsigned long long)value->bits);
    else
        snprintf(text, 40, "%lld", (long long)value->integer);
}

/* A scalar whose bytes are there. */
static pe_status take_scalar(gguf *g, uint32_t type, scalar *out)
{
    const size_t size = scalar_size(type), start = g->pos;
    const uint64_t bits = take(g, size);
    *out = (scalar){.bits = bits, .stored = type};
    if (type == TYPE_F32 || type == TYPE_F64) {
        const uint32_t low = (uint32_t)bits;
        float single = 0;
        memcpy(&single, &low, sizeof single);
        memcpy(&out->number, &bits, sizeof out->number);
        if (type == TYPE_F32)
            out->number = (double)single;
        out->type = PE_SETTING_NUMBER;
        return PE_OK;
    }
    if (type == TYPE_BOOL) {
        if (bits > 1)
            return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)start,
                              "%.120s is a bool of value %u, must be 0 or 1", g->key,
                              (unsigned)bits);
        out->type = PE_SETTING_BOOL;
        out->integer = (int64_t)bits;
        out->number = (double)bits;
        return PE_OK;
    }
    out->type = PE_SETTING_INTEGER;
    const int is_signed = type % 2 == 1; /* int8 1, int16 3, int32 5, int64 11 */
    if (is_signed && size < 8 && bits >> (8 * size - 1) != 0)
        out->integer = (int64_t)bits - (INT64_C(1) << 8 * size);
    else
        memcpy(&out->integer, &bits, sizeof bits);
    out->number = (double)out->integer;
    if (type == TYPE_U64 && bits > INT64_MAX) {
        out->type = PE_SETTING_NUMBER;
        out->integer = 0;
        out->number = (double)bits;
    }
    return PE_OK;
}

static void list(listing *l, const char *text, size_t size)
{
    if (size > sizeof l->text - l->used)
        size = sizeof l->text - l->used;
    memcpy(l->text + l->used, text, size);
    l->used += size;
}

/* Tokens are bytes: what is not printable UTF-8 is written as \xNN. */
static void list_string(listing *l, const char *text, size_t size)
{
    list(l, "\"", 1);
    for (size_t i = 0; i < size && l->used < sizeof l->text;) {
        const size_t length = pe_utf8_char(text + i, size - i);
        char escape[8];
        if (text[i] == '"' || text[i] == '\\') {
            snprintf(escape, sizeof escape, "\\%c", text[i]);
            list(l, escape, 2);
            i++;
        } else if (length > 0 && (unsigned char)text[i] >= ' ' && text[i] != 0x7f) {
            if (length > sizeof l->text - l->used)
                l->used = sizeof l->text; /* a character that is cut is left out */
            else
                list(l, text + i, length);
            i += length;
        } else {
            snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)text[i]);
            list(l, escape, 4);
            i++;
        }
    }
    list(l, "\"", 1);
}

static pe_status take_array(gguf *g, int depth, listing *l, double **numbers,
                            int64_t *num_numbers);

static pe_status take_element(gguf *g, uint32_t type, int depth, listing *l,
                              double *number)
{
    scalar value;
    const char *text = NULL;
    size_t size = 0;
    pe_status status = PE_OK;
    if (type == TYPE_ARRAY)
        return take_array(g, depth + 1, l, NULL, NULL);
    if (type == TYPE_STRING) {
        status = take_string(g, g->key, &text, &size);
        if (status == PE_OK)
            list_string(l, text, size);
        return status;
    }
    status = take_scalar(g, type, &value);
    if (status != PE_OK)
        return status;
    if (number != NULL)
        *number = value.number;
    if (l->used < sizeof l->text) {
        char digits[40];
        scalar_text(&value, digits);
        list(l, digits, strlen(digits));
    }
    return PE_OK;
}

static pe_status take_array(gguf *g, int depth, listing *l, double **numbers,
                            int64_t *num_numbers)
{
    const size_t start = g->pos;
    uint64_t type = 0, count = 0;
    if (depth > DEPTH_MAX)
        return pe_fail_at(g->error, PE_E_LIMIT, (int64_t)start,
                          "%.120s is nested deeper than %d arrays", g->key, DEPTH_MAX);
    pe_status status = take_checked(g, 4, g->key, &type);
    if (status == PE_OK)
        status = take_checked(g, 8, g->key, &count);
    if (status != PE_OK)
        return status;
    if (type > TYPE_F64)
        return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)start,
                          "%.120s is an array of type %llu, must be in 0..12", g->key,
                          (unsigned long long)type);
    const size_t fixed = scalar_size((uint32_t)type);
    const size_t least = fixed != 0 ? fixed : type == TYPE_STRING ? 8 : 12;
    if (count > (g->size - g->pos) / least)
        return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)start + 4,
                          "%.120s has %llu elements, the %llu bytes left cannot hold "
                          "them",
                          g->key, (unsigned long long)count,
                          (unsigned long long)(g->size - g->pos));
    double *kept = NULL;
    if (numbers != NULL && fixed != 0) {
        kept = pe_arena_alloc(&g->checkpoint->arena, (size_t)count * sizeof *kept);
        if (kept == NULL)
            return pe_fail_at(g->error, PE_E_NO_MEMORY, (int64_t)start,
                              "out of memory for %.120s", g->key);
        *numbers = kept;
        *num_numbers = (int64_t)count;
    }
    list(l, "[", 1);
    for (uint64_t i = 0; i < count && status == PE_OK; i++) {
        if (i > 0)
            list(l, ", ", 2);
        status =
            take_element(g, (uint32_t)type, depth, l, kept == NULL ? NULL : &kept[i]);
    }
    list(l, "]", 1);
    return status;
}

static pe_status store(gguf *g, const char *text, size_t size, size_t start,
                       pe_entry **out)
{
    *out =
        pe_settings_add(&g->checkpoint->settings, g->key, text, size, (int64_t)start);
    if (*out == NULL)
        return pe_fail_at(g->error, PE_E_NO_MEMORY, (int64_t)start,
                          "out of memory for %.120s", g->key);
    return PE_OK;
}

static pe_status read_string(gguf *g)
{
    const size_t start = g->pos;
    const char *text = NULL;
    size_t size = 0;
    pe_entry *entry = NULL;
    pe_status status = take_string(g, g->key, &text, &size);
    if (status != PE_OK)
        return status;
    const size_t valid = pe_utf8_valid(text, size);
    const char *nul = memchr(text, '\0', size);
    if (valid < size || nul != NULL)
        return pe_fail_at(g->error, PE_E_FORMAT,
                          (int64_t)(start + 8 + (nul ? (size_t)(nul - text) : valid)),
                          "%.120s %s", g->key,
                          nul ? "has a NUL in its string" : "is not UTF-8");
    status = store(g, text, size, start, &entry);
    if (status == PE_OK)
        entry->setting.type = PE_SETTING_STRING;
    return status;
}

static pe_status read_array(gguf *g)
{
    const size_t start = g->pos;
    listing l = {.used = 0};
    double *numbers = NULL;
    int64_t num_numbers = 0;
    pe_entry *entry = NULL;
    pe_status status = take_array(g, 1, &l, &numbers, &num_numbers);
    if (status == PE_OK)
        status = store(g, l.text, l.used, start, &entry);
    if (status != PE_OK)
        return status;
    entry->setting.type = PE_SETTING_ARRAY;
    entry->setting.numbers = numbers;
    entry->setting.num_numbers = num_numbers;
    return PE_OK;
}

static pe_status read_scalar(gguf *g, uint32_t type)
{
    const size_t start = g->pos;
    scalar value = {.bits = 0};
    char text[40];
    pe_entry *entry = NULL;
    pe_status status = need(g, scalar_size(type), g->key);
    if (status == PE_OK)
        status = take_scalar(g, type, &value);
    scalar_text(&value, text);
    if (status == PE_OK)
        status = store(g, text, strlen(text), start, &entry);
    if (status != PE_OK)
        return status;
    entry->setting.type = value.type;
    entry->setting.integer = value.integer;
    entry->setting.number = value.number;
    if (strcmp(g->key, "general.alignment") != 0)
        return PE_OK;
    if (value.type != PE_SETTING_INTEGER || value.integer < 1 ||
        value.integer > 1 << 30 || (value.integer & (value.integer - 1)) != 0)
        return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)start,
                          "general.alignment is %s, must be a power of two up to 2^30",
                          text);
    g->alignment = (uint32_t)value.integer;
    return PE_OK;
}

static pe_status read_setting(gguf *g)
{
    const char *key = NULL;
    size_t size = 0;
    uint64_t type = 0;
    pe_status status = take_name(g, "a key", PE_SETTING_PATH_MAX, &key, &size);
    if (status != PE_OK)
        return status;
    memcpy(g->key, key, size);
    g->key[size] = '\0';
    status = take_checked(g, 4, g->key, &type);
    if (status != PE_OK)
        return status;
    if (type > TYPE_F64)
        return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)g->pos - 4,
                          "%.120s has type %llu, must be in 0..12", g->key,
                          (unsigned long long)type);
    if (type == TYPE_STRING)
        return read_string(g);
    if (type == TYPE_ARRAY)
        return read_array(g);
    return read_scalar(g, (uint32_t)type);
}

/* Bytes of a tensor from its shape, fastest axis first. */
static pe_status tensor_size(const gguf *g, const pe_weight *weight,
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

static pe_status read_shape(gguf *g, pe_weight *weight, int64_t *shape)
{
    uint64_t rank = 0;
    pe_status status = take_checked(g, 4, "the tensor directory", &rank);
    if (status != PE_OK)
        return status;
    if (rank > RANK_MAX)
        return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)g->pos - 4,
                          "weight %.120s has %llu axes, at most %d are allowed",
                          weight->name, (unsigned long long)rank, RANK_MAX);
    status = need(g, 8 * rank + 12, "the tensor directory");
    if (status != PE_OK)
        return status;
    weight->rank = (int32_t)rank;
    for (int32_t i = 0; i < weight->rank; i++) {
        const uint64_t count = take(g, 8);
        if (count > INT64_MAX)
            return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)g->pos - 8,
                              "weight %.120s has an axis of %llu elements",
                              weight->name, (unsigned long long)count);
        shape[i] = (int64_t)count;
        weight->shape[weight->rank - 1 - i] = shape[i];
    }
    return PE_OK;
}

static pe_status read_weight(gguf *g)
{
    const int64_t start = (int64_t)g->pos;
    const char *name = NULL;
    size_t size = 0;
    int64_t shape[RANK_MAX] = {0};
    pe_weight_entry *entry = NULL;
    pe_status status =
        take_name(g, "the name of a weight", PE_WEIGHT_NAME_MAX, &name, &size);
    if (status == PE_OK)
        status = pe_weights_add(&g->checkpoint->weights, name, size, start, &entry,
                                g->error);
    if (status == PE_OK)
        status = read_shape(g, &entry->weight, shape);
    if (status != PE_OK)
        return status;
    const int64_t type_at = (int64_t)g->pos;
    const uint32_t id = (uint32_t)take(g, 4);
    const pe_gguf_type *type = pe_gguf_find_type(id);
    entry->begin = take(g, 8);
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

/* Data of known size lie inside the file and not over each other. */
static pe_status place_weights(gguf *g)
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

static pe_status read_version(gguf *g)
{
    uint64_t version = 0;
    g->pos = 4;
    pe_status status = take_checked(g, 4, "its version", &version);
    if (status != PE_OK)
        return status;
    if (version != 0 && (version & 0xffff) == 0) {
        g->swapped = 1;
        g->pos = 4;
        version = take(g, 4);
    }
    if (version != 2 && version != 3)
        return pe_fail_at(g->error, PE_E_UNSUPPORTED, 4,
                          "GGUF has version %llu, must be 2 or 3",
                          (unsigned long long)version);
    return PE_OK;
}

pe_status pe_gguf_read(pe_checkpoint *checkpoint, const void *data, size_t size,
                       pe_error *error)
{
    gguf g = {.checkpoint = checkpoint,
              .data = data,
              .size = size,
              .alignment = DEFAULT_ALIGNMENT,
              .error = error};
    uint64_t num_weights = 0, num_settings = 0;
    if (!pe_gguf_is(data, size))
        return pe_fail_at(error, PE_E_FORMAT, 0, "a GGUF file begins with GGUF");
    pe_status status = read_version(&g);
    if (status == PE_OK)
        status = take_checked(&g, 8, "its counts", &num_weights);
    if (status == PE_OK)
        status = take_checked(&g, 8, "its counts", &num_settings);
    if (status != PE_OK)
        return status;
    checkpoint->swapped = g.swapped;
    const uint64_t left = g.size - g.pos;
    if (num_settings > left / 13 || num_weights > left / 24)
        return pe_fail_at(error, PE_E_FORMAT, num_weights > left / 24 ? 8 : 16,
                          "GGUF has %llu weights and %llu settings, the %llu bytes "
                          "left cannot hold them",
                          (unsigned long long)num_weights,
                          (unsigned long long)num_settings, (unsigned long long)left);
    for (uint64_t i = 0; i < num_settings && status == PE_OK; i++)
        status = read_setting(&g);
    for (uint64_t i = 0; i < num_weights && status == PE_OK; i++)
        status = read_weight(&g);
    return status == PE_OK ? place_weights(&g) : status;
}
