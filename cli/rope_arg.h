/* SPDX-License-Identifier: MIT
 *
 * rope_arg.h - the rotation that --layer, --role, --seq-len and --angles choose
 */
#ifndef POSENC_CLI_ROPE_ARG_H
#define POSENC_CLI_ROPE_ARG_H

#include "model_arg.h"
#include "names.h"
#include "options.h"

typedef struct cli_rope_args {
    int64_t layer; /* -1: not said */
    int64_t seq_len;
    int32_t role; /* -1: not said */
    int32_t angles;
    pe_isa isa; /* one that runs here */
} cli_rope_args;

/* clang-format off */
#define CLI_ROPE_DEFAULTS {.layer = -1, .role = -1}

/* The entries of an option table whose arguments have a cli_rope_args named rope. */
#define CLI_ROPE_OPTIONS(args_type)                                                    \
    {.name = "layer",                                                                  \
     .argument = "N",                                                                  \
     .type = CLI_INTEGER,                                                              \
     .max = INT32_MAX,                                                                 \
     .offset = offsetof(args_type, rope.layer),                                        \
     .help = "the layer to take, where layers differ"},                                \
    {.name = "role",                                                                   \
     .argument = "ROLE",                                                               \
     .type = CLI_CHOICE,                                                               \
     .choices = cli_role_names,                                                        \
     .offset = offsetof(args_type, rope.role),                                         \
     .help = "which attention of the layer: self (default, where there is one), "       \
             "cross, indexer, compress, encoder or vision"},                           \
    {.name = "seq-len",                                                                \
     .argument = "N",                                                                  \
     .type = CLI_INTEGER,                                                              \
     .min = 1,                                                                         \
     .max = INT64_MAX,                                                                 \
     .offset = offsetof(args_type, rope.seq_len),                                      \
     .help = "total length served, for frequencies that depend on it (dynamic, "        \
             "longrope); default: the trained length, or the largest position "        \
             "plus 1 if that is longer"},                                              \
    {.name = "angles",                                                                 \
     .argument = "KIND",                                                               \
     .type = CLI_CHOICE,                                                               \
     .choices = cli_angles_names,                                                      \
     .offset = offsetof(args_type, rope.angles),                                       \
     .help = "exact (default: correctly rounded), hf_f32 (as PyTorch code computes "    \
             "them) or ggml_f32 (as ggml does)"}
/* clang-format on */

typedef struct cli_rope {
    pe_rope *plan;
    const pe_rope_info *info;
    pe_rope_spec spec;
    char layers[256]; /* of the chosen site, folded; cut with "..." when longer */
} cli_rope;

/* last: the largest position that will be asked for; -1: none.  Says what went wrong
 * and returns an exit code; CLI_USAGE names the groups when sites differ and no layer
 * was said. */
int cli_rope_open(cli_rope *out, cli_model *model, const cli_rope_args *args,
                  int64_t last, int64_t table_len);
void cli_rope_close(cli_rope *rope);

#endif /* POSENC_CLI_ROPE_ARG_H */
