/* SPDX-License-Identifier: MIT
 *
 * rotate.c - load, turn, store
 *
 * Kernels and the way by floats read a window before they write it, so rotating in place
 * is right for every pairing, also when the out pairing differs. */
#include "rope/rotate.h"

#include "base/dtype.h"
#include "base/error.h"
#include "kernels/vectors.h"
#include "rope/pairs.h"

#include <string.h>

/* Copies elements [begin, end) of a vector outside the window. */
static void copy_rest(const pe_kernels *kernels, const pe_tensor *x, int64_t ex,
                      const pe_tensor *y, int64_t ey, int64_t begin, int64_t end)
{
    float buffer[PE_MAX_VECTOR_DIM];
    if (begin >= end)
        return;
    if (pe_tensor_same_bytes(x, y)) {
        pe_vector_copy(x, ex + begin, y, ey + begin, end - begin);
        return;
    }
    pe_kernels_load(kernels, x, ex, begin, end - begin, buffer);
    pe_kernels_store(kernels, y, ey, begin, end - begin, buffer);
}

static int stands_alone(const pe_tensor *x)
{
    return pe_dtype_size(x->dtype) >= 2;
}

pe_rotor pe_rotor_of(const pe_window *window, const pe_tensor *x, const pe_tensor *y)
{
    return (pe_rotor){
        .window = window,
        .x = x,
        .y = y,
        .in_place = pe_tensor_same(x, y),
        .kernel = stands_alone(x) && stands_alone(y)
                      ? pe_rotate_kernel(window, x->dtype, y->dtype)
                      : NULL,
        .into_floats = stands_alone(x) && !stands_alone(y)
                           ? pe_rotate_kernel(window, x->dtype, PE_F32)
                           : NULL,
    };
}

/* --------------------------------------------------- elements that stand alone --- */

/* A line; the longest vector; what is turned before it is streamed: less leaves reading
 * and writing by turns too short, more lets go of the first cache. */
enum { STREAM_LINE = 64, STREAM_ROOM = 8192, STREAM_GROUP = 4096 };

void pe_rotor_stream(pe_rotor *r)
{
    const pe_tensor *y = r->y;
    const int64_t size = pe_dtype_size(y->dtype);
    const int64_t strides = y->batch_stride | y->seq_stride | y->head_stride |
                            (y->page_table != NULL ? y->page_stride : 0);
    r->streams =
        r->kernel != NULL && !r->in_place && r->window->kernels->stream != NULL &&
        2 * r->window->num_pairs == y->dim && y->dim * size <= STREAM_ROOM &&
        ((uintptr_t)y->data | (uintptr_t)(strides | y->dim) * (uintptr_t)size) %
                STREAM_LINE ==
            0;
}

/* Turns some heads into room that stays in the first cache, and streams them from there
 * while those that come next, or the next token's first, are fetched. */
static void rotate_streaming(const pe_rotor *r, const pe_turn *turn, int64_t ex,
                             int64_t ey)
{
    _Alignas(STREAM_LINE) unsigned char room[STREAM_ROOM];
    const pe_kernels *kernels = r->window->kernels;
    const pe_tensor *x = r->x, *y = r->y;
    const int64_t x_size = pe_dtype_size(x->dtype), y_size = pe_dtype_size(y->dtype);
    const int64_t bytes = y->dim * y_size;
    const int64_t group = bytes < STREAM_GROUP ? STREAM_GROUP / bytes : 1;
    for (int64_t h = 0; h < x->num_heads; h += group) {
        const int64_t left = x->num_heads - h, count = left < group ? left : group;
        const unsigned char *const from =
            (const unsigned char *)x->data + (ex + h * x->head_stride) * x_size;
        unsigned char *const to =
            (unsigned char *)y->data + (ey + h * y->head_stride) * y_size;
        /* Not a product that a stride out of use could overflow. */
        const uintptr_t next =
            left > group ? (uintptr_t)(group * x->head_stride)
                         : (uintptr_t)x->seq_stride - (uintptr_t)(h * x->head_stride);
        const uintptr_t ahead = (uintptr_t)from + next * (uintptr_t)x_size;
        r->kernel(from, count > 1 ? x->head_stride : 0, room, y->dim, count, turn->cos,
                  turn->sin, r->window->num_pairs);
        if (y->head_stride == y->dim) {
            kernels->stream(room, to, count * bytes, (const void *)ahead);
            continue;
        }
        for (int64_t k = 0; k < count; k++)
            kernels->stream(
                room + k * bytes, to + k * y->head_stride * y_size, bytes,
                (const void *)(ahead + (uintptr_t)(k * x->head_stride * x_size)));
    }
}

