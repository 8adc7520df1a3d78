/* SPDX-License-Identifier: MIT
 *
 * scalar.c - the reference kernels: plain C, one element at a time
 */
#include "kernels/kernels.h"
#include "kernels/sincos.h"

static int64_t table_row(int64_t position, const uint64_t *hi, const uint64_t *lo,
                         int64_t n, double factor, float *cos_out, float *sin_out,
                         int32_t *unsure)
{
    const double distance = pe_position_size(position) * PE_SINCOS_UNSURE_PER_TOKEN;
    int64_t num_unsure = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t phase_hi, phase_lo;
        pe_phase(position, hi[i], lo[i], &phase_hi, &phase_lo);
        if (pe_sincos_f32(phase_hi, phase_lo, factor, distance, cos_out + i,
                          sin_out + i))
            unsure[num_unsure++] = (int32_t)i;
    }
    return num_unsure;
}

/* Element strides between pairs and between the two of a pair.  Products of floats are
 * exact in double, so each element is rounded once after the sum. */
static inline void rotate(const float *x, int64_t x_pair, int64_t x_other, float *y,
                          int64_t y_pair, int64_t y_other, const float *cosine,
                          const float *sine, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double a = x[i * x_pair], b = x[i * x_pair + x_other];
        const double c = cosine[i], s = sine[i];
        y[i * y_pair] = (float)(a * c - b * s);
        y[i * y_pair + y_other] = (float)(a * s + b * c);
    }
}

static void rotate_half(const float *x, float *y, const float *c, const float *s,
                        int64_t n)
{
    rotate(x, 1, n, y, 1, n, c, s, n);
}

static void rotate_interleaved(const float *x, float *y, const float *c, const float *s,
                               int64_t n)
{
    rotate(x, 2, 1, y, 2, 1, c, s, n);
}

static void rotate_half_to_interleaved(const float *x, float *y, const float *c,
                                       const float *s, int64_t n)
{
    rotate(x, 1, n, y, 2, 1, c, s, n);
}

static void rotate_interleaved_to_half(const float *x, float *y, const float *c,
                                       const float *s, int64_t n)
{
    rotate(x, 2, 1, y, 1, n, c, s, n);
}

const pe_kernels pe_kernels_scalar = {
    .isa = PE_ISA_SCALAR,
    .name = "scalar",
    .table_row = table_row,
    .rotate = {{rotate_half, rotate_half_to_interleaved},
               {rotate_interleaved_to_half, rotate_interleaved}},
};
