/* SPDX-License-Identifier: MIT
 *
 * absolute.h - what sinusoidal and learned encodings share
 *
 * A plan begins with this struct; its kind says how a token's encoding is made.  The
 * calls in absolute.c know nothing more, and the two kinds do not know each other. */
#ifndef PE_ABSOLUTE_H
#define PE_ABSOLUTE_H

#include "base/memory.h"
#include "base/tensor.h"
#include "kernels/vectors.h"

enum { PE_ENCODE_TOKENS = 64 };

typedef struct {
    /* Elements [begin, begin + count) of the encodings of tokens [t, t + tokens) of row
     * b, which must be made, [tokens][count].  tokens is at most PE_ENCODE_TOKENS, count
     * PE_MAX_VECTOR_DIM, and cuts no group of plan->group elements. */
    void (*encode)(const pe_absolute *plan, const pe_positions *at, int64_t b,
                   int64_t t, int64_t tokens, int64_t begin, int64_t count, float *out);
    /* Everything that encode relies on, for the tokens and memory of y. */
    pe_status (*check)(const pe_absolute *plan, const pe_positions *at,
                       const pe_tensor *y, const char *y_name, pe_error *error);
    /* NULL: there is nothing to train.  dy has been checked. */
    pe_status (*backward)(const pe_absolute *plan, const pe_positions *at,
                          const pe_tensor *dy, const pe_tensor *dweight,
                          pe_error *error);
} pe_absolute_kind;

/* Encodings that lie in memory: those of whole positions first .. first + count - 1 but
 * one, in elements of kind (PE_K_F32 to PE_K_BF16).  Others are made. */
typedef struct {
    const unsigned char *data;    /* of the first; NULL: none */
    int64_t first, count, stride; /* stride in bytes */
    int64_t without;              /* the position that is left out; INT64_MIN: none */
    int kind;
} pe_absolute_rows;

struct pe_absolute {
    const pe_absolute_kind *kind;
    pe_env env;
    const pe_kernels *kernels;
    size_t size; /* of the one block that begins with this struct */
    int64_t model_dim, capacity, group;
    pe_sum sum;
    pe_absolute_rows rows;
};

/* How x is scaled; float_steps: embed_scale * x is rounded to float before the sum. */
pe_sum pe_absolute_sum(double embed_scale, int float_steps);

/* How many elements of a vector of dim to hold at a time: all of them, or, past
 * PE_MAX_VECTOR_DIM, as many as cut no group of any of the sizes.  PE_E_LIMIT when the
 * groups are too wide for that; name: of the tensor that dim belongs to. */
pe_status pe_absolute_chunk(int64_t dim, const int64_t groups[3], const char *name,
                            int64_t *chunk, pe_error *error);

/* First element of a row of a table (1, rows, 1, dim) that is not paged. */
static inline int64_t pe_table_row(const pe_tensor *table, int64_t row)
{
    return row * table->seq_stride;
}

#endif /* PE_ABSOLUTE_H */
