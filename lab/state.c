/* SPDX-License-Identifier: MIT
 *
 * state.c - weights and moments of a run
 */
#include "trainer.h"

#include <stdlib.h>
#include <string.h>

static float *zeroes(int64_t count)
{
    float *x = aligned_alloc(64, (size_t)count * sizeof *x); /* count is whole lines */
    if (x != NULL)
        memset(x, 0, (size_t)count * sizeof *x);
    return x;
}

pe_status lab_state_allocate(lab_state *out, const lab_config *config, pe_error *error)
{
    *out = (lab_state){.config = *config};
    lab_layout_make(&out->layout, config);
    out->weights = zeroes(out->layout.size);
    out->moment1 = zeroes(out->layout.size);
    out->moment2 = zeroes(out->layout.size);
    if (out->weights != NULL && out->moment1 != NULL && out->moment2 != NULL)
        return PE_OK;
    lab_state_release(out);
    return lab_fail(error, PE_E_NO_MEMORY, "no memory for %lld weights",
                    (long long)out->layout.num_weights);
}

pe_status lab_state_create(lab_state *out, const lab_config *config, pe_error *error)
{
    pe_status status = lab_state_allocate(out, config, error);
    if (status != PE_OK)
        return status;
    status = lab_weights_init(out->weights, &out->layout, &out->config, error);
    if (status != PE_OK)
        lab_state_release(out);
    return status;
}

void lab_state_release(lab_state *state)
{
    free(state->weights);
    free(state->moment1);
    free(state->moment2);
    state->weights = state->moment1 = state->moment2 = NULL;
}
