/* SPDX-License-Identifier: MIT
 *
 * model_arg.h - the MODEL argument of a verb
 */
#ifndef POSENC_CLI_MODEL_ARG_H
#define POSENC_CLI_MODEL_ARG_H

#include "input.h"

/* For the help of every verb that takes a MODEL. */
#define CLI_MODEL_HELP                                                               \
  "MODEL is a config.json, a folder that holds one, a GGUF file, - (either of the\n" \
  "two on standard input), or the name of a preset (see posenc presets).  A file\n"  \
  "or folder wins over a preset of the same name."

typedef struct cli_model {
    pe_checkpoint *checkpoint; /* NULL: a preset */
    pe_model *model;
    const char *name; /* for messages and reports */
} cli_model;

/* seq_len as pe_model_create takes it.  Says what went wrong, naming the nearest preset
 * for a name that is none, and returns an exit code. */
int cli_model_open(cli_model *out, const char *argument, int64_t seq_len);
/* The same model for another length; specs taken before are no longer valid. */
int cli_model_set_len(cli_model *model, int64_t seq_len);
void cli_model_close(cli_model *model);

#endif /* POSENC_CLI_MODEL_ARG_H */
