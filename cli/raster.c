/* SPDX-License-Identifier: MIT
 *
 * raster.c - a grid of coloured pixels, two to a terminal cell or one
 *
 * With colours: the upper half block in one colour on a background in the other
 * (ECMA-48 SGR 38 and 48).  Without: letters, or blocks where only shape matters. */
#include "raster.h"

#include <math.h>
#include <stdlib.h>

cli_raster cli_raster_create(const cli_screen *screen, int32_t columns, int32_t lines,
                             int is_text)
{
    const int32_t per_cell = screen->has_blocks && !is_text ? 2 : 1;
    return (cli_raster){.width = columns,
                        .height = lines * per_cell,
                        .per_cell = per_cell,
                        .pixels = calloc((size_t)columns * (size_t)(lines * per_cell),
                                         sizeof(cli_pixel))};
}

void cli_raster_set(cli_raster *raster, int32_t x, int32_t y, cli_pixel pixel)
{
    if (x >= 0 && x < raster->width && y >= 0 && y < raster->height)
        raster->pixels[(size_t)y * (size_t)raster->width + (size_t)x] = pixel;
}

void cli_raster_line(cli_raster *raster, double x1, double y1, double x2, double y2,
                     cli_pixel pixel)
{
    const double length = fmax(fabs(x2 - x1), fabs(y2 - y1));
    const int steps = length < 1 ? 1 : length < 4096 ? (int)ceil(length) : 4096;
    for (int i = 0; i <= steps; i++) {
        const double t = (double)i / steps;
        cli_raster_set(raster, (int32_t)lround(x1 + t * (x2 - x1)),
                       (int32_t)lround(y1 + t * (y2 - y1)), pixel);
    }
}

static int nearest_level(int value)
{
    return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40;
}

/* The 6 x 6 x 6 cube of xterm, whose levels are 0, 95, 135 ... 255, or one of its 24
 * greys, whichever is nearer. */
static int colour_256(uint32_t colour)
{
    const int rgb[3] = {(int)(colour >> 16), (int)(colour >> 8 & 255),
                        (int)(colour & 255)};
    const int mean = (rgb[0] + rgb[1] + rgb[2]) / 3;
    int step = (mean - 3) / 10, index = 16, cube_error = 0, grey_error = 0;
    step = step < 0 ? 0 : step > 23 ? 23 : step;
    for (int i = 0; i < 3; i++) {
        const int level = nearest_level(rgb[i]), value = level ? 55 + 40 * level : 0;
        index = i == 0 ? 16 + 36 * level : i == 1 ? index + 6 * level : index + level;
        cube_error += (rgb[i] - value) * (rgb[i] - value);
        grey_error += (rgb[i] - 8 - 10 * step) * (rgb[i] - 8 - 10 * step);
    }
    return grey_error < cube_error ? 232 + step : index;
}

/* layer 38: letters; 48: what is behind them. */
static void put_colour(const cli_screen *screen, int layer, uint32_t colour, FILE *out)
{
    if (screen->color == CLI_COLOR_TRUE)
        (void)fprintf(out, "\33[%d;2;%d;%d;%dm", layer, (int)(colour >> 16),
                      (int)(colour >> 8 & 255), (int)(colour & 255));
    else
        (void)fprintf(out, "\33[%d;5;%dm", layer, colour_256(colour));
}

void cli_print_swatch(const cli_screen *screen, uint32_t colour, const char *plain,
                      int width, FILE *out)
{
    if (screen->color == CLI_COLOR_NEVER) {
        (void)fputs(plain, out);
        return;
    }
    put_colour(screen, screen->has_blocks ? 38 : 48, colour, out);
    for (int i = 0; i < width; i++)
        (void)fputs(screen->has_blocks ? "\u2588" : " ", out);
    (void)fputs("\33[0m", out);
}

static void put_plain(const cli_pixel *upper, const cli_pixel *lower, FILE *out)
{
    if (upper == lower)
        (void)fputc(upper->letter ? upper->letter : ' ', out);
    else
        (void)fputs(upper->letter   ? lower->letter ? "\u2588" : "\u2580"
                    : lower->letter ? "\u2584"
                                    : " ",
                    out);
}

static void put_cell(const cli_screen *screen, const cli_pixel *upper,
                     const cli_pixel *lower, FILE *out)
{
    if (!upper->letter && !lower->letter) {
        (void)fputc(' ', out);
        return;
    }
    const int is_whole = upper == lower || (upper->letter && lower->letter &&
                                            upper->colour == lower->colour);
    const cli_pixel *ink = upper->letter ? upper : lower;
    if (is_whole) {
        cli_print_swatch(screen, ink->colour, "", 1, out);
        return;
    }
    put_colour(screen, 38, ink->colour, out);
    if (upper->letter && lower->letter)
        put_colour(screen, 48, lower->colour, out);
    (void)fputs(upper->letter ? "\u2580" : "\u2584", out);
    (void)fputs("\33[0m", out);
}

void cli_raster_print(const cli_raster *raster, const cli_screen *screen, int32_t line,
                      FILE *out)
{
    const cli_pixel *upper =
        raster->pixels + (size_t)(line * raster->per_cell) * (size_t)raster->width;
    const cli_pixel *lower = raster->per_cell == 2 ? upper + raster->width : upper;
    for (int32_t x = 0; x < raster->width; x++)
        if (screen->color == CLI_COLOR_NEVER)
            put_plain(upper + x, lower + x, out);
        else
            put_cell(screen, upper + x, lower + x, out);
}

void cli_raster_release(cli_raster *raster)
{
    free(raster->pixels);
    raster->pixels = NULL;
}
