/* SPDX-License-Identifier: MIT
 *
 * fuzz_rope.c - bytes -> spec -> plan -> every call, on small tensors
 *
 * Fields come from the input as they are, mostly steered towards values that pass the
 * first checks; sizes of what is really allocated are bounded.  Whatever the bytes say:
 * no crash, and a refused call has written nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "codec.h"
#include "posenc/posenc.h"

enum { MAX_TABLE = 64, ELEMENTS = 4096, MAX_PAIRS = 64, NUM_LISTS = 4, MAX_PAGES = 64 };

static int64_t take_int(struct bytes *in, const int64_t *usual, size_t count)
{
    const size_t pick = (size_t)take(in, 1);

    return pick < 240 ? usual[pick % count] : (int64_t)take(in, 8);
}

static int32_t take_enum(struct bytes *in, int32_t low, int32_t high)
{
    const uint64_t pick = take(in, 1);

    return pick < 250 ? low + (int32_t)(pick % (uint64_t)(high - low + 1))
                      : (int32_t)take(in, 4);
}

static void take_spec(struct bytes *in, pe_rope_spec *spec,
                      double lists[NUM_LISTS][MAX_PAIRS], uint8_t *pair_axis)
{
    static const int64_t dims[] = {16, 8, 2, 32, 64, 6, 128, 15};
    static const int64_t windows[] = {0, 0, 0, 8, 4, 2, 16, 6};
    static const int64_t lengths[] = {0, 4096, 1024, 1, 131072, 100};
    static const int64_t sections[] = {0, 2, 4, 1, 3, 8};
    static const double thetas[] = {10000, 500000, 2, 0, 1e6, 1};
    static const double factors[] = {0, 0, 4, 8, 1, 40, 1.5};
    static const double small[] = {0, 0, 0, 1, 32, 0.25, 2};
    pe_freqs *f = &spec->freqs;

    *spec = (pe_rope_spec){.struct_size = sizeof *spec};
    spec->head_dim = (int32_t)take_int(in, dims, 8);
    if (spec->head_dim > 2 * MAX_PAIRS)
        spec->head_dim = 2 * MAX_PAIRS; /* lists are as long as this */
    spec->table_len = (int64_t)(take(in, 1) % MAX_TABLE);
    spec->angles = take_enum(in, 0, 2);
    spec->pairs.pairing = take_enum(in, 1, 2);
    spec->pairs.out_pairing = take_enum(in, 0, 2);
    spec->pairs.rotary_dim = (int32_t)take_int(in, windows, 8);
    spec->pairs.rotary_start = (int32_t)take_int(in, windows, 8);
    spec->pairs.reversed = take_enum(in, 0, 1);
    spec->axes.map = take_enum(in, 0, 6);
    for (int a = 0; a < 4; a++)
        spec->axes.section[a] = (int32_t)take_int(in, sections, 6);
    f->rope_type = take_enum(in, 0, 8);
    f->mscale_rule = take_enum(in, 0, 2);
    f->rope_theta = take_double(in, thetas, 6);
    f->factor = take_double(in, factors, 7);
    f->attention_factor = take_double(in, small, 7);
    f->max_position_embeddings = take_int(in, lengths, 6);
    f->original_max_position_embeddings = take_int(in, lengths, 6);
    f->seq_len = take_int(in, lengths, 6);
    f->beta_fast = take_double(in, small, 7);
    f->beta_slow = take_double(in, small, 7);
    f->mscale = take_double(in, small, 7);
    f->mscale_all_dim = take_double(in, small, 7);
    f->low_freq_factor = take_double(in, small, 7);
    f->high_freq_factor = take_double(in, small, 7);
    f->partial_rotary_factor = take_double(in, small, 7);
    f->no_truncate = take_enum(in, 0, 1);
    const uint64_t given = take(in, 1); /* which lists are there */
    for (int n = 0; n < NUM_LISTS; n++)
        for (int i = 0; i < MAX_PAIRS; i++)
            lists[n][i] = 1 + (double)((given >> n) % 16) * i / 4;
    lists[take(in, 1) % NUM_LISTS][take(in, 1) % MAX_PAIRS] =
        take_double(in, factors, 7);
    for (int i = 0; i < MAX_PAIRS; i++)
        pair_axis[i] = (uint8_t)((given + (uint64_t)i) % 4);
    if (given & 1)
        f->short_factor = lists[0];
    if (given & 2)
        f->long_factor = lists[1];
    if (given & 4)
        f->inv_freq = lists[2];
    if (given & 8)
        f->freq_factors = lists[3];
    if (given & 16)
        spec->axes.pair_axis = pair_axis;
}

/* A tensor inside ELEMENTS elements, from its middle, with strides of either sign. */
static void take_tensor(struct bytes *in, pe_tensor *t, void *data, size_t element_size,
                        pe_dtype dtype, float *scales, int64_t dim)
{
    *t =
        (pe_tensor){.dtype = dtype, .dim = dim, .scales = scales, .codec = &fuzz_codec};
    t->batch = 1 + (int64_t)(take(in, 1) % 3);
    t->seq_len = (int64_t)(take(in, 1) % 4);
    t->num_heads = 1 + (int64_t)(take(in, 1) % 3);
    t->head_stride = dim * (1 + (int64_t)(take(in, 1) % 2));
    t->seq_stride = t->head_stride * 3;
    t->batch_stride = t->seq_stride * 4;
    if (take(in, 1) % 4 == 0)
        t->seq_stride = -t->seq_stride;
    if (t->batch_stride * 3 > ELEMENTS / 2) { /* too wide: one vector */
        t->batch = t->num_heads = 1;
        t->seq_len = t->seq_len > 0;
    }
    if (take(in, 1) % 16 == 0)
        t->seq_stride = (int64_t)take(in, 8); /* refused, unless nothing is read */
    if (t->seq_len > 1 && (t->seq_stride > 12 * dim || t->seq_stride < -12 * dim) &&
        t->seq_stride < INT64_MAX / 3 && t->seq_stride > INT64_MIN / 3)
        t->seq_len = 1; /* in range of int64, but not of our array */
    t->data = (unsigned char *)data + ELEMENTS / 2 * element_size;
}

