/* SPDX-License-Identifier: MIT
 *
 * canvas.h - figures as SVG, as CSV, and as lines of a terminal
 */
#ifndef POSENC_CLI_CANVAS_H
#define POSENC_CLI_CANVAS_H

#include "figure.h"
#include "screen.h"

/* Whether out could take it is for the caller to ask; CLI_FAILED: out of memory. */
int cli_figure_svg(const cli_figure *figure, FILE *out);
int cli_figure_text(const cli_figure *figure, const cli_screen *screen, FILE *out);
void cli_figure_csv(const cli_figure *figure, FILE *out);
/* One field by RFC 4180: quoted where a comma, a quote or the end of a line is inside. */
void cli_csv_text(FILE *out, const char *text);

#endif /* POSENC_CLI_CANVAS_H */
