/* SPDX-License-Identifier: MIT
 *
 * names.h - the words for the library's enums, in options and in reports
 */
#ifndef POSENC_CLI_NAMES_H
#define POSENC_CLI_NAMES_H

#include "options.h"

#include "posenc/env.h"

extern const cli_choice cli_angles_names[];
extern const cli_choice cli_isa_names[];
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

/* clang-format off */
/* The entry of an option table whose arguments have an int32_t isa. */
#define CLI_ISA_OPTION(args_type)                                                      \
    {.name = "isa",                                                                    \
     .argument = "ISA",                                                                \
     .type = CLI_CHOICE,                                                               \
     .choices = cli_isa_names,                                                         \
     .offset = offsetof(args_type, isa),                                               \
     .help = "instruction set: auto (default), scalar, neon, avx2, avx512 or "         \
             "wasm128; posenc cpu lists what runs here"}
/* clang-format on */

/* The instruction set that --isa means here: the best for auto.  Says so and returns
 * CLI_FAILED if it does not run here. */
int cli_isa_choose(int32_t wanted, pe_isa *out);

#endif /* POSENC_CLI_NAMES_H */
