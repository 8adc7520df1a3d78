/* SPDX-License-Identifier: MIT
 *
 * row.c - one token's cosines and sines: from the table, exact, or imitated
 */
#include "rope/plan.h"

#include "base/at.h"

#include <string.h>

pe_place pe_place_read(const pe_rope *rope, const pe_positions *at, int64_t b,
                       int64_t t)
{
    pe_place place = {at->values == NULL, {0}, {0}};
    for (int32_t a = 0; a < rope->info.num_axes; a++) {
        if (place.whole)
            place.ids[a] = pe_at_id(at, a, b, t);
        else
            place.values[a] = pe_at_value(at, a, b, t);
    }
    return place;
}

pe_row pe_rope_tabulated(const pe_rope *rope, int64_t position, pe_row_scale scale)
{
    if (position < 0 || position >= rope->info.table_len ||
        (scale != PE_SCALE_FULL && rope->factors[PE_SCALE_FULL].value != 1))
        return (pe_row){NULL, NULL};
    const float *row = rope->table + position * 2 * rope->turns.n;
    return (pe_row){row, row + rope->turns.n};
}

/* One whole position serves all axes. */
static int is_one(const pe_rope *rope, const pe_place *place)
{
    for (int32_t a = 1; a < rope->info.num_axes; a++)
        if (place->ids[a] != place->ids[0])
            return 0;
    return place->whole;
}

static void exact_row(const pe_rope *rope, const pe_place *place, pe_row_scale scale,
                      pe_row_buffer *buffer)
{
    const pe_angle_term term = {
        .turns = &rope->turns,
        .pair_axis = rope->info.num_axes > 1 ? rope->axes.pair_axis : NULL,
        .ids = place->whole ? place->ids : NULL,
        .values = place->whole ? NULL : place->values,
    };
    pe_angle_row(rope->kernels, &term, 1, &rope->factors[scale], buffer->cos,
                 buffer->sin);
}

/* Imitations multiply a float factor in; the others take it off again. */
static void imitated_row(const pe_rope *rope, const pe_place *place, pe_row_scale scale,
                         pe_row_buffer *buffer)
{
    const int64_t n = rope->turns.n;
    float positions[PE_MAX_AXES] = {0};
    for (int32_t a = 0; a < rope->info.num_axes; a++)
        positions[a] = place->whole ? (float)place->ids[a] : (float)place->values[a];
    if (rope->angles == PE_ANGLES_HF_F32) {
        pe_hf_row(rope->hf_inv_freq, n, rope->axes.pair_axis, positions,
                  (float)rope->factors[scale].value, buffer->cos, buffer->sin);
        return;
    }
    pe_ggml_freqs ggml = rope->ggml;
    ggml.magnitude = (float)rope->factors[scale].value;
    pe_ggml_row(&ggml, n, rope->axes.pair_axis, positions, buffer->cos, buffer->sin);
}

pe_row pe_rope_row(const pe_rope *rope, const pe_place *place, pe_row_scale scale,
                   pe_row_buffer *buffer)
{
    const pe_row row = is_one(rope, place)
                           ? pe_rope_tabulated(rope, place->ids[0], scale)
                           : (pe_row){NULL, NULL};
    if (row.cos != NULL)
        return row;
    if (rope->angles == PE_ANGLES_EXACT)
        exact_row(rope, place, scale, buffer);
    else
        imitated_row(rope, place, scale, buffer);
    return (pe_row){buffer->cos, buffer->sin};
}

int pe_rope_has_runs(const pe_rope *rope, const pe_positions *at)
{
    return rope->angles == PE_ANGLES_EXACT && at->ids == NULL && at->values == NULL &&
           rope->info.num_axes == 1;
}

pe_row pe_rope_run(const pe_rope *rope, int64_t start, int64_t rows, pe_row_scale scale,
                   pe_row_buffer *buffer)
{
    pe_angle_rows(rope->kernels, &rope->turns, start, rows, &rope->factors[scale],
                  buffer->cos, buffer->sin, rope->turns.n);
    return (pe_row){buffer->cos, buffer->sin};
}

pe_row pe_row_negate(pe_row row, int64_t count, pe_row_buffer *buffer)
{
    if (row.cos != buffer->cos)
        memcpy(buffer->cos, row.cos, (size_t)count * sizeof *row.cos);
    if (row.sin != buffer->sin)
        memcpy(buffer->sin, row.sin, (size_t)count * sizeof *row.sin);
    for (int64_t i = 0; i < count; i++)
        buffer->sin[i] = -buffer->sin[i];
    return (pe_row){buffer->cos, buffer->sin};
}