/* Now and then pages: anything in the table, but capacity says what is ours. */
static void take_pages(struct bytes *in, pe_tensor *t, int32_t *pages)
{
    if (take(in, 1) % 4 != 0)
        return;
    for (int i = 0; i < MAX_PAGES; i++)
        pages[i] = (int32_t)(take(in, 1) % 16) - 2;
    pages[take(in, 1) % MAX_PAGES] = (int32_t)take(in, 4);
    t->page_table = pages;
    t->page_table_stride = (int64_t)(take(in, 1) % 8);
    t->page_len = (int64_t)(take(in, 1) % 4);
    t->page_stride = (int64_t)take(in, 1) * t->dim / 4;
    t->capacity = (int64_t)(take(in, 2) % (ELEMENTS / 2));
}

static void take_positions(struct bytes *in, pe_positions *at, const int64_t *ids,
                           const double *values)
{
    static const int64_t starts[] = {0, 1, 63, -5, 100000, (int64_t)1 << 40};

    *at = (pe_positions){0};
    switch (take(in, 1) % 4) {
    case 0:
        at->start = take_int(in, starts, 6);
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
    at->batch_stride = (int64_t)(take(in, 1) % 5);
    at->num_axes = take_enum(in, 0, 4);
    at->axis_stride = (int64_t)(take(in, 1) % 16);
}

static void call(uint64_t which, const pe_rope *rope, const pe_positions *at,
                 const pe_tensor *x, const pe_tensor *y, int64_t delta,
                 pe_status *status, pe_error *error)
{
    switch (which % 7) {
    case 0:
        *status = pe_rope_apply(rope, at, x, y, error);
        break;
    case 1:
        *status = pe_rope_transpose(rope, at, x, y, error);
        break;
    case 2:
        *status = pe_rope_inverse(rope, at, x, y, error);
        break;
    case 3:
        *status = pe_rope_shift(rope, delta, x, y, error);
        break;
    case 4:
        *status = pe_rope_rebase(rope, at, rope, at, x, y, error);
        break;
    case 5:
        *status = pe_rope_apply_qk(rope, at, x, y, x, y, error);
        break;
    default:
        *status = pe_rope_table(rope, at, x, y, error);
    }
}

static void run_calls(struct bytes *in, const pe_rope *rope)
{
    static const struct {
        pe_dtype dtype;
        size_t size;
    } dtypes[] = {{PE_F32, 4}, {PE_F16, 2}, {PE_BF16, 2}, {PE_I8, 1}, {PE_CODED, 1}};
    static uint32_t x_data[ELEMENTS], y_data[ELEMENTS], y_before[ELEMENTS];
    static float x_scales[ELEMENTS], y_scales[ELEMENTS];
    const int64_t dim = pe_rope_get_info(rope)->head_dim;
    int64_t ids[64];
    double values[64];

    for (int n = 0; n < 4; n++) {
        const size_t from = (size_t)take(in, 1) % 5, to = (size_t)take(in, 1) % 5;
        int32_t x_pages[MAX_PAGES], y_pages[MAX_PAGES];
        pe_tensor x, y;
        pe_positions at;
        pe_status status;
        pe_error error;

        for (int i = 0; i < 64; i++) {
            ids[i] = i % 8 == 0 ? (int64_t)take(in, 8) : i;
            const uint64_t bits = i % 8 == 0 ? take(in, 8) : 0;
            memcpy(&values[i], &bits, sizeof bits);
        }
        for (int i = 0; i < ELEMENTS; i++)
            x_data[i] = y_data[i] = (uint32_t)i * 2654435761u; /* NaNs, too */
        memcpy(y_before, y_data, sizeof y_before);
        take_tensor(in, &x, x_data, dtypes[from].size, dtypes[from].dtype, x_scales,
                    dim);
        y = x;
        if (take(in, 1) % 2 == 0)
            take_tensor(in, &y, y_data, dtypes[to].size, dtypes[to].dtype, y_scales,
                        dim);
        else
            y.data = (unsigned char *)y_data + ELEMENTS / 2 * dtypes[from].size;
        y.scales = y_scales;
        take_pages(in, &x, x_pages);
        take_pages(in, &y, y_pages);
        take_positions(in, &at, ids, values);
        call(take(in, 1), rope, &at, &x, &y, (int64_t)take(in, 8), &status, &error);
        if (status != PE_OK &&
            (memcmp(y_data, y_before, sizeof y_before) != 0 || error.status != status))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static double lists[NUM_LISTS][MAX_PAIRS];
    static uint8_t pair_axis[MAX_PAIRS];
    struct bytes in = {data, size};
    pe_rope_spec spec;
    pe_rope *rope = NULL;
    pe_error error;

    take_spec(&in, &spec, lists, pair_axis);
    const pe_status status = pe_rope_create(&rope, &spec, NULL, &error);
    if (status != PE_OK) {
        if (rope != NULL || error.status != status || error.message[0] == '\0')
            abort();
        return 0;
    }
    const pe_rope_info *info = pe_rope_get_info(rope);
    for (int32_t i = 0; i < info->num_pairs; i++)
        if (!isfinite(info->inv_freq[i]))
            abort();
    run_calls(&in, rope);
    pe_rope_destroy(rope);
    return 0;
}
