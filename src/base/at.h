/* SPDX-License-Identifier: MIT
 *
 * at.h - reading a caller's pe_positions
 *
 * Check once against the tensor that the positions go with; after that each read is
 * pure.  Builders of ids are in positions.h and know nothing of this. */
#ifndef PE_AT_H
#define PE_AT_H

#include "base/base.h"

/* One source, reserved fields, axes.  plan_axes: axes that the plan has; allow_values:
 * fractional positions make sense.  Every value is checked to be finite and within
 * 2^52, every run of positions to end within int64, so that nothing fails after the
 * first write.  name: "at", "q_at". */
pe_status pe_at_check(const pe_positions *at, int64_t batch, int64_t seq_len,
                      int32_t plan_axes, int allow_values, const char *name,
                      pe_error *error);

/* Whole position of (axis, b, t); at has no values. */
static inline int64_t pe_at_id(const pe_positions *at, int32_t axis, int64_t b,
                               int64_t t)
{
    if (at->ids != NULL) {
        const int64_t plane = at->num_axes > 1 ? axis * at->axis_stride : 0;
        return at->ids[plane + b * at->batch_stride + t];
    }
    const int64_t start = at->starts != NULL ? at->starts[b] : at->start;
    return start + t;
}

/* Fractional position; at has values. */
static inline double pe_at_value(const pe_positions *at, int32_t axis, int64_t b,
                                 int64_t t)
{
    const int64_t plane = at->num_axes > 1 ? axis * at->axis_stride : 0;
    return at->values[plane + b * at->batch_stride + t];
}

#endif /* PE_AT_H */
