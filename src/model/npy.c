/* SPDX-License-Identifier: MIT
 *
 * npy.c - magic, version, and the Python dict that describes one array
 *
 * The format is NEP 1: 6 bytes of magic, 2 of version, the header's length (2 bytes in
 * version 1, 4 later), a dict with descr, fortran_order and shape, then the elements. */
#include "model/npy.h"

#include "base/checked.h"
#include "base/error.h"

#include <string.h>

typedef struct npy_dtype {
    const char *descr;
    pe_dtype dtype; /* 0: not one of ours */
    int32_t size;
} npy_dtype;

static const npy_dtype dtypes[] = {
    {"<f4", PE_F32, 4}, {"<f2", PE_F16, 2}, {"<u2", 0, 2}, {"<f8", 0, 8},
    {"<i8", 0, 8},      {"<i4", 0, 4},      {"<i2", 0, 2}, {"|i1", PE_I8, 1},
    {"|u1", 0, 1},      {"|b1", 0, 1},
};

typedef struct scan {
    const char *text;
    size_t pos, end;
    pe_error *error;
} scan;

static pe_status malformed(const scan *s, const char *expected)
{
    if (s->pos >= s->end)
        return pe_fail_at(s->error, PE_E_FORMAT, (int64_t)s->end,
                          "npy header ends at byte %lld, must have %s there",
                          (long long)s->end, expected);
    return pe_fail_at(s->error, PE_E_FORMAT, (int64_t)s->pos,
                      "npy header has byte 0x%02x at byte %lld, must have %s there",
                      (unsigned)(unsigned char)s->text[s->pos], (long long)s->pos,
                      expected);
}

static char peek(const scan *s)
{
    return s->pos < s->end ? s->text[s->pos] : '\0';
}

static void skip_space(scan *s)
{
    while (peek(s) == ' ' || peek(s) == '\n' || peek(s) == '\t' || peek(s) == '\r')
        s->pos++;
}

static int accept(scan *s, char c)
{
    skip_space(s);
    if (s->pos >= s->end || s->text[s->pos] != c)
        return 0;
    s->pos++;
    return 1;
}

/* A Python string without escapes, in either quote. */
static pe_status read_string(scan *s, const char *what, const char **text, size_t *size)
{
    skip_space(s);
    const char quote = peek(s);
    if (quote != '\'' && quote != '"')
        return malformed(s, what);
    const size_t start = ++s->pos;
    while (s->pos < s->end && s->text[s->pos] != quote && s->text[s->pos] != '\\')
        s->pos++;
    if (peek(s) != quote)
        return malformed(s, "the end of a string");
    *text = s->text + start;
    *size = s->pos++ - start;
    return PE_OK;
}

static pe_status read_count(scan *s, int64_t *out)
{
    const size_t start = s->pos;
    int64_t value = 0;
    while (peek(s) >= '0' && peek(s) <= '9') {
        if (!pe_mul_i64(value, 10, &value) ||
            !pe_add_i64(value, s->text[s->pos] - '0', &value))
            return pe_fail_at(s->error, PE_E_FORMAT, (int64_t)start,
                              "npy shape at byte %lld does not fit in 63 bits",
                              (long long)start);
        s->pos++;
    }
    if (s->pos == start)
        return malformed(s, "a count");
    if (peek(s) == 'L') /* Python 2 */
        s->pos++;
    *out = value;
    return PE_OK;
}

static pe_status read_shape(scan *s, pe_weight *weight)
{
    if (!accept(s, '('))
        return malformed(s, "'(' of the shape");
    weight->rank = 0;
    while (!accept(s, ')')) {
        if (weight->rank == 8)
            return pe_fail_at(s->error, PE_E_UNSUPPORTED, (int64_t)s->pos,
                              "npy shape has more than 8 dimensions");
        pe_status status = read_count(s, &weight->shape[weight->rank]);
        if (status != PE_OK)
            return status;
        weight->rank++;
        if (!accept(s, ',') && (skip_space(s), peek(s) != ')'))
            return malformed(s, "',' or ')' of the shape");
    }
    return PE_OK;
}

static pe_status read_descr(scan *s, const npy_dtype **out)
{
    const char *text = NULL;
    size_t size = 0;
    skip_space(s);
    const size_t start = s->pos;
    if (peek(s) == '[')
        return pe_fail_at(s->error, PE_E_UNSUPPORTED, (int64_t)start,
                          "npy dtype is a record, must be one number per element");
    pe_status status = read_string(s, "a dtype string", &text, &size);
    if (status != PE_OK)
        return status;
    for (size_t i = 0; i < PE_COUNT(dtypes); i++) {
        if (size == 3 && memcmp(text, dtypes[i].descr, 3) == 0) {
            *out = &dtypes[i];
            return PE_OK;
        }
    }
    if (size > 0 && text[0] == '>')
        return pe_fail_at(s->error, PE_E_UNSUPPORTED, (int64_t)start,
                          "npy dtype is %.*s, big endian is not read, save it as <%.*s",
                          (int)(size > 16 ? 16 : size), text,
                          (int)(size > 16 ? 16 : size - 1), text + 1);
    return pe_fail_at(s->error, PE_E_UNSUPPORTED, (int64_t)start,
                      "npy dtype is %.*s, must be one of <f4 <f2 <u2 <f8 <i8 <i4 <i2 "
                      "|i1 |u1 |b1",
                      (int)(size > 16 ? 16 : size), text);
}

static pe_status read_order(scan *s)
{
    skip_space(s);
    const size_t left = s->end - s->pos;
    if (left >= 4 && memcmp(s->text + s->pos, "True", 4) == 0)
        return pe_fail_at(s->error, PE_E_UNSUPPORTED, (int64_t)s->pos,
                          "npy fortran_order is True, must be False: save a C-ordered "
                          "copy (numpy.ascontiguousarray)");
    if (left < 5 || memcmp(s->text + s->pos, "False", 5) != 0)
        return malformed(s, "True or False");
    s->pos += 5;
    return PE_OK;
}

