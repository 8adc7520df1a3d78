/* SPDX-License-Identifier: MIT
 *
 * extend.c - positions re-assigned so that long inputs stay within the trained range
 */
#include "positions/builders.h"

#include "base/checked.h"
#include "base/error.h"

static int64_t floor_div(int64_t a, int64_t b) /* b > 0 */
{
    return a / b - (a % b < 0);
}

/* Jin et al. 2024, section 3: far queries stand at floor(p / group) + window -
 * floor(window / group), which continues the near positions where the window ends. */
pe_status pe_positions_self_extend(const int64_t *ids, int64_t count, int64_t group,
                                   int64_t window, int32_t is_query, int64_t *far_ids,
                                   pe_error *error)
{
    if (count < 0)
        return pe_fail(error, PE_E_SHAPE, "count is %lld, must be at least 0",
                       (long long)count);
    if (count > 0 && (ids == NULL || far_ids == NULL))
        return pe_fail(error, PE_E_ARGUMENT, "%s is NULL",
                       ids == NULL ? "ids" : "far_ids");
    if (group < 1)
        return pe_fail(error, PE_E_ARGUMENT, "group is %lld, must be at least 1",
                       (long long)group);
    if (window < 0)
        return pe_fail(error, PE_E_ARGUMENT, "window is %lld, must be at least 0",
                       (long long)window);
    if (is_query != 0 && is_query != 1)
        return pe_fail(error, PE_E_ARGUMENT, "is_query is %d, must be 0 or 1",
                       is_query);
    const int64_t shift = is_query ? window - window / group : 0;
    /* No sum passes 2^63: it lies between p and window. */
    for (int64_t i = 0; i < count; i++)
        far_ids[i] = floor_div(ids[i], group) + shift;
    return PE_OK;
}

/* Xiao et al. 2024, section 3.2: positions are those in the cache, not in the text.  A
 * new token takes the place of the last of sinks + window entries, so the oldest behind
 * the sinks leaves first. */
pe_status pe_positions_streaming(int64_t seq_len, int64_t sinks, int64_t window,
                                 int64_t pad, int64_t *ids, int64_t *next,
                                 pe_error *error)
{
    int64_t bytes, room;
    if (seq_len < 0 || !pe_mul_i64(seq_len, 8, &bytes))
        return pe_fail(error, PE_E_SHAPE, "seq_len is %lld, must be in 0 .. 2^60 - 1",
                       (long long)seq_len);
    if (sinks < 0)
        return pe_fail(error, PE_E_ARGUMENT, "sinks is %lld, must be at least 0",
                       (long long)sinks);
    if (window < 1 || !pe_add_i64(sinks, window, &room))
        return pe_fail(
            error, PE_E_ARGUMENT,
            "window is %lld, must be at least 1, and with sinks (%lld) below "
            "2^63",
            (long long)window, (long long)sinks);
    if (ids == NULL && seq_len > 0)
        return pe_fail(error, PE_E_ARGUMENT, "ids is NULL");
    const int64_t evicted = seq_len > room ? seq_len - room : 0;
    for (int64_t t = 0; t < seq_len; t++) {
        if (t < sinks)
            ids[t] = t;
        else
            ids[t] = t < sinks + evicted ? pad : t - evicted;
    }
    if (next != NULL)
        *next = seq_len < room ? seq_len : room - 1;
    return PE_OK;
}
