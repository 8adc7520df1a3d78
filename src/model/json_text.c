/* SPDX-License-Identifier: MIT
 *
 * json_text.c - where a value of JSON text ends
 */
#include "model/json_text.h"

#include "base/error.h"

#include <string.h>

void pe_json_skip_space(pe_json_text *s)
{
    while (s->pos < s->size && strchr(" \t\r\n", s->text[s->pos]) != NULL)
        s->pos++;
}

void pe_json_skip_string(pe_json_text *s)
{
    for (s->pos++; s->pos < s->size && s->text[s->pos] != '"'; s->pos++)
        if (s->text[s->pos] == '\\')
            s->pos++;
    if (s->pos < s->size)
        s->pos++;
}

static int is_digit(const pe_json_text *s)
{
    return s->pos < s->size && s->text[s->pos] >= '0' && s->text[s->pos] <= '9';
}

int pe_json_is_char(const pe_json_text *s, const char *set)
{
    return s->pos < s->size && s->text[s->pos] != '\0' &&
           strchr(set, s->text[s->pos]) != NULL;
}

static void skip_digits(pe_json_text *s)
{
    while (is_digit(s))
        s->pos++;
}

pe_status pe_json_skip_number(pe_json_text *s, const char *path, int *is_integer,
                              pe_error *error)
{
    *is_integer = 1;
    if (pe_json_is_char(s, "-"))
        s->pos++;
    if (pe_json_is_char(s, "NI"))
        return pe_fail_at(error, PE_E_FORMAT, (int64_t)s->pos,
                          "%.120s is %s, must be a finite number", path,
                          s->text[s->pos] == 'N'                     ? "NaN"
                          : s->pos > 0 && s->text[s->pos - 1] == '-' ? "-Infinity"
                                                                     : "Infinity");
    skip_digits(s);
    if (pe_json_is_char(s, ".")) {
        *is_integer = 0;
        s->pos++;
        if (!is_digit(s))
            return pe_fail_at(error, PE_E_FORMAT, (int64_t)s->pos,
                              "%.120s has no digit after the point", path);
        skip_digits(s);
    }
    if (pe_json_is_char(s, "eE")) {
        *is_integer = 0;
        s->pos++;
        if (pe_json_is_char(s, "+-"))
            s->pos++;
        skip_digits(s);
    }
    return PE_OK;
}
