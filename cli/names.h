/* SPDX-License-Identifier: MIT
 *
 * names.h - the words for the library's enums, in options and in reports
 */
#ifndef POSENC_CLI_NAMES_H
#define POSENC_CLI_NAMES_H

#include "options.h"

extern const cli_choice cli_angles_names[];
extern const cli_choice cli_pairing_names[];
extern const cli_choice cli_rope_type_names[];
extern const cli_choice cli_mscale_names[];
extern const cli_choice cli_axis_names[];
extern const cli_choice cli_role_names[];
extern const cli_choice cli_dtype_names[];
extern const cli_choice cli_float_names[];
extern const cli_choice cli_bias_names[];
extern const cli_choice cli_form_names[];
extern const cli_choice cli_recipe_names[];
extern const cli_choice cli_order_names[];
extern const cli_choice cli_source_names[];
extern const cli_choice cli_level_names[];

#endif /* POSENC_CLI_NAMES_H */
