/* SPDX-License-Identifier: MIT
 *
 * fuzz_absolute.c - bytes -> sinusoidal and learned plans and every call; resized tables
 *
 * Fields come from the input as they are, mostly steered towards values that pass the
 * first checks; what is really allocated is bounded.  Whatever the bytes say: no crash,
 * a refused call has written nothing, a sinusoidal entry is no larger than value_scale,
 * and a plan's table changes no bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "posenc/posenc.h"

enum { MAX_DIM = 48, ROWS = 12, TOKENS = 6, SIZE = 2 * TOKENS * MAX_DIM };

static float weight[ROWS * MAX_DIM], x[SIZE], y[SIZE], before[SIZE];

static void take_positions(struct bytes *in, pe_positions *at, int32_t axes)
{
    static int64_t ids[4 * 2 * TOKENS];
    static double values[4 * 2 * TOKENS];

    *at = (pe_positions){.num_axes = (int32_t)take_whole(in, 240, 0, 1)};
    for (int i = 0; i < 4 * 2 * TOKENS; i++) {
        ids[i] = i % 5 ? i % ROWS : take_whole(in, 240, -3, ROWS);
        const uint64_t bits = i % 5 ? 0 : take(in, 8);
        memcpy(&values[i], &bits, sizeof bits);
    }
    switch (take(in, 1) % 4) {
    case 0:
        at->start = take_whole(in, 240, -2, ROWS);
        return;
    case 1:
        at->starts = ids;
        return;
    case 2:
        at->ids = ids;
        break;
    default:
        at->values = values;
    }
    at->batch_stride = (int64_t)(take(in, 1) % (TOKENS + 1));
    if (axes > 1 && axes <= 3 && take(in, 1) % 2) {
        at->num_axes = axes;
        at->axis_stride = (int64_t)(take(in, 1) % (2 * TOKENS + 1));
    }
}

static void require(int holds)
{
    if (!holds)
        abort();
}

/* Fill or add; what was refused must have written nothing.  Returns whether it ran. */
static int call(struct bytes *in, const pe_absolute *plan, const pe_positions *at,
                int64_t dim)
{
    static const pe_dtype dtypes[] = {PE_F32, PE_F16, PE_BF16};
    pe_tensor x_t, y_t;
    pe_status status;
    pe_error error;
    const int64_t batch = 1 + (int64_t)(take(in, 1) % 2);
    const int64_t seq_len = (int64_t)(take(in, 1) % (TOKENS + 1));

    for (int i = 0; i < SIZE; i++)
        y[i] = (float)i;
    memcpy(before, y, sizeof before);
    pe_tensor_bshd(&x_t, dtypes[take(in, 1) % 3], x, batch, seq_len, 1, dim);
    pe_tensor_bshd(&y_t, dtypes[take(in, 1) % 3], y, batch, seq_len, 1, dim);
    if (take(in, 1) % 16 == 0)
        y_t.seq_stride = (int64_t)take(in, 8);
    if (y_t.seq_stride != dim)
        y_t.seq_len = x_t.seq_len = y_t.seq_len > 0; /* nothing walks this stride */
    status = take(in, 1) % 2 ? pe_absolute_add(plan, at, &x_t, &y_t, &error)
                             : pe_absolute_fill(plan, at, &y_t, &error);
    if (status != PE_OK)
        require(error.status == status && error.message[0] != '\0' &&
                memcmp(y, before, sizeof y) == 0);
    return status == PE_OK;
}

static void run_sinusoidal(struct bytes *in)
{
    static const double bases[] = {0, 10000, 20, 1, 0.5, 1e30};
    static const double shifts[] = {0, 1, 0.5, -3, 2, 1e9};
    static const double scales[] = {0, 1, 0.25, -2, 1e-5, 1e5};
    pe_sinusoidal_spec spec = {.struct_size = sizeof spec};
    pe_absolute *plan = NULL, *cached = NULL;
    pe_positions at;
    pe_error error;

    spec.order = (int32_t)take_whole(in, 240, 1, 3);
    spec.model_dim = (int32_t)take_whole(in, 240, 1, MAX_DIM);
    spec.num_axes = (int32_t)take_whole(in, 240, 0, 3);
    spec.base = take_double(in, bases, 6);
    spec.downscale_freq_shift = take_double(in, shifts, 6);
    spec.position_scale = take_double(in, scales, 6);
    spec.value_scale = take_double(in, scales, 6);
    spec.embed_scale = take_double(in, scales, 6);
    spec.has_padding = (int32_t)take_whole(in, 240, 0, 1);
    spec.padding_position = take_whole(in, 240, 0, 2);
    spec.angles = (int32_t)take_whole(in, 240, 0, 1);
    if (spec.model_dim > MAX_DIM && spec.model_dim < 1 << 20)
        spec.model_dim = MAX_DIM;
    const pe_status status = pe_sinusoidal_create(&plan, &spec, NULL, &error);
    if (status != PE_OK) {
        require(plan == NULL && error.status == status && error.message[0] != '\0');
        return;
    }
    take_positions(in, &at, spec.num_axes);
    spec.table_len = 1 + (int64_t)(take(in, 1) % 20);
    require(pe_sinusoidal_create(&cached, &spec, NULL, &error) == PE_OK);
    struct bytes again = *in;
    const int ran = call(in, plan, &at, spec.model_dim);
    static float first[SIZE];
    memcpy(first, y, sizeof first);
    require(call(&again, cached, &at, spec.model_dim) == ran);
    require(memcmp(first, y, sizeof first) == 0);
    const double top = spec.value_scale == 0 ? 1 : fabs(spec.value_scale);
    pe_tensor out;
    pe_tensor_bshd(&out, PE_F32, y, 1, TOKENS, 1, spec.model_dim);
    if (pe_absolute_fill(plan, &at, &out, &error) == PE_OK)
        for (int64_t i = 0; i < TOKENS * spec.model_dim; i++)
            require(fabs((double)y[i]) <= (double)(float)top);
    pe_absolute_destroy(plan);
    pe_absolute_destroy(cached);
}

