/* SPDX-License-Identifier: MIT
 *
 * rotate.h - turning one vector of a tensor, any dtype and layout
 */
#ifndef PE_ROTATE_H
#define PE_ROTATE_H

#include "base/tensor.h"
#include "kernels/kernels.h"

/* Which elements turn, and how they lie in x and in y. */
typedef struct {
    const pe_kernels *kernels;
    int64_t start, num_pairs; /* the window [start, start + 2 num_pairs) */
    pe_pairing in, out;
} pe_window;

/* Cosines and sines of the window's pairs.  For tables that give each element of y its
 * own numbers, cos1 and sin1 belong to the second element of a pair; else NULL. */
typedef struct {
    const float *cos, *sin;
    const float *cos1, *sin1;
} pe_turn;

/* From x to y, which may be one tensor: what is known of the two before the first token.
 * The members are the caller's. */
typedef struct {
    const pe_window *window;
    const pe_tensor *x, *y;
    int in_place;
    int streams;               /* y is written past the caches: pe_rotor_stream */
    pe_rotate_fn *kernel;      /* NULL: elements share scales or blocks */
    pe_rotate_fn *into_floats; /* where those of y alone do, else NULL */
} pe_rotor;

/* The kernel of two types whose elements stand alone. */
static inline pe_rotate_fn *pe_rotate_kernel(const pe_window *w, pe_dtype in,
                                             pe_dtype out)
{
    return w->kernels->rotate[in - PE_F32][out - PE_F32][w->in == PE_INTERLEAVED]
                             [w->out == PE_INTERLEAVED];
}

pe_rotor pe_rotor_of(const pe_window *window, const pe_tensor *x, const pe_tensor *y);

/* From so many bytes on, a call that writes elsewhere than it reads does so past the
 * caches: they would not hold both, and a store to a line that is not there reads it
 * first.  docs/performance.md has the figures. */
#define PE_STREAM_BYTES (8 << 20)

/* Writes y past the caches, if its layout and the kernels let it; each worker calls the
 * kernels' stream_end after its last token then. */
void pe_rotor_stream(pe_rotor *rotor);

/* All heads of token (b, t): y = x with the window turned, the rest copied (bytes kept
 * where the dtypes agree).  Absent pages are left alone. */
void pe_rotate_token(const pe_rotor *rotor, const pe_turn *turn, int64_t b, int64_t t);

/* One head of it, for tables that have their own numbers for each head. */
void pe_rotate_head(const pe_rotor *rotor, const pe_turn *turn, int64_t b, int64_t t,
                    int64_t h);

/* x against y for a rotation: checks of both, shape, dim = head_dim, overlap. */
pe_status pe_rotate_check(const pe_tensor *x, const char *x_name, const pe_tensor *y,
                          const char *y_name, int64_t head_dim, pe_error *error);

/* Tokens that make a piece of work worth handing to another thread. */
int64_t pe_rotate_grain(int64_t heads, int64_t dim);

#endif /* PE_ROTATE_H */
