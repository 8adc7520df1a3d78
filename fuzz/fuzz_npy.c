/* SPDX-License-Identifier: MIT
 *
 * fuzz_npy.c - any bytes as an npy file
 */
#include "posenc/model.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte that an accepted file promises must be there. */
static void touch(const pe_weight *weight)
{
    volatile unsigned char sum = 0;
    for (uint64_t i = 0; i < weight->size; i++)
        sum = (unsigned char)(sum + ((const unsigned char *)weight->data)[i]);
    if (weight->rank < 0 || weight->rank > 8 || strlen(weight->dtype_name) != 3)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pe_checkpoint *checkpoint = NULL;
    pe_error error = {0};
    pe_status status =
        pe_checkpoint_parse(&checkpoint, PE_FORMAT_NPY, data, size, NULL, &error);
    if (status == PE_OK)
        touch(pe_checkpoint_weight(checkpoint, 0));
    else if (checkpoint != NULL || error.offset < 0 || (uint64_t)error.offset > size)
        abort();
    pe_checkpoint_destroy(checkpoint);
    return 0;
}
