/* SPDX-License-Identifier: MIT
 *
 * palette.h - colours, as 0xRRGGBB
 */
#ifndef POSENC_CLI_PALETTE_H
#define POSENC_CLI_PALETTE_H

#include "figure.h"

enum { CLI_NUM_COLOURS = 255 };

/* Of the series of a line panel: on white, on black, and on a terminal of either kind. */
extern const uint32_t cli_series_light[CLI_MAX_SERIES];
extern const uint32_t cli_series_dark[CLI_MAX_SERIES];
extern const uint32_t cli_series_any[CLI_MAX_SERIES];

/* The step of a heat map's scale that a value falls on, in [0, CLI_NUM_COLOURS); -1: no
 * number.  For categories the value itself. */
int cli_colour_step(const cli_panel *panel, double value);
uint32_t cli_colour_of_step(cli_colours colours, int step);

#endif /* POSENC_CLI_PALETTE_H */
