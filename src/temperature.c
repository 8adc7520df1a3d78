/* SPDX-License-Identifier: MIT
 *
 * temperature.c - query temperature: a factor that grows with a query's position
 */
#include "base/base.h"

#include "posenc/positions.h"

#include "angle/wide.h"
#include "base/at.h"
#include "base/error.h"
#include "base/tensor.h"

/* 1 + scale ln(1 + floor(p / length)), p >= 0. */
static pe_wide stepped(const pe_temperature *t, int64_t p)
{
    const pe_wide length = pe_wide_from_double(t->length);
    const int64_t steps = pe_wide_floor(pe_wide_div(pe_wide_from_int(p), length));
    const pe_wide grown = pe_wide_ln(pe_wide_from_int(1 + steps));
    return pe_wide_add(pe_wide_from_int(1),
                       pe_wide_mul(pe_wide_from_double(t->scale), grown));
}

static float factor_at(const pe_temperature *t, int64_t p)
{
    const pe_wide one = pe_wide_from_int(1);
    switch (t->type) {
    case PE_TEMPERATURE_LLAMA4:
        return pe_wide_to_float(stepped(t, p + 1));
    case PE_TEMPERATURE_MINISTRAL:
        return pe_wide_to_float(stepped(t, p));
    case PE_TEMPERATURE_LOG_N: {
        const pe_wide ratio = pe_wide_div(pe_wide_log2(pe_wide_from_int(p + 1)),
                                          pe_wide_log2(pe_wide_from_double(t->length)));
        return pe_wide_to_float(pe_wide_less(ratio, one) ? one : ratio);
    }
    default:
        return 1;
    }
}

static pe_status check_temperature(const pe_temperature *t, pe_error *error)
{
    if (t == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "temperature is NULL");
    if (t->type < PE_TEMPERATURE_NONE || t->type > PE_TEMPERATURE_LOG_N)
        return pe_fail(error, PE_E_ARGUMENT,
                       "temperature.type is %d, must be PE_TEMPERATURE_NONE (0) to "
                       "PE_TEMPERATURE_LOG_N (3)",
                       t->type);
    if (t->reserved != 0)
        return pe_fail(error, PE_E_ARGUMENT, "temperature.reserved is %d, must be 0",
                       t->reserved);
    if (t->type == PE_TEMPERATURE_NONE)
        return PE_OK;
    const double min = t->type == PE_TEMPERATURE_LOG_N ? 2 : 1;
    if (!(t->length >= min && t->length <= 0x1p53))
        return pe_fail(error, PE_E_ARGUMENT,
                       "temperature.length is %g, must be in %g .. "
                       "2^53",
                       t->length, min);
    if (t->type != PE_TEMPERATURE_LOG_N && !(t->scale >= 0 && t->scale <= 0x1p20))
        return pe_fail(error, PE_E_ARGUMENT,
                       "temperature.scale is %g, must be in 0 .. 2^20", t->scale);
    return PE_OK;
}

static pe_status check_places(const pe_positions *at, const pe_tensor *factors,
                              pe_error *error)
{
    for (int64_t b = 0; b < factors->batch; b++)
        for (int64_t t = 0; t < factors->seq_len; t++) {
            const int64_t p = pe_at_id(at, 0, b, t);
            if (p < 0 || p > (int64_t)1 << 60)
                return pe_fail(error, PE_E_POSITION,
                               "position of row %lld, token %lld is %lld, must be in 0 "
                               ".. 2^60 for a temperature",
                               (long long)b, (long long)t, (long long)p);
        }
    return PE_OK;
}

pe_status pe_temperature_fill(const pe_temperature *temperature, const pe_positions *at,
                              const pe_tensor *factors, pe_error *error)
{
    pe_status status;
    if ((status = check_temperature(temperature, error)) != PE_OK ||
        (status = pe_tensor_check(factors, PE_OUTPUT, "factors", error)) != PE_OK)
        return status;
    if (factors->num_heads != 1 || factors->dim != 1)
        return pe_fail(error, PE_E_SHAPE,
                       "factors has %lld heads and dim %lld, must be 1 and 1",
                       (long long)factors->num_heads, (long long)factors->dim);
    if (factors->dtype != PE_F32)
        return pe_fail(error, PE_E_DTYPE, "factors.dtype is %d, must be PE_F32 (1)",
                       factors->dtype);
    if ((status = pe_at_check(at, factors->batch, factors->seq_len, 1, 0, "at",
                              error)) != PE_OK ||
        (status = check_places(at, factors, error)) != PE_OK)
        return status;
    for (int64_t b = 0; b < factors->batch; b++)
        for (int64_t t = 0; t < factors->seq_len; t++) {
            const float factor = factor_at(temperature, pe_at_id(at, 0, b, t));
            int64_t element;
            if (pe_tensor_at(factors, b, t, 0, &element))
                pe_vector_store(factors, element, 0, 1, &factor);
        }
    return PE_OK;
}
