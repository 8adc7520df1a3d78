/* SPDX-License-Identifier: MIT
 *
 * tensor.c - making, checking and comparing tensors
 */
#include "base/tensor.h"

#include "base/checked.h"
#include "base/error.h"

#include <string.h>

void pe_tensor_bshd(pe_tensor *out, pe_dtype dtype, const void *data, int64_t batch,
                    int64_t seq_len, int64_t num_heads, int64_t dim)
{
    memset(out, 0, sizeof *out);
    out->data = (void *)(uintptr_t)data;
    out->dtype = dtype;
    out->batch = batch;
    out->seq_len = seq_len;
    out->num_heads = num_heads;
    out->dim = dim;
    /* A product that overflows leaves a stride that the check refuses. */
    out->head_stride = dim;
    if (!pe_mul_i64(num_heads, dim, &out->seq_stride) ||
        !pe_mul_i64(seq_len, out->seq_stride, &out->batch_stride))
        out->seq_stride = out->batch_stride = INT64_MAX;
}

void pe_tensor_bhsd(pe_tensor *out, pe_dtype dtype, const void *data, int64_t batch,
                    int64_t num_heads, int64_t seq_len, int64_t dim)
{
    pe_tensor_bshd(out, dtype, data, batch, seq_len, num_heads, dim);
    out->seq_stride = dim;
    if (!pe_mul_i64(seq_len, dim, &out->head_stride) ||
        !pe_mul_i64(num_heads, out->head_stride, &out->batch_stride))
        out->head_stride = out->batch_stride = INT64_MAX;
}

void pe_tensor_paged(pe_tensor *out, pe_dtype dtype, const void *pool,
                     int64_t num_pages, int64_t page_len, int64_t num_heads,
                     int64_t dim, const int32_t *page_table, int64_t batch,
                     int64_t max_pages)
{
    int64_t seq_len;
    if (!pe_mul_i64(max_pages, page_len, &seq_len))
        seq_len = INT64_MAX;
    pe_tensor_bshd(out, dtype, pool, batch, seq_len, num_heads, dim);
    out->batch_stride = 0;
    out->page_table = page_table;
    out->page_table_stride = max_pages;
    out->page_len = page_len;
    if (!pe_mul_i64(page_len, out->seq_stride, &out->page_stride) ||
        !pe_mul_i64(num_pages, out->page_stride, &out->capacity))
        out->page_stride = out->capacity = INT64_MAX;
}

int64_t pe_tensor_group(const pe_tensor *x)
{
    if (x->dtype == PE_I8)
        return x->scale_len ? x->scale_len : x->dim;
    return x->dtype == PE_CODED ? x->codec->block_len : 1;
}

int pe_tensor_same_bytes(const pe_tensor *x, const pe_tensor *y)
{
    if (x->dtype != y->dtype)
        return 0;
    if (x->dtype == PE_I8)
        return pe_tensor_group(x) == pe_tensor_group(y);
    return x->dtype != PE_CODED || x->codec == y->codec;
}

/* The rows of both find their tokens in the same way; fields not in use may differ. */
static int same_rows(const pe_tensor *x, const pe_tensor *y)
{
    if (x->page_table != y->page_table)
        return 0;
    if (x->page_table == NULL)
        return x->batch == 1 || x->batch_stride == y->batch_stride;
    return x->page_len == y->page_len && x->page_stride == y->page_stride &&
           (x->batch == 1 || x->page_table_stride == y->page_table_stride);
}

int pe_tensor_same(const pe_tensor *x, const pe_tensor *y)
{
    const int64_t tokens =
        x->page_table != NULL && x->page_len < x->seq_len ? x->page_len : x->seq_len;
    return x == y ||
           (x->data == y->data && pe_tensor_same_bytes(x, y) &&
            (x->dtype != PE_I8 || x->scales == y->scales) && same_rows(x, y) &&
            (tokens <= 1 || x->seq_stride == y->seq_stride) &&
            (x->num_heads == 1 || x->head_stride == y->head_stride));
}

/* ------------------------------------------------------------------ checks --- */