static void run_learned(struct bytes *in)
{
    static float dweight[ROWS * MAX_DIM], kept[ROWS * MAX_DIM];
    pe_tensor table, dy, dw;
    pe_absolute *plan = NULL;
    pe_positions at;
    pe_error error;
    const int64_t dim = 1 + (int64_t)(take(in, 1) % MAX_DIM);

    pe_tensor_bshd(&table, PE_F32, weight, 1, ROWS, 1, dim);
    pe_learned_spec spec = {.struct_size = sizeof spec, .weight = &table};
    spec.position_offset = (int32_t)take_whole(in, 240, 0, ROWS);
    if (pe_learned_create(&plan, &spec, NULL, &error) != PE_OK) {
        require(plan == NULL && error.message[0] != '\0');
        return;
    }
    require(pe_absolute_capacity(plan) == ROWS - spec.position_offset);
    take_positions(in, &at, 1);
    call(in, plan, &at, dim);
    pe_tensor_bshd(&dy, PE_F32, x, 2, TOKENS, 1, dim);
    pe_tensor_bshd(&dw, PE_F32, dweight, 1, ROWS, 1, dim);
    memset(dweight, 0, sizeof dweight);
    memset(kept, 0, sizeof kept);
    if (pe_absolute_backward(plan, &at, &dy, &dw, &error) != PE_OK)
        require(memcmp(dweight, kept, sizeof kept) == 0);
    pe_absolute_destroy(plan);
}

static void run_resize(struct bytes *in)
{
    static const double scales[] = {0, 0, 1, 2, 0.5, 1.7};
    pe_resize how = {0};
    pe_tensor from, to;
    pe_error error;

    how.mode = (int32_t)take_whole(in, 240, 1, 2);
    how.align_corners = (int32_t)take_whole(in, 240, 0, 1);
    how.prefix_rows = take_whole(in, 240, 0, 2);
    how.from_h = take_whole(in, 240, 1, 3);
    how.from_w = take_whole(in, 240, 1, 3);
    how.to_h = take_whole(in, 240, 1, 5);
    how.to_w = take_whole(in, 240, 1, 5);
    how.scale_h = take_double(in, scales, 6);
    how.scale_w = take_double(in, scales, 6);
    /* Shapes by the truth of what is allocated; how may claim anything. */
    const int64_t rows = 1 + (int64_t)(take(in, 1) % ROWS);
    int64_t to_rows = 1 + (int64_t)(take(in, 1) % 27);
    if (how.to_h > 0 && how.to_h < 6 && how.to_w > 0 && how.to_w < 6 &&
        how.prefix_rows >= 0 && how.prefix_rows < 3)
        to_rows = how.to_h * how.to_w + how.prefix_rows;
    const int64_t from_rows = how.from_h > 0 && how.from_h < 4 && how.from_w > 0 &&
                                      how.from_w < 4 && how.prefix_rows >= 0 &&
                                      how.prefix_rows < 3
                                  ? how.from_h * how.from_w + how.prefix_rows
                                  : rows;
    pe_tensor_bshd(&from, PE_F32, weight, 1, from_rows, 1, 4);
    pe_tensor_bshd(&to, PE_F32, y, 1, to_rows, 1, 4);
    memcpy(y, before, sizeof y);
    if (pe_learned_resize(&how, &from, &to, NULL, &error) != PE_OK) {
        require(error.message[0] != '\0' && memcmp(y, before, sizeof y) == 0);
        return;
    }
    /* Linear weights are an average: nothing leaves the range of the table. */
    for (int64_t i = 0; i < to_rows * 4 && how.mode == PE_RESIZE_LINEAR; i++)
        require(y[i] >= -1 && y[i] <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};

    for (int i = 0; i < ROWS * MAX_DIM; i++)
        weight[i] = (float)(i % 17) / 16 - 0.5f;
    for (int i = 0; i < SIZE; i++)
        x[i] = (float)(i % 29) / 16;
    switch (take(&in, 1) % 3) {
    case 0:
        run_sinusoidal(&in);
        break;
    case 1:
        run_learned(&in);
        break;
    default:
        run_resize(&in);
    }
    return 0;
}
