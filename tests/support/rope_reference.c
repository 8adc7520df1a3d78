/* SPDX-License-Identifier: MIT
 *
 * rope_reference.c - every rotation by the textbook, one head vector at a time
 */
#include "rope_reference.h"

#include <math.h>

void ref_rope_init(ref_rope *ref, const pe_rope_spec *spec, const pe_rope_info *info)
{
    const pe_pairs *pairs = &spec->pairs;
    const int32_t d = pairs->rotary_dim != 0 ? pairs->rotary_dim : spec->head_dim;

    *ref =
        (ref_rope){.head_dim = spec->head_dim,
                   .rotary_dim = d,
                   .rotary_start = pairs->rotary_start,
                   .in = pairs->pairing,
                   .out = pairs->out_pairing != 0 ? pairs->out_pairing : pairs->pairing,
                   .reversed = pairs->reversed,
                   .attention_factor = info->attention_factor};
    for (int32_t i = 0; i < d / 2; i++) {
        ref->pair_axis[i] = info->pair_axis[i];
        ref->inv_freq[i] =
            spec->freqs.rope_type == PE_ROPE_DEFAULT && spec->axes.map != PE_AXIS_SPLIT
                ? powl(spec->freqs.rope_theta, -2.0L * i / d)
                : (long double)info->inv_freq[i];
    }
}

/* Places of pair i in the head. */
static void pair_places(const ref_rope *ref, pe_pairing pairing, int32_t i,
                        int32_t *first, int32_t *second)
{
    const int32_t half = ref->rotary_dim / 2;

    *first = ref->rotary_start + (pairing == PE_INTERLEAVED ? 2 * i : i);
    *second = *first + (pairing == PE_INTERLEAVED ? 1 : half);
}

void ref_rope_turn(const ref_rope *ref, int sign, long double factor, pe_pairing from,
                   pe_pairing to, const long double *position, const double *x,
                   double *y, double *size)
{
    for (int32_t i = 0; i < ref->head_dim; i++) {
        y[i] = x[i];
        size[i] = 0;
    }
    for (int32_t i = 0; i < ref->rotary_dim / 2; i++) {
        const long double angle = (ref->reversed ? -sign : sign) *
                                  position[ref->pair_axis[i]] * ref->inv_freq[i];
        const long double c = factor * cosl(angle), s = factor * sinl(angle);
        int32_t p, q;
        pair_places(ref, from, i, &p, &q);
        const long double a = x[p], b = x[q];
        pair_places(ref, to, i, &p, &q);
        y[p] = (double)(a * c - b * s);
        y[q] = (double)(a * s + b * c);
        size[p] = (double)(fabsl(a * c) + fabsl(b * s));
        size[q] = (double)(fabsl(a * s) + fabsl(b * c));
    }
}

void ref_rope_rebase(const ref_rope *from, const long double *from_position,
                     const ref_rope *to, const long double *to_position,
                     const double *x, double *y, double *size)
{
    /* One angle per pair, as a frequency at position 1. */
    static const long double one[REF_MAX_AXES] = {1, 1, 1, 1};
    ref_rope moved = *to;

    for (int32_t i = 0; i < to->rotary_dim / 2; i++)
        moved.inv_freq[i] = to_position[to->pair_axis[i]] * to->inv_freq[i] -
                            from_position[from->pair_axis[i]] * from->inv_freq[i];
    ref_rope_turn(&moved, 1, to->attention_factor / from->attention_factor, to->out,
                  to->out, one, x, y, size);
}

void ref_rope_apply(const ref_rope *ref, const long double *position, const double *x,
                    double *y, double *size)
{
    ref_rope_turn(ref, 1, ref->attention_factor, ref->in, ref->out, position, x, y,
                  size);
}

void ref_rope_transpose(const ref_rope *ref, const long double *position,
                        const double *dy, double *dx, double *size)
{
    ref_rope_turn(ref, -1, ref->attention_factor, ref->out, ref->in, position, dy, dx,
                  size);
}

void ref_rope_inverse(const ref_rope *ref, const long double *position, const double *y,
                      double *x, double *size)
{
    ref_rope_turn(ref, -1, 1 / ref->attention_factor, ref->out, ref->in, position, y, x,
                  size);
}

void ref_rope_shift(const ref_rope *ref, long double delta, const double *x, double *y,
                    double *size)
{
    const long double position[REF_MAX_AXES] = {delta, delta, delta, delta};

    ref_rope_turn(ref, 1, 1, ref->out, ref->out, position, x, y, size);
}
