/* SPDX-License-Identifier: MIT
 *
 * buckets.c - T5's relative position buckets
 *
 * The reference takes a float32 logarithm and truncates, which decides on which side of
 * an edge the distances near a power of two fall.  Its rule never decreases, so a plan
 * keeps the distance at which each bucket begins, and looks it up. */
#include "bias/buckets.h"

#include "angle/wide.h"

/* Bucket of distance r >= exact, before the last bucket takes the rest:
 *     exact + trunc(ln(r / exact) / ln(max_distance / exact) * (num_buckets - exact))
 * with every step rounded to float as the reference does (Raffel et al. 2020). */
static int64_t logarithmic_bucket(int64_t r, int64_t exact, float span, float count)
{
    const float ratio = (float)r / (float)exact;
    const float log_ratio = pe_wide_to_float(pe_wide_ln(pe_wide_from_double(ratio)));
    const float quotient = log_ratio / span;
    return exact + (int64_t)(quotient * count);
}

void pe_bucket_edges(int32_t num_buckets, int64_t max_distance, double *edges)
{
    const int64_t exact = num_buckets / 2;
    const double limit = (double)max_distance / (double)exact;
    const float span = (float)pe_wide_to_double(pe_wide_ln(pe_wide_from_double(limit)));
    const float count = (float)(num_buckets - exact);
    int64_t low = exact;
    for (int64_t i = 0; i < num_buckets; i++) {
        if (i <= exact) {
            edges[i] = (double)i;
            continue;
        }
        /* Invariant: the bucket of high is at least i, that of low - 1 is not. */
        int64_t high = max_distance;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (logarithmic_bucket(middle, exact, span, count) >= i)
                high = middle;
            else
                low = middle + 1;
        }
        edges[i] = (double)low;
    }
}
