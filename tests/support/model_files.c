/* SPDX-License-Identifier: MIT
 *
 * model_files.c - GGUF and safetensors files made byte by byte, sound or broken
 */
#include "support/model_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void test_file_bytes(test_file *file, const void *bytes, size_t size)
{
    unsigned char *data = realloc(file->data, file->size + size + (size == 0));
    if (data == NULL)
        abort();
    if (size > 0)
        memcpy(data + file->size, bytes, size);
    file->data = data;
    file->size += size;
}

static void spell(const test_file *file, uint64_t value, size_t size,
                  unsigned char *bytes)
{
    for (size_t i = 0; i < size; i++)
        bytes[file->big_endian ? size - 1 - i : i] = (unsigned char)(value >> 8 * i);
}

void test_file_number(test_file *file, uint64_t value, size_t size)
{
    unsigned char bytes[8];
    spell(file, value, size, bytes);
    test_file_bytes(file, bytes, size);
}

void test_file_patch(test_file *file, size_t at, uint64_t value, size_t size)
{
    if (at > file->size || size > file->size - at)
        abort();
    spell(file, value, size, file->data + at);
}

void test_file_cut(test_file *file, size_t size)
{
    unsigned char *data = malloc(size + (size == 0));
    if (data == NULL || size > file->size)
        abort();
    if (size > 0)
        memcpy(data, file->data, size);
    free(file->data);
    file->data = data;
    file->size = size;
}

void test_file_free(test_file *file)
{
    free(file->data);
    memset(file, 0, sizeof *file);
}

void test_file_write(const test_file *file, const char *folder, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    if (out == NULL || fwrite(file->data, 1, file->size, out) != file->size ||
        fclose(out) != 0)
        abort();
}

void test_gguf_begin(test_file *file, uint32_t version)
{
    test_file_bytes(file, "GGUF", 4);
    test_file_number(file, version, 4);
    test_file_number(file, 0, 8);
    test_file_number(file, 0, 8);
}

void test_gguf_text(test_file *file, const char *text)
{
    test_file_number(file, strlen(text), 8);
    test_file_bytes(file, text, strlen(text));
}

void test_gguf_key(test_file *file, const char *key, uint32_t type)
{
    test_gguf_text(file, key);
    test_file_number(file, type, 4);
    file->num_settings++;
}

void test_gguf_string(test_file *file, const char *key, const char *value)
{
    test_gguf_key(file, key, TEST_GGUF_STRING);
    test_gguf_text(file, value);
}

void test_gguf_u32(test_file *file, const char *key, uint32_t value)
{
    test_gguf_key(file, key, TEST_GGUF_U32);
    test_file_number(file, value, 4);
}

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void test_gguf_f32(test_file *file, const char *key, float value)
{
    test_gguf_key(file, key, TEST_GGUF_F32);
    test_file_number(file, float_bits(value), 4);
}

void test_gguf_bool(test_file *file, const char *key, int value)
{
    test_gguf_key(file, key, TEST_GGUF_BOOL);
    test_file_number(file, (uint64_t)value, 1);
}

void test_gguf_i32s(test_file *file, const char *key, const int32_t *values,
                    uint64_t count)
{
    test_gguf_key(file, key, TEST_GGUF_ARRAY);
    test_file_number(file, TEST_GGUF_I32, 4);
    test_file_number(file, count, 8);
    for (uint64_t i = 0; i < count; i++)
        test_file_number(file, (uint32_t)values[i], 4);
}

void test_gguf_weight(test_file *file, const char *name, uint32_t rank,
                      const uint64_t *dims, uint32_t type, uint64_t offset)
{
    test_gguf_text(file, name);
    test_file_number(file, rank, 4);
    for (uint32_t i = 0; i < rank; i++)
        test_file_number(file, dims[i], 8);
    test_file_number(file, type, 4);
    test_file_number(file, offset, 8);
    file->num_weights++;
}

void test_gguf_end(test_file *file, size_t alignment)
{
    test_file_patch(file, 8, file->num_weights, 8);
    test_file_patch(file, 16, file->num_settings, 8);
    while (file->num_weights > 0 && file->size % alignment != 0)
        test_file_number(file, 0, 1);
}

void test_gguf_f32_data(test_file *file, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        test_file_number(file, float_bits(values[i]), 4);
}

void test_safetensors(test_file *file, const char *header, size_t data_size)
{
    test_file_number(file, strlen(header), 8);
    test_file_bytes(file, header, strlen(header));
    for (size_t i = 0; i < data_size; i++)
        test_file_number(file, i & 0xff, 1);
}
