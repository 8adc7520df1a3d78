/* SPDX-License-Identifier: MIT
 *
 * inspect_json.h - the posenc.inspect/1 report
 */
#ifndef POSENC_CLI_INSPECT_JSON_H
#define POSENC_CLI_INSPECT_JSON_H

#include "model_arg.h"

/* Prints it; returns an exit code. */
int cli_inspect_json(const cli_model *model);

#endif /* POSENC_CLI_INSPECT_JSON_H */
