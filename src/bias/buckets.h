/* SPDX-License-Identifier: MIT
 *
 * buckets.h - T5's relative position buckets
 */
#ifndef PE_BIAS_BUCKETS_H
#define PE_BIAS_BUCKETS_H

#include "base/base.h"

/* edges[i], i in [0, num_buckets): the smallest distance whose bucket is at least i, for
 * one side; num_buckets >= 2, max_distance > num_buckets / 2. */
void pe_bucket_edges(int32_t num_buckets, int64_t max_distance, double *edges);

#endif /* PE_BIAS_BUCKETS_H */
