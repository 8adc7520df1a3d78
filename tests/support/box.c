/* SPDX-License-Identifier: MIT
 *
 * box.c - a tensor of any dtype and layout between canaries
 */
#include "box.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bits16.h"

enum { CANARY = 0xa5, MARGIN = 16 /* elements before and after */ };

struct block {
    float scale;
    int16_t values[TEST_BLOCK_LEN];
};

static void decode(void *ctx, const void *src, float *dst, int64_t count)
{
    (void)ctx;
    for (int64_t i = 0; i < count; i++) {
        struct block block;
        memcpy(&block, (const char *)src + i / TEST_BLOCK_LEN * (int64_t)sizeof block,
               sizeof block);
        dst[i] = block.scale * (float)block.values[i % TEST_BLOCK_LEN];
    }
}

static void encode(void *ctx, const float *src, void *dst, int64_t count)
{
    (void)ctx;
    for (int64_t i = 0; i < count; i += TEST_BLOCK_LEN) {
        struct block block = {0};
        for (int64_t j = 0; j < TEST_BLOCK_LEN; j++)
            block.scale = fmaxf(block.scale, fabsf(src[i + j]) / 32767);
        for (int64_t j = 0; j < TEST_BLOCK_LEN; j++)
            block.values[j] =
                (int16_t)(block.scale > 0 ? lrintf(src[i + j] / block.scale) : 0);
        memcpy((char *)dst + i / TEST_BLOCK_LEN * (int64_t)sizeof block, &block,
               sizeof block);
    }
}

const pe_codec test_codec = {.block_len = TEST_BLOCK_LEN,
                             .block_size = sizeof(struct block),
                             .decode = decode,
                             .encode = encode};

/* Bytes of a unit, and elements in it. */
static size_t unit_size(pe_dtype dtype)
{
    switch (dtype) {
    case PE_F32:
        return 4;
    case PE_I8:
        return 1;
    case PE_CODED:
        return sizeof(struct block);
    default:
        return 2;
    }
}

static int64_t unit_len(pe_dtype dtype)
{
    return dtype == PE_CODED ? TEST_BLOCK_LEN : 1;
}

static int64_t gap(test_rng *r, int64_t quantum, test_layout layout)
{
    return layout == TEST_PADDED ? quantum * test_rng_int(r, 0, 5) : 0;
}

static void init_pages(test_box *box, test_rng *r, int64_t quantum, int64_t *extent)
{
    pe_tensor *t = &box->t;

    t->page_len = test_rng_int(r, 1, 4);
    const int64_t max_pages = t->seq_len / t->page_len + 1;
    const int64_t used = t->batch * max_pages, num_pages = used + 3;
    t->head_stride = t->dim + gap(r, quantum, TEST_PADDED);
    t->seq_stride = t->num_heads * t->head_stride;
    t->page_stride = t->page_len * t->seq_stride + gap(r, quantum, TEST_PADDED);
    t->page_table_stride = max_pages + test_rng_int(r, 0, 2);
    t->capacity = num_pages * t->page_stride;
    t->batch_stride = 0;
    box->pages = malloc((size_t)(t->batch * t->page_table_stride) * sizeof *box->pages);
    int32_t *order = malloc((size_t)num_pages * sizeof *order);
    if (box->pages == NULL || order == NULL)
        abort();
    for (int64_t p = 0; p < num_pages; p++)
        order[p] = (int32_t)p;
    for (int64_t p = num_pages - 1; p > 0; p--) {
        const int64_t q = test_rng_int(r, 0, p);
        const int32_t swap = order[p];
        order[p] = order[q];
        order[q] = swap;
    }
    for (int64_t b = 0, p = 0; b < t->batch; b++)
        for (int64_t m = 0; m < t->page_table_stride; m++)
            box->pages[b * t->page_table_stride + m] =
                m < max_pages && test_rng_int(r, 0, 4) > 0 ? order[p++] : -1;
    free(order);
    t->page_table = box->pages;
    *extent = t->capacity;
}

