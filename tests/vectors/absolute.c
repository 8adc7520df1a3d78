/* SPDX-License-Identifier: MIT
 *
 * absolute.c - filling an encoding for a golden case
 */
#include "absolute.h"

static void fill(const vec_case *c, pe_status created, pe_absolute *plan,
                 const pe_positions *at, const pe_tensor *x, const pe_tensor *y,
                 pe_error *error)
{
    pe_status status = created;
    if (status == PE_OK)
        status = x == NULL ? pe_absolute_fill(plan, at, y, error)
                           : pe_absolute_add(plan, at, x, y, error);
    pe_absolute_destroy(plan);
    if (status != PE_OK)
        vec_fail(c, "expected an encoding, got %s: %s", pe_status_name(status),
                 error->message);
}

float *vec_sinusoidal(const vec_case *c, const pe_sinusoidal_spec *spec,
                      const pe_positions *at, int64_t batch, int64_t seq)
{
    float *got = vec_alloc(c, batch * seq * spec->model_dim, sizeof *got);
    pe_absolute *plan;
    pe_tensor y;
    pe_error error;

    pe_tensor_bshd(&y, PE_F32, got, batch, seq, 1, spec->model_dim);
    const pe_status status = pe_sinusoidal_create(&plan, spec, NULL, &error);
    fill(c, status, plan, at, NULL, &y, &error);
    return got;
}

float *vec_learned(const vec_case *c, const float *table, int64_t rows, int64_t dim,
                   int32_t offset, const pe_positions *at, int64_t batch, int64_t seq,
                   const float *x)
{
    float *got = vec_alloc(c, batch * seq * dim, sizeof *got);
    pe_tensor weight, x_t, y;
    pe_absolute *plan;
    pe_error error;

    pe_tensor_bshd(&weight, PE_F32, table, 1, rows, 1, dim);
    pe_tensor_bshd(&x_t, PE_F32, x, batch, seq, 1, dim);
    pe_tensor_bshd(&y, PE_F32, got, batch, seq, 1, dim);
    const pe_learned_spec spec = {
        .struct_size = sizeof spec, .weight = &weight, .position_offset = offset};
    const pe_status status = pe_learned_create(&plan, &spec, NULL, &error);
    fill(c, status, plan, at, x == NULL ? NULL : &x_t, &y, &error);
    return got;
}

void vec_nearest(const vec_case *c, const char *what, int64_t index, float got,
                 double exact)
{
    if (got != (float)exact)
        vec_fail(c, "%s[%lld]: expected the float nearest to %.17g, got %.9g", what,
                 (long long)index, exact, (double)got);
}
