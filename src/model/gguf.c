/* SPDX-License-Identifier: MIT
 *
 * gguf.c - magic, version, counts and key/values of a GGUF file
 *
 * Every count and length is compared with the bytes that are left before it is used,
 * so a lying file costs no more than its own size.  Format: ggml's gguf.h. */
#include "model/gguf_reader.h"

#include "base/error.h"
#include "model/gguf_value.h"
#include "model/utf8.h"

#include <string.h>

enum { DEFAULT_ALIGNMENT = 32, DEPTH_MAX = 8 };

typedef pe_gguf_reader gguf;

int pe_gguf_is(const void *data, size_t size)
{
    return size >= 4 && memcmp(data, "GGUF", 4) == 0;
}

pe_status pe_gguf_need(const gguf *g, uint64_t count, const char *what)
{
    if (count <= g->size - g->pos)
        return PE_OK;
    return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)g->pos,
                      "GGUF ends inside %.100s: %llu bytes wanted at byte %llu, "
                      "%llu are left",
                      what, (unsigned long long)count, (unsigned long long)g->pos,
                      (unsigned long long)(g->size - g->pos));
}

uint64_t pe_gguf_take(gguf *g, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)g->data[g->pos + (g->swapped ? size - 1 - i : i)] << 8 * i;
    g->pos += size;
    return value;
}

pe_status pe_gguf_take_checked(gguf *g, size_t size, const char *what, uint64_t *out)
{
    pe_status status = pe_gguf_need(g, size, what);
    if (status == PE_OK)
        *out = pe_gguf_take(g, size);
    return status;
}

static pe_status take_string(gguf *g, const char *what, const char **text, size_t *size)
{
    uint64_t length = 0;
    pe_status status = pe_gguf_take_checked(g, 8, what, &length);
    if (status == PE_OK)
        status = pe_gguf_need(g, length, what);
    if (status != PE_OK)
        return status;
    *text = (const char *)g->data + g->pos;
    *size = (size_t)length;
    g->pos += *size;
    return PE_OK;
}

pe_status pe_gguf_take_name(gguf *g, const char *what, size_t max, const char **text,
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

/* A scalar whose bytes are there. */
static pe_status take_scalar(gguf *g, uint32_t type, pe_gguf_scalar *out)
{
    const size_t size = scalar_size(type), start = g->pos;
    const uint64_t bits = pe_gguf_take(g, size);
    *out = (pe_gguf_scalar){.bits = bits, .stored = type};
    if (type == PE_GGUF_F32 || type == PE_GGUF_F64) {
        const uint32_t low = (uint32_t)bits;
        float single = 0;
        memcpy(&single, &low, sizeof single);
        memcpy(&out->number, &bits, sizeof out->number);
        if (type == PE_GGUF_F32)
            out->number = (double)single;
        out->type = PE_SETTING_NUMBER;
        return PE_OK;
    }
    if (type == PE_GGUF_BOOL) {
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
    if (type == PE_GGUF_U64 && bits > INT64_MAX) {
        out->type = PE_SETTING_NUMBER;
        out->integer = 0;
        out->number = (double)bits;
    }
    return PE_OK;
}

static pe_status take_array(gguf *g, int depth, pe_gguf_listing *l, double **numbers,
                            int64_t *num_numbers);

static pe_status take_element(gguf *g, uint32_t type, int depth, pe_gguf_listing *l,
                              double *number)
{
    pe_gguf_scalar value;
    const char *text = NULL;
    size_t size = 0;
    pe_status status = PE_OK;
    if (type == PE_GGUF_ARRAY)
        return take_array(g, depth + 1, l, NULL, NULL);
    if (type == PE_GGUF_STRING) {
        status = take_string(g, g->key, &text, &size);
        if (status == PE_OK)
            pe_gguf_list_string(l, text, size);
        return status;
    }
    status = take_scalar(g, type, &value);
    if (status != PE_OK)
        return status;
    if (number != NULL)
        *number = value.number;
    if (l->used < sizeof l->text) {
        char digits[40];
        pe_gguf_scalar_text(&value, digits);
        pe_gguf_list(l, digits, strlen(digits));
    }
    return PE_OK;
}

static pe_status take_array(gguf *g, int depth, pe_gguf_listing *l, double **numbers,
                            int64_t *num_numbers)
{
    const size_t start = g->pos;
    uint64_t type = 0, count = 0;
    if (depth > DEPTH_MAX)
        return pe_fail_at(g->error, PE_E_LIMIT, (int64_t)start,
                          "%.120s is nested deeper than %d arrays", g->key, DEPTH_MAX);
    pe_status status = pe_gguf_take_checked(g, 4, g->key, &type);
    if (status == PE_OK)
        status = pe_gguf_take_checked(g, 8, g->key, &count);
    if (status != PE_OK)
        return status;
    if (type > PE_GGUF_F64)
        return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)start,
                          "%.120s is an array of type %llu, must be in 0..12", g->key,
                          (unsigned long long)type);
    const size_t fixed = scalar_size((uint32_t)type);
    const size_t least = fixed != 0 ? fixed : type == PE_GGUF_STRING ? 8 : 12;
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
    pe_gguf_list(l, "[", 1);
    for (uint64_t i = 0; i < count && status == PE_OK; i++) {
        if (i > 0)
            pe_gguf_list(l, ", ", 2);
        status =
            take_element(g, (uint32_t)type, depth, l, kept == NULL ? NULL : &kept[i]);
    }
    pe_gguf_list(l, "]", 1);
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
    pe_gguf_listing l = {.used = 0};
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
    pe_gguf_scalar value = {.bits = 0};
    char text[40];
    pe_entry *entry = NULL;
    pe_status status = pe_gguf_need(g, scalar_size(type), g->key);
    if (status == PE_OK)
        status = take_scalar(g, type, &value);
    pe_gguf_scalar_text(&value, text);
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
    pe_status status = pe_gguf_take_name(g, "a key", PE_SETTING_PATH_MAX, &key, &size);
    if (status != PE_OK)
        return status;
    memcpy(g->key, key, size);
    g->key[size] = '\0';
    status = pe_gguf_take_checked(g, 4, g->key, &type);
    if (status != PE_OK)
        return status;
    if (type > PE_GGUF_F64)
        return pe_fail_at(g->error, PE_E_FORMAT, (int64_t)g->pos - 4,
                          "%.120s has type %llu, must be in 0..12", g->key,
                          (unsigned long long)type);
    if (type == PE_GGUF_STRING)
        return read_string(g);
    if (type == PE_GGUF_ARRAY)
        return read_array(g);
    return read_scalar(g, (uint32_t)type);
}

static pe_status read_version(gguf *g)
{
    uint64_t version = 0;
    g->pos = 4;
    pe_status status = pe_gguf_take_checked(g, 4, "its version", &version);
    if (status != PE_OK)
        return status;
    if (version != 0 && (version & 0xffff) == 0) {
        g->swapped = 1;
        g->pos = 4;
        version = pe_gguf_take(g, 4);
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
        status = pe_gguf_take_checked(&g, 8, "its counts", &num_weights);
    if (status == PE_OK)
        status = pe_gguf_take_checked(&g, 8, "its counts", &num_settings);
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
        status = pe_gguf_read_weight(&g);
    return status == PE_OK ? pe_gguf_place_weights(&g) : status;
}
