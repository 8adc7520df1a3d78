/* SPDX-License-Identifier: MIT
 *
 * json_scan.c - a cursor over JSON of a known shape, without a tree
 */
#include "model/json_scan.h"

#include "base/error.h"
#include "model/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

pe_status pe_scan_fail(const pe_scan *scan, pe_status status, size_t pos,
                       const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return pe_fail_at(scan->error, status, (int64_t)(scan->base + pos), "%s %s",
                      scan->what, text);
}

static pe_status unexpected(const pe_scan *scan, const char *wanted)
{
    const size_t at = scan->pos;
    if (at >= scan->size)
        return pe_scan_fail(scan, PE_E_FORMAT, scan->size,
                            "ends at byte %llu, must have %s there",
                            (unsigned long long)(scan->base + scan->size), wanted);
    return pe_scan_fail(scan, PE_E_FORMAT, at,
                        "has byte 0x%02x at %llu, must have %s there",
                        (unsigned)(unsigned char)scan->text[at],
                        (unsigned long long)(scan->base + at), wanted);
}

static char here(const pe_scan *scan)
{
    return scan->pos < scan->size ? scan->text[scan->pos] : '\0';
}

char pe_scan_peek(pe_scan *scan)
{
    while (here(scan) == ' ' || here(scan) == '\n' || here(scan) == '\r' ||
           here(scan) == '\t')
        scan->pos++;
    return here(scan);
}

int pe_scan_accept(pe_scan *scan, char c)
{
    if (pe_scan_peek(scan) != c || scan->pos >= scan->size)
        return 0;
    scan->pos++;
    return 1;
}

pe_status pe_scan_expect(pe_scan *scan, char c)
{
    const char wanted[] = {'\'', c, '\'', '\0'};
    return pe_scan_accept(scan, c) ? PE_OK : unexpected(scan, wanted);
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static int take_hex(pe_scan *scan, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = hex_value(here(scan));
        if (digit < 0)
            return 0;
        *out = *out << 4 | (unsigned)digit;
        scan->pos++;
    }
    return 1;
}

/* After "\u": a character, or two halves of one, as UTF-8. */
static size_t take_unicode(pe_scan *scan, char *out)
{
    unsigned code = 0, low = 0;
    if (!take_hex(scan, &code) || code == 0 || (code >= 0xDC00 && code < 0xE000))
        return 0;
    if (code >= 0xD800 && code < 0xDC00) {
        if (scan->size - scan->pos < 2 || memcmp(scan->text + scan->pos, "\\u", 2) != 0)
            return 0;
        scan->pos += 2;
        if (!take_hex(scan, &low) || low < 0xDC00 || low > 0xDFFF)
            return 0;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = length; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(lead[length] | code);
    return length;
}

/* One character of a string, escaped or not; 0: there is none. */
static size_t take_char(pe_scan *scan, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if ((unsigned char)here(scan) < ' ')
        return 0;
    if (here(scan) != '\\') {
        const size_t length =
            pe_utf8_char(scan->text + scan->pos, scan->size - scan->pos);
        memcpy(out, scan->text + scan->pos, length);
        scan->pos += length;
        return length;
    }
    scan->pos++;
    if (here(scan) == 'u') {
        scan->pos++;
        return take_unicode(scan, out);
    }
    const char *at = here(scan) == '\0' ? NULL : strchr(from, here(scan));
    if (at == NULL)
        return 0;
    scan->pos++;
    out[0] = to[at - from];
    return 1;
}

/* 0x80 in each byte of x that is below low (at most 0x80) or has its high bit set. */
static uint64_t below(uint64_t x, unsigned char low)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    return ((x - ones * low) | x) & (ones * 0x80);
}

/* Bytes up to the first that is not ASCII, ends the string or begins an escape.  Eight
 * at a time, where one that is may be taken for one that is not, never otherwise. */
static size_t plain_run(const pe_scan *scan)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const char *text = scan->text + scan->pos;
    const size_t size = scan->size - scan->pos;
    size_t run = 0;
    for (uint64_t x; size - run >= sizeof x; run += sizeof x) {
        memcpy(&x, text + run, sizeof x);
        if ((below(x, ' ') | below(x ^ (ones * '"'), 1) |
             below(x ^ (ones * '\\'), 1)) != 0)
            break;
    }
    for (; run < size; run++) {
        const unsigned char c = (unsigned char)text[run];
        if (c < ' ' || c >= 0x80 || c == '"' || c == '\\')
            break;
    }
    return run;
}

