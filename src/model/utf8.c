/* SPDX-License-Identifier: MIT
 *
 * utf8.c - whether bytes are UTF-8 (RFC 3629)
 */
#include "model/utf8.h"

size_t pe_utf8_char(const char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text;
    const unsigned char first = bytes[0];
    const size_t length = first < 0x80                    ? 1
                          : first >= 0xC2 && first < 0xE0 ? 2
                          : first >= 0xE0 && first < 0xF0 ? 3
                          : first >= 0xF0 && first < 0xF5 ? 4
                                                          : 0;
    if (length > size)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
    }
    const int overlong =
        (first == 0xE0 && bytes[1] < 0xA0) || (first == 0xF0 && bytes[1] < 0x90);
    const int surrogate = first == 0xED && bytes[1] > 0x9F;
    const int past_end = first == 0xF4 && bytes[1] > 0x8F;
    return overlong || surrogate || past_end ? 0 : length;
}

size_t pe_utf8_valid(const char *text, size_t size)
{
    size_t pos = 0;
    while (pos < size) {
        const size_t length = pe_utf8_char(text + pos, size - pos);
        if (length == 0)
            break;
        pos += length;
    }
    return pos;
}
