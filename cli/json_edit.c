/* SPDX-License-Identifier: MIT
 *
 * json_edit.c - a few members of a JSON text replaced, every other byte kept
 *
 * Nothing is parsed into values: members are spans of the text.  A text that is no JSON
 * ends a walk early, and never reads past its end. */
#include "json_edit.h"

#include <stdlib.h>
#include <string.h>

static size_t skip_space(const char *text, size_t at)
{
    return at + strspn(text + at, " \t\r\n");
}

/* Past the closing quote of the string that begins at at. */
static size_t skip_string(const char *text, size_t at)
{
    for (at++; text[at] != '\0' && text[at] != '"'; at++)
        if (text[at] == '\\' && text[at + 1] != '\0')
            at++;
    return text[at] == '"' ? at + 1 : at;
}

static size_t skip_value(const char *text, size_t at)
{
    size_t depth = 0;
    while (text[at] != '\0') {
        const char c = text[at];
        if (c == '"') {
            at = skip_string(text, at);
        } else if (c == '{' || c == '[') {
            depth++;
            at++;
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                return at;
            depth--;
            at++;
        } else if (depth == 0 && strchr(", \t\r\n", c) != NULL) {
            return at;
        } else {
            at++;
            continue;
        }
        if (depth == 0)
            return at;
    }
    return at;
}

int cli_json_next(const char *text, size_t object, size_t *at, cli_json_member *out)
{
    size_t place = *at == 0 ? object + 1 : *at;
    if (text[object] != '{')
        return 0;
    if (*at != 0) {
        place = skip_space(text, place);
        if (text[place] == ',')
            place++;
    }
    out->space.begin = place;
    place = skip_space(text, place);
    out->space.end = place;
    if (text[place] != '"') {
        *at = place;
        return 0;
    }
    out->key.begin = place + 1;
    place = skip_string(text, place);
    out->key.end = place - 1;
    place = skip_space(text, place);
    if (text[place] == ':')
        place++;
    place = skip_space(text, place);
    out->value.begin = place;
    place = skip_value(text, place);
    out->value.end = place;
    *at = place;
    return 1;
}

static int find_in(const char *text, size_t object, const char *name, size_t length,
                   cli_json_member *out)
{
    size_t at = 0;
    while (cli_json_next(text, object, &at, out))
        if (out->key.end - out->key.begin == length &&
            memcmp(text + out->key.begin, name, length) == 0)
            return 1;
    return 0;
}

int cli_json_find(const char *text, const char *path, cli_json_member *out,
                  size_t *object)
{
    *object = skip_space(text, 0);
    for (;;) {
        const size_t length = strcspn(path, ".");
        if (!find_in(text, *object, path, length, out))
            return 0;
        if (path[length] == '\0')
            return 1;
        if (text[out->value.begin] != '{')
            return 0;
        *object = out->value.begin;
        path += length + 1;
    }
}

char *cli_json_replace(char *text, cli_span span, const char *with)
{
    const size_t tail = strlen(text + span.end) + 1, length = strlen(with);
    char *out = malloc(span.begin + length + tail);
    if (out != NULL) {
        memcpy(out, text, span.begin);
        memcpy(out + span.begin, with, length);
        memcpy(out + span.begin + length, text + span.end, tail);
    }
    free(text);
    return out;
}

/* After the last member, with the space that stands before the first. */
static char *add_last(char *text, size_t object, const char *name, const char *value)
{
    cli_json_member member, first = {0};
    size_t at = 0, last = object + 1;
    int count = 0;
    while (cli_json_next(text, object, &at, &member)) {
        if (count++ == 0)
            first = member;
        last = member.value.end;
    }
    const size_t space = count > 0 ? first.space.end - first.space.begin : 0;
    const size_t size = space + strlen(name) + strlen(value) + 8;
    char *addition = malloc(size);
    if (addition == NULL) {
        free(text);
        return NULL;
    }
    size_t used = 0;
    if (count > 0)
        addition[used++] = ',';
    if (count > 0 && space == 0)
        addition[used++] = ' ';
    memcpy(addition + used, text + (count > 0 ? first.space.begin : 0), space);
    used += space;
    addition[used++] = '"';
    memcpy(addition + used, name, strlen(name));
    used += strlen(name);
    memcpy(addition + used, "\": ", 3);
    memcpy(addition + used + 3, value, strlen(value) + 1);
    text = cli_json_replace(text, (cli_span){last, last}, addition);
    free(addition);
    return text;
}

char *cli_json_set(char *text, const char *path, const char *value)
{
    cli_json_member member;
    size_t object;
    if (cli_json_find(text, path, &member, &object))
        return cli_json_replace(text, member.value, value);
    const char *dot = strrchr(path, '.');
    return add_last(text, object, dot != NULL ? dot + 1 : path, value);
}