pe_status pe_scan_string(pe_scan *scan, char *out, size_t capacity, size_t *size)
{
    size_t kept = 0;
    *size = 0;
    if (!pe_scan_accept(scan, '"'))
        return unexpected(scan, "a string");
    while (here(scan) != '"') {
        const size_t run = plain_run(scan);
        if (run > 0) {
            const size_t room = *size == kept ? capacity - kept : 0;
            memcpy(out + kept, scan->text + scan->pos, run < room ? run : room);
            kept += run < room ? run : room;
            *size += run;
            scan->pos += run;
            continue;
        }
        char bytes[4];
        const size_t length = take_char(scan, bytes);
        if (length == 0)
            return unexpected(scan, "a character of a string");
        if (*size == kept && length <= capacity - kept) {
            memcpy(out + kept, bytes, length);
            kept += length;
        }
        *size += length;
    }
    scan->pos++;
    out[kept] = '\0';
    return PE_OK;
}

pe_status pe_scan_count(pe_scan *scan, int64_t *out)
{
    const char first = pe_scan_peek(scan);
    if (first < '0' || first > '9')
        return unexpected(scan, "a count");
    *out = 0;
    while (here(scan) >= '0' && here(scan) <= '9') {
        const int digit = here(scan) - '0';
        if (*out > (INT64_MAX - digit) / 10)
            return pe_scan_fail(scan, PE_E_FORMAT, scan->pos,
                                "has a count of more than 2^63 - 1 at byte %llu",
                                (unsigned long long)(scan->base + scan->pos));
        *out = 10 * *out + digit;
        scan->pos++;
        if (first == '0')
            break;
    }
    const char after = here(scan);
    if (after == '.' || after == 'e' || after == 'E' || (after >= '0' && after <= '9'))
        return unexpected(scan, "the end of a count");
    return PE_OK;
}

static pe_status skip_number(pe_scan *scan)
{
    const size_t start = scan->pos;
    while (here(scan) != '\0' && strchr("+-.0123456789eE", here(scan)) != NULL)
        scan->pos++;
    return scan->pos == start ? unexpected(scan, "a value") : PE_OK;
}

static pe_status skip_word(pe_scan *scan)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < PE_COUNT(words); i++) {
        const size_t length = strlen(words[i]);
        if (scan->size - scan->pos >= length &&
            memcmp(scan->text + scan->pos, words[i], length) == 0) {
            scan->pos += length;
            return PE_OK;
        }
    }
    return skip_number(scan);
}

pe_status pe_scan_next(pe_scan *scan, char closing, int *more)
{
    *more = 0;
    if (pe_scan_accept(scan, closing))
        return PE_OK;
    *more = 1;
    return pe_scan_expect(scan, ',');
}

static pe_status skip_members(pe_scan *scan, int is_object, int depth)
{
    const char closing = is_object ? '}' : ']';
    int more = !pe_scan_accept(scan, closing);
    while (more) {
        char ignored[4];
        size_t size = 0;
        pe_status status = PE_OK;
        if (is_object)
            status = pe_scan_string(scan, ignored, 0, &size);
        if (status == PE_OK && is_object)
            status = pe_scan_expect(scan, ':');
        if (status == PE_OK)
            status = pe_scan_skip(scan, depth - 1);
        if (status == PE_OK)
            status = pe_scan_next(scan, closing, &more);
        if (status != PE_OK)
            return status;
    }
    return PE_OK;
}

pe_status pe_scan_skip(pe_scan *scan, int depth)
{
    char ignored[4];
    size_t size = 0;
    const char first = pe_scan_peek(scan);
    if (first == '"')
        return pe_scan_string(scan, ignored, 0, &size);
    if (first != '{' && first != '[')
        return skip_word(scan);
    if (depth == 0)
        return pe_scan_fail(scan, PE_E_LIMIT, scan->pos,
                            "is nested too deep at byte %llu",
                            (unsigned long long)(scan->base + scan->pos));
    scan->pos++;
    return skip_members(scan, first == '{', depth);
}

pe_status pe_scan_end(pe_scan *scan)
{
    (void)pe_scan_peek(scan);
    return scan->pos == scan->size ? PE_OK : unexpected(scan, "nothing more");
}
