/* SPDX-License-Identifier: MIT
 *
 * gguf_value.h - the values of GGUF settings, and how they look as text
 */
#ifndef PE_GGUF_VALUE_H
#define PE_GGUF_VALUE_H

#include "base/base.h"
#include "posenc/model.h"

/* Types of values by number; the smaller ones are 0 uint8, 1 int8 ... 5 int32. */
enum {
    PE_GGUF_F32 = 6,
    PE_GGUF_BOOL = 7,
    PE_GGUF_STRING = 8,
    PE_GGUF_ARRAY = 9,
    PE_GGUF_U64 = 10,
    PE_GGUF_I64 = 11,
    PE_GGUF_F64 = 12
};

enum { PE_GGUF_TEXT_SIZE = 320 };

/* What an array looks like as text, cut when it is full. */
typedef struct pe_gguf_listing {
    char text[PE_GGUF_TEXT_SIZE];
    size_t used;
} pe_gguf_listing;

typedef struct pe_gguf_scalar {
    pe_setting_type type;
    int64_t integer;
    double number;
    uint64_t bits;
    uint32_t stored; /* type in the file */
    int32_t reserved;
} pe_gguf_scalar;

/* As the file would spell it; into a buffer of 40. */
void pe_gguf_scalar_text(const pe_gguf_scalar *value, char *text);
void pe_gguf_list(pe_gguf_listing *l, const char *text, size_t size);
/* In quotes.  Tokens are bytes: what is not printable UTF-8 is written as \xNN. */
void pe_gguf_list_string(pe_gguf_listing *l, const char *text, size_t size);

#endif /* PE_GGUF_VALUE_H */