static pe_status check_counts(const pe_tensor *x, const char *name, pe_error *error)
{
    const struct {
        const char *field;
        int64_t value, min;
    } counts[] = {{"batch", x->batch, 1},
                  {"seq_len", x->seq_len, 0},
                  {"num_heads", x->num_heads, 1},
                  {"dim", x->dim, 1}};
    for (size_t i = 0; i < PE_COUNT(counts); i++)
        if (counts[i].value < counts[i].min)
            return pe_fail(error, PE_E_SHAPE, "%s.%s is %lld, must be at least %lld",
                           name, counts[i].field, (long long)counts[i].value,
                           (long long)counts[i].min);
    int64_t elements = x->dim;
    for (size_t i = 0; i < 3; i++)
        if (!pe_mul_i64(elements, counts[i].value, &elements))
            return pe_fail(error, PE_E_SHAPE,
                           "%s is (%lld, %lld, %lld, %lld), more elements than int64 "
                           "can count",
                           name, (long long)x->batch, (long long)x->seq_len,
                           (long long)x->num_heads, (long long)x->dim);
    if (x->reserved != 0)
        return pe_fail(error, PE_E_ARGUMENT, "%s.reserved is %d, must be 0", name,
                       x->reserved);
    return PE_OK;
}

/* Strides in use, with the count that each walks. */
typedef struct {
    const char *field;
    int64_t count, stride;
} axis;

static int axes_of(const pe_tensor *x, axis axes[3])
{
    int n = 0;
    const int paged = x->page_table != NULL;
    if (!paged && x->batch > 1)
        axes[n++] = (axis){"batch_stride", x->batch, x->batch_stride};
    const int64_t tokens = paged && x->page_len < x->seq_len ? x->page_len : x->seq_len;
    if (tokens > 1)
        axes[n++] = (axis){"seq_stride", tokens, x->seq_stride};
    if (x->num_heads > 1)
        axes[n++] = (axis){"head_stride", x->num_heads, x->head_stride};
    return n;
}

/* First and one past the last element that the strides reach, from data or a page. */
static int extent(const pe_tensor *x, int64_t *first, int64_t *end)
{
    axis axes[3];
    const int n = axes_of(x, axes);
    *first = 0;
    *end = x->dim;
    for (int i = 0; i < n; i++) {
        int64_t reach;
        if (!pe_mul_i64(axes[i].count - 1, axes[i].stride, &reach) ||
            !(reach < 0 ? pe_add_i64(*first, reach, first)
                        : pe_add_i64(*end, reach, end)))
            return 0;
    }
    const int64_t len = x->dtype == PE_CODED ? x->codec->block_len : 1;
    const int64_t size = x->dtype == PE_CODED ? x->codec->block_size : 4;
    int64_t bytes;
    return pe_mul_i64(len == 1 ? *end : *end / len, size, &bytes) &&
           pe_mul_i64(len == 1 ? *first : *first / len, size, &bytes);
}

static pe_status check_strides(const pe_tensor *x, pe_direction direction,
                               const char *name, pe_error *error)
{
    axis axes[3];
    const int n = axes_of(x, axes);
    for (int i = 0; i < n; i++) {
        const int64_t stride = axes[i].stride;
        if (stride == INT64_MIN)
            return pe_fail(error, PE_E_SHAPE, "%s.%s is out of range", name,
                           axes[i].field);
        if (direction == PE_OUTPUT && x->seq_len > 0 &&
            (stride < 0 ? -stride : stride) < x->dim)
            return pe_fail(error, PE_E_SHAPE,
                           "%s.%s is %lld, must be at least dim (%lld): the vectors of "
                           "an output must not overlap",
                           name, axes[i].field, (long long)stride, (long long)x->dim);
        if (stride < 0 && pe_tensor_group(x) > 1)
            return pe_fail(error, PE_E_SHAPE,
                           "%s.%s is %lld, must be at least 0 for grouped dtypes", name,
                           axes[i].field, (long long)stride);
        if (stride % pe_tensor_group(x) != 0)
            return pe_fail(error, PE_E_SHAPE,
                           "%s.%s is %lld, must be a multiple of the %lld elements "
                           "that share a scale or block",
                           name, axes[i].field, (long long)stride,
                           (long long)pe_tensor_group(x));
    }
    int64_t first, end;
    if (x->seq_len > 0 && !extent(x, &first, &end))
        return pe_fail(error, PE_E_SHAPE,
                       "%s: counts times strides exceed what int64 can address", name);
    return PE_OK;
}

