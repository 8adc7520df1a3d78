/* SPDX-License-Identifier: MIT
 *
 * sinusoidal.c - every sinusoidal family, exact and as float code prints it
 *
 * At whole positions the library's entry must be the float nearest to the exact value. */
#include "absolute.h"

#include <math.h>
#include <string.h>

static double spec_base(const vec_case *c)
{
    return vec_number(c, c->spec, "base");
}

static int32_t spec_dim(const vec_case *c, const char *name)
{
    const int64_t dim = vec_integer(c, c->spec, name);

    if (dim < 1 || dim > 1 << 16)
        vec_fail(c, "%s is %lld", name, (long long)dim);
    return (int32_t)dim;
}

static pe_sinusoidal_spec spec_of(const vec_case *c, pe_sinusoid_order order,
                                  double shift)
{
    return (pe_sinusoidal_spec){.struct_size = sizeof(pe_sinusoidal_spec),
                                .order = order,
                                .model_dim = spec_dim(c, "d"),
                                .base = spec_base(c),
                                .downscale_freq_shift = shift};
}

/* The reference, if the case has one, against the float mode: its exp and cos may be a
 * unit off, which the tolerance allows for each radian of the largest angle. */
static void compare_hf(const vec_case *c, const pe_sinusoidal_spec *spec,
                       const char *name, const int64_t *positions, int64_t n)
{
    json_object *list;

    if (!json_object_object_get_ex(c->expect, name, &list))
        return;
    const double abs_tol = vec_number(c, c->tolerance, "ref_abs");
    const double per_angle = vec_number(c, c->tolerance, "ref_per_angle");
    const double *expected = vec_expected(c, name, n * spec->model_dim);
    const pe_positions at = {.ids = positions};
    pe_sinusoidal_spec hf = *spec;
    hf.angles = PE_ANGLES_HF_F32;
    const float *got = vec_sinusoidal(c, &hf, &at, 1, n);
    for (int64_t i = 0; i < n * spec->model_dim; i++) {
        const double angle = fabs((double)positions[i / spec->model_dim]);
        vec_near(c, name, i, (double)got[i], expected[i], abs_tol + per_angle * angle);
    }
}

static void check_line(const vec_case *c, const pe_sinusoidal_spec *spec)
{
    int64_t n;
    const int64_t *positions = vec_integers(c, c->spec, "positions", &n);
    const double *exact = vec_expected(c, "exact", n * spec->model_dim);
    const pe_positions at = {.ids = positions};
    const float *got = vec_sinusoidal(c, spec, &at, 1, n);

    for (int64_t i = 0; i < n * spec->model_dim; i++)
        vec_nearest(c, "encoding", i, got[i], exact[i]);
    if (spec->downscale_freq_shift == 1 && spec->position_scale == 0) {
        compare_hf(c, spec, "hf_m2m100", positions, n);
        compare_hf(c, spec, "fairseq", positions, n);
        compare_hf(c, spec, "hf_musicgen", positions, n);
        compare_hf(c, spec, "hf_whisper", positions, n);
        compare_hf(c, spec, "openai_whisper", positions, n);
    }
}

static void check_interleaved(vec_case *c)
{
    const pe_sinusoidal_spec spec = spec_of(c, PE_SIN_COS_INTERLEAVED, 0);
    check_line(c, &spec);
}

static void check_marian(vec_case *c)
{
    const pe_sinusoidal_spec spec = spec_of(c, PE_SIN_COS_HALVES, 0);
    check_line(c, &spec);
}

static void check_t2t(vec_case *c)
{
    const pe_sinusoidal_spec spec = spec_of(c, PE_SIN_COS_HALVES, 1);
    check_line(c, &spec);
}

static void check_cos_first(vec_case *c)
{
    const pe_sinusoidal_spec spec = spec_of(c, PE_COS_SIN_HALVES, 1);
    check_line(c, &spec);
}

/* frequency i = min * (max / min)^(-i / (half - 1)) */
static void check_timescale(vec_case *c)
{
    const double min = vec_number(c, c->spec, "min_timescale");
    const double max = vec_number(c, c->spec, "max_timescale");
    pe_sinusoidal_spec spec = spec_of(c, PE_SIN_COS_HALVES, 1);
    spec.base = max / min;
    spec.position_scale = min;
    check_line(c, &spec);
}

static void check_padding(vec_case *c)
{
    int64_t count, found, axes;
    const int64_t *tokens = vec_integers(c, c->spec, "token_ids", &count);
    const int64_t *shape = vec_integers(c, c->expect, "shape", &axes);
    const int64_t *expected = vec_integers(c, c->expect, "position_ids", &found);
    const int64_t padding = vec_integer(c, c->spec, "padding_idx");
    pe_sinusoidal_spec spec = spec_of(c, PE_SIN_COS_HALVES, 1);
    int64_t *ids = vec_alloc(c, count, sizeof *ids);

    if (axes != 3 || shape[0] * shape[1] != count || found != count ||
        shape[2] != spec.model_dim)
        vec_fail(c, "shape, token_ids and position_ids do not fit together");
    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t t = 0, seen = 0; t < shape[1]; t++) {
            const int64_t i = b * shape[1] + t;
            ids[i] = tokens[i] == padding ? padding : padding + ++seen;
            if (ids[i] != expected[i])
                vec_fail(c, "position %lld is %lld, expected %lld", (long long)i,
                         (long long)ids[i], (long long)expected[i]);
        }
    spec.has_padding = 1;
    spec.padding_position = padding;
    const double *exact = vec_expected(c, "exact", count * spec.model_dim);
    const pe_positions at = {.ids = ids, .batch_stride = shape[1]};
    const float *got = vec_sinusoidal(c, &spec, &at, shape[0], shape[1]);
    for (int64_t i = 0; i < count * spec.model_dim; i++)
        vec_nearest(c, "encoding", i, got[i], exact[i]);
}

