/* SPDX-License-Identifier: MIT
 *
 * palette.c - colours, as 0xRRGGBB
 *
 * Scales are straight lines between anchors whose lightness only rises (sequential), or
 * falls to either side of the middle (diverging). */
#include "palette.h"

#include <math.h>

const uint32_t cli_series_light[CLI_MAX_SERIES] = {
    0x1f5fd0, 0xd9480f, 0x2b8a3e, 0xa61e9e, 0x946c00, 0x0b7285, 0xc0202b, 0x5f3dc4};
const uint32_t cli_series_dark[CLI_MAX_SERIES] = {
    0x74a9ff, 0xff9a4d, 0x69db7c, 0xf08cff, 0xe6c229, 0x3bc9db, 0xff8787, 0xb197fc};
const uint32_t cli_series_any[CLI_MAX_SERIES] = {
    0x4c8dff, 0xf76707, 0x37b24d, 0xcc5de8, 0xc9a100, 0x1098ad, 0xf03e3e, 0x845ef7};

static const uint32_t sequential[] = {0x2a1a5e, 0x28609c, 0x2a9d8f, 0x9bc53d, 0xfde74c};
static const uint32_t diverging[] = {0x143d80, 0x3f7fd0, 0xf4f4f4, 0xd9604a, 0x7f1a12};
static const uint32_t categories[] = {0x4c78c8, 0xe0872b, 0x4fae6a, 0xa065c8};

int cli_colour_step(const cli_panel *panel, double value)
{
    if (isnan(value))
        return -1;
    if (panel->colours == CLI_CATEGORIES)
        return (int)value & 3;
    const double place = cli_axis_place(&panel->value, value);
    const double step = floor(place * CLI_NUM_COLOURS);
    return step < 0 ? 0 : step < CLI_NUM_COLOURS ? (int)step : CLI_NUM_COLOURS - 1;
}

uint32_t cli_colour_of_step(cli_colours colours, int step)
{
    if (colours == CLI_CATEGORIES)
        return categories[step & 3];
    const uint32_t *anchors = colours == CLI_DIVERGING ? diverging : sequential;
    const int at = step * 4, i = at / (CLI_NUM_COLOURS - 1);
    if (i >= 4)
        return anchors[4];
    const int part = at % (CLI_NUM_COLOURS - 1);
    uint32_t colour = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        const int from = (int)(anchors[i] >> shift & 0xff);
        const int to = (int)(anchors[i + 1] >> shift & 0xff);
        const int mixed = from + (to - from) * part / (CLI_NUM_COLOURS - 1);
        colour |= (uint32_t)mixed << shift;
    }
    return colour;
}
