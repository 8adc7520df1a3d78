/* SPDX-License-Identifier: MIT
 *
 * frequencies.c - which sinusoidal family a spec names, and its frequencies
 *
 * Families differ in order, divisor and what an odd width means; docs/absolute.md says
 * which model uses which.  Frequency 0 is base^0 = 1 whatever the divisor: so a single
 * pair with shift 1 (half - 1 = 0) is defined, as in tensor2tensor, where code that
 * divides first fails. */
#include "sinusoidal/sinusoidal.h"

#include "base/error.h"

enum { MAX_MODEL_DIM = 65536 };

/* log2 of a frequency: its phase must fit the software float at far positions. */
#define MIN_LOG2_FREQ -1000
#define MAX_LOG2_FREQ 40

static int ends_in_zero(const pe_sinusoidal_spec *spec, int64_t dim)
{
    return dim % 2 == 1 &&
           (spec->order == PE_COS_SIN_HALVES ||
            (spec->order == PE_SIN_COS_HALVES && spec->downscale_freq_shift != 0));
}

pe_sinusoid_columns pe_sinusoid_layout(const pe_sinusoidal_spec *spec)
{
    const int64_t dim = spec->model_dim / spec->num_axes;
    const int64_t used = dim - ends_in_zero(spec, dim);
    pe_sinusoid_columns c = {.dim = dim,
                             .num_pairs = (used + 1) / 2,
                             .num_sines = (used + 1) / 2,
                             .num_cosines = used / 2,
                             .step = 1,
                             .twice_half = used};
    if (spec->order == PE_SIN_COS_INTERLEAVED) {
        c.first_cosine = 1;
        c.step = 2;
    } else if (spec->order == PE_SIN_COS_HALVES) {
        c.first_cosine = c.num_sines;
    } else {
        c.first_sine = c.num_cosines;
    }
    return c;
}

/* half - shift, twice. */
static pe_wide divisor_of(const pe_sinusoidal_spec *spec,
                          const pe_sinusoid_columns *columns)
{
    const pe_wide shift = pe_wide_from_double(spec->downscale_freq_shift);
    return pe_wide_sub(pe_wide_from_int(columns->twice_half),
                       pe_wide_add(shift, shift));
}

void pe_sinusoid_freqs(const pe_sinusoidal_spec *spec,
                       const pe_sinusoid_columns *columns, pe_turns *turns)
{
    const pe_wide base = pe_wide_from_double(spec->base);
    const pe_wide scale = pe_wide_from_double(spec->position_scale);
    const pe_wide divisor = divisor_of(spec, columns);
    pe_turns_set(turns, 0, scale);
    for (int64_t i = 1; i < columns->num_pairs; i++) {
        const pe_wide exponent = pe_wide_div(pe_wide_from_int(-2 * i), divisor);
        pe_turns_set(turns, i, pe_wide_mul(scale, pe_wide_pow(base, exponent)));
    }
}

/* exp(i * -(ln(base) / (half - shift))): the constant is a Python double, which a tensor
 * operation takes as float; products and exp round to float. */
void pe_sinusoid_freqs_hf(const pe_sinusoidal_spec *spec,
                          const pe_sinusoid_columns *columns, float *inv_freq)
{
    const pe_wide ln2 = pe_wide_ln(pe_wide_from_int(2));
    const double ln_base =
        pe_wide_to_double(pe_wide_ln(pe_wide_from_double(spec->base)));
    /* The interleaved order counts its columns, 2 i, and divides by their number. */
    const int whole = spec->order == PE_SIN_COS_INTERLEAVED;
    const double divisor = pe_wide_to_double(divisor_of(spec, columns));
    const float step = (float)-(ln_base / (whole ? divisor : divisor / 2));
    inv_freq[0] = 1;
    for (int64_t i = 1; i < columns->num_pairs; i++) {
        float x = (float)(whole ? 2 * i : i) * step;
        PE_KEEP(x);
        inv_freq[i] = pe_wide_to_float(
            pe_wide_exp2(pe_wide_div(pe_wide_from_double((double)x), ln2)));
    }
}

/* ------------------------------------------------------------------ checks --- */

static pe_status check_widths(const pe_sinusoidal_spec *s, pe_error *error)
{
    if (s->order < PE_SIN_COS_INTERLEAVED || s->order > PE_COS_SIN_HALVES)
        return pe_fail(error, PE_E_ARGUMENT,
                       s->order == 0
                           ? "order is not set, must be: it has no default"
                           : "order is %d, must be PE_SIN_COS_INTERLEAVED (1), "
                             "PE_SIN_COS_HALVES (2) or PE_COS_SIN_HALVES (3)",
                       s->order);
    if (s->model_dim < 1 || s->model_dim > MAX_MODEL_DIM)
        return pe_fail(error, PE_E_ARGUMENT, "model_dim is %d, must be in 1 .. %d",
                       s->model_dim, MAX_MODEL_DIM);
    if (s->num_axes < 1 || s->model_dim % s->num_axes != 0)
        return pe_fail(error, PE_E_ARGUMENT,
                       "num_axes is %d, must be at least 1 and divide model_dim (%d)",
                       s->num_axes, s->model_dim);
    if (pe_sinusoid_layout(s).num_pairs == 0)
        return pe_fail(error, PE_E_ARGUMENT,
                       "model_dim is %d, must be at least 2 for each of %d axes: the "
                       "odd column of this order is zero",
                       s->model_dim, s->num_axes);
    return PE_OK;
}

