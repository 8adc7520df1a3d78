/* SPDX-License-Identifier: MIT
 *
 * ramp.c - ALiBi over keys that follow each other: at most two lines in each row
 *
 * The contract is double: factor times distance, x plus that, rounded to float.  Floats
 * are four times as fast and have the same bits wherever the sum in double is exact, or
 * is the sum of two numbers of 24 bits, whose rounding to 53 bits first does not show. */
#include "bias/ramp.h"

#include "base/at.h"
#include "base/dtype.h"
#include "kernels/vectors.h"

/* factor is m unit, m odd, unit a power of two. */
typedef struct {
    const pe_scores_job *job;
    const pe_kernels *kernels;
    const pe_scores_row *row;
    const pe_ramp_head *head;
} ramp_row;

void pe_ramp_head_set(pe_ramp_head *head, const pe_bias *bias, int32_t index)
{
    const double factor = (double)bias->slopes[index] * bias->scale;
    const uint64_t bits = pe_f64_bits(factor), implied = (uint64_t)1 << 52;
    const uint64_t m = (bits & (implied - 1)) | implied, exponent = bits >> 52 & 0x7ff;
    head->index = index;
    head->factor = factor;
    head->size = factor < 0 ? -factor : factor;
    head->unit = pe_f64_from_bits(exponent << 52) * 0x1p-52 * (double)(m & (0 - m));
    head->is_float = head->size <= (double)FLT_MAX && (double)(float)factor == factor;
}

/* Where floats do.  A bias is a multiple of unit and at most largest in size; |x| is in
 * [2^e, 2^(e + 1)), and x a multiple of 2^(e - 23).
 * - All biases have 24 bits: m times the largest distance is at most 2^24.
 * - The sum is a multiple of unit at most 2^53 unit: |x| <= 2^52 unit, and
 *   largest < 2^24 2^24 unit.
 * - It is one of 2^(e - 23) at most 2^53 of those, too: largest <= 2^27 |x|, so that
 *   largest + |x| < 2^29 2^e.  x is normal. */
static void set_floats(pe_ramp *ramp, const pe_ramp_head *head, int64_t n)
{
    const int64_t last = ramp->first + ramp->step * (n - 1);
    const int64_t a = ramp->first < 0 ? -ramp->first : ramp->first;
    const int64_t z = last < 0 ? -last : last, farthest = a > z ? a : z;
    const double largest = head->size * (double)farthest;
    ramp->in_floats = head->is_float && farthest <= 1 << 24;
    if (!ramp->in_floats)
        return;
    if (largest <= 0x1p24 * head->unit) { /* a factor of 0, too */
        ramp->fused = PE_FUSED_ALL;
        return;
    }
    const double least = largest * 0x1p-27, most = head->unit * 0x1p52;
    const uint32_t low = 2 * pe_f32_bits((float)(least > 0x1p-126 ? least : 0x1p-126));
    const uint32_t high =
        2 * pe_f32_bits(most < (double)FLT_MAX ? (float)most : FLT_MAX);
    ramp->fused = PE_FUSED_SOME;
    ramp->least = low;
    ramp->span = high - low;
}

/* Keys [begin, end), the first of which is number first. */
static void write_keys(const ramp_row *r, int64_t begin, int64_t end, int64_t first,
                       int step)
{
    const pe_tensor *x = r->job->x, *y = r->job->y;
    pe_ramp ramp = {.factor = r->head->factor, .first = first, .step = step};
    if (begin >= end)
        return;
    set_floats(&ramp, r->head, end - begin);
    void *out = (unsigned char *)y->data + pe_tensor_bytes(y, r->row->y + begin);
    const int to = pe_kernels_kind(y);
    if (x == NULL)
        r->kernels->ramp[to](&ramp, out, end - begin);
    else
        r->kernels->sum_ramp[pe_kernels_kind(x)][to](
            &ramp,
            (const unsigned char *)x->data + pe_tensor_bytes(x, r->row->x + begin), out,
            end - begin);
}

void pe_bias_ramps(const pe_scores_job *job, const pe_kernels *kernels,
                   const pe_ramp_head *head, const pe_scores_row *row)
{
    const int64_t n = job->y->dim, key = pe_at_id(job->k_at, 0, row->b, 0);
    const int64_t ahead = (int64_t)row->q - key;
    const ramp_row r = {job, kernels, row, head};
    if (job->bias->form == PE_BIAS_KEY_ONLY) {
        write_keys(&r, 0, n, key, 1);
        return;
    }
    const int64_t seen = ahead < 0 ? 0 : ahead >= n ? n : ahead + 1;
    write_keys(&r, 0, seen, -ahead, 1);
    if (job->bias->form == PE_BIAS_CAUSAL)
        write_keys(&r, seen, n, 0, 0);
    else
        write_keys(&r, seen, n, ahead - seen, -1);
}
