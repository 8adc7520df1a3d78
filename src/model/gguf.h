/* SPDX-License-Identifier: MIT
 *
 * gguf.h - the settings and the tensor directory of a GGUF file, versions 2 and 3
 */
#ifndef PE_GGUF_H
#define PE_GGUF_H

#include "model/checkpoint.h"

/* A block format of ggml. */
typedef struct pe_gguf_type {
    const char *name; /* "Q4_K" */
    pe_dtype dtype;   /* 0: not one of ours */
    int32_t block_len;
    int32_t block_size; /* bytes; 0: retired or not known here */
} pe_gguf_type;

/* NULL: not known here. */
const pe_gguf_type *pe_gguf_find_type(uint32_t id);

int pe_gguf_is(const void *data, size_t size);

/* Fills settings and weights, whose data point into data.  Only the header is touched.
 * Big-endian files: numbers are read as what they are, weights stay as they lie, so
 * their dtype is 0.  PE_E_FORMAT with the byte offset; PE_E_UNSUPPORTED for other
 * versions; PE_E_LIMIT. */
pe_status pe_gguf_read(pe_checkpoint *checkpoint, const void *data, size_t size,
                       pe_error *error);

#endif /* PE_GGUF_H */
