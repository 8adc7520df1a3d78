/* SPDX-License-Identifier: MIT
 *
 * checkpoint.h - inside pe_checkpoint: settings, weights, and the bytes they came from
 */
#ifndef PE_CHECKPOINT_H
#define PE_CHECKPOINT_H

#include "model/file.h"
#include "model/settings.h"

struct pe_checkpoint {
    pe_env env; /* resolved */
    pe_arena arena;
    pe_settings settings;
    pe_format format;
    int32_t reserved;
    pe_weight *weights; /* in file order */
    int64_t num_weights;
    pe_file file; /* of pe_checkpoint_load */
};

#endif /* PE_CHECKPOINT_H */
