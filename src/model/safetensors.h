/* SPDX-License-Identifier: MIT
 *
 * safetensors.h - the header of a safetensors file, and folders of them
 */
#ifndef PE_SAFETENSORS_H
#define PE_SAFETENSORS_H

#include "model/checkpoint.h"

/* The length of a header that the reference implementation allows. */
#define PE_SAFETENSORS_HEADER_MAX 100000000

int pe_safetensors_is(const void *data, size_t size);

/* Adds the weights of one file, whose data point into data; file is its index among
 * several.  With settings, __metadata__ becomes settings of that name.  As the format
 * has it, data must cover the file without holes or overlap.  PE_E_FORMAT with the byte
 * offset; PE_E_LIMIT. */
pe_status pe_safetensors_read(pe_checkpoint *checkpoint, const void *data, size_t size,
                              int32_t file, int with_settings, pe_error *error);

/* Adds what a folder has: the shards that model.safetensors.index.json names, else
 * model.safetensors, else nothing.  Shards are files of the folder itself. */
pe_status pe_safetensors_read_folder(pe_checkpoint *checkpoint, const char *path,
                                     pe_error *error);
/* Weights are complete and sorted: each must be where the index says. */
pe_status pe_safetensors_check_index(const pe_checkpoint *checkpoint, pe_error *error);

#endif /* PE_SAFETENSORS_H */