static pe_status read_member(scan *s, pe_weight *weight, const npy_dtype **dtype,
                             unsigned *seen)
{
    static const char *const keys[3] = {"descr", "fortran_order", "shape"};
    const char *key = NULL;
    size_t size = 0;
    skip_space(s);
    const size_t start = s->pos;
    pe_status status = read_string(s, "a key", &key, &size);
    if (status != PE_OK)
        return status;
    unsigned which = 0;
    while (which < 3 && (strlen(keys[which]) != size || memcmp(keys[which], key, size)))
        which++;
    if (which == 3 || (*seen & 1U << which) != 0)
        return pe_fail_at(s->error, PE_E_FORMAT, (int64_t)start,
                          "npy header key %.*s at byte %lld is %s",
                          (int)(size > 32 ? 32 : size), key, (long long)start,
                          which == 3 ? "unknown" : "there twice");
    *seen |= 1U << which;
    if (!accept(s, ':'))
        return malformed(s, "':'");
    if (which == 0)
        return read_descr(s, dtype);
    return which == 1 ? read_order(s) : read_shape(s, weight);
}

static pe_status read_dict(scan *s, pe_weight *weight, const npy_dtype **dtype)
{
    unsigned seen = 0;
    if (!accept(s, '{'))
        return malformed(s, "'{'");
    while (!accept(s, '}')) {
        pe_status status = read_member(s, weight, dtype, &seen);
        if (status != PE_OK)
            return status;
        if (!accept(s, ',') && (skip_space(s), peek(s) != '}'))
            return malformed(s, "',' or '}'");
    }
    skip_space(s);
    if (s->pos != s->end)
        return malformed(s, "nothing but spaces");
    if (seen != 7)
        return pe_fail_at(s->error, PE_E_FORMAT, (int64_t)s->end,
                          "npy header has no %s",
                          !(seen & 1)   ? "descr"
                          : !(seen & 2) ? "fortran_order"
                                        : "shape");
    return PE_OK;
}

/* Where the dict is: [s->pos, s->end). */
static pe_status read_preamble(scan *s, const unsigned char *bytes, size_t size)
{
    if (size < 10)
        return pe_fail_at(s->error, PE_E_FORMAT, (int64_t)size,
                          "npy file has %llu bytes, ends inside its first 10",
                          (unsigned long long)size);
    const unsigned major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0)
        return pe_fail_at(s->error, PE_E_UNSUPPORTED, 6,
                          "npy version is %u.%u, must be 1.0, 2.0 or 3.0", major,
                          minor);
    uint64_t length = bytes[8] | (uint64_t)bytes[9] << 8;
    s->pos = 10;
    if (major > 1) {
        if (size < 12)
            return pe_fail_at(s->error, PE_E_FORMAT, (int64_t)size,
                              "npy file has %llu bytes, ends inside its first 12",
                              (unsigned long long)size);
        length |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
        s->pos = 12;
    }
    if (length > size - s->pos)
        return pe_fail_at(s->error, PE_E_FORMAT, 8,
                          "npy header length is %llu, but only %llu bytes follow",
                          (unsigned long long)length,
                          (unsigned long long)(size - s->pos));
    s->end = s->pos + (size_t)length;
    return PE_OK;
}

static pe_status check_size(const scan *s, pe_weight *weight, const npy_dtype *dtype,
                            size_t size)
{
    int64_t bytes = dtype->size;
    int is_empty = 0;
    for (int32_t i = 0; i < weight->rank; i++) {
        is_empty = is_empty || weight->shape[i] == 0;
        if (weight->shape[i] > 0 && !pe_mul_i64(bytes, weight->shape[i], &bytes))
            return pe_fail_at(s->error, PE_E_FORMAT, (int64_t)s->end,
                              "npy shape has more bytes than 63 bits can count");
    }
    if (is_empty)
        bytes = 0;
    const uint64_t have = size - s->end;
    if (have != (uint64_t)bytes)
        return pe_fail_at(
            s->error, PE_E_FORMAT,
            (int64_t)(have < (uint64_t)bytes ? size : s->end + (size_t)bytes),
            "npy shape needs %lld bytes after byte %llu, the file has %llu",
            (long long)bytes, (unsigned long long)s->end, (unsigned long long)have);
    if (s->end % (size_t)dtype->size != 0)
        return pe_fail_at(s->error, PE_E_FORMAT, (int64_t)s->end,
                          "npy data begins at byte %llu, must be a multiple of %d",
                          (unsigned long long)s->end, dtype->size);
    weight->size = (uint64_t)bytes;
    return PE_OK;
}

int pe_npy_is(const void *data, size_t size)
{
    return size >= 6 && memcmp(data, "\x93NUMPY", 6) == 0;
}

pe_status pe_npy_read(pe_weight *weight, const void *data, size_t size, pe_error *error)
{
    scan s = {.text = data, .error = error};
    const npy_dtype *dtype = NULL;
    if (!pe_npy_is(data, size))
        return pe_fail_at(error, PE_E_FORMAT, 0,
                          "not an npy file: it does not begin with \\x93NUMPY");
    pe_status status = read_preamble(&s, data, size);
    if (status == PE_OK)
        status = read_dict(&s, weight, &dtype);
    if (status == PE_OK)
        status = check_size(&s, weight, dtype, size);
    if (status != PE_OK)
        return status;
    weight->name = "";
    weight->dtype_name = dtype->descr;
    weight->dtype = dtype->dtype;
    weight->data = (const char *)data + s.end;
    return PE_OK;
}
