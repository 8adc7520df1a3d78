/* SPDX-License-Identifier: MIT
 *
 * canvas_svg_heat.c - figures as SVG: heat maps and dials
 *
 * A heat map is a PNG inside, which the reader's program enlarges. */
#include "canvas_svg.h"

#include "palette.h"
#include "png.h"

#include <math.h>
#include <stdlib.h>

enum { BAR_WIDTH = 16, KEY_LINE = 20, MIN_WIDTH = 256, MIN_HEIGHT = 128 };

static void put_base64(FILE *out, const unsigned char *data, size_t size)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        const size_t left = size - i;
        const uint32_t group = (uint32_t)data[i] << 16 |
                               (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                               (left > 2 ? (uint32_t)data[i + 2] : 0);
        (void)fputc(digits[group >> 18], out);
        (void)fputc(digits[group >> 12 & 63], out);
        (void)fputc(left > 1 ? digits[group >> 6 & 63] : '=', out);
        (void)fputc(left > 2 ? digits[group & 63] : '=', out);
    }
}

/* pixels are colour steps plus one: 0 shows the page. */
static int put_image(FILE *out, cli_colours colours, const unsigned char *pixels,
                     int64_t width, int64_t height, const cli_box *box)
{
    uint32_t palette[CLI_NUM_COLOURS + 1] = {0xffffff};
    size_t size;
    for (int i = 0; i < CLI_NUM_COLOURS; i++)
        palette[i + 1] = cli_colour_of_step(colours, i);
    unsigned char *png =
        cli_png(pixels, width, height, palette, CLI_NUM_COLOURS + 1, &size);
    if (png == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    (void)fprintf(out,
                  "<image x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                  "preserveAspectRatio=\"none\" image-rendering=\"optimizeSpeed\" "
                  "xlink:href=\"data:image/png;base64,",
                  box->left, box->top, box->width, box->height);
    put_base64(out, png, size);
    (void)fputs("\"/>\n", out);
    free(png);
    return CLI_DONE;
}

static void put_categories(FILE *out, const cli_panel *panel, const cli_box *box)
{
    const double x = box->left + box->width + 16;
    for (int i = 0; panel->categories[i] != NULL; i++) {
        const double y = box->top + 10 + KEY_LINE * i;
        (void)fprintf(out,
                      "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"14\" "
                      "fill=\"#%06x\"/>\n",
                      x, y - 7, (unsigned)cli_colour_of_step(panel->colours, i));
        cli_svg_text(out, x + 22, y + 4, "key", "start", panel->categories[i]);
    }
}

static int put_scale(FILE *out, const cli_panel *panel, const cli_box *box)
{
    unsigned char steps[CLI_NUM_COLOURS];
    cli_tick ticks[CLI_MAX_TICKS];
    const cli_box bar = {.left = box->left + box->width + 24,
                         .top = box->top,
                         .width = BAR_WIDTH,
                         .height = box->height};
    for (int i = 0; i < CLI_NUM_COLOURS; i++)
        steps[i] = (unsigned char)(CLI_NUM_COLOURS - i);
    const int status = put_image(out, panel->colours, steps, 1, CLI_NUM_COLOURS, &bar);
    const int count = cli_axis_ticks(&panel->value, 7, ticks);
    for (int i = 0; i < count; i++) {
        const double y =
            bar.top + (1 - cli_axis_place(&panel->value, ticks[i].at)) * bar.height;
        cli_svg_line(out, bar.left + BAR_WIDTH, y, bar.left + BAR_WIDTH + 4, y, "axis");
        cli_svg_text(out, bar.left + BAR_WIDTH + 8, y + 4, "tick", "start",
                     ticks[i].text);
    }
    (void)fprintf(out, "<g transform=\"translate(%.1f %.1f) rotate(90)\">\n",
                  bar.left + 86, bar.top + bar.height / 2);
    cli_svg_text(out, 0, 0, "label", "middle", panel->value.label);
    (void)fputs("</g>\n", out);
    return status;
}

/* Some programs enlarge images smoothly, whatever the style says.  With several pixels
 * to a cell of a small map, only the edges of cells blur. */
static int64_t enlargement(int64_t cells, int64_t pixels)
{
    return cells < pixels ? (pixels + cells - 1) / cells : 1;
}

int cli_svg_heat(FILE *out, const cli_panel *panel, const cli_box *box)
{
    const int64_t wide = enlargement(panel->cols, MIN_WIDTH);
    const int64_t high = enlargement(panel->rows, MIN_HEIGHT);
    const int64_t width = panel->cols * wide, height = panel->rows * high;
    unsigned char *pixels = malloc((size_t)(width * height));
    if (pixels == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            const double value = panel->values[y / high * panel->cols + x / wide];
            pixels[y * width + x] = (unsigned char)(cli_colour_step(panel, value) + 1);
        }
    int status = put_image(out, panel->colours, pixels, width, height, box);
    free(pixels);
    if (status == CLI_DONE && panel->categories != NULL)
        put_categories(out, panel, box);
    else if (status == CLI_DONE)
        status = put_scale(out, panel, box);
    return status;
}

void cli_svg_dials(FILE *out, const cli_panel *panel, const cli_box *box)
{
    const double cell = box->width / (double)panel->cols, radius = cell * 0.4;
    for (int64_t c = 0; c < panel->cols; c++)
        cli_svg_text(out, box->left + ((double)c + 0.5) * cell, box->top - 6, "tick",
                     "middle", panel->col_names[c]);
    for (int64_t r = 0; r < panel->rows; r++)
        for (int64_t c = 0; c < panel->cols; c++) {
            const double angle = panel->values[r * panel->cols + c];
            const double x = box->left + ((double)c + 0.5) * cell;
            const double y = box->top + ((double)r + 0.5) * cell;
            (void)fprintf(
                out, "<circle class=\"dial\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", x,
                y, radius);
            cli_svg_line(out, x, y, x + radius * cos(angle), y - radius * sin(angle),
                         "hand s0");
        }
    cli_svg_text(out, box->left + box->width / 2, box->top + box->height + 24, "label",
                 "middle", panel->x.label);
}