static void rotate_plain(const pe_rotor *r, const pe_turn *turn, int64_t ex, int64_t ey)
{
    const pe_window *w = r->window;
    const pe_tensor *x = r->x, *y = r->y;
    const unsigned char *from =
        (const unsigned char *)x->data + (ex + w->start) * pe_dtype_size(x->dtype);
    unsigned char *to =
        (unsigned char *)y->data + (ey + w->start) * pe_dtype_size(y->dtype);
    /* A stride that is not in use may be anything, and kernels step past the last. */
    const int64_t x_stride = x->num_heads > 1 ? x->head_stride : 0;
    const int64_t y_stride = x->num_heads > 1 ? y->head_stride : 0;
    r->kernel(from, x_stride, to, y_stride, x->num_heads, turn->cos, turn->sin,
              w->num_pairs);
    if (r->in_place || (w->start == 0 && 2 * w->num_pairs == x->dim))
        return;
    for (int64_t h = 0; h < x->num_heads; h++) {
        const int64_t hx = ex + h * x->head_stride, hy = ey + h * y->head_stride;
        copy_rest(w->kernels, x, hx, y, hy, 0, w->start);
        copy_rest(w->kernels, x, hx, y, hy, w->start + 2 * w->num_pairs, x->dim);
    }
}

/* ------------------------------------- by way of floats: groups, blocks, own rows --- */

