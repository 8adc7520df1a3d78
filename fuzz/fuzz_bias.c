/* SPDX-License-Identifier: MIT
 *
 * fuzz_bias.c - bytes -> bias spec -> plan -> every call, on small tensors
 *
 * Fields mostly take usual values, sometimes any.  No crash; a refused call has written
 * nothing; rows of a softmax are NaN, nothing, or sum to 1. */
#include "bytes.h"
#include "posenc/posenc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADS = 8, MAX_BUCKETS = 64, ROOM = 2048 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bytes input;
static float parameters[MAX_HEADS * MAX_BUCKETS], grad[2 * MAX_HEADS * MAX_BUCKETS];
static float x_data[ROOM], y_data[ROOM], y_before[ROOM];

static int64_t whole(int64_t low, int64_t high)
{
    return take_whole(&input, 240, low, high);
}

/* Positions by start, or ids that the input gives. */
static void positions(pe_positions *at, int64_t *ids, int64_t count)
{
    memset(at, 0, sizeof *at);
    if (take(&input, 1) % 2 == 0) {
        at->start = whole(-8, 60);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        ids[i] = whole(-20, 90);
    at->ids = ids;
}

static pe_bias *plan(pe_bias_spec *spec)
{
    static const double max_biases[] = {0, 8, 16, 4, 0.5};
    static const double scales[] = {0, 1, 0.125, 0.3};
    pe_bias *bias = NULL;
    *spec = (pe_bias_spec){.struct_size = sizeof *spec,
                           .type = (pe_bias_type)whole(1, 4),
                           .form = (pe_bias_form)whole(1, 3),
                           .num_heads = (int32_t)(take(&input, 1) % (MAX_HEADS + 1)),
                           .head_start = (int32_t)whole(0, 3),
                           .scale = take_double(&input, scales, 4)};
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
        parameters[i] = (float)(take(&input, input.size > 0) + 1) / 128;
    if (spec->type == PE_BIAS_ALIBI) {
        spec->max_bias = take_double(&input, max_biases, 5);
        spec->slope_recipe = (pe_slope_recipe)whole(0, 1);
        spec->round_to = (pe_dtype)whole(0, 3);
    } else if (spec->type == PE_BIAS_T5) {
        spec->num_buckets = (int32_t)(take(&input, 1) % (MAX_BUCKETS + 1));
        spec->max_distance = whole(30, 200);
        spec->table = parameters;
    } else {
        spec->kerple_p = parameters;
        spec->kerple_a = parameters + MAX_HEADS;
    }
    pe_error error;
    if (pe_bias_create(&bias, spec, NULL, &error) != PE_OK &&
        (bias != NULL || error.message[0] == 0))
        abort();
    return bias;
}

/* Sums of rows that hold a number: 1, or 0 where nothing is seen. */
static void judge_rows(const pe_tensor *y)
{
    for (int64_t r = 0; r < y->num_heads * y->seq_len; r++) {
        double sum = 0;
        for (int64_t j = 0; j < y->dim; j++)
            sum += (double)y_data[r * y->dim + j];
        if (!isnan(sum) && sum != 0 && fabs(sum - 1) > (double)y->dim * 0x1p-24)
            abort();
    }
}

static void calls(const pe_bias *bias, const pe_bias_spec *spec)
{
    static const double scales[] = {1, 0.125, 0, -1};
    int64_t q_ids[16], k_ids[64];
    const int64_t heads = (int64_t)(take(&input, 1) % MAX_HEADS) + 1;
    const int64_t q_len = (int64_t)(take(&input, 1) % 4),
                  k_len = (int64_t)(take(&input, 1) % 64) + 1;
    pe_positions q_at, k_at;
    pe_tensor x, y;
    positions(&q_at, q_ids, q_len);
    positions(&k_at, k_ids, k_len);
    for (int i = 0; i < ROOM; i++)
        y_before[i] = y_data[i] = x_data[i] =
            (float)(int64_t)take(&input, input.size > 0) - 100;
    if (take(&input, 1) % 8 == 0)
        x_data[take(&input, 1)] = take(&input, 1) % 2 ? NAN : -INFINITY;
    pe_tensor_bhsd(&x, PE_F32, x_data, 1, heads, q_len, k_len);
    pe_tensor_bhsd(&y, PE_F32, y_data, 1, heads, q_len, k_len);
    const double scale = take_double(&input, scales, 4);
    const pe_mask mask = (pe_mask)whole(1, 2);
    const pe_status made[] = {
        pe_bias_fill(bias, &q_at, &k_at, &y, NULL),
        pe_bias_add(bias, &q_at, &k_at, &x, &y, NULL),
        pe_bias_backward(bias, &q_at, &k_at, &x, grad, NULL),
    };
    if (made[0] != made[1] || made[0] != made[2])
        abort();
    if (made[0] != PE_OK && memcmp(y_data, y_before, sizeof y_data) != 0)
        abort();
    if (heads + spec->head_start > spec->num_heads && made[0] == PE_OK)
        abort();
    memcpy(y_data, y_before, sizeof y_data);
    if (pe_bias_softmax(bias, scale, mask, &q_at, &k_at, &x, &y, NULL) == PE_OK)
        judge_rows(&y);
    else if (memcmp(y_data, y_before, sizeof y_data) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pe_bias_spec spec;
    input = (struct bytes){data, size};
    pe_bias *bias = plan(&spec);
    if (bias != NULL)
        calls(bias, &spec);
    pe_bias_destroy(bias);
    return 0;
}
