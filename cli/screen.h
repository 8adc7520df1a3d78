/* SPDX-License-Identifier: MIT
 *
 * screen.h - how pictures are shown on standard output
 */
#ifndef POSENC_CLI_SCREEN_H
#define POSENC_CLI_SCREEN_H

#include "options.h"

typedef int32_t cli_color_mode;
enum {
    CLI_COLOR_AUTO = 0, /* as the environment and the terminal say */
    CLI_COLOR_NEVER = 1,
    CLI_COLOR_ALWAYS = 2, /* as many as the terminal says, at least 256 */
    CLI_COLOR_256 = 3,
    CLI_COLOR_TRUE = 4
};

extern const cli_choice cli_color_names[];

typedef struct cli_screen {
    cli_color_mode color; /* NEVER, 256 or TRUE */
    int32_t width;        /* columns, 40 to 400 */
    int32_t has_blocks;   /* the locale is UTF-8: half blocks can be shown */
} cli_screen;

/* asked and width as options gave them; width 0: the terminal's, COLUMNS, or 80.  In
 * order, --color, NO_COLOR, CLICOLOR_FORCE and whether stdout is a terminal decide;
 * COLORTERM and TERM say how many colours. */
void cli_screen_find(cli_screen *out, cli_color_mode asked, int64_t width);

#endif /* POSENC_CLI_SCREEN_H */
