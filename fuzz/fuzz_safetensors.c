/* SPDX-License-Identifier: MIT
 *
 * fuzz_safetensors.c - any bytes as a safetensors file
 */
#include "posenc/model.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pe_checkpoint *checkpoint = NULL;
    pe_error error;
    if (pe_checkpoint_parse(&checkpoint, PE_FORMAT_SAFETENSORS, data, size, NULL,
                            &error) != PE_OK)
        return 0;
    for (int64_t i = 0; i < pe_checkpoint_num_settings(checkpoint); i++)
        sink += (unsigned)strlen(pe_checkpoint_setting(checkpoint, i)->text);
    for (int64_t i = 0; i < pe_checkpoint_num_weights(checkpoint); i++) {
        const pe_weight *weight = pe_checkpoint_weight(checkpoint, i);
        const unsigned char *bytes = weight->data;
        sink += (unsigned)strlen(weight->name) + (unsigned)strlen(weight->dtype_name);
        if (weight->size > 0)
            sink += bytes[0] + bytes[weight->size - 1];
        if (pe_checkpoint_find_weight(checkpoint, weight->name) != weight)
            __builtin_trap();
    }
    pe_checkpoint_destroy(checkpoint);
    return 0;
}
