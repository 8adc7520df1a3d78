/* SPDX-License-Identifier: MIT
 *
 * lab_store.h - the folder of a run, FOLDER/METHOD-seedN, and what is kept there
 */
#ifndef POSENC_CLI_LAB_STORE_H
#define POSENC_CLI_LAB_STORE_H

#include "report.h"

#include "lab/checkpoint.h"

#define CLI_LAB_CHECKPOINT "checkpoint.safetensors"

/* "FOLDER/METHOD-seedN" in new memory; NULL: out of memory, said. */
char *cli_lab_folder(const char *output, const lab_config *config);
/* "FOLDER/NAME" in new memory; NULL: out of memory, said. */
char *cli_lab_path(const char *folder, const char *name);

/* The path of a checkpoint, given itself or as the folder of a run, in new memory; NULL:
 * out of memory, said. */
char *cli_lab_file(const char *path);
/* Reads it; corpus_sha256 may be NULL.  Says what is wrong and returns an exit code. */
int cli_lab_load(const char *path, lab_state *out, char corpus_sha256[65]);

/* "method", "seed" and "settings" of a run, whose names are those of results. */
void cli_lab_json_config(json_object *object, const lab_config *config);

#endif /* POSENC_CLI_LAB_STORE_H */
