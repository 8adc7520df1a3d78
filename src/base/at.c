/* SPDX-License-Identifier: MIT
 *
 * at.c - checking pe_positions
 */
#include "base/at.h"

#include "base/checked.h"
#include "base/error.h"

static pe_status check_planes(const pe_positions *at, int64_t batch, int64_t seq_len,
                              int32_t plan_axes, const char *name, pe_error *error)
{
    if (at->num_axes < 0 || (at->num_axes > 1 && at->num_axes != plan_axes))
        return pe_fail(error, PE_E_ARGUMENT,
                       "%s.num_axes is %d, must be 0, 1 or the plan's axes (%d)", name,
                       at->num_axes, plan_axes);
    const int planes = at->ids != NULL || at->values != NULL;
    if (at->num_axes > 1 && !planes)
        return pe_fail(error, PE_E_ARGUMENT,
                       "%s.num_axes is %d, which needs ids or values", name,
                       at->num_axes);
    if (at->num_axes > 1 && at->axis_stride == 0)
        return pe_fail(error, PE_E_ARGUMENT,
                       "%s.axis_stride is 0, must be set when num_axes is %d", name,
                       at->num_axes);
    if (at->batch_stride < 0 || at->axis_stride < 0)
        return pe_fail(
            error, PE_E_ARGUMENT,
            "%s.batch_stride is %lld and axis_stride %lld, must be at least 0", name,
            (long long)at->batch_stride, (long long)at->axis_stride);
    if (planes && at->batch_stride != 0 && at->batch_stride < seq_len && batch > 1)
        return pe_fail(error, PE_E_ARGUMENT,
                       "%s.batch_stride is %lld, must be 0 or at least seq_len (%lld)",
                       name, (long long)at->batch_stride, (long long)seq_len);
    int64_t rows = 0, axes = 0, last;
    if (planes &&
        (!pe_mul_i64(batch - 1, at->batch_stride, &rows) ||
         (at->num_axes > 1 && !pe_mul_i64(at->num_axes - 1, at->axis_stride, &axes)) ||
         !pe_add_i64(rows, axes, &last) || !pe_add_i64(last, seq_len, &last) ||
         !pe_mul_i64(last, (int64_t)sizeof *at->ids, &last)))
        return pe_fail(error, PE_E_ARGUMENT,
                       "%s.batch_stride is %lld and axis_stride %lld, which lead past "
                       "2^63 bytes with %lld rows",
                       name, (long long)at->batch_stride, (long long)at->axis_stride,
                       (long long)batch);
    return PE_OK;
}

static pe_status check_values(const pe_positions *at, int64_t batch, int64_t seq_len,
                              const char *name, pe_error *error)
{
    const double limit = 4503599627370496.0; /* 2^52 */
    const int32_t axes = at->num_axes > 1 ? at->num_axes : 1;
    const int64_t rows = at->batch_stride == 0 ? 1 : batch;
    for (int32_t a = 0; a < axes; a++)
        for (int64_t b = 0; b < rows; b++)
            for (int64_t t = 0; t < seq_len; t++) {
                const double value = pe_at_value(at, a, b, t);
                if (!(value >= -limit && value <= limit))
                    return pe_fail(error, PE_E_POSITION,
                                   "%s.values of axis %d, row %lld, token %lld is %g, "
                                   "must be finite and at most 2^52 in size",
                                   name, a, (long long)b, (long long)t, value);
            }
    return PE_OK;
}

/* The last token of a run must still be an int64. */
static pe_status check_runs(const pe_positions *at, int64_t batch, int64_t seq_len,
                            const char *name, pe_error *error)
{
    if (at->ids != NULL || seq_len < 2)
        return PE_OK;
    const int64_t limit = INT64_MAX - (seq_len - 1);
    for (int64_t b = 0; at->starts != NULL && b < batch; b++)
        if (at->starts[b] > limit)
            return pe_fail(error, PE_E_POSITION,
                           "%s.starts[%lld] is %lld, must be at most %lld for %lld "
                           "tokens",
                           name, (long long)b, (long long)at->starts[b],
                           (long long)limit, (long long)seq_len);
    if (at->start > limit)
        return pe_fail(error, PE_E_POSITION,
                       "%s.start is %lld, must be at most %lld for %lld tokens", name,
                       (long long)at->start, (long long)limit, (long long)seq_len);
    return PE_OK;
}

pe_status pe_at_check(const pe_positions *at, int64_t batch, int64_t seq_len,
                      int32_t plan_axes, int allow_values, const char *name,
                      pe_error *error)
{
    if (at == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "%s is NULL, {0} says from position 0",
                       name);
    if (at->reserved != 0)
        return pe_fail(error, PE_E_ARGUMENT, "%s.reserved is %d, must be 0", name,
                       at->reserved);
    const int sources = (at->start != 0) + (at->starts != NULL) + (at->ids != NULL) +
                        (at->values != NULL);
    if (sources > 1)
        return pe_fail(error, PE_E_ARGUMENT,
                       "%s has %d sources, must have one of start, starts, ids, values",
                       name, sources);
    if (at->values != NULL && !allow_values)
        return pe_fail(error, PE_E_ARGUMENT,
                       "%s.values is set, this operation takes whole positions", name);
    const pe_status status = check_planes(at, batch, seq_len, plan_axes, name, error);
    if (status != PE_OK)
        return status;
    if (at->values == NULL)
        return check_runs(at, batch, seq_len, name, error);
    return check_values(at, batch, seq_len, name, error);
}
