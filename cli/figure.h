/* SPDX-License-Identifier: MIT
 *
 * figure.h - what a picture shows, before anything is said of how
 *
 * plot_*.c fill figures; canvas_*.c draw them as SVG, CSV or text.  A panel owns its
 * arrays. */
#ifndef POSENC_CLI_FIGURE_H
#define POSENC_CLI_FIGURE_H

#include "cli.h"

#include <stdio.h>

enum { CLI_NAME_SIZE = 64, CLI_MAX_SERIES = 8, CLI_MAX_PANELS = 2 };

typedef struct cli_axis {
    const char *label;  /* with its unit: "distance (tokens)" */
    const char *column; /* in CSV: "distance" */
    double min, max;
    int32_t log_base; /* 0: linear; 2 or 10 */
    int32_t digits;   /* significant, in CSV; 0: all */
    int32_t is_whole; /* 1: no fractions among the ticks, powers of 2 written out */
} cli_axis;

typedef struct cli_series {
    char name[CLI_NAME_SIZE];
    double *x, *y;
    double *low, *high; /* shaded between them; NULL: not */
    int64_t count;
    int32_t is_dotted; /* points, not joined */
} cli_series;

typedef int32_t cli_colours;
enum {
    CLI_SEQUENTIAL = 0, /* from value.min to value.max */
    CLI_DIVERGING = 1,  /* the middle of the two is neutral */
    CLI_CATEGORIES = 2  /* values 0 to 3, named by categories */
};

typedef int32_t cli_panel_type;
enum {
    CLI_LINES = 0,
    CLI_HEAT = 1, /* values[rows][cols], the first row on top */
    CLI_DIALS = 2 /* the same, in radians */
};

typedef struct cli_panel {
    cli_panel_type type;
    const char *title; /* of one of several panels; also its name in CSV */
    cli_axis x, y;     /* of a heat map: where the first and last cell stand */
    cli_series series[CLI_MAX_SERIES];
    int32_t num_series;
    cli_colours colours;
    double mark; /* on x, a line across; 0: none */
    char mark_name[CLI_NAME_SIZE];
    double *values;
    int64_t rows, cols;
    cli_axis value;
    char (*row_names)[CLI_NAME_SIZE]; /* [rows]; NULL: numbered along y */
    char (*col_names)[CLI_NAME_SIZE];
    const char *const *categories; /* ended by NULL */
} cli_panel;

typedef struct cli_figure {
    char title[160];
    char note[400]; /* what the reader must know to read it rightly */
    cli_panel panels[CLI_MAX_PANELS];
    int32_t num_panels;
} cli_figure;

/* The next panel, or series with room for count points; the callers know the numbers.
 * NULL, with a message: out of memory. */
cli_panel *cli_figure_panel(cli_figure *figure, cli_panel_type type);
cli_series *cli_panel_series(cli_panel *panel, int64_t count);
/* Makes low and high.  Returns an exit code. */
int cli_series_spread(cli_series *series);
/* Makes values, and names if wanted.  Returns an exit code. */
int cli_panel_cells(cli_panel *panel, int64_t rows, int64_t cols, int has_row_names,
                    int has_col_names);
void cli_figure_release(cli_figure *figure);

/* What cli_escape would escape becomes '?': names come from files. */
void cli_clean_text(char *text);

/* Where a value stands: 0 at min, 1 at max; logarithms of what is not positive stand
 * far below. */
double cli_axis_place(const cli_axis *axis, double value);

typedef struct cli_tick {
    double at;
    char text[24];
} cli_tick;

/* "1e+06" becomes "1e6". */
void cli_tidy_number(char *text);

enum { CLI_MAX_TICKS = 16 };
/* Round numbers in [min, max], about as many as wanted; their count. */
int cli_axis_ticks(const cli_axis *axis, int wanted, cli_tick out[CLI_MAX_TICKS]);

#endif /* POSENC_CLI_FIGURE_H */
