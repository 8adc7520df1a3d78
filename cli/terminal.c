/* SPDX-License-Identifier: MIT
 *
 * terminal.c - what the reader's screen and locale can show
 */
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEFAULT_COLUMNS = 80, MIN_COLUMNS = 20, MAX_COLUMNS = 1000 };

typedef struct code_range {
    uint32_t first, last;
} code_range;

/* Unicode's East Asian Wide and Fullwidth, as blocks. */
static const code_range wide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e}, {0x3041, 0x4dbf},   {0x4e00, 0xa4cf},
    {0xa960, 0xa97c},   {0xac00, 0xd7a3}, {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60},   {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff},
    {0x20000, 0x3fffd},
};

static const code_range combining[] = {
    {0x0300, 0x036f}, {0x1160, 0x11ff}, {0x200b, 0x200f}, {0xfe00, 0xfe0f}};

int cli_columns(void)
{
    struct winsize size;
    int64_t columns = 0;
    const char *variable = getenv("COLUMNS");
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    if (columns == 0 && variable != NULL)
        columns = strtoll(variable, NULL, 10);
    if (columns <= 0)
        return DEFAULT_COLUMNS;
    return columns < MIN_COLUMNS   ? MIN_COLUMNS
           : columns > MAX_COLUMNS ? MAX_COLUMNS
                                   : (int)columns;
}

/* The first of the three that is set and not empty, as setlocale(3) reads them. */
static const char *locale_of(const char *category)
{
    const char *names[] = {"LC_ALL", category, "LANG"};
    for (size_t i = 0; i < CLI_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0')
            return value;
    }
    return "C";
}

int cli_is_utf8(void)
{
    static const char *const names[] = {"UTF-8", "utf-8", "UTF8", "utf8"};
    const char *charset = strchr(locale_of("LC_CTYPE"), '.');
    for (size_t i = 0; charset != NULL && i < CLI_COUNT(names); i++)
        if (strncmp(charset + 1, names[i], strlen(names[i])) == 0)
            return 1;
    return 0;
}

int cli_speaks(const char *language)
{
    const char *locale = locale_of("LC_MESSAGES");
    const size_t size = strlen(language);
    return strncmp(locale, language, size) == 0 && strchr("_.@", locale[size]) != NULL;
}

/* Not to be seen, or not to be believed: C0 and C1 controls; soft hyphen; Arabic letter
 * mark; zero width and direction marks; line separators, embeddings and overrides;
 * invisible operators and isolates; byte order mark; annotations; tags. */
static const code_range unsafe[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad},   {0x061c, 0x061c},
    {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
    {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

/* The code at the start of text and its bytes; a stray byte stands for itself. */
static size_t read_code(const char *text, size_t size, uint32_t *code)
{
    const unsigned char *c = (const unsigned char *)text;
    const size_t length = c[0] < 0xc2   ? 1
                          : c[0] < 0xe0 ? 2
                          : c[0] < 0xf0 ? 3
                          : c[0] < 0xf5 ? 4
                                        : 1;
    *code = c[0];
    if (length == 1 || length > size)
        return 1;
    *code = c[0] & (0xffU >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            *code = c[0];
            return 1;
        }
        *code = *code << 6 | (c[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (*code < least[length] || *code > 0x10ffff ||
        (*code >= 0xd800 && *code <= 0xdfff)) {
        *code = c[0];
        return 1;
    }
    return length;
}

static int is_in(uint32_t code, const code_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return 1;
    return 0;
}

int cli_width(const char *text, size_t size)
{
    int width = 0;
    for (size_t at = 0; at < size;) {
        uint32_t code;
        at += read_code(text + at, size - at, &code);
        if (is_in(code, wide, CLI_COUNT(wide)))
            width += 2;
        else if (!is_in(code, combining, CLI_COUNT(combining)))
            width += 1;
    }
    return width;
}

int cli_is_unsafe(const char *text, size_t size, uint32_t *code, size_t *bytes)
{
    *bytes = read_code(text, size, code);
    return (*bytes == 1 && *code >= 0x80) || is_in(*code, unsafe, CLI_COUNT(unsafe));
}

size_t cli_escape(char *out, size_t size, const char *text, size_t length)
{
    size_t used = 0;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        uint32_t code;
        char escape[16];
        const char *from = text + at;
        size_t count;
        if (cli_is_unsafe(from, length - at, &code, &bytes)) {
            (void)snprintf(escape, sizeof escape,
                           code < 0x100     ? "\\x%02x"
                           : code < 0x10000 ? "\\u%04x"
                                            : "\\U%08x",
                           (unsigned)code);
            from = escape;
            count = strlen(escape);
        } else {
            count = bytes;
        }
        if (used + count >= size)
            break;
        memcpy(out + used, from, count);
        used += count;
    }
    out[used] = '\0';
    return used;
}
