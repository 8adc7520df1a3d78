/* SPDX-License-Identifier: MIT
 *
 * scalar.c - the reference kernels: plain C, one element at a time
 *
 * The rotations are the vector sources over vectors of one lane. */
#include "base/int8.h"
#include "kernels/kernels.h"
#include "kernels/sincos.h"
#include "kernels/vec_pairs.h"

enum { VLEN = 1 };
/* Products of floats are exact in double, so each element is rounded once or twice. */
typedef double vf;

static inline vf vf_zero(void)
{
    return 0;
}
static inline vf vf_mul(vf a, vf b)
{
    return a * b;
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return a * b + c;
}
static inline vf vf_fnma(vf a, vf b, vf c)
{
    return c - a * b;
}
static inline vf vf_load_f32(const float *p)
{
    return *p;
}
static inline void vf_store_f32(float *p, vf v)
{
    *p = (float)v;
}
static inline vf vf_load_f16(const uint16_t *p)
{
    return pe_f16_to_f32(*p);
}
static inline void vf_store_f16(uint16_t *p, vf v)
{
    *p = pe_f16_from_f32((float)v);
}
static inline vf vf_load_bf16(const uint16_t *p)
{
    return pe_bf16_to_f32(*p);
}
static inline void vf_store_bf16(uint16_t *p, vf v)
{
    *p = pe_bf16_from_f32((float)v);
}
static inline void vf_unzip(vf lo, vf hi, vf *a, vf *b)
{
    *a = lo;
    *b = hi;
}
static inline void vf_zip(vf a, vf b, vf *lo, vf *hi)
{
    *lo = a;
    *hi = b;
}
VEC_UNZIP(vf, VLEN, float, f32)
VEC_UNZIP(vf, VLEN, uint16_t, f16)
VEC_UNZIP(vf, VLEN, uint16_t, bf16)
VEC_ZIP(vf, VLEN, float, f32)
VEC_ZIP(vf, VLEN, uint16_t, f16)
VEC_ZIP(vf, VLEN, uint16_t, bf16)

#define VF_KEEP(v) ((void)(v))
#define VF_GROUP   2
#define VF_WHOLE   4

/* Sums in vectors of one float: they round to float where sums of vectors do. */
enum { SLEN = 1, DLEN = 1 };
typedef float vs;
typedef double vd;
#define SUM_V       vs
#define SUM_LEN     SLEN
#define SUM_KEEP(v) PE_KEEP(v)

static inline vs vs_set1(float x)
{
    return x;
}
static inline vs vs_add(vs a, vs b)
{
    return a + b;
}
static inline vs vs_mul(vs a, vs b)
{
    return a * b;
}
static inline vs vs_load_f32(const float *p)
{
    return *p;
}
static inline void vs_store_f32(float *p, vs v)
{
    *p = v;
}
static inline vs vs_load_f16(const uint16_t *p)
{
    return pe_f16_to_f32(*p);
}
static inline void vs_store_f16(uint16_t *p, vs v)
{
    *p = pe_f16_from_f32(v);
}
static inline vs vs_load_bf16(const uint16_t *p)
{
    return pe_bf16_to_f32(*p);
}
static inline void vs_store_bf16(uint16_t *p, vs v)
{
    *p = pe_bf16_from_f32(v);
}
static inline void vs_widen(vs v, vd *d)
{
    *d = (double)v;
}
static inline vs vs_narrow(const vd *d)
{
    return (float)*d;
}
static inline vd vd_set1(double x)
{
    return x;
}
static inline vd vd_add(vd a, vd b)
{
    return a + b;
}
static inline vd vd_sub(vd a, vd b)
{
    return a - b;
}
static inline vd vd_mul(vd a, vd b)
{
    return a * b;
}
static inline vd vd_min(vd a, vd b)
{
    return a < b ? a : b;
}
static inline vd vd_load(const double *p)
{
    return *p;
}
static inline void vd_store(double *p, vd v)
{
    *p = v;
}
static inline vd vd_from_distance(const int64_t *p, int64_t q)
{
    return (double)(*p - q);
}

