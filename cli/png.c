/* SPDX-License-Identifier: MIT
 *
 * png.c - a picture with a palette as PNG (W3C PNG, third edition)
 *
 * The pixels go into stored deflate blocks (RFC 1951 section 3.2.4): a byte each, which
 * is small enough for pictures of tables and needs no compressor. */
#include "png.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCK = 65535, CHUNK_EXTRA = 12 };

typedef struct writer {
    unsigned char *next;
    unsigned char *chunk; /* its length field */
} writer;

static void put(writer *w, const void *data, size_t size)
{
    memcpy(w->next, data, size);
    w->next += size;
}

static void put_byte(writer *w, unsigned value)
{
    *w->next++ = (unsigned char)value;
}

static void put32(writer *w, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        put_byte(w, value >> shift & 0xff);
}

/* CRC-32 of ISO 3309, bit by bit: the pictures are small. */
static uint32_t crc32_of(const unsigned char *data, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static void begin_chunk(writer *w, const char *type)
{
    w->chunk = w->next;
    put32(w, 0);
    put(w, type, 4);
}

static void end_chunk(writer *w)
{
    const size_t size = (size_t)(w->next - w->chunk) - 4;
    writer length = {.next = w->chunk};
    put32(&length, (uint32_t)(size - 4));
    put32(w, crc32_of(w->chunk + 4, size));
}

/* zlib (RFC 1950) around stored blocks; every line begins with filter 0. */
static void put_pixels(writer *w, const unsigned char *pixels, int64_t width,
                       int64_t height)
{
    const int64_t line = width + 1;
    uint32_t a = 1, b = 0; /* Adler-32 */
    put_byte(w, 0x78);
    put_byte(w, 0x01);
    for (int64_t at = 0; at < line * height; at++) {
        if (at % MAX_BLOCK == 0) {
            const int64_t left = line * height - at;
            const unsigned size = (unsigned)(left < MAX_BLOCK ? left : MAX_BLOCK);
            put_byte(w, left <= MAX_BLOCK);
            put_byte(w, size & 0xff);
            put_byte(w, size >> 8);
            put_byte(w, ~size & 0xff);
            put_byte(w, ~size >> 8 & 0xff);
        }
        const unsigned byte =
            at % line == 0 ? 0 : pixels[at / line * width + at % line - 1];
        put_byte(w, byte);
        a = (a + byte) % 65521;
        b = (b + a) % 65521;
    }
    put32(w, b << 16 | a);
}

unsigned char *cli_png(const unsigned char *pixels, int64_t width, int64_t height,
                       const uint32_t *colours, int num_colours, size_t *size)
{
    const size_t raw = (size_t)((width + 1) * height);
    const size_t most =
        raw + raw / MAX_BLOCK * 5 + 3 * (size_t)num_colours + 5 * CHUNK_EXTRA + 64;
    unsigned char *png = malloc(most);
    if (png == NULL)
        return NULL;
    writer w = {.next = png};
    put(&w, "\x89PNG\r\n\x1a\n", 8);
    begin_chunk(&w, "IHDR");
    put32(&w, (uint32_t)width);
    put32(&w, (uint32_t)height);
    put(&w, "\x08\x03\x00\x00\x00", 5);
    end_chunk(&w);
    begin_chunk(&w, "PLTE");
    for (int i = 0; i < num_colours; i++)
        for (int shift = 16; shift >= 0; shift -= 8)
            put_byte(&w, colours[i] >> shift & 0xff);
    end_chunk(&w);
    begin_chunk(&w, "tRNS");
    put_byte(&w, 0);
    end_chunk(&w);
    begin_chunk(&w, "IDAT");
    put_pixels(&w, pixels, width, height);
    end_chunk(&w);
    begin_chunk(&w, "IEND");
    end_chunk(&w);
    *size = (size_t)(w.next - png);
    return png;
}
