/* SPDX-License-Identifier: MIT
 *
 * sinusoid_reference.c - one entry of a sinusoidal encoding, by the textbook
 */
#include "sinusoid_reference.h"

#include <math.h>

static long double or_default(double value, double otherwise)
{
    return value != 0 ? value : otherwise;
}

long double ref_sinusoid(const pe_sinusoidal_spec *spec, int64_t column,
                         const long double *position)
{
    const int64_t axes = spec->num_axes != 0 ? spec->num_axes : 1;
    const int64_t width = spec->model_dim / axes;
    const int64_t axis = column / width, k = column % width;
    const long double shift = spec->downscale_freq_shift;
    int64_t pair, is_sine;
    long double half = width / 2.0L;

    if (spec->order == PE_SIN_COS_INTERLEAVED) {
        pair = k / 2;
        is_sine = k % 2 == 0;
    } else if (spec->order == PE_SIN_COS_HALVES && shift == 0) {
        const int64_t sines = width - width / 2;
        is_sine = k < sines;
        pair = is_sine ? k : k - sines;
    } else { /* two blocks of floor(width / 2), then a zero */
        const int64_t block = width / 2;
        half = (long double)block;
        if (k == 2 * block)
            return 0;
        is_sine = (k < block) == (spec->order == PE_SIN_COS_HALVES);
        pair = k % block;
    }
    long double freq = or_default(spec->position_scale, 1);
    if (pair > 0)
        freq *=
            powl(or_default(spec->base, 10000), -(long double)pair / (half - shift));
    const long double angle = position[axis] * freq;
    return or_default(spec->value_scale, 1) * (is_sine ? sinl(angle) : cosl(angle));
}
