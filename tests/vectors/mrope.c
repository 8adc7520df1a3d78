/* SPDX-License-Identifier: MIT
 *
 * mrope.c - multi-axis RoPE: sections in every order, and the ladders of image towers
 *
 * Hidden seams: the plan's pair_axis must be the case's, and a tower's rule is built
 * from PE_AXIS_SPLIT, or from PE_AXIS_CUSTOM over the plan's own frequencies. */
#include "vectors.h"

#include <string.h>

static void check_one(const vec_case *c, const pe_rope_spec *spec,
                      const pe_positions *at, const char *input, const char *expected)
{
    const char *axes = vec_string(c, c->spec, "axes");
    const double abs_tol = vec_number(c, c->tolerance, "exact_abs");
    int64_t shape[4], count = 1;
    int rank;
    pe_tensor x_t, y_t;
    pe_error error;

    const float *x = vec_input(c, input, shape, &rank);
    for (int i = 0; i < rank; i++)
        count *= shape[i];
    const double *exact = vec_expected(c, expected, count);
    float *y = vec_alloc(c, count, sizeof *y);
    vec_tensor(c, &x_t, x, axes, shape, rank);
    vec_tensor(c, &y_t, y, axes, shape, rank);
    if (at->ids != NULL && at->axis_stride != x_t.batch * x_t.seq_len)
        vec_fail(c, "%s has %lld tokens, the case has %lld positions an axis", input,
                 (long long)(x_t.batch * x_t.seq_len), (long long)at->axis_stride);
    for (pe_isa isa = vec_isa_next(0); isa; isa = vec_isa_next(isa)) {
        const pe_rope *rope = vec_rope_on(c, spec, isa);
        if (pe_rope_apply(rope, at, &x_t, &y_t, &error) != PE_OK)
            vec_fail(c, "expected %s to be rotated, got %s", input, error.message);
        const double factor = pe_rope_get_info(rope)->attention_factor;
        const double slack = vec_product_rounding(isa, x, count, factor);
        for (int64_t i = 0; i < count; i++)
            vec_near(c, expected, i, (double)y[i], exact[i],
                     abs_tol + slack + vec_float_rounding(exact[i]));
    }
}

static pe_axis_map axis_map(const vec_case *c)
{
    const char *mode = vec_string(c, c->spec, "section_mode");

    if (strcmp(mode, "contiguous") == 0)
        return PE_AXIS_CHUNKED;
    if (strcmp(mode, "interleaved") == 0)
        return PE_AXIS_INTERLEAVED;
    if (strcmp(mode, "ernie") == 0)
        return PE_AXIS_ERNIE;
    vec_fail(c, "section_mode is %s, known: contiguous, interleaved, ernie", mode);
}

static void check_mrope(vec_case *c)
{
    int64_t num_sections, num_ids, num_axes;
    const int64_t *sections = vec_integers(c, c->spec, "sections", &num_sections);
    const int64_t *ids = vec_integers(c, c->spec, "positions_thw", &num_ids);
    const int64_t *pair_axis = vec_integers(c, c->spec, "pair_axis", &num_axes);
    const int64_t seq = vec_integer(c, c->spec, "seq");
    pe_rope_spec spec;

    if (num_sections != 3 || num_ids % 3 != 0)
        vec_fail(c, "expected three sections and three position streams");
    vec_rope_spec(c, &spec);
    spec.axes.map = axis_map(c);
    for (int a = 0; a < 3; a++)
        spec.axes.section[a] = (int32_t)sections[a];
    const pe_rope_info *info = pe_rope_get_info(vec_rope(c, &spec));
    if (num_axes != info->num_pairs)
        vec_fail(c, "pair_axis has %lld entries for %d pairs", (long long)num_axes,
                 info->num_pairs);
    for (int32_t i = 0; i < info->num_pairs; i++)
        vec_near(c, "pair_axis", i, info->pair_axis[i], (double)pair_axis[i], 0);

    const pe_positions at = {
        .ids = ids, .batch_stride = seq, .axis_stride = num_ids / 3, .num_axes = 3};
    check_one(c, &spec, &at, "q", "q_exact");
    check_one(c, &spec, &at, "k", "k_exact");
}

