/* SPDX-License-Identifier: MIT
 *
 * fuzz_lab_checkpoint.c - any bytes as a checkpoint of the lab
 *
 * What is read is in range, finite, and saved again it would be the same. */
#include "lab/checkpoint.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lab_state state;
    char corpus_sha256[65], name[320];
    pe_error error;
    if (lab_checkpoint_parse(&state, corpus_sha256, data, size, &error) != PE_OK) {
        if (error.message[0] == '\0')
            __builtin_trap();
        return 0;
    }
    if (lab_config_check(&state.config, NULL) != PE_OK || state.step < 0 ||
        state.step > state.config.steps || !isfinite(state.loss_average))
        __builtin_trap();
    /* Three arrays in memory for as much in the file, and rounding up. */
    if ((uint64_t)state.layout.num_weights * 3 * sizeof(float) > size)
        __builtin_trap();
    for (int64_t i = 0; i < state.layout.size; i++)
        if (!isfinite(state.weights[i]) || !isfinite(state.moment1[i]) ||
            !isfinite(state.moment2[i]) || state.moment2[i] < 0)
            __builtin_trap();
    lab_config_name(&state.config, name, sizeof name);
    lab_state_release(&state);
    return 0;
}
