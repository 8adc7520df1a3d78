/* SPDX-License-Identifier: MIT
 *
 * softmax.c - softmax of score rows with the bias computed on the way
 *
 * Three passes over a row: the maximum, the sum of exponentials, and the quotients.  Rows
 * of up to KEPT keys are held in between; longer ones are computed again, chunk by chunk.
 * All in double, summed in eight lanes by key index, so that only the last rounding to
 * float is visible.  ALiBi over float scores and consecutive keys, which models use, is
 * done in float by a kernel instead. */
#include "bias/scores.h"

#include "base/error.h"
#include "base/tensor.h"
#include "bias/real.h"
#include "kernels/attention_kernels.h"
#include "kernels/vectors.h"

#include <math.h>

enum { LANES = 8, KEPT = 4096 };

/* e^-104 is below half the smallest float subnormal, so the weight of such a key is +0 as
 * a float; from e^LEAST down it is +0 at once.  ALMOST_NONE lies between the two. */
static const double LEAST = -105, ALMOST_NONE = 0x1.4p-151;

static int is_infinite(float x)
{
    return x == INFINITY || x == -INFINITY;
}

/* scale * x + bias, but an infinity as it is: it hides or spoils whatever the scale, of 0
 * and negative ones too.  -infinity where the mask hides the key. */
static void logits(const pe_scores_job *job, const pe_scores_row *row, int64_t begin,
                   int64_t n, double *s)
{
    double k[PE_BIAS_CHUNK];
    float x[PE_BIAS_CHUNK];
    pe_scores_keys(job->k_at, row->b, begin, n, k);
    pe_bias_row(job->bias, row->head, row->q, k, n, s);
    pe_kernels_load(pe_kernels_get(job->bias->env.isa), job->x, row->x, begin, n, x);
    for (int64_t j = 0; j < n; j++)
        s[j] = is_infinite(x[j]) ? (double)x[j] : s[j] + job->scale * (double)x[j];
    if (job->causal)
        for (int64_t j = 0; j < n; j++)
            s[j] = k[j] > row->q ? -INFINITY : s[j];
}

/* s becomes e^(s - max).  Three loops, each of which compilers make a vector loop of. */
static void weights(double *s, int64_t n, double max)
{
    for (int64_t j = 0; j < n; j++) {
        const double t = s[j] - max;
        s[j] = t > LEAST ? t : LEAST;
    }
    for (int64_t j = 0; j < n; j++)
        s[j] = pe_real_exp(s[j]);
    for (int64_t j = 0; j < n; j++)
        s[j] = s[j] > ALMOST_NONE ? s[j] : 0;
}

static int64_t chunk_of(int64_t dim, int64_t begin)
{
    return dim - begin < PE_BIAS_CHUNK ? dim - begin : PE_BIAS_CHUNK;
}

/* Where the chunk that begins there lies in room[KEPT]. */
static double *room_of(int64_t dim, int64_t begin, double *room)
{
    return dim > KEPT ? room : room + begin;
}

/* The largest logit; *is_number is 0 if one is NaN or +infinity.  The order of maxima
 * does not matter; the lanes are for speed. */
