/* SPDX-License-Identifier: MIT
 *
 * box.h - a tensor of any dtype and layout between canaries
 *
 * The box owns its memory, knows every element's address by its own reading of the
 * formula in posenc.h, and can say whether a byte that belongs to no element changed. */
#ifndef PE_TESTS_BOX_H
#define PE_TESTS_BOX_H

#include <stddef.h>

#include "posenc/posenc.h"
#include "rng.h"

typedef enum test_layout {
    TEST_BSHD,
    TEST_BHSD,
    TEST_PACKED_QKV, /* (b, t, q + k + v heads, dim); the box is the middle part */
    TEST_PADDED,     /* odd gaps between heads, tokens and rows */
    TEST_BACKWARDS,  /* negative token stride */
    TEST_PAGED,      /* shuffled pages, some absent */
    TEST_NUM_LAYOUTS
} test_layout;

typedef struct test_box {
    pe_tensor t;
    test_layout layout;
    unsigned char *bytes;  /* the whole allocation */
    unsigned char *before; /* its copy at the last test_box_mark */
    size_t size, data_offset;
    float *scales, *scales_before;
    int64_t num_scales;
    int32_t *pages;
} test_box;

/* The block format of the tests: 8 elements as a float scale and int16_t each. */
extern const pe_codec test_codec;
enum { TEST_BLOCK_LEN = 8 };

/* dim must be a multiple of TEST_BLOCK_LEN for PE_CODED.  Elements start at a random
 * offset of whole elements (blocks), so that nothing is aligned beyond its type. */
void test_box_init(test_box *box, test_rng *r, pe_dtype dtype, test_layout layout,
                   int64_t batch, int64_t seq_len, int64_t num_heads, int64_t dim);
void test_box_free(test_box *box);

/* Random values in [-1, 1) that the dtype holds. */
void test_box_fill(test_box *box, test_rng *r);

int test_box_is_present(const test_box *box, int64_t b, int64_t t);
double test_box_get(const test_box *box, int64_t b, int64_t t, int64_t h, int64_t i);
void test_box_set(test_box *box, int64_t b, int64_t t, int64_t h, int64_t i,
                  double value);
/* The scale of the int8 element. */
double test_box_scale(const test_box *box, int64_t b, int64_t t, int64_t h, int64_t i);

/* Remembers all bytes; then 1 if nothing changed since, or nothing but elements. */
void test_box_mark(test_box *box);
int test_box_is_unchanged(const test_box *box);
int test_box_only_elements_changed(const test_box *box);

/* Half a unit in the last place of value in that dtype (not for PE_I8, PE_CODED). */
double test_half_ulp(pe_dtype dtype, double value);

#endif /* PE_TESTS_BOX_H */
