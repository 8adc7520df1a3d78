/* SPDX-License-Identifier: MIT
 *
 * axes.c - part B: the axis maps of multi-axis RoPE
 */
#include "rope/axes.h"

#include "base/error.h"

enum { AXIS_T, AXIS_H, AXIS_W, AXIS_E };

static pe_status check_sections(const pe_axes *axes, int32_t num_pairs, pe_error *error)
{
    int64_t sum = 0;
    for (int a = 0; a < PE_MAX_AXES; a++) {
        if (axes->section[a] < 0)
            return pe_fail(error, PE_E_ARGUMENT,
                           "axes.section[%d] is %d, must be at least 0", a,
                           axes->section[a]);
        sum += axes->section[a];
    }
    if (sum != num_pairs)
        return pe_fail(error, PE_E_ARGUMENT,
                       "axes.section sums to %lld, must sum to rotary_dim / 2 (%d)",
                       (long long)sum, num_pairs);
    if (axes->map == PE_AXIS_ERNIE && axes->section[0] != axes->section[1])
        return pe_fail(error, PE_E_ARGUMENT,
                       "axes.section is H %d, W %d: Ernie's map alternates them, they "
                       "must be equal",
                       axes->section[0], axes->section[1]);
    return PE_OK;
}

/* Axis of pair i for the maps that interleave. */
static int interleaved_axis(const pe_axes *axes, int32_t i)
{
    const int32_t *section = axes->section;
    switch (axes->map) {
    case PE_AXIS_INTERLEAVED: /* T everywhere but on H's and W's own places */
        if (i % 3 == 1 && i < 3 * section[1])
            return AXIS_H;
        return i % 3 == 2 && i < 3 * section[2] ? AXIS_W : AXIS_T;
    case PE_AXIS_IMROPE: /* ggml: a place past its section falls to the fourth axis */
        return i < 3 * section[i % 3] ? i % 3 : AXIS_E;
    default: /* PE_AXIS_ERNIE; sections are H, W, T */
        return i < section[0] + section[1] ? (i % 2 == 0 ? AXIS_H : AXIS_W) : AXIS_T;
    }
}

/* Axis of pair i, and its place in that axis's section, for consecutive sections. */
static int consecutive_axis(const pe_axes *axes, int32_t i, int32_t *place)
{
    int a = 0;
    for (*place = i; *place >= axes->section[a]; a++)
        *place -= axes->section[a];
    return a;
}

static pe_status fill_custom(const pe_axes *axes, int32_t num_pairs,
                             pe_axis_layout *layout, pe_error *error)
{
    if (axes->pair_axis == NULL)
        return pe_fail(error, PE_E_ARGUMENT,
                       "axes.pair_axis is NULL, PE_AXIS_CUSTOM needs it");
    for (int32_t i = 0; i < num_pairs; i++) {
        const int axis = axes->pair_axis[i];
        if (axis >= PE_MAX_AXES)
            return pe_fail(error, PE_E_ARGUMENT,
                           "axes.pair_axis[%d] is %d, must be at most %d", i, axis,
                           PE_MAX_AXES - 1);
        layout->pair_axis[i] = (uint8_t)axis;
        if (axis >= layout->num_axes)
            layout->num_axes = axis + 1;
    }
    return PE_OK;
}

static void fill_sections(const pe_axes *axes, int32_t num_pairs,
                          pe_axis_layout *layout)
{
    const int consecutive = axes->map == PE_AXIS_CHUNKED || axes->map == PE_AXIS_SPLIT;
    for (int32_t i = 0; i < num_pairs; i++) {
        int32_t place = 0;
        const int axis =
            consecutive ? consecutive_axis(axes, i, &place) : interleaved_axis(axes, i);
        layout->pair_axis[i] = (uint8_t)axis;
        if (axes->map == PE_AXIS_SPLIT) {
            layout->rung[i] = place;
            layout->ladder_dim[i] = 2 * axes->section[axis];
        }
    }
    int used = 0;
    for (int a = 0; a < PE_MAX_AXES; a++)
        if (axes->section[a] != 0)
            used = a + 1;
    layout->num_axes = axes->map == PE_AXIS_SPLIT ? used : used > 3 ? used : 3;
    if (axes->map == PE_AXIS_IMROPE)
        layout->num_axes = PE_MAX_AXES;
    if (axes->map == PE_AXIS_SPLIT)
        layout->num_ladders = used;
}

pe_status pe_axes_resolve(const pe_axes *axes, int32_t num_pairs,
                          pe_axis_layout *layout, pe_error *error)
{
    if (axes->map < PE_AXIS_SINGLE || axes->map > PE_AXIS_CUSTOM)
        return pe_fail(
            error, PE_E_ARGUMENT,
            "axes.map is %d, must be PE_AXIS_SINGLE (0) to PE_AXIS_CUSTOM (6)",
            axes->map);
    if (axes->reserved != 0)
        return pe_fail(error, PE_E_ARGUMENT, "axes.reserved is %d, must be 0",
                       axes->reserved);
    layout->num_axes = layout->num_ladders = 1;
    for (int32_t i = 0; i < num_pairs; i++) {
        layout->pair_axis[i] = 0;
        layout->rung[i] = i;
        layout->ladder_dim[i] = 2 * num_pairs;
    }
    const int has_sections =
        axes->section[0] || axes->section[1] || axes->section[2] || axes->section[3];
    const int takes_sections =
        axes->map != PE_AXIS_SINGLE && axes->map != PE_AXIS_CUSTOM;
    if (has_sections && !takes_sections)
        return pe_fail(
            error, PE_E_ARGUMENT,
            "axes.section is set, but axes.map is %d, which takes no sections",
            axes->map);
    if (axes->pair_axis != NULL && axes->map != PE_AXIS_CUSTOM)
        return pe_fail(error, PE_E_ARGUMENT,
                       "axes.pair_axis is set, but axes.map is %d, not PE_AXIS_CUSTOM",
                       axes->map);
    if (axes->map == PE_AXIS_CUSTOM)
        return fill_custom(axes, num_pairs, layout, error);
    if (!takes_sections)
        return PE_OK;
    if (axes->section[3] != 0 &&
        (axes->map == PE_AXIS_INTERLEAVED || axes->map == PE_AXIS_ERNIE))
        return pe_fail(error, PE_E_ARGUMENT,
                       "axes.section[3] is %d, must be 0: this map has three axes",
                       axes->section[3]);
    const pe_status status = check_sections(axes, num_pairs, error);
    if (status == PE_OK)
        fill_sections(axes, num_pairs, layout);
    return status;
}
