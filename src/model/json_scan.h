/* SPDX-License-Identifier: MIT
 *
 * json_scan.h - a cursor over JSON of a known shape, without a tree
 *
 * The header of a large safetensors file has 10^5 values: json-c would take more
 * memory and time for it than a whole inspect may.  RFC 8259; every error has its
 * offset in the file. */
#ifndef PE_JSON_SCAN_H
#define PE_JSON_SCAN_H

#include "base/base.h"

typedef struct pe_scan {
    const char *text;
    size_t size, pos;
    size_t base;      /* offset of text in the file */
    const char *what; /* "safetensors header": begins every message */
    pe_error *error;
} pe_scan;

pe_status pe_scan_fail(const pe_scan *scan, pe_status status, size_t pos,
                       const char *format, ...) PE_PRINTF(4, 5);
/* Past white space; '\0' at the end. */
char pe_scan_peek(pe_scan *scan);
/* 1 and past c, if c is next. */
int pe_scan_accept(pe_scan *scan, char c);
pe_status pe_scan_expect(pe_scan *scan, char c);
/* A string, decoded: at most capacity bytes of it and a NUL into out, which has room
 * for capacity + 1; *size is its whole length.  No NUL in it, valid UTF-8. */
pe_status pe_scan_string(pe_scan *scan, char *out, size_t capacity, size_t *size);
/* An integer in 0..2^63 - 1, without a fraction or exponent. */
pe_status pe_scan_count(pe_scan *scan, int64_t *out);
/* Any value, at most depth arrays and objects deep. */
pe_status pe_scan_skip(pe_scan *scan, int depth);
/* After a member: 1 more follows; 0 the object or array is closed. */
pe_status pe_scan_next(pe_scan *scan, char closing, int *more);
/* Nothing but white space may follow. */
pe_status pe_scan_end(pe_scan *scan);

#endif /* PE_JSON_SCAN_H */