static pe_status check_dtype(const pe_tensor *x, const char *name, pe_error *error)
{
    if (x->dtype < PE_F32 || x->dtype > PE_CODED)
        return pe_fail(error, PE_E_DTYPE,
                       "%s.dtype is %d, must be PE_F32, PE_F16, PE_BF16, PE_I8 or "
                       "PE_CODED",
                       name, x->dtype);
    if (x->dtype == PE_CODED) {
        const pe_codec *codec = x->codec;
        if (codec == NULL || codec->decode == NULL || codec->encode == NULL)
            return pe_fail(error, PE_E_ARGUMENT,
                           "%s.codec is missing or has no decode or encode", name);
        if (codec->block_len < 1 || codec->block_size < 1)
            return pe_fail(error, PE_E_ARGUMENT,
                           "%s.codec has block_len %lld and block_size %lld, both must "
                           "be at least 1",
                           name, (long long)codec->block_len,
                           (long long)codec->block_size);
    }
    if (x->dtype == PE_I8) {
        if (x->scales == NULL)
            return pe_fail(error, PE_E_ARGUMENT,
                           "%s.scales is NULL, PE_I8 needs scales", name);
        if (x->scale_len < 0)
            return pe_fail(error, PE_E_SHAPE,
                           "%s.scale_len is %lld, must be at least 1", name,
                           (long long)x->scale_len);
    }
    if (x->dim % pe_tensor_group(x) != 0)
        return pe_fail(error, PE_E_SHAPE,
                       "%s.dim is %lld, must be a multiple of the %lld elements that "
                       "share a scale or block",
                       name, (long long)x->dim, (long long)pe_tensor_group(x));
    return PE_OK;
}

static pe_status check_pages(const pe_tensor *x, const char *name, pe_error *error)
{
    if (x->page_len < 1 || x->page_stride < 0 || x->capacity < 0)
        return pe_fail(error, PE_E_SHAPE,
                       "%s: page_len is %lld, page_stride %lld, capacity %lld; paging "
                       "needs at least 1, 0 and 0",
                       name, (long long)x->page_len, (long long)x->page_stride,
                       (long long)x->capacity);
    if (x->page_stride % pe_tensor_group(x) != 0)
        return pe_fail(
            error, PE_E_SHAPE,
            "%s.page_stride is %lld, must be a multiple of the %lld elements "
            "that share a scale or block",
            name, (long long)x->page_stride, (long long)pe_tensor_group(x));
    int64_t first, end;
    if (!extent(x, &first, &end) || first < 0)
        return pe_fail(error, PE_E_SHAPE, "%s: strides of a page must be at least 0",
                       name);
    const int64_t pages = (x->seq_len - 1) / x->page_len + 1;
    int64_t last_row;
    if (x->batch > 1 && !pe_mul_i64(x->batch - 1, x->page_table_stride, &last_row))
        return pe_fail(error, PE_E_SHAPE,
                       "%s.page_table_stride is %lld, too far for %lld rows", name,
                       (long long)x->page_table_stride, (long long)x->batch);
    for (int64_t b = 0; b < x->batch; b++)
        for (int64_t i = 0; i < pages; i++) {
            const int64_t page = x->page_table[b * x->page_table_stride + i];
            int64_t start, last;
            if (page < 0)
                continue;
            if (!pe_mul_i64(page, x->page_stride, &start) ||
                !pe_add_i64(start, end, &last) || last > x->capacity)
                return pe_fail(
                    error, PE_E_POSITION,
                    "%s.page_table[%lld][%lld] is %lld, whose page ends past "
                    "capacity (%lld elements)",
                    name, (long long)b, (long long)i, (long long)page,
                    (long long)x->capacity);
        }
    return PE_OK;
}

pe_status pe_tensor_check(const pe_tensor *tensor, pe_direction direction,
                          const char *name, pe_error *error)
{
    pe_status status;
    if (tensor == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "%s is NULL", name);
    if (pe_tensor_is_plain(tensor, direction))
        return PE_OK;
    if ((status = check_counts(tensor, name, error)) != PE_OK ||
        (status = check_dtype(tensor, name, error)) != PE_OK ||
        (status = check_strides(tensor, direction, name, error)) != PE_OK)
        return status;
    if (tensor->data == NULL && tensor->seq_len > 0)
        return pe_fail(error, PE_E_ARGUMENT, "%s.data is NULL", name);
    return tensor->page_table != NULL && tensor->seq_len > 0
               ? check_pages(tensor, name, error)
               : PE_OK;
}

pe_status pe_tensor_check_same_shape(const pe_tensor *x, const char *x_name,
                                     const pe_tensor *y, const char *y_name,
                                     pe_error *error)
{
    if (x->batch != y->batch || x->seq_len != y->seq_len ||
        x->num_heads != y->num_heads || x->dim != y->dim)
        return pe_fail(error, PE_E_SHAPE,
                       "%s is (%lld, %lld, %lld, %lld), must have the shape of %s "
                       "(%lld, %lld, %lld, %lld)",
                       y_name, (long long)y->batch, (long long)y->seq_len,
                       (long long)y->num_heads, (long long)y->dim, x_name,
                       (long long)x->batch, (long long)x->seq_len,
                       (long long)x->num_heads, (long long)x->dim);
    return PE_OK;
}

