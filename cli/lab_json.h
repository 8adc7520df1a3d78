/* SPDX-License-Identifier: MIT
 *
 * lab_json.h - results of the lab as JSON, schema posenc.lab/1
 */
#ifndef POSENC_CLI_LAB_JSON_H
#define POSENC_CLI_LAB_JSON_H

#include "report.h"

#include "lab/results.h"

/* {"schema", "settings", "results", "timing"}; with_positions adds by_position to the
 * results that have it. */
json_object *cli_lab_json(const lab_results *results, int with_positions);
/* Writes the object to a file and releases it; says what went wrong and returns an exit
 * code. */
int cli_lab_save_json(json_object *object, const char *path);

#endif /* POSENC_CLI_LAB_JSON_H */
