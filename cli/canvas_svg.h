/* SPDX-License-Identifier: MIT
 *
 * canvas_svg.h - what the parts of the SVG canvas share
 */
#ifndef POSENC_CLI_CANVAS_SVG_H
#define POSENC_CLI_CANVAS_SVG_H

#include "figure.h"

/* The drawing area of a panel, in user units. */
typedef struct cli_box {
    double left, top, width, height;
} cli_box;

/* style: a class of the style sheet; anchor: start, middle or end. */
void cli_svg_text(FILE *out, double x, double y, const char *style, const char *anchor,
                  const char *text);
void cli_svg_line(FILE *out, double x1, double y1, double x2, double y2,
                  const char *style);

/* Cells and the key to their colours, or one dial for each cell.  CLI_FAILED: out of
 * memory. */
int cli_svg_heat(FILE *out, const cli_panel *panel, const cli_box *box);
void cli_svg_dials(FILE *out, const cli_panel *panel, const cli_box *box);

#endif /* POSENC_CLI_CANVAS_SVG_H */