static double largest(const pe_scores_job *job, const pe_scores_row *row, double *room,
                      int *is_number)
{
    const int64_t dim = job->y->dim;
    double lanes[LANES], nan_lanes[LANES] = {0}, max = -INFINITY, nans = 0;
    for (int lane = 0; lane < LANES; lane++)
        lanes[lane] = -INFINITY;
    for (int64_t j0 = 0; j0 < dim; j0 += PE_BIAS_CHUNK) {
        const int64_t n = chunk_of(dim, j0);
        double *const s = room_of(dim, j0, room);
        logits(job, row, j0, n, s);
        int64_t j = 0;
        for (; j + LANES <= n; j += LANES)
            for (int lane = 0; lane < LANES; lane++) {
                const double x = s[j + lane];
                lanes[lane] = x > lanes[lane] ? x : lanes[lane];
                nan_lanes[lane] += x != x ? 1.0 : 0.0;
            }
        for (; j < n; j++) {
            max = s[j] > max ? s[j] : max;
            nans += s[j] != s[j];
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        max = lanes[lane] > max ? lanes[lane] : max;
        nans += nan_lanes[lane];
    }
    *is_number = nans == 0 && max < INFINITY;
    return max;
}

static double sum_weights(const pe_scores_job *job, const pe_scores_row *row,
                          double max, double *room)
{
    const int64_t dim = job->y->dim;
    double lanes[LANES] = {0};
    for (int64_t j0 = 0; j0 < dim; j0 += PE_BIAS_CHUNK) {
        const int64_t n = chunk_of(dim, j0);
        double *const s = room_of(dim, j0, room);
        if (dim > KEPT)
            logits(job, row, j0, n, s);
        weights(s, n, max);
        int64_t j = 0;
        for (; j + LANES <= n; j += LANES)
            for (int lane = 0; lane < LANES; lane++)
                lanes[lane] += s[j + lane];
        for (; j < n; j++)
            lanes[j % LANES] += s[j];
    }
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

static void store_constant(const pe_scores_job *job, const pe_scores_row *row,
                           float value)
{
    float y[PE_BIAS_CHUNK];
    for (int64_t j = 0; j < PE_BIAS_CHUNK; j++)
        y[j] = value;
    for (int64_t j0 = 0; j0 < job->y->dim; j0 += PE_BIAS_CHUNK)
        pe_vector_store(job->y, row->y, j0, chunk_of(job->y->dim, j0), y);
}

static void softmax_row(const pe_scores_job *job, const pe_scores_row *row)
{
    const int64_t dim = job->y->dim;
    double room[KEPT];
    float y[PE_BIAS_CHUNK];
    int is_number;
    const double max = largest(job, row, room, &is_number);
    if (!is_number || max == -INFINITY) {
        store_constant(job, row, is_number ? 0 : NAN);
        return;
    }
    const double sum = sum_weights(job, row, max, room);
    for (int64_t j0 = 0; j0 < dim; j0 += PE_BIAS_CHUNK) {
        const int64_t n = chunk_of(dim, j0);
        double *const s = room_of(dim, j0, room);
        if (dim > KEPT) {
            logits(job, row, j0, n, s);
            weights(s, n, max);
        }
        for (int64_t j = 0; j < n; j++)
            y[j] = (float)(s[j] / sum);
        pe_kernels_store(pe_kernels_get(job->bias->env.isa), job->y, row->y, j0, n, y);
    }
}

/* Keys that the query may see, when key j stands at first + j. */
static int64_t visible_keys(const pe_scores_job *job, double query, double first)
{
    const int64_t dim = job->y->dim;
    if (!job->causal || query - first >= (double)dim)
        return dim;
    return query < first ? 0 : (int64_t)(query - first) + 1;
}

enum { SHORTEST = 16 }; /* keys that fill the widest vector */

/* ALiBi over floats and consecutive keys: in float, a vector at a time.  Returns 0 for
 * rows that need the general way, or are so short that it is as quick. */
static int softmax_alibi_row(const pe_scores_job *job, const pe_scores_row *row,
                             const float *next, pe_alibi_owed *owed)
{
    const double log2_e = 1.4426950408889634, farthest = 0x1p24, most = 0x1p19;
    const pe_attention_kernels *kernels = pe_attention_kernels_get(job->bias->env.isa);
    const pe_bias *bias = job->bias;
    const pe_tensor *x = job->x, *y = job->y;
    if (kernels->isa == PE_ISA_SCALAR || /* the reference */
        bias->type != PE_BIAS_ALIBI || bias->round_to != 0 || x->dtype != PE_F32 ||
        y->dtype != PE_F32 || job->k_at->ids != NULL || !(job->scale >= 0x1p-30) ||
        !(job->scale <= 0x1p30))
        return 0;
    double first;
    pe_scores_keys(job->k_at, row->b, 0, 1, &first);
    const double query = row->q - first;
    const double slope = (double)bias->slopes[row->head] * bias->scale;
    if (!(query >= -farthest && query <= farthest) || x->dim > (int64_t)farthest ||
        !(slope >= 0 && slope <= 0x1p10))
        return 0;
    const int64_t visible = visible_keys(job, row->q, first);
    const double before = query < 0 ? -query : query, after = (double)x->dim;
    /* Floats tell larger biases apart by half a weight and more. */
    if (visible < SHORTEST || slope * (before > after ? before : after) > most)
        return 0;
    /* Key-only grows towards the last key: a constant less, and nothing cancels. */
    const int key_only = bias->form == PE_BIAS_KEY_ONLY;
    const pe_alibi_row alibi = {.scale = (float)(job->scale * log2_e),
                                .ratio = (float)(slope / job->scale),
                                .query = key_only ? (float)(visible - 1) : (float)query,
                                .distance = bias->form == PE_BIAS_BIDIRECTIONAL
                                                ? PE_DISTANCE_SYMMETRIC
                                                : PE_DISTANCE_CAUSAL,
                                .next = next};
    return kernels->alibi_softmax((const float *)x->data + row->x,
                                  (float *)y->data + row->y, x->dim, visible, &alibi,
                                  owed);
}

static void work_rows(void *arg, int64_t begin, int64_t end)
{
    const pe_scores_job *job = arg;
    pe_scores_row row, next = {0};
    pe_alibi_owed owed = {NULL, 0, 0, 1};
    int is_there = pe_scores_row_at(job, begin, &row);
    for (int64_t i = begin; i < end; i++) {
        const int is_next = i + 1 < end && pe_scores_row_at(job, i + 1, &next);
        const float *x = is_next && job->x->dtype == PE_F32
                             ? (const float *)job->x->data + next.x
                             : NULL;
        if (is_there && !softmax_alibi_row(job, &row, x, &owed))
            softmax_row(job, &row);
        row = next;
        is_there = is_next;
    }
    pe_attention_kernels_get(job->bias->env.isa)->alibi_settle(&owed);
}

pe_status pe_bias_softmax(const pe_bias *bias, double scale, pe_mask mask,
                          const pe_positions *q_at, const pe_positions *k_at,
                          const pe_tensor *x, const pe_tensor *y, pe_error *error)
{
    const pe_status status = pe_scores_check(bias, x, 0, "x", error);
    if (status != PE_OK)
        return status;
    if (!(scale >= -0x1p100 && scale <= 0x1p100))
        return pe_fail(error, PE_E_ARGUMENT,
                       "scale is %g, must be finite and at most 2^100 in size", scale);
    if (mask != PE_MASK_NONE && mask != PE_MASK_CAUSAL)
        return pe_fail(error, PE_E_ARGUMENT,
                       "mask is %d, must be PE_MASK_NONE (1) or PE_MASK_CAUSAL (2)",
                       mask);
    pe_scores_job job = {.bias = bias,
                         .q_at = q_at,
                         .k_at = k_at,
                         .x = x,
                         .y = y,
                         .scale = scale,
                         .causal = mask == PE_MASK_CAUSAL};
    return pe_scores_run(&job, work_rows, error);
}