/* Axis a of token y * grid_w + x, for a tower whose first axis is y or x. */
static void fill_grid(int64_t *ids, int64_t num_tokens, int64_t grid_h, int64_t grid_w,
                      int x_first, int64_t offset)
{
    for (int64_t y = 0; y < grid_h; y++)
        for (int64_t x = 0; x < grid_w; x++) {
            const int64_t t = y * grid_w + x;
            ids[t] = (x_first ? x : y) + offset;
            ids[num_tokens + t] = (x_first ? y : x) + offset;
        }
}

/* Pixtral: y takes the even rungs of one ladder over the head, x the odd ones. */
static void make_pixtral(const vec_case *c, pe_rope_spec *spec)
{
    const int32_t num_pairs = spec->head_dim / 2, half = num_pairs / 2;
    const double *ladder = pe_rope_get_info(vec_rope(c, spec))->inv_freq;
    double *inv_freq = vec_alloc(c, num_pairs, sizeof *inv_freq);
    uint8_t *pair_axis = vec_alloc(c, num_pairs, sizeof *pair_axis);

    for (int32_t i = 0; i < num_pairs; i++) {
        pair_axis[i] = i >= half;
        inv_freq[i] = i < half ? ladder[2 * i] : ladder[2 * (i - half) + 1];
    }
    spec->axes = (pe_axes){.map = PE_AXIS_CUSTOM, .pair_axis = pair_axis};
    spec->freqs = (pe_freqs){.rope_type = PE_ROPE_CUSTOM, .inv_freq = inv_freq};
}

static void check_rope_2d(vec_case *c)
{
    const char *reference = vec_string(c, c->spec, "reference");
    const int64_t grid_h = vec_integer(c, c->spec, "grid_h");
    const int64_t grid_w = vec_integer(c, c->spec, "grid_w");
    const int is_llama4 = strcmp(reference, "llama4_vision") == 0;
    pe_rope_spec spec;

    if (grid_h < 1 || grid_h > 4096 || grid_w < 1 || grid_w > 4096)
        vec_fail(c, "the grid is %lld x %lld", (long long)grid_h, (long long)grid_w);
    vec_rope_spec(c, &spec);
    if (spec.head_dim < 4 || spec.head_dim % 4 != 0)
        vec_fail(c, "head_dim is %d, two axes need a multiple of 4", spec.head_dim);
    const int64_t num_tokens = grid_h * grid_w + is_llama4;
    int64_t *ids = vec_alloc(c, 2 * num_tokens, sizeof *ids);
    /* llama4's class token, the last one, stays at zero on both axes. */
    fill_grid(ids, num_tokens, grid_h, grid_w, is_llama4, is_llama4);
    if (strcmp(reference, "pixtral") == 0) {
        make_pixtral(c, &spec);
    } else if (is_llama4 || strcmp(reference, "qwen2_vl") == 0) {
        spec.axes.map = PE_AXIS_SPLIT;
        spec.axes.section[0] = spec.axes.section[1] = spec.head_dim / 4;
    } else {
        vec_fail(c, "reference is %s, known: qwen2_vl, pixtral, llama4_vision",
                 reference);
    }
    const pe_positions at = {.ids = ids,
                             .batch_stride = num_tokens,
                             .axis_stride = num_tokens,
                             .num_axes = 2};
    check_one(c, &spec, &at, "q", "q_exact");
    check_one(c, &spec, &at, "k", "k_exact");
}

const vec_kind vec_mrope_kinds[] = {
    {"mrope-contiguous", check_mrope},
    {"mrope-interleaved", check_mrope},
    {"mrope-ernie", check_mrope},
    {"rope-2d", check_rope_2d},
    {NULL, NULL},
};