static pe_status check_numbers(const pe_sinusoidal_spec *s, pe_error *error)
{
    const struct {
        const char *name;
        double value;
        int may_be_negative;
    } numbers[] = {{"base", s->base, 0},
                   {"position_scale", s->position_scale, 0},
                   {"value_scale", s->value_scale, 1},
                   {"embed_scale", s->embed_scale, 1}};
    for (size_t i = 0; i < PE_COUNT(numbers); i++) {
        const double v = numbers[i].value;
        const double size = v < 0 && numbers[i].may_be_negative ? -v : v;
        if (!(size >= 0x1p-64 && size <= 0x1p64))
            return pe_fail(error, PE_E_ARGUMENT, "%s is %g, must be in 2^-64 .. 2^64%s",
                           numbers[i].name, v,
                           numbers[i].may_be_negative ? " in size" : "");
    }
    if (!(s->downscale_freq_shift >= -0x1p30 && s->downscale_freq_shift <= 0x1p30))
        return pe_fail(error, PE_E_ARGUMENT,
                       "downscale_freq_shift is %g, must be at most 2^30 in size",
                       s->downscale_freq_shift);
    return PE_OK;
}

/* Frequencies run evenly in the logarithm, so the last one bounds them all. */
static pe_status check_frequencies(const pe_sinusoidal_spec *s, pe_error *error)
{
    const pe_sinusoid_columns columns = pe_sinusoid_layout(s);
    const double divisor = pe_wide_to_double(divisor_of(s, &columns));
    const int64_t last = columns.num_pairs - 1;
    double logs[2];
    logs[0] = pe_wide_to_double(pe_wide_log2(pe_wide_from_double(s->position_scale)));
    logs[1] = logs[0];
    if (last > 0) {
        if (divisor <= 0)
            return pe_fail(error, PE_E_ARGUMENT,
                           "downscale_freq_shift is %g, must be below half the width "
                           "(%g), by which frequencies are spaced",
                           s->downscale_freq_shift, (double)columns.twice_half / 2);
        logs[1] -= pe_wide_to_double(pe_wide_log2(pe_wide_from_double(s->base))) *
                   (2 * (double)last / divisor);
    }
    for (int k = 0; k < 2; k++)
        if (!(logs[k] >= MIN_LOG2_FREQ && logs[k] < MAX_LOG2_FREQ))
            return pe_fail(error, PE_E_ARGUMENT,
                           "frequency %lld is 2^%g radians per position, must be in "
                           "2^%d .. 2^%d (base %g, position_scale %g)",
                           k == 0 ? 0 : (long long)last, logs[k], MIN_LOG2_FREQ,
                           MAX_LOG2_FREQ, s->base, s->position_scale);
    return PE_OK;
}

static pe_status check_angles(const pe_sinusoidal_spec *s, pe_error *error)
{
    if (s->angles < PE_ANGLES_EXACT || s->angles > PE_ANGLES_GGML_F32)
        return pe_fail(error, PE_E_ARGUMENT,
                       "angles is %d, must be PE_ANGLES_EXACT (0) or PE_ANGLES_HF_F32 "
                       "(1)",
                       s->angles);
    if (s->angles == PE_ANGLES_GGML_F32)
        return pe_fail(error, PE_E_UNSUPPORTED,
                       "angles is PE_ANGLES_GGML_F32, which is ggml's rope and has no "
                       "sinusoidal table");
    if (s->angles == PE_ANGLES_HF_F32 && (s->num_axes > 1 || s->position_scale != 1))
        return pe_fail(error, PE_E_UNSUPPORTED,
                       "num_axes is %d and position_scale %g, must be 1 for "
                       "PE_ANGLES_HF_F32: float code has no one order for them",
                       s->num_axes, s->position_scale);
    return PE_OK;
}

static pe_status check_padding(const pe_sinusoidal_spec *s, pe_error *error)
{
    if (s->has_padding != 0 && s->has_padding != 1)
        return pe_fail(error, PE_E_ARGUMENT, "has_padding is %d, must be 0 or 1",
                       s->has_padding);
    if (s->has_padding == 0 && s->padding_position != 0)
        return pe_fail(error, PE_E_ARGUMENT,
                       "padding_position is %lld, must be 0 unless has_padding is 1",
                       (long long)s->padding_position);
    if (s->has_padding && s->num_axes > 1)
        return pe_fail(error, PE_E_UNSUPPORTED,
                       "has_padding is 1, which num_axes %d does not have",
                       s->num_axes);
    return PE_OK;
}

static void set_default(double *value, double otherwise)
{
    if (*value == 0)
        *value = otherwise;
}

pe_status pe_sinusoid_check(pe_sinusoidal_spec *spec, pe_error *error)
{
    pe_status status;
    if (spec->num_axes == 0)
        spec->num_axes = 1;
    set_default(&spec->base, 10000);
    set_default(&spec->position_scale, 1);
    set_default(&spec->value_scale, 1);
    set_default(&spec->embed_scale, 1);
    if ((status = check_widths(spec, error)) != PE_OK ||
        (status = check_numbers(spec, error)) != PE_OK ||
        (status = check_frequencies(spec, error)) != PE_OK ||
        (status = check_angles(spec, error)) != PE_OK ||
        (status = check_padding(spec, error)) != PE_OK)
        return status;
    if (spec->table_len < 0)
        return pe_fail(error, PE_E_ARGUMENT, "table_len is %lld, must be at least 0",
                       (long long)spec->table_len);
    return PE_OK;
}
