/* SPDX-License-Identifier: MIT
 *
 * bias_reference.c - every score bias by the textbook, one score at a time
 */
#include "bias_reference.h"

#include <math.h>
#include <stdlib.h>

/* In [low, high). */
static float between(test_rng *r, float low, float high)
{
    return low + (high - low) * (test_rng_float(r) * 0.5f + 0.5f);
}

void ref_bias_random(ref_bias *ref, test_rng *r, pe_bias_type type, pe_bias_form form,
                     int32_t num_heads, int32_t head_start)
{
    ref->spec = (pe_bias_spec){.struct_size = sizeof ref->spec,
                               .type = type,
                               .form = form,
                               .num_heads = num_heads,
                               .head_start = head_start,
                               .scale = (double)between(r, 0.1f, 2)};
    for (int32_t h = 0; h < num_heads; h++) {
        ref->slopes[h] = between(r, -0.25f, 1);
        ref->p[h] = between(r, 0.01f, 2);
        ref->a[h] = between(r, 0.01f, 1);
    }
    for (int i = 0; i < REF_MAX_BUCKETS * REF_MAX_HEADS; i++)
        ref->table[i] = 4 * test_rng_float(r);
    switch (type) {
    case PE_BIAS_ALIBI:
        ref->spec.slopes = ref->slopes;
        break;
    case PE_BIAS_T5:
        ref->spec.table = ref->table;
        ref->spec.num_buckets = (int32_t)test_rng_int(r, 4, REF_MAX_BUCKETS);
        ref->spec.max_distance = test_rng_int(r, 40, 300);
        break;
    default:
        ref->spec.kerple_p = ref->p;
        ref->spec.kerple_a = ref->a;
    }
}

long double ref_slope(pe_slope_recipe recipe, int32_t h, int32_t n, double max_bias)
{
    const long double m = (long double)max_bias;
    if (recipe == PE_SLOPES_GEOMETRIC)
        return exp2l(-m * (long double)(h + 1) / (long double)n);
    int32_t power = 1;
    while (2 * power <= n)
        power *= 2;
    if (h < power)
        return exp2l(-m * (long double)(h + 1) / (long double)power);
    /* Every second slope of twice as many heads, from the first on. */
    return exp2l(-m * (long double)(2 * (h - power) + 1) / (long double)(2 * power));
}

int32_t ref_bucket(int32_t num_buckets, int64_t max_distance, int bidirectional,
                   int64_t relative)
{
    int32_t side = 0;
    int64_t distance = -relative;
    if (bidirectional) {
        num_buckets /= 2;
        side = relative > 0 ? num_buckets : 0;
        distance = llabs(relative);
    } else if (distance < 0) {
        distance = 0;
    }
    const int32_t exact = num_buckets / 2;
    if (distance < exact)
        return side + (int32_t)distance;
    const float span = (float)log((double)max_distance / exact);
    const float ratio = (float)distance / (float)exact;
    const float steps =
        (float)logl((long double)ratio) / span * (float)(num_buckets - exact);
    const int64_t bucket = exact + (int64_t)steps;
    return side + (int32_t)(bucket < num_buckets ? bucket : num_buckets - 1);
}

long double ref_bias_at(const ref_bias *ref, int32_t head, int64_t q, int64_t k)
{
    const pe_bias_spec *s = &ref->spec;
    const long double scale = (long double)s->scale;
    const long double distance = (long double)llabs(q - k);
    if (s->form == PE_BIAS_CAUSAL && k > q)
        return 0;
    switch (s->type) {
    case PE_BIAS_ALIBI:
        if (s->form == PE_BIAS_KEY_ONLY)
            return scale * (long double)ref->slopes[head] * (long double)k;
        return -scale * (long double)ref->slopes[head] * distance;
    case PE_BIAS_T5: {
        const int32_t bucket = ref_bucket(s->num_buckets, s->max_distance,
                                          s->form == PE_BIAS_BIDIRECTIONAL, k - q);
        return scale * (long double)ref->table[bucket * s->num_heads + head];
    }
    case PE_BIAS_KERPLE_LOG:
        return -scale * (long double)ref->p[head] *
               log1pl((long double)ref->a[head] * distance);
    default:
        return -scale * (long double)ref->a[head] *
               powl(distance, (long double)ref->p[head]);
    }
}
