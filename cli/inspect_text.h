/* SPDX-License-Identifier: MIT
 *
 * inspect_text.h - the tables at the end of posenc inspect
 */
#ifndef POSENC_CLI_INSPECT_TEXT_H
#define POSENC_CLI_INSPECT_TEXT_H

#include "cli.h"

#include "posenc/model.h"

/* One line for each run of layers that are alike.  Returns an exit code. */
int cli_inspect_layers(const pe_model *model);
/* Long values are cut, and what a second spec repeats is left out; --json has all. */
void cli_inspect_fields(const pe_model *model);

#endif /* POSENC_CLI_INSPECT_TEXT_H */
