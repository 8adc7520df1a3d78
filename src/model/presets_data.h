/* SPDX-License-Identifier: MIT
 *
 * presets_data.h - data/presets.json as bytes; the build makes the .c from it
 */
#ifndef PE_PRESETS_DATA_H
#define PE_PRESETS_DATA_H

#include <stddef.h>

extern const unsigned char pe_presets_data[];
extern const size_t pe_presets_size;

#endif /* PE_PRESETS_DATA_H */
