/* SPDX-License-Identifier: MIT
 *
 * checkpoint.h - inside pe_checkpoint: settings, weights, and the bytes they came from
 */
#ifndef PE_CHECKPOINT_H
#define PE_CHECKPOINT_H

#include "model/file.h"
#include "model/settings.h"
#include "model/weights.h"

struct pe_checkpoint {
    pe_env env; /* resolved */
    pe_arena arena;
    pe_settings settings;
    pe_format format;
    int32_t swapped; /* GGUF: weights are big endian */
    pe_weights weights;
    pe_file file;      /* of pe_checkpoint_load */
    pe_file index;     /* model.safetensors.index.json of a folder */
    pe_file *files;    /* safetensors of a folder; in the arena, as their names are */
    char **file_names; /* sorted */
    int32_t num_files;
    int32_t reserved;
};

#endif /* PE_CHECKPOINT_H */
