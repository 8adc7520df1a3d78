/* SPDX-License-Identifier: MIT
 *
 * utf8.h - whether bytes are UTF-8 (RFC 3629)
 */
#ifndef PE_UTF8_H
#define PE_UTF8_H

#include "base/base.h"

/* Bytes of the character that text begins with; 0: it is malformed, cut, overlong, a
 * surrogate or past U+10FFFF.  size is at least 1. */
size_t pe_utf8_char(const char *text, size_t size);
/* Bytes before the first that is no part of a character; size if there is none. */
size_t pe_utf8_valid(const char *text, size_t size);

#endif /* PE_UTF8_H */