/* Sets strides; element 0 stands *first elements behind the start of *extent. */
static void init_strides(test_box *box, test_rng *r, int64_t quantum, int64_t *first,
                         int64_t *extent)
{
    pe_tensor *t = &box->t;
    const int64_t head_gap = gap(r, quantum, box->layout);
    int64_t heads = t->num_heads, rows = t->seq_len > 0 ? t->seq_len : 1;

    *first = 0;
    t->head_stride = t->dim + head_gap;
    if (box->layout == TEST_PACKED_QKV) {
        heads = 3 * t->num_heads;
        *first = t->num_heads * t->head_stride;
    }
    if (box->layout == TEST_BHSD) {
        t->seq_stride = t->dim;
        t->head_stride = rows * t->dim;
        t->batch_stride = heads * t->head_stride;
    } else {
        t->seq_stride = heads * t->head_stride + gap(r, quantum, box->layout);
        t->batch_stride = rows * t->seq_stride + gap(r, quantum, box->layout);
    }
    *extent = t->batch * t->batch_stride;
    if (box->layout == TEST_BACKWARDS) {
        *first = (rows - 1) * t->seq_stride;
        t->seq_stride = -t->seq_stride;
    }
}

void test_box_init(test_box *box, test_rng *r, pe_dtype dtype, test_layout layout,
                   int64_t batch, int64_t seq_len, int64_t num_heads, int64_t dim)
{
    const int64_t len = unit_len(dtype);
    int64_t quantum = len, first = 0, extent, scale_len = dim;

    /* Blocks and groups count from element 0, so none may lie before it. */
    if (layout == TEST_BACKWARDS && (dtype == PE_I8 || dtype == PE_CODED))
        layout = TEST_PADDED;
    *box = (test_box){.layout = layout};
    pe_tensor *t = &box->t;
    t->dtype = dtype;
    t->batch = batch;
    t->seq_len = seq_len;
    t->num_heads = num_heads;
    t->dim = dim;
    if (dtype == PE_CODED)
        t->codec = &test_codec;
    if (dtype == PE_I8) {
        /* A group is the head, or half of it where that is whole. */
        if (dim % 2 == 0 && test_rng_int(r, 0, 1))
            t->scale_len = scale_len = dim / 2;
        quantum = scale_len;
    }
    if (layout == TEST_PAGED)
        init_pages(box, r, quantum, &extent);
    else
        init_strides(box, r, quantum, &first, &extent);

    const int64_t lead = MARGIN + test_rng_int(r, 0, 3);
    box->size =
        (size_t)((extent + 2 * MARGIN * len + 4 * len) / len + 1) * unit_size(dtype);
    box->data_offset = (size_t)(lead + first / len) * unit_size(dtype);
    box->bytes = malloc(box->size);
    box->before = malloc(box->size);
    if (dtype == PE_I8) {
        /* Scales are indexed from the element that data points at. */
        box->num_scales = extent / scale_len + 1;
        box->scales = malloc((size_t)box->num_scales * sizeof *box->scales);
        box->scales_before = malloc((size_t)box->num_scales * sizeof *box->scales);
        if (box->scales == NULL || box->scales_before == NULL)
            abort();
        memset(box->scales, 0, (size_t)box->num_scales * sizeof *box->scales);
        t->scales = box->scales + first / scale_len;
    }
    if (box->bytes == NULL || box->before == NULL)
        abort();
    memset(box->bytes, CANARY, box->size);
    t->data = box->bytes + box->data_offset;
    test_box_mark(box);
}

void test_box_free(test_box *box)
{
    free(box->bytes);
    free(box->before);
    free(box->scales);
    free(box->scales_before);
    free(box->pages);
}

int test_box_is_present(const test_box *box, int64_t b, int64_t t)
{
    const pe_tensor *x = &box->t;

    return x->page_table == NULL ||
           x->page_table[b * x->page_table_stride + t / x->page_len] >= 0;
}

static int64_t element(const test_box *box, int64_t b, int64_t t, int64_t h, int64_t i)
{
    const pe_tensor *x = &box->t;

    if (x->page_table != NULL)
        return x->page_table[b * x->page_table_stride + t / x->page_len] *
                   x->page_stride +
               t % x->page_len * x->seq_stride + h * x->head_stride + i;
    return b * x->batch_stride + t * x->seq_stride + h * x->head_stride + i;
}

/* Byte offset of an element's unit within the allocation. */
static size_t place(const test_box *box, int64_t e)
{
    const int64_t unit = e / unit_len(box->t.dtype);

    return (size_t)((int64_t)box->data_offset +
                    unit * (int64_t)unit_size(box->t.dtype));
}

static int64_t scale_len(const test_box *box)
{
    return box->t.scale_len != 0 ? box->t.scale_len : box->t.dim;
}

double test_box_scale(const test_box *box, int64_t b, int64_t t, int64_t h, int64_t i)
{
    return (double)box->t.scales[element(box, b, t, h, i) / scale_len(box)];
}

