/* SPDX-License-Identifier: MIT
 *
 * tensor.h - checking a caller's pe_tensor, and reaching its vectors
 *
 * A vector is the dim elements of one (batch, token, head).  Check once, before the
 * first write; after that every address is known to lie inside. */
#ifndef PE_TENSOR_H
#define PE_TENSOR_H

#include "base/dtype.h"

enum { PE_MAX_VECTOR_DIM = 4096 };

typedef enum { PE_INPUT, PE_OUTPUT } pe_direction;

/* NULL data, counts, strides, dtype, scales, codec, page table and every page in use.
 * An output's vectors must not overlap each other as far as strides show.  name stands
 * in messages: "q.dim is 0, must be at least 1". */
pe_status pe_tensor_check(const pe_tensor *tensor, pe_direction direction,
                          const char *name, pe_error *error);

/* 1: a dense tensor of elements that stand alone, with counts and forward strides too
 * small to overflow, which pe_tensor_check would pass.  One that it passes may give 0:
 * this is the short way in, as the long one takes a fifth of one token's rotation. */
static inline int pe_tensor_is_plain(const pe_tensor *x, pe_direction direction)
{
    const int64_t few = (x->batch - 1) | (x->num_heads - 1) | (x->dim - 1);
    const int64_t strides = x->batch_stride | x->seq_stride | x->head_stride;
    if (x->dtype < PE_F32 || x->dtype > PE_BF16 || x->reserved != 0 ||
        x->page_table != NULL || x->data == NULL || few < 0 || few >> 13 != 0 ||
        x->seq_len < 0 || x->seq_len >> 20 != 0 || strides < 0 || strides >> 36 != 0)
        return 0;
    return direction == PE_INPUT || x->seq_len == 0 ||
           ((x->batch == 1 || x->batch_stride >= x->dim) &&
            (x->seq_len == 1 || x->seq_stride >= x->dim) &&
            (x->num_heads == 1 || x->head_stride >= x->dim));
}

/* batch, seq_len, num_heads and dim agree. */
pe_status pe_tensor_check_same_shape(const pe_tensor *x, const char *x_name,
                                     const pe_tensor *y, const char *y_name,
                                     pe_error *error);

/* The same data, strides and dtype: an operation is in place. */
int pe_tensor_same(const pe_tensor *x, const pe_tensor *y);

/* Refuses outputs that certainly overlap an input that they are not equal to.  Layouts
 * whose overlap strides cannot decide are the caller's word (posenc.h, Aliasing). */
pe_status pe_tensor_check_overlap(const pe_tensor *x, const char *x_name,
                                  const pe_tensor *y, const char *y_name,
                                  pe_error *error);
/* Refuses any overlap that is certain, of the very same tensor, too. */
pe_status pe_tensor_check_apart(const pe_tensor *x, const char *x_name,
                                const pe_tensor *y, const char *y_name,
                                pe_error *error);

/* Index of the first element of vector (b, t, h) from data; negative strides may make
 * it negative, so absence is told apart: 0 is returned when the page is absent, else 1. */
static inline int pe_tensor_at(const pe_tensor *x, int64_t b, int64_t t, int64_t h,
                               int64_t *element)
{
    if (x->page_table == NULL) {
        *element = b * x->batch_stride + t * x->seq_stride + h * x->head_stride;
        return 1;
    }
    const int64_t page = x->page_table[b * x->page_table_stride + t / x->page_len];
    if (page < 0)
        return 0;
    *element =
        page * x->page_stride + t % x->page_len * x->seq_stride + h * x->head_stride;
    return 1;
}

/* seq_stride, or 0 where no two tokens are that far apart: a stride out of use may be
 * anything, and must not be multiplied. */
static inline int64_t pe_tensor_seq_step(const pe_tensor *x)
{
    return x->seq_len > 1 && (x->page_table == NULL || x->page_len > 1) ? x->seq_stride
                                                                        : 0;
}

/* Elements element + [begin, begin + count) of x as floats.  Groups and blocks must not
 * be cut: for PE_I8 outputs and PE_CODED, begin and count are whole groups. */
void pe_vector_load(const pe_tensor *x, int64_t element, int64_t begin, int64_t count,
                    float *out);
void pe_vector_store(const pe_tensor *y, int64_t element, int64_t begin, int64_t count,
                     const float *in);

/* Elements that must be stored together: 1, scale_len or the codec's block_len. */
int64_t pe_tensor_group(const pe_tensor *x);

/* Bytes that count elements take, whole groups or blocks, without their scales. */
static inline int64_t pe_tensor_bytes(const pe_tensor *x, int64_t count)
{
    return x->dtype == PE_CODED ? count / x->codec->block_len * x->codec->block_size
                                : count * pe_dtype_size(x->dtype);
}

/* 1: elements of x and y hold the same bytes for the same value (groups of int8 with
 * their scale, blocks of one codec), so that copying needs no conversion. */
int pe_tensor_same_bytes(const pe_tensor *x, const pe_tensor *y);

/* y's count elements from ey on become x's from ex on, of which both hold the same
 * bytes; whole groups. */
void pe_vector_copy(const pe_tensor *x, int64_t ex, const pe_tensor *y, int64_t ey,
                    int64_t count);

/* Where work on tokens, counted through batch * seq_len, may be cut in front of token, so
 * that no cache line is written from both sides: token itself or the next such place
 * before it, fewer than 64 tokens away; token where there is none, as for data that lie
 * askew, which is seen at once where tokens are whole lines.  Rises with token, and is token at 0 and at the end: pieces whose two ends go
 * through it cover what they covered.  A piece may become empty. */
int64_t pe_tensor_cut(const pe_tensor *const *outputs, int num_outputs, int64_t token);

/* Vectors are rows 0 .. batch * seq_len * num_heads - 1 in the order that memory has
 * them: 1, all tokens of a head before the next head; 0, all heads of a token. */
static inline int pe_tensor_heads_outside(const pe_tensor *x)
{
    return x->num_heads > 1 && x->seq_len > 1 && x->head_stride > x->seq_stride;
}

static inline void pe_tensor_row(const pe_tensor *x, int64_t row, int64_t *b,
                                 int64_t *t, int64_t *h)
{
    const int heads = pe_tensor_heads_outside(x);
    const int64_t inner = heads ? x->seq_len : x->num_heads;
    const int64_t outer = heads ? x->num_heads : x->seq_len;
    const int64_t i = row % inner, o = row / inner % outer;
    *b = row / inner / outer;
    *t = heads ? i : o;
    *h = heads ? o : i;
}

/* pe_tensor_cut for work on rows. */
int64_t pe_tensor_cut_rows(const pe_tensor *y, int64_t row);

#endif /* PE_TENSOR_H */
