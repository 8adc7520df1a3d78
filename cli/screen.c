/* SPDX-License-Identifier: MIT
 *
 * screen.c - how pictures are shown on standard output
 */
#include "screen.h"

#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIN_WIDTH = 40, MAX_WIDTH = 400 };

const cli_choice cli_color_names[] = {
    {"auto", CLI_COLOR_AUTO}, {"always", CLI_COLOR_ALWAYS},  {"never", CLI_COLOR_NEVER},
    {"256", CLI_COLOR_256},   {"truecolor", CLI_COLOR_TRUE}, {NULL, 0}};

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "";
}

/* What the terminal says; NEVER: nothing, or that it has few. */
static cli_color_mode capability(void)
{
    const char *color = environment("COLORTERM"), *term = environment("TERM");
    if (strcmp(color, "truecolor") == 0 || strcmp(color, "24bit") == 0 ||
        strstr(term, "direct") != NULL)
        return CLI_COLOR_TRUE;
    return strstr(term, "256color") != NULL ? CLI_COLOR_256 : CLI_COLOR_NEVER;
}

static cli_color_mode choose(cli_color_mode asked)
{
    const cli_color_mode most = capability();
    const char *force = environment("CLICOLOR_FORCE");
    if (asked == CLI_COLOR_AUTO) {
        if (*environment("NO_COLOR") != '\0')
            return CLI_COLOR_NEVER;
        if (*force == '\0' || strcmp(force, "0") == 0)
            return isatty(STDOUT_FILENO) ? most : CLI_COLOR_NEVER;
        asked = CLI_COLOR_ALWAYS;
    }
    if (asked != CLI_COLOR_ALWAYS)
        return asked;
    return most == CLI_COLOR_NEVER ? CLI_COLOR_256 : most;
}

void cli_screen_find(cli_screen *out, cli_color_mode asked, int64_t width)
{
    if (width == 0)
        width = cli_columns();
    width = width < MIN_WIDTH ? MIN_WIDTH : width > MAX_WIDTH ? MAX_WIDTH : width;
    *out = (cli_screen){
        .color = choose(asked), .width = (int32_t)width, .has_blocks = cli_is_utf8()};
}