double test_box_get(const test_box *box, int64_t b, int64_t t, int64_t h, int64_t i)
{
    const int64_t e = element(box, b, t, h, i);
    const unsigned char *at = box->bytes + place(box, e);
    float value;
    uint16_t half;
    struct block block;

    switch (box->t.dtype) {
    case PE_F32:
        memcpy(&value, at, sizeof value);
        return (double)value;
    case PE_F16:
        memcpy(&half, at, sizeof half);
        return test_f16_value(half);
    case PE_BF16:
        memcpy(&half, at, sizeof half);
        return test_bf16_value(half);
    case PE_I8: /* the product, rounded to float, is the element */
        return (double)((float)(int8_t)*at * box->t.scales[e / scale_len(box)]);
    default:
        memcpy(&block, at, sizeof block);
        return (double)(block.scale * (float)block.values[e % TEST_BLOCK_LEN]);
    }
}

void test_box_set(test_box *box, int64_t b, int64_t t, int64_t h, int64_t i,
                  double value)
{
    const int64_t e = element(box, b, t, h, i);
    unsigned char *at = box->bytes + place(box, e);
    const float single = (float)value;
    uint16_t half;
    int64_t group;
    struct block block;

    switch (box->t.dtype) {
    case PE_F32:
        memcpy(at, &single, sizeof single);
        break;
    case PE_F16:
        half = test_f16_nearest(value);
        memcpy(at, &half, sizeof half);
        break;
    case PE_BF16:
        half = test_bf16_nearest(value);
        memcpy(at, &half, sizeof half);
        break;
    case PE_I8:
        group = e / scale_len(box); /* neighbours differ */
        box->t.scales[group] = 0.0078f * (float)(1 + (double)(group % 5) / 8);
        *at = (unsigned char)(int8_t)rint(value * 127 / (1 + (double)(group % 5) / 8));
        break;
    default:
        memcpy(&block, at, sizeof block);
        block.scale = 0x1p-15f;
        block.values[e % TEST_BLOCK_LEN] = (int16_t)rint(value * 32767);
        memcpy(at, &block, sizeof block);
    }
}

void test_box_fill(test_box *box, test_rng *r)
{
    for (int64_t b = 0; b < box->t.batch; b++)
        for (int64_t t = 0; t < box->t.seq_len; t++)
            for (int64_t h = 0; h < box->t.num_heads; h++)
                for (int64_t i = 0; i < box->t.dim && test_box_is_present(box, b, t);
                     i++)
                    test_box_set(box, b, t, h, i, (double)test_rng_float(r));
    test_box_mark(box);
}

void test_box_mark(test_box *box)
{
    memcpy(box->before, box->bytes, box->size);
    if (box->scales != NULL)
        memcpy(box->scales_before, box->scales,
               (size_t)box->num_scales * sizeof *box->scales);
}

int test_box_is_unchanged(const test_box *box)
{
    return memcmp(box->before, box->bytes, box->size) == 0 &&
           (box->scales == NULL ||
            memcmp(box->scales, box->scales_before,
                   (size_t)box->num_scales * sizeof *box->scales) == 0);
}

int test_box_only_elements_changed(const test_box *box)
{
    const pe_tensor *x = &box->t;
    unsigned char *own = calloc(box->size, 1);
    unsigned char *own_scale = calloc((size_t)box->num_scales + 1, 1);
    int clean = 1;

    if (own == NULL || own_scale == NULL)
        abort();
    for (int64_t b = 0; b < x->batch; b++)
        for (int64_t t = 0; t < x->seq_len; t++)
            for (int64_t h = 0; h < x->num_heads; h++)
                for (int64_t i = 0; i < x->dim && test_box_is_present(box, b, t); i++) {
                    const int64_t e = element(box, b, t, h, i);
                    memset(own + place(box, e), 1, unit_size(x->dtype));
                    if (x->scales != NULL)
                        own_scale[x->scales - box->scales + e / scale_len(box)] = 1;
                }
    for (size_t n = 0; n < box->size; n++)
        clean &= own[n] || box->bytes[n] == box->before[n];
    for (int64_t n = 0; n < box->num_scales; n++)
        clean &= own_scale[n] || memcmp(&box->scales[n], &box->scales_before[n],
                                        sizeof box->scales[n]) == 0;
    free(own);
    free(own_scale);
    return clean;
}

double test_half_ulp(pe_dtype dtype, double value)
{
    const int bits = dtype == PE_F32 ? 24 : dtype == PE_F16 ? 11 : 8;
    const int lowest = dtype == PE_F32 ? -149 : dtype == PE_F16 ? -24 : -133;
    int exponent;

    (void)frexp(value, &exponent);
    if (value == 0 || exponent - bits < lowest)
        exponent = lowest + bits;
    return ldexp(0.5, exponent - bits);
}
