/* SPDX-License-Identifier: MIT
 *
 * gguf_reader.h - a place in a GGUF file: shared by the files that take it apart
 */
#ifndef PE_GGUF_READER_H
#define PE_GGUF_READER_H

#include "model/gguf.h"

typedef struct pe_gguf_reader {
    pe_checkpoint *checkpoint;
    const unsigned char *data;
    size_t size, pos;
    int swapped; /* big endian */
    uint32_t alignment;
    char key[PE_SETTING_PATH_MAX + 1]; /* being read */
    pe_error *error;
} pe_gguf_reader;

/* Whether count bytes are left; what stands in the message. */
pe_status pe_gguf_need(const pe_gguf_reader *g, uint64_t count, const char *what);
/* An integer of size bytes, which are there. */
uint64_t pe_gguf_take(pe_gguf_reader *g, size_t size);
pe_status pe_gguf_take_checked(pe_gguf_reader *g, size_t size, const char *what,
                               uint64_t *out);
/* UTF-8 without NUL, of at most max bytes: what becomes a path or a name. */
pe_status pe_gguf_take_name(pe_gguf_reader *g, const char *what, size_t max,
                            const char **text, size_t *size);

/* gguf_weights.c: an entry of the directory; then, whether all data lie inside the file
 * and not over each other. */
pe_status pe_gguf_read_weight(pe_gguf_reader *g);
pe_status pe_gguf_place_weights(pe_gguf_reader *g);

#endif /* PE_GGUF_READER_H */
