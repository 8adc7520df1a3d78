/* SPDX-License-Identifier: MIT
 *
 * keys_arg.h - cached keys on their way to other positions: what shift and rebase share
 */
#ifndef POSENC_CLI_KEYS_ARG_H
#define POSENC_CLI_KEYS_ARG_H

#include "rope_arg.h"
#include "stream.h"

typedef struct cli_keys_args {
    cli_rope_args rope;
    const char *keys, *output;
    int32_t layout, bf16;
} cli_keys_args;

extern const cli_choice cli_layout_names[];

/* In the option table of args_type, whose member keys is a cli_keys_args; the options
 * of the rotation follow it. */
/* clang-format off */
#define CLI_KEYS_OPTIONS(args_type)                                                    \
    {.name = "keys",                                                                   \
     .letter = 'k',                                                                    \
     .argument = "FILE.npy",                                                           \
     .type = CLI_TEXT,                                                                 \
     .offset = offsetof(args_type, keys.keys),                                         \
     .help = "rotated keys; - is standard input"},                                     \
    {.name = "output",                                                                 \
     .letter = 'o',                                                                    \
     .argument = "FILE.npy",                                                           \
     .type = CLI_TEXT,                                                                 \
     .offset = offsetof(args_type, keys.output),                                       \
     .help = "where they go, with the dtype and shape they have; - is standard "       \
             "output"},                                                                \
    {.name = "layout",                                                                 \
     .argument = "ORDER",                                                              \
     .type = CLI_CHOICE,                                                               \
     .choices = cli_layout_names,                                                      \
     .offset = offsetof(args_type, keys.layout),                                       \
     .help = "axes of the file: bshd (default: batch, seq_len, heads, head_dim) or "   \
             "bhsd.  Three axes: no batch.  Two: one head"},                           \
    {.name = "bf16",                                                                   \
     .type = CLI_FLAG,                                                                 \
     .offset = offsetof(args_type, keys.bf16),                                         \
     .help = "the file is uint16 that holds bfloat16"}
/* clang-format on */

typedef struct cli_keys {
    cli_tensor tensor;
    cli_file_out out;
    cli_stream_fn change;
    void *context;
    double largest; /* of |elements|, as read */
    float *room;    /* a part of a piece as float32 */
} cli_keys;

/* Opens the keys, which must fit the rotation.  Says what went wrong and returns an exit
 * code, as the next does. */
int cli_keys_open(cli_keys *out, const cli_keys_args *args, const cli_model *model,
                  const cli_rope *rope);
/* Passes them through change and writes them; factor is what lengths are multiplied by.
 * Reports on stderr: done, and how far rounding may have moved an element. */
int cli_keys_move(cli_keys *keys, const cli_keys_args *args, cli_stream_fn change,
                  void *context, double factor, const char *done);
void cli_keys_close(cli_keys *keys);

#endif /* POSENC_CLI_KEYS_ARG_H */