/* ----------------------------------------------------------------- overlap --- */

/* Bytes [*first, *end) that a dense tensor's vectors span. */
static void span(const pe_tensor *x, uintptr_t *first, uintptr_t *end)
{
    int64_t low = 0, high = 0;
    extent(x, &low, &high);
    *first = (uintptr_t)x->data + (uintptr_t)pe_tensor_bytes(x, low);
    *end = (uintptr_t)x->data + (uintptr_t)pe_tensor_bytes(x, high);
}

/* 1: the vectors fill their span without gaps, so sharing a byte means overlapping. */
static int fills_span(const pe_tensor *x)
{
    int64_t low = 0, high = 0;
    extent(x, &low, &high);
    return (high - low) / x->dim == x->batch * x->seq_len * x->num_heads;
}

/* Both tensors walk one lattice of strides, y starting distance elements after x: do
 * two of their vectors meet?  Tried by dividing distance by the strides from the widest
 * down, which is exact for nested layouts (every layout that is not itself odd). */
static int lattices_meet(const axis *axes, int num_axes, int64_t dim, int64_t distance)
{
    if (num_axes == 0)
        return distance > -dim && distance < dim;
    const int64_t stride = axes[0].stride < 0 ? -axes[0].stride : axes[0].stride;
    if (stride == 0)
        return lattices_meet(axes + 1, num_axes - 1, dim, distance);
    const int64_t near = distance / stride;
    for (int64_t step = near - 1; step <= near + 1; step++)
        if (step > -axes[0].count && step < axes[0].count &&
            lattices_meet(axes + 1, num_axes - 1, dim, distance - step * stride))
            return 1;
    return 0;
}

static void widest_first(axis *axes, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0; j--) {
            const int64_t a = axes[j - 1].stride, b = axes[j].stride;
            if ((a < 0 ? -a : a) >= (b < 0 ? -b : b))
                break;
            const axis t = axes[j];
            axes[j] = axes[j - 1];
            axes[j - 1] = t;
        }
}

/* What a plain tensor spans, from its data on. */
static uintptr_t plain_span(const pe_tensor *x)
{
    const int64_t last = (x->batch - 1) * x->batch_stride +
                         (x->seq_len - 1) * x->seq_stride +
                         (x->num_heads - 1) * x->head_stride;
    return (uintptr_t)((last + x->dim) * pe_dtype_size(x->dtype));
}

static int overlap_is_certain(const pe_tensor *x, const pe_tensor *y)
{
    uintptr_t x_first = (uintptr_t)x->data, x_end, y_first = (uintptr_t)y->data, y_end;
    if (x->page_table != NULL || y->page_table != NULL)
        return 0;
    if (pe_tensor_is_plain(x, PE_INPUT) && pe_tensor_is_plain(y, PE_INPUT) &&
        (x_first + plain_span(x) <= y_first || y_first + plain_span(y) <= x_first))
        return 0;
    span(x, &x_first, &x_end);
    span(y, &y_first, &y_end);
    if (x_end <= y_first || y_end <= x_first)
        return 0;
    if (fills_span(x) && fills_span(y))
        return 1;
    const int64_t size = pe_dtype_size(x->dtype);
    const int64_t bytes = (int64_t)((uintptr_t)y->data - (uintptr_t)x->data);
    if (x->dtype != y->dtype || size == 0 || bytes % size != 0)
        return 0;
    axis xs[3], ys[3];
    const int n = axes_of(x, xs);
    if (n != axes_of(y, ys))
        return 0;
    for (int i = 0; i < n; i++)
        if (xs[i].stride != ys[i].stride)
            return 0;
    widest_first(xs, n);
    return lattices_meet(xs, n, x->dim, bytes / size);
}

pe_status pe_tensor_check_overlap(const pe_tensor *x, const char *x_name,
                                  const pe_tensor *y, const char *y_name,
                                  pe_error *error)
{
    if (x->seq_len == 0 || pe_tensor_same(x, y) || !overlap_is_certain(x, y))
        return PE_OK;
    return pe_fail(
        error, PE_E_ARGUMENT,
        "%s overlaps %s, must be apart or the very same tensor (data, strides "
        "and dtype)",
        y_name, x_name);
}

pe_status pe_tensor_check_apart(const pe_tensor *x, const char *x_name,
                                const pe_tensor *y, const char *y_name, pe_error *error)
{
    if (x->seq_len > 0 && (pe_tensor_same(x, y) || overlap_is_certain(x, y)))
        return pe_fail(error, PE_E_ARGUMENT, "%s overlaps %s, must lie apart", y_name,
                       x_name);
    return PE_OK;
}