static void turn_floats(const pe_window *w, const pe_turn *turn, const float *x,
                        float *y)
{
    const int64_t n = w->num_pairs;
    if (turn->cos1 == NULL) {
        pe_rotate_kernel(w, PE_F32, PE_F32)(x, 0, y, 0, 1, turn->cos, turn->sin, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        /* As the kernels do: exact products, one rounding. */
        const double a = x[pe_pair_first(w->in, i)], b = x[pe_pair_second(w->in, i, n)];
        const double c = turn->cos[i], s = turn->sin[i];
        const double c1 = turn->cos1[i], s1 = turn->sin1[i];
        y[pe_pair_first(w->out, i)] = (float)(a * c - b * s);
        y[pe_pair_second(w->out, i, n)] = (float)(a * s1 + b * c1);
    }
}

static void rotate_grouped(const pe_rotor *r, const pe_turn *turn, int64_t ex,
                           int64_t ey)
{
    const pe_window *w = r->window;
    const pe_tensor *x = r->x, *y = r->y;
    float in[PE_MAX_VECTOR_DIM], out[PE_MAX_VECTOR_DIM];
    const int64_t gx = pe_tensor_group(x), gy = pe_tensor_group(y);
    /* The window widened to whole groups; all of the vector if the two sides group
     * differently. */
    int64_t begin = w->start / gy * gy;
    int64_t end = (w->start + 2 * w->num_pairs + gy - 1) / gy * gy;
    if (gx != 1 && gx != gy) {
        begin = 0;
        end = x->dim;
    }
    pe_kernels_load(w->kernels, x, ex, begin, end - begin, in);
    if (gx != 1 || gy != 1)
        memcpy(out, in, (size_t)(end - begin) * sizeof *out);
    turn_floats(w, turn, in + (w->start - begin), out + (w->start - begin));
    if (!r->in_place) {
        copy_rest(w->kernels, x, ex, y, ey, 0, begin);
        copy_rest(w->kernels, x, ex, y, ey, end, x->dim);
    }
    pe_kernels_store(w->kernels, y, ey, begin, end - begin, out);
}

/* The vectors of the token after that at ex: heads [h, h + count). */
static void ask_for_next(const pe_tensor *x, int64_t ex, int64_t h, int64_t count)
{
    const int64_t size = pe_dtype_size(x->dtype);
    if (x->page_table != NULL)
        return;
    for (int64_t i = h; i < h + count; i++)
        pe_ask_for((uintptr_t)x->data + (uintptr_t)((ex + x->seq_stride +
                                                     (i > 0 ? i * x->head_stride : 0)) *
                                                    size),
                   x->dim * size);
}

/* From elements that stand alone: as many heads as there is room for are turned into
 * floats and stored from there, while they are in the cache.  Meanwhile memory would
 * rest: it is asked for the next token, little by little. */
static void rotate_into_groups(const pe_rotor *r, const pe_turn *turn, int64_t ex,
                               int64_t ey)
{
    enum { FEW = 4 };
    const pe_window *w = r->window;
    const pe_tensor *x = r->x, *y = r->y;
    const int64_t dim = x->dim, end = w->start + 2 * w->num_pairs;
    const int64_t room = PE_MAX_VECTOR_DIM / dim,
                  x_stride = x->num_heads > 1 ? x->head_stride : 0,
                  y_stride = x->num_heads > 1 ? y->head_stride : 0;
    float out[PE_MAX_VECTOR_DIM];
    for (int64_t h = 0; h < x->num_heads; h += room) {
        const int64_t rest = x->num_heads - h, heads = rest < room ? rest : room;
        const int64_t first = ex + h * x_stride;
        const unsigned char *from = (const unsigned char *)x->data +
                                    (first + w->start) * pe_dtype_size(x->dtype);
        r->into_floats(from, x_stride, out + w->start, dim, heads, turn->cos, turn->sin,
                       w->num_pairs);
        for (int64_t i = 0; i < heads && end - w->start < dim; i++) {
            float *row = out + i * dim;
            pe_kernels_load(w->kernels, x, first + i * x_stride, 0, w->start, row);
            pe_kernels_load(w->kernels, x, first + i * x_stride, end, dim - end,
                            row + end);
        }
        for (int64_t i = 0; i < heads; i += FEW) {
            const int64_t few = heads - i < FEW ? heads - i : FEW;
            if (x->seq_len > 1)
                ask_for_next(x, ex, h + i, few);
            pe_kernels_store_heads(w->kernels, y, ey + (h + i) * y_stride, few,
                                   out + i * dim);
        }
    }
}

void pe_rotate_head(const pe_rotor *r, const pe_turn *turn, int64_t b, int64_t t,
                    int64_t h)
{
    int64_t ex, ey;
    if (pe_tensor_at(r->x, b, t, h, &ex) && pe_tensor_at(r->y, b, t, h, &ey))
        rotate_grouped(r, turn, ex, ey);
}

void pe_rotate_token(const pe_rotor *r, const pe_turn *turn, int64_t b, int64_t t)
{
    int64_t ex, ey;
    if (turn->cos1 == NULL && (r->kernel != NULL || r->into_floats != NULL)) {
        if (!pe_tensor_at(r->x, b, t, 0, &ex) || !pe_tensor_at(r->y, b, t, 0, &ey))
            return;
        if (r->streams)
            rotate_streaming(r, turn, ex, ey);
        else if (r->kernel != NULL)
            rotate_plain(r, turn, ex, ey);
        else
            rotate_into_groups(r, turn, ex, ey);
        return;
    }
    for (int64_t h = 0; h < r->x->num_heads; h++)
        pe_rotate_head(r, turn, b, t, h);
}

pe_status pe_rotate_check(const pe_tensor *x, const char *x_name, const pe_tensor *y,
                          const char *y_name, int64_t head_dim, pe_error *error)
{
    pe_status status;
    const int is_short = x != NULL && x == y && pe_tensor_is_plain(x, PE_OUTPUT);
    if (!is_short &&
        ((status = pe_tensor_check(x, PE_INPUT, x_name, error)) != PE_OK ||
         (status = pe_tensor_check(y, PE_OUTPUT, y_name, error)) != PE_OK ||
         (status = pe_tensor_check_same_shape(x, x_name, y, y_name, error)) != PE_OK))
        return status;
    if (x->dim != head_dim)
        return pe_fail(error, PE_E_SHAPE, "%s.dim is %lld, must be head_dim (%lld)",
                       x_name, (long long)x->dim, (long long)head_dim);
    return is_short ? PE_OK : pe_tensor_check_overlap(x, x_name, y, y_name, error);
}

int64_t pe_rotate_grain(int64_t heads, int64_t dim)
{
    const int64_t elements = 32768;
    const int64_t per_token = heads * dim;
    return per_token >= elements ? 1 : elements / per_token;
}
