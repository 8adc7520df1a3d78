/* SPDX-License-Identifier: MIT
 *
 * gguf_value.c - the values of GGUF settings, and how they look as text
 */
#include "model/gguf_value.h"
#include "model/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void pe_gguf_scalar_text(const pe_gguf_scalar *value, char *text)
{
    if (value->stored == PE_GGUF_F32 || value->stored == PE_GGUF_F64)
        shortest(text, 40, value->number, value->stored == PE_GGUF_F32);
    else if (value->stored == PE_GGUF_BOOL)
        strcpy(text, value->bits ? "true" : "false");
    else if (value->stored == PE_GGUF_U64)
        snprintf(text, 40, "%llu", (unsigned long long)value->bits);
    else
        snprintf(text, 40, "%lld", (long long)value->integer);
}

void pe_gguf_list(pe_gguf_listing *l, const char *text, size_t size)
{
    if (size > sizeof l->text - l->used)
        size = sizeof l->text - l->used;
    memcpy(l->text + l->used, text, size);
    l->used += size;
}

void pe_gguf_list_string(pe_gguf_listing *l, const char *text, size_t size)
{
    pe_gguf_list(l, "\"", 1);
    for (size_t i = 0; i < size && l->used < sizeof l->text;) {
        const size_t length = pe_utf8_char(text + i, size - i);
        char escape[8];
        if (text[i] == '"' || text[i] == '\\') {
            snprintf(escape, sizeof escape, "\\%c", text[i]);
            pe_gguf_list(l, escape, 2);
            i++;
        } else if (length > 0 && (unsigned char)text[i] >= ' ' && text[i] != 0x7f) {
            if (length > sizeof l->text - l->used)
                l->used = sizeof l->text; /* a character that is cut is left out */
            else
                pe_gguf_list(l, text + i, length);
            i += length;
        } else {
            snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)text[i]);
            pe_gguf_list(l, escape, 4);
            i++;
        }
    }
    pe_gguf_list(l, "\"", 1);
}
