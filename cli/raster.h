/* SPDX-License-Identifier: MIT
 *
 * raster.h - a grid of coloured pixels, two to a terminal cell or one
 */
#ifndef POSENC_CLI_RASTER_H
#define POSENC_CLI_RASTER_H

#include "screen.h"

#include <stdio.h>

/* A pixel: its colour, and what stands for it where there are no colours. */
typedef struct cli_pixel {
    uint32_t colour;
    char letter; /* 0: nothing is there */
} cli_pixel;

typedef struct cli_raster {
    int32_t width, height; /* in pixels */
    int32_t per_cell;      /* pixels above each other in a cell: 2, or 1 as text */
    cli_pixel *pixels;     /* NULL: out of memory */
} cli_raster;

/* Of columns by lines cells.  is_text: one letter to a cell although the terminal could
 * show half blocks. */
cli_raster cli_raster_create(const cli_screen *screen, int32_t columns, int32_t lines,
                             int is_text);
/* Outside the raster: nothing happens. */
void cli_raster_set(cli_raster *raster, int32_t x, int32_t y, cli_pixel pixel);
void cli_raster_line(cli_raster *raster, double x1, double y1, double x2, double y2,
                     cli_pixel pixel);
/* The cells of one line of text. */
void cli_raster_print(const cli_raster *raster, const cli_screen *screen, int32_t line,
                      FILE *out);
void cli_raster_release(cli_raster *raster);

/* width cells of a colour; without colours, plain. */
void cli_print_swatch(const cli_screen *screen, uint32_t colour, const char *plain,
                      int width, FILE *out);

#endif /* POSENC_CLI_RASTER_H */
