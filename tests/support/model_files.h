/* SPDX-License-Identifier: MIT
 *
 * model_files.h - GGUF and safetensors files made byte by byte, sound or broken
 *
 * A file grows in memory; bytes already written can be patched, so that every count,
 * length and offset can be made to lie. */
#ifndef TEST_MODEL_FILES_H
#define TEST_MODEL_FILES_H

#include <stddef.h>
#include <stdint.h>

typedef struct test_file {
    unsigned char
        *data; /* exactly size bytes, so that sanitizers see a read past them */
    size_t size;
    int big_endian;
    uint64_t num_settings, num_weights; /* GGUF: what test_gguf_end writes */
} test_file;

enum {
    TEST_GGUF_U8 = 0,
    TEST_GGUF_I8,
    TEST_GGUF_U16,
    TEST_GGUF_I16,
    TEST_GGUF_U32,
    TEST_GGUF_I32,
    TEST_GGUF_F32,
    TEST_GGUF_BOOL,
    TEST_GGUF_STRING,
    TEST_GGUF_ARRAY,
    TEST_GGUF_U64,
    TEST_GGUF_I64,
    TEST_GGUF_F64
};
enum { TEST_GGML_F32 = 0, TEST_GGML_F16 = 1, TEST_GGML_Q4_K = 12, TEST_GGML_BF16 = 30 };

void test_file_bytes(test_file *file, const void *bytes, size_t size);
void test_file_number(test_file *file, uint64_t value, size_t size);
void test_file_patch(test_file *file, size_t at, uint64_t value, size_t size);
void test_file_cut(test_file *file, size_t size);
void test_file_free(test_file *file);
/* At a new path under the folder; aborts when it cannot be written. */
void test_file_write(const test_file *file, const char *folder, const char *name);

/* Magic, version and room for the counts. */
void test_gguf_begin(test_file *file, uint32_t version);
void test_gguf_text(test_file *file, const char *text); /* a length and bytes */
void test_gguf_key(test_file *file, const char *key, uint32_t type);
void test_gguf_string(test_file *file, const char *key, const char *value);
void test_gguf_u32(test_file *file, const char *key, uint32_t value);
void test_gguf_f32(test_file *file, const char *key, float value);
void test_gguf_bool(test_file *file, const char *key, int value);
void test_gguf_i32s(test_file *file, const char *key, const int32_t *values,
                    uint64_t count);
/* dims as GGUF has them: the fastest axis first; offset into the data. */
void test_gguf_weight(test_file *file, const char *name, uint32_t rank,
                      const uint64_t *dims, uint32_t type, uint64_t offset);
/* Counts and padding; then come data. */
void test_gguf_end(test_file *file, size_t alignment);
void test_gguf_f32_data(test_file *file, const float *values, size_t count);

/* Length, header as it is given, and data_size bytes 0, 1, 2, ... */
void test_safetensors(test_file *file, const char *header, size_t data_size);

#endif /* TEST_MODEL_FILES_H */
