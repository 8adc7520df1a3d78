/* SPDX-License-Identifier: MIT
 *
 * layers.c - layers folded into runs, "0-4,6-10"
 */
#include "layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_SIZE = 16 };

int cli_layers_add(char **text, int32_t layer)
{
    const size_t used = *text != NULL ? strlen(*text) : 0;
    char *moved = realloc(*text, used + NUMBER_SIZE);
    if (moved == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    *text = moved;
    if (used == 0) {
        (void)snprintf(moved, NUMBER_SIZE, "%d", (int)layer);
        return CLI_DONE;
    }
    moved[used] = '\0';
    size_t last = used;
    while (last > 0 && moved[last - 1] != ',' && moved[last - 1] != '-')
        last--;
    const long end = strtol(moved + last, NULL, 10);
    if (layer == end)
        return CLI_DONE;
    if (layer != end + 1)
        (void)snprintf(moved + used, NUMBER_SIZE, ",%d", (int)layer);
    else if (last > 0 && moved[last - 1] == '-')
        (void)snprintf(moved + last, NUMBER_SIZE, "%d", (int)layer);
    else
        (void)snprintf(moved + used, NUMBER_SIZE, "-%d", (int)layer);
    return CLI_DONE;
}

const char *cli_layers_plural(const char *text)
{
    return strpbrk(text, ",-") != NULL ? "s" : "";
}