/* A place on one axis: how many unmasked cells up to it, over all of its line. */
static double detr_position(const vec_case *c, const int64_t *mask, int64_t first,
                            int64_t stride, int64_t n, int64_t at, int normalize)
{
    double seen = 0, all = 0;

    for (int64_t i = 0; i < n; i++) {
        all += mask == NULL || mask[first + i * stride] != 0;
        if (i == at)
            seen = all;
    }
    if (!normalize)
        return seen;
    const double eps = vec_number(c, c->spec, "eps");
    return seen / (all + eps) * vec_number(c, c->spec, "scale");
}

static void check_detr(vec_case *c)
{
    const int64_t h = spec_dim(c, "height"), w = spec_dim(c, "width");
    const int32_t feats = spec_dim(c, "num_pos_feats");
    const double abs_tol = vec_number(c, c->tolerance, "exact_abs");
    const int normalize = vec_flag(c, c->spec, "normalize");
    const pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                                     .order = PE_SIN_COS_INTERLEAVED,
                                     .model_dim = 2 * feats,
                                     .num_axes = 2,
                                     .base = vec_number(c, c->spec, "temperature")};
    const double *exact = vec_expected(c, "exact", h * w * spec.model_dim);
    double *values = vec_alloc(c, 2 * h * w, sizeof *values);
    const int64_t *mask = NULL;
    json_object *list = NULL;
    int64_t count = h * w;

    if (json_object_object_get_ex(c->spec, "mask", &list) && list != NULL)
        mask = vec_integers(c, c->spec, "mask", &count);
    if (count != h * w)
        vec_fail(c, "mask has %lld cells, must have %lld", (long long)count,
                 (long long)(h * w));
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            values[y * w + x] = detr_position(c, mask, x, w, h, y, normalize);
            values[h * w + y * w + x] =
                detr_position(c, mask, y * w, 1, w, x, normalize);
        }
    const pe_positions at = {.values = values, .num_axes = 2, .axis_stride = h * w};
    const float *got = vec_sinusoidal(c, &spec, &at, 1, h * w);
    /* A position is a double here; with 2^-52 of it off, so is the angle. */
    for (int64_t i = 0; i < h * w * spec.model_dim; i++)
        vec_near(c, "encoding", i, (double)got[i], exact[i],
                 abs_tol + vec_float_rounding(exact[i]));
}

static void check_vit(vec_case *c)
{
    const int64_t h = spec_dim(c, "height"), w = spec_dim(c, "width");
    const int64_t cls = vec_flag(c, c->spec, "cls_token");
    const pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                                     .order = PE_SIN_COS_HALVES,
                                     .model_dim = spec_dim(c, "d"),
                                     .num_axes = 2,
                                     .base = vec_number(c, c->spec, "temperature")};
    const int64_t rows = cls + h * w, d = spec.model_dim;
    const double *exact = vec_expected(c, "exact", rows * d);
    int64_t *ids = vec_alloc(c, 2 * h * w, sizeof *ids);

    for (int64_t i = 0; i < h * w; i++) {
        ids[i] = i / w;
        ids[h * w + i] = i % w;
    }
    const pe_positions at = {.ids = ids, .num_axes = 2, .axis_stride = h * w};
    const float *got = vec_sinusoidal(c, &spec, &at, 1, h * w);
    for (int64_t i = 0; i < cls * d; i++)
        if (exact[i] != 0)
            vec_fail(c, "the class token's row is expected to be zero");
    for (int64_t i = 0; i < h * w * d; i++)
        vec_nearest(c, "encoding", i, got[i], exact[cls * d + i]);
}

void vec_lesson_sinusoidal(vec_case *c)
{
    const int64_t position = vec_integer(c, c->spec, "position");
    const pe_sinusoidal_spec spec = spec_of(c, PE_SIN_COS_INTERLEAVED, 0);
    const double printed_abs = vec_number(c, c->tolerance, "printed_abs");
    const double *exact = vec_expected(c, "exact", spec.model_dim);
    const double *printed = vec_expected(c, "printed", spec.model_dim);
    const pe_positions at = {.start = position};
    const float *got = vec_sinusoidal(c, &spec, &at, 1, 1);

    for (int64_t i = 0; i < spec.model_dim; i++) {
        vec_nearest(c, "encoding", i, got[i], exact[i]);
        vec_near(c, "encoding as printed", i, (double)got[i], printed[i], printed_abs);
    }
}

const vec_kind vec_sinusoidal_kinds[] = {
    {"interleaved", check_interleaved},
    {"halves-marian", check_marian},
    {"halves-t2t", check_t2t},
    {"halves-cosfirst", check_cos_first},
    {"halves-t2t-timescale", check_timescale},
    {"whisper", check_t2t},
    {"t2t-padding", check_padding},
    {"detr-2d", check_detr},
    {"vit-2d", check_vit},
    {NULL, NULL},
};
