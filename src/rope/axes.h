/* SPDX-License-Identifier: MIT
 *
 * axes.h - which position axis each pair follows, and where it stands on its ladder
 */
#ifndef PE_AXES_H
#define PE_AXES_H

#include "base/base.h"

enum { PE_MAX_AXES = 4 };

/* A ladder is a run of frequencies theta^(-2 rung / dim).  All maps but PE_AXIS_SPLIT
 * have one ladder over all pairs; SPLIT has one for each axis. */
typedef struct {
    int32_t num_axes;
    int32_t num_ladders;
    uint8_t *pair_axis;  /* [num_pairs] */
    int32_t *rung;       /* [num_pairs] */
    int32_t *ladder_dim; /* [num_pairs] */
} pe_axis_layout;

/* Fills the layout, whose arrays have room for num_pairs. */
pe_status pe_axes_resolve(const pe_axes *axes, int32_t num_pairs,
                          pe_axis_layout *layout, pe_error *error);

#endif /* PE_AXES_H */
