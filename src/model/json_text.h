/* SPDX-License-Identifier: MIT
 *
 * json_text.h - stepping over JSON text that a parser has accepted
 *
 * The text is known to be well formed but for what json-c lets through, so only numbers
 * can fail.  Nothing steps past size.
 */
#ifndef PE_JSON_TEXT_H
#define PE_JSON_TEXT_H

#include "base/base.h"

typedef struct pe_json_text {
    const char *text;
    size_t size, pos;
} pe_json_text;

void pe_json_skip_space(pe_json_text *scan);
/* From a quote to the byte after the closing one. */
void pe_json_skip_string(pe_json_text *scan);
/* RFC 8259 section 6: refuses "1.", NaN and Infinity, which json-c takes.  path names
 * the value. */
pe_status pe_json_skip_number(pe_json_text *scan, const char *path, int *is_integer,
                              pe_error *error);
/* 1: the next byte is one of set. */
int pe_json_is_char(const pe_json_text *scan, const char *set);

#endif /* PE_JSON_TEXT_H */