/* A vector of one lane has no part of it. */
#define vs_load_part_f32(p, count)      ((void)(count), vs_load_f32(p))
#define vs_load_part_f16(p, count)      ((void)(count), vs_load_f16(p))
#define vs_load_part_bf16(p, count)     ((void)(count), vs_load_bf16(p))
#define vs_store_part_f32(p, v, count)  ((void)(count), vs_store_f32(p, v))
#define vs_store_part_f16(p, v, count)  ((void)(count), vs_store_f16(p, v))
#define vs_store_part_bf16(p, v, count) ((void)(count), vs_store_bf16(p, v))
#define vf_load_part_f32(p, count)      ((void)(count), vf_load_f32(p))
#define vf_load_part_f16(p, count)      ((void)(count), vf_load_f16(p))
#define vf_load_part_bf16(p, count)     ((void)(count), vf_load_bf16(p))
#define vf_store_part_f32(p, v, count)  ((void)(count), vf_store_f32(p, v))
#define vf_store_part_f16(p, v, count)  ((void)(count), vf_store_f16(p, v))
#define vf_store_part_bf16(p, v, count) ((void)(count), vf_store_bf16(p, v))

static void table_row_phases(const pe_table_source *source, const uint64_t *hi,
                             const uint64_t *lo, double distance, float *cos_out,
                             float *sin_out)
{
    for (int64_t i = 0; i < source->n; i++)
        if (pe_sincos_f32(hi[i], lo[i], source->factor, distance, cos_out + i,
                          sin_out + i))
            source->redo(source->ctx, 0, i);
}

static void table_row(const pe_table_source *source, int64_t position, int64_t row,
                      float *cos_out, float *sin_out)
{
    const double distance = pe_position_size(position) * PE_SINCOS_UNSURE_PER_TOKEN;
    for (int64_t i = 0; i < source->n; i++) {
        uint64_t hi, lo;
        pe_phase(position, source->hi[i], source->lo[i], &hi, &lo);
        if (pe_sincos_f32(hi, lo, source->factor, distance, cos_out + i, sin_out + i))
            source->redo(source->ctx, row, i);
    }
}

static void table_rows(const pe_table_source *source, int64_t position, int64_t rows,
                       float *cos_out, float *sin_out, int64_t stride)
{
    for (int64_t r = 0; r < rows; r++)
        table_row(source, (int64_t)((uint64_t)position + (uint64_t)r), r,
                  cos_out + r * stride, sin_out + r * stride);
}

static void table_rows_at(const pe_table_source *source, const int64_t *positions,
                          int64_t rows, float *cos_out, float *sin_out, int64_t stride)
{
    for (int64_t r = 0; r < rows; r++)
        table_row(source, positions[r], r, cos_out + r * stride, sin_out + r * stride);
}

static void table_row_each(const pe_table_source *source, const int64_t *positions,
                           int64_t farthest, float *cos_out, float *sin_out)
{
    const double distance = (double)farthest * PE_SINCOS_UNSURE_PER_TOKEN;
    for (int64_t i = 0; i < source->n; i++) {
        uint64_t hi, lo;
        pe_phase(positions[i], source->hi[i], source->lo[i], &hi, &lo);
        if (pe_sincos_f32(hi, lo, source->factor, distance, cos_out + i, sin_out + i))
            source->redo(source->ctx, 0, i);
    }
}

static void load_i8(const int8_t *x, const float *scales, int64_t group, float *out,
                    int64_t count)
{
    pe_i8_load(x, scales, group, out, count);
}

static void store_i8(const float *x, int64_t group, int64_t num_groups, int8_t *out,
                     int64_t out_step, float *scales, int64_t scale_step)
{
    for (int64_t g = 0; g < num_groups; g++)
        pe_i8_store(x + g * group, group, out + g * out_step, scales + g * scale_step,
                    group);
}

static void distance(const float *a, const float *b, int64_t n, double *square,
                     double *length)
{
    double d = 0, s = 0;
    for (int64_t i = 0; i < n; i++) {
        const double off = (double)a[i] - (double)b[i];
        d += off * off;
        s += (double)a[i] * (double)a[i];
    }
    *square = d;
    *length = s;
}

#define ISA      scalar
#define ISA_ENUM PE_ISA_SCALAR
#define ISA_NAME "scalar"
#include "kernels/instances.inc"
