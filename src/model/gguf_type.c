/* SPDX-License-Identifier: MIT
 *
 * gguf_type.c - the tensor types of ggml, by number
 *
 * A file may hold newer ones: their tensors then have a place but no size.  Numbers and
 * sizes: ggml.h, enum ggml_type, and the block structs of ggml-common.h. */
#include "model/gguf.h"

/* clang-format off */
static const pe_gguf_type types[] = {
    [0] = {"F32", PE_F32, 1, 4},      [1] = {"F16", PE_F16, 1, 2},
    [2] = {"Q4_0", 0, 32, 18},        [3] = {"Q4_1", 0, 32, 20},
    [6] = {"Q5_0", 0, 32, 22},        [7] = {"Q5_1", 0, 32, 24},
    [8] = {"Q8_0", 0, 32, 34},        [9] = {"Q8_1", 0, 32, 36},
    [10] = {"Q2_K", 0, 256, 84},      [11] = {"Q3_K", 0, 256, 110},
    [12] = {"Q4_K", 0, 256, 144},     [13] = {"Q5_K", 0, 256, 176},
    [14] = {"Q6_K", 0, 256, 210},     [15] = {"Q8_K", 0, 256, 292},
    [16] = {"IQ2_XXS", 0, 256, 66},   [17] = {"IQ2_XS", 0, 256, 74},
    [18] = {"IQ3_XXS", 0, 256, 98},   [19] = {"IQ1_S", 0, 256, 50},
    [20] = {"IQ4_NL", 0, 32, 18},     [21] = {"IQ3_S", 0, 256, 110},
    [22] = {"IQ2_S", 0, 256, 82},     [23] = {"IQ4_XS", 0, 256, 136},
    [24] = {"I8", 0, 1, 1},           [25] = {"I16", 0, 1, 2},
    [26] = {"I32", 0, 1, 4},          [27] = {"I64", 0, 1, 8},
    [28] = {"F64", 0, 1, 8},          [29] = {"IQ1_M", 0, 256, 56},
    [30] = {"BF16", PE_BF16, 1, 2},   [34] = {"TQ1_0", 0, 256, 54},
    [35] = {"TQ2_0", 0, 256, 66},     [39] = {"MXFP4", 0, 32, 17},
    [40] = {"NVFP4", 0, 64, 36},
};
/* clang-format on */

const pe_gguf_type *pe_gguf_find_type(uint32_t id)
{
    return id < PE_COUNT(types) && types[id].name != NULL ? &types[id] : NULL;
}
