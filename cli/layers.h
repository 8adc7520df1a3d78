/* SPDX-License-Identifier: MIT
 *
 * layers.h - layers folded into runs, "0-4,6-10"
 */
#ifndef POSENC_CLI_LAYERS_H
#define POSENC_CLI_LAYERS_H

#include "cli.h"

/* Adds a layer to a list in new memory (NULL: empty), which free releases.  Layers come
 * in ascending order; a repeated one changes nothing. */
int cli_layers_add(char **text, int32_t layer);

/* "s" when the text names more than one layer. */
const char *cli_layers_plural(const char *text);

#endif /* POSENC_CLI_LAYERS_H */
