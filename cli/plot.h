/* SPDX-License-Identifier: MIT
 *
 * plot.h - what the kinds of posenc plot share
 */
#ifndef POSENC_CLI_PLOT_H
#define POSENC_CLI_PLOT_H

#include "figure.h"
#include "rope_arg.h"

typedef struct cli_plot_args {
    cli_rope_args rope;
    cli_range positions;                    /* begin = end: not said */
    int64_t dim, heads, trained_len, width; /* 0: not said */
    const char *model, *base_text, *factor_text, *output;
    double base, factor; /* 0: not said */
    int32_t deinterleave, format, color;
} cli_plot_args;

/* Fills an empty figure, which the caller releases whatever is returned: an exit code,
 * after a message if it is not CLI_DONE. */
typedef int (*cli_plot_fn)(const cli_plot_args *args, cli_figure *figure);

int cli_plot_table(const cli_plot_args *args, cli_figure *figure);
int cli_plot_waves(const cli_plot_args *args, cli_figure *figure);
int cli_plot_dials(const cli_plot_args *args, cli_figure *figure);
int cli_plot_decay(const cli_plot_args *args, cli_figure *figure);
int cli_plot_freqs(const cli_plot_args *args, cli_figure *figure);
int cli_plot_alibi(const cli_plot_args *args, cli_figure *figure);
int cli_plot_slopes(const cli_plot_args *args, cli_figure *figure);
int cli_plot_error(const cli_plot_args *args, cli_figure *figure);
int cli_plot_mrope(const cli_plot_args *args, cli_figure *figure);

/* The rotation of --model, or of --dim and --base (10000) with default frequencies. */
typedef struct cli_plot_rope {
    cli_model model; /* empty without --model */
    cli_rope rope;
    char name[CLI_NAME_SIZE];
} cli_plot_rope;

int cli_plot_rope_open(cli_plot_rope *out, const cli_plot_args *args,
                       int64_t default_dim, int64_t last);
void cli_plot_rope_close(cli_plot_rope *rope);

/* --positions, or [begin, end); refused outside [lowest, begin + most). */
int cli_plot_range(cli_range *out, const cli_plot_args *args, cli_range otherwise,
                   int64_t lowest, int64_t most);

#endif /* POSENC_CLI_PLOT_H */
