/* SPDX-License-Identifier: MIT
 *
 * presets.h - finding one preset in the embedded file
 */
#ifndef PE_PRESETS_H
#define PE_PRESETS_H

#include "posenc/model.h"

/* 1, and the preset's JSON object; 0: no such name. */
int pe_preset_find(const char *name, const char **text, size_t *size);

#endif /* PE_PRESETS_H */
